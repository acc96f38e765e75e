// What is around a page at a date: rings by distance, sectors by domain. A node has its place for good; time only moves
// nodes in and out, so nothing ever swaps places. One answer has all dates; a date that rests is asked for by itself.
//
// Two canvases: of the rings, drawn while something moves, and of time.

import { addressFrom } from "../page/address.js";
import { asks } from "../page/asks.js";
import { areaOf, canvas, framesOf, readLine, whenResized } from "../parts/area.js";
import { el } from "../parts/dom.js";
import { notice } from "../parts/head.js";
import { keyOf, nearKey } from "../parts/key.js";
import { tableSwitch } from "../parts/rows.js";
import { paperOf } from "../parts/save.js";
import { hostOf } from "../text/names.js";
import { DAY } from "../text/time.js";
import { key, watchPointers } from "./neighbourhood/hands.js";
import { drawFrame, learnThen, moveTo, resize, seek, toggle } from "./neighbourhood/moves.js";
import { fillDomains, heading, outsideText, tools, whole } from "./neighbourhood/panel.js";
import { placeOf } from "./neighbourhood/rings.js";
import { inOrder, rowsOf, sceneOf } from "./neighbourhood/state.js";

/** @import { Context, Opened } from "../page/state.js" */
/** @import { TableRow } from "../parts/rows.js" */
/** @import { Scene, View } from "./neighbourhood/state.js" */

const LABEL = "Nodes: up and down move through them, Enter goes there, left and right move time";
/** @type {[string, string][]} */
const KEYS = [
  ["← →", " time "],
  ["Space", " play"],
];

/** @type {(row: TableRow) => string} */
const addressOf = ({ url }) => addressFrom({ v: hostOf(url) ? "neighbourhood" : "backlinks", url });

/**
 * The view with its elements, which are not in the page yet.
 * @param {Scene} scene
 * @returns {View}
 */
function viewOf(scene) {
  const { dated, wanted, first, end } = scene;
  const [picture, timeline] = [canvas(), canvas()];
  const area = areaOf("application", LABEL, {}, picture);
  const range = { "aria-valuemin": 0, "aria-valuemax": Math.round((end - first) / DAY) };
  const slider = areaOf("slider", "Date: left and right move a month", range, timeline);
  const play = el("button", { type: "button", class: "play", "aria-label": "Play", text: "▶" });
  const frames = framesOf((at) => drawFrame(view, at));
  const rows = () => ({ area, rows: rowsOf(scene), current: 0, address: addressOf });
  /** @type {View} */
  const view = Object.assign(scene, {
    ...{ area, picture, slider, timeline, play },
    outside: el("div", {}, ...(dated.now === wanted ? [] : [notice(outsideText(scene))])),
    date: el("span", { class: "date" }),
    domains: el("div", { class: "domains", tabindex: 0, role: "region", "aria-label": "Domains" }),
    readout: el("p"),
    table: tableSwitch(scene.context.set, rows),
    redraw: () => view.layout && frames.ask(),
    stop: frames.stop,
  });
  play.addEventListener("click", () => toggle(view));
  return view;
}

/**
 * What the picture shows, for tests.
 * @param {View} view
 */
function shown(view) {
  const { around, dated, layout, first, end } = view;
  const nodes = layout ? inOrder(view) : [];
  return {
    url: view.state.url,
    unit: view.unit,
    now: dated.now,
    counts: dated.counts,
    nodes: nodes.map((node) => ({
      name: around.nodes[node],
      ring: dated.ring[node],
      fresh: dated.fresh[node],
      place: layout && placeOf({ ...view, layout }, node),
    })),
    ways: view.found,
    isPlaying: view.isPlaying,
    layout: { ...layout, first, end },
  };
}

/**
 * @param {Context} context
 * @returns {Promise<Opened | undefined>}
 */
export async function open(context) {
  const { root, state, call, isOpen } = context;
  const [around, barcode] = asks.neighbourhood(state);
  const [answer, own] = await Promise.all([call(around), call(barcode)]);
  if (!isOpen()) return undefined;
  const scene = sceneOf(context, answer, own);
  // What is there at the end is what the answer about all dates says to this day.
  if (scene.dated.now !== scene.end) await learnThen(scene, 0);
  if (!isOpen()) return undefined;
  const view = viewOf(scene);
  root.replaceChildren(
    heading(view),
    tools(view, (to) => seek(view, to)),
    view.outside,
    el("div", { class: "near" }, view.area, view.domains),
    keyOf(nearKey(view.unit)),
    el("div", { class: "play-line" }, view.play, view.date, view.slider),
    readLine(view.readout, KEYS),
  );
  watchPointers(view);
  moveTo(view, view.dated.now);
  // The first picture does not come in slowly.
  view.dated.ring.forEach((ring, node) => {
    view.drawn.shown[node] = ring ? 1 : 0;
  });
  fillDomains(view);
  resize(view);
  if (state.table) view.table.toggle();
  const unwatch = whenResized(view.area, () => resize(view));
  return {
    key: (event) => key(view, event),
    resize: () => resize(view),
    close: () => {
      view.isPlaying = false;
      view.stop();
      unwatch();
    },
    print: () => [paperOf(whole(view))],
    picture: () => shown(view),
  };
}
