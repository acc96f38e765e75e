// Who links to a URL, a host or a domain, and since when: how many link over time, what came and went, and below it a
// row for each page, host or domain, with its stays under the chart. Chart and rows have one axis.
//
// Two canvases, of the chart and of the rows; both are drawn once a change, in the next frame.

import { endOfRow } from "../data/referrers.js";
import { addressFrom } from "../page/address.js";
import { areaOf, canvas, framesOf, readLine, whenResized } from "../parts/area.js";
import { between } from "../parts/between.js";
import { el } from "../parts/dom.js";
import { BACKLINKS, keyOf } from "../parts/key.js";
import { tableSwitch } from "../parts/rows.js";
import { paperOf } from "../parts/save.js";
import { benchOf, offerDomain } from "./backlinks/bench.js";
import { key, watchPointers } from "./backlinks/hands.js";
import { hostTable } from "./backlinks/hosts.js";
import { chooseDates, chooseHost, drawView, load, resize, showRows, tellWho } from "./backlinks/moves.js";
import { empty, heading, tools, whole } from "./backlinks/panel.js";
import { sceneOf, stateNow } from "./backlinks/state.js";

/** @import { NamedRow } from "../data/referrers.js" */
/** @import { Context, Opened } from "../page/state.js" */
/** @import { Scene, View } from "./backlinks/state.js" */

const TIME = "Time: left and right choose a period, Escape all";
const RANGE = { "aria-valuemin": 0, "aria-valuenow": 0, "aria-valuetext": "all periods" };
const ROWS = "Rows: arrow keys move through them, Enter opens one";

/**
 * Where a row of the table leads to.
 * @type {(scene: Scene, row: NamedRow) => string}
 */
const addressOf = (scene, row) =>
  addressFrom(
    row.isPage
      ? { url: row.url }
      : { ...stateNow(scene), unit: undefined, source: row.url, text: undefined, who: undefined },
  );

/**
 * The view with its elements, which are not in the page yet.
 * @param {Scene} scene
 * @returns {View}
 */
function viewOf(scene) {
  const { context, target, other, when } = scene;
  const [chart, list] = [canvas(), canvas()];
  const listArea = areaOf("application", ROWS, {}, list);
  const rowsOf = () => {
    if (!scene.sides[0].months.length) return undefined;
    const { rows, current } = scene;
    return { area: listArea, rows, current, address: (/** @type {NamedRow} */ row) => addressOf(scene, row) };
  };
  const keep = (/** @type {string | undefined} */ kept) => {
    scene.kept = kept;
    context.set({ list: kept });
  };
  const frames = framesOf(() => drawView(view));
  /** @type {View} */
  const view = Object.assign(scene, {
    ...{ chart, list, listArea },
    chartArea: areaOf("slider", TIME, RANGE, chart),
    readout: el("p"),
    dates: between(when, (texts) => chooseDates(view, texts)),
    who: el("span", { class: "who" }),
    bench: benchOf({ context, target, other, now: () => stateNow(scene), keep }),
    table: tableSwitch(context.set, rowsOf),
    redraw: () => view.layout && frames.ask(),
  });
  return view;
}

/**
 * The pictures with what stands around them.
 * @type {(view: View) => HTMLElement[]}
 */
function pictures(view) {
  const [a, b] = view.sides;
  const hosts = hostTable(a.answer, b?.answer, (host) => chooseHost(view, host));
  return [
    el("div", { class: "over" }, hosts, view.chartArea),
    view.listArea,
    keyOf(BACKLINKS),
    readLine(view.readout, [["?", " keys"]]),
  ];
}

/**
 * What the pictures show, for tests.
 * @param {View} view
 */
function shown({ state, sides, marks, rows, isWhole, when, layout, from, to }) {
  const [a, b] = sides;
  return {
    url: state.url,
    months: a.months,
    marks: marks.map(({ time: start, end, size, ...numbers }) => ({ start, end, size, ...numbers })),
    rows: rows.map((row) => ({
      ...{ url: row.url, pages: row.pages, targets: row.targets, runs: row.runs, unknown: row.unknown, who: row.who },
      end: endOfRow(row),
      parts: row.parts && Object.fromEntries(row.parts.map(([name, part]) => [name, part.runs])),
    })),
    otherMonths: b?.months,
    isWhole,
    selected: a.answer.rows_selected,
    total: a.answer.rows_total,
    span: when.span,
    layout: { ...layout, from, to },
  };
}

/**
 * Fills the pictures; what stops watching their size.
 * @type {(view: View) => () => void}
 */
function start(view) {
  watchPointers(view);
  tellWho(view);
  showRows(view);
  if (view.choice.text) load(view);
  const unwatch = whenResized(view.listArea, () => resize(view));
  resize(view);
  if (view.state.table) view.table.toggle();
  return unwatch;
}

/**
 * @param {Context} context
 * @returns {Promise<Opened | undefined>}
 */
export async function open(context) {
  const scene = await sceneOf(context);
  if (!context.isOpen()) return undefined;
  const view = viewOf(scene);
  const isEmpty = !view.sides[0].months.length;
  const inner = isEmpty ? [empty(view)] : pictures(view);
  context.root.replaceChildren(heading(view), view.bench.element, tools(view), ...inner);
  const close = isEmpty ? () => undefined : start(view);
  if (isEmpty) context.drawn();
  offerDomain(view.bench);
  return {
    key: (event) => key(view, event),
    resize: () => resize(view),
    close,
    print: () => (isEmpty ? undefined : [paperOf(whole(view))]),
    picture: () => shown(view),
  };
}
