// The barcode of a page: a row a link, filled while the link was there. With in-links, a row a page that links.
//
// Two canvases: the lower has the picture and is drawn once a change; the upper has the pointer's row and line, so that
// hovering never draws the picture again.

import { addressFrom } from "../page/address.js";
import { asks } from "../page/asks.js";
import { areaOf, canvas, framesOf, readLine, whenResized } from "../parts/area.js";
import { el } from "../parts/dom.js";
import { barsKey, keyOf } from "../parts/key.js";
import { tableSwitch } from "../parts/rows.js";
import { timeOf } from "../text/dates.js";
import { bare } from "../text/names.js";
import { key, watchPointers } from "./barcode/hands.js";
import { drawView, openAt, resize } from "./barcode/moves.js";
import { heading, sheets, tools } from "./barcode/panel.js";
import { isWhole, load, pictureOf, subjectOf } from "./barcode/state.js";

/** @import { Row } from "../data/order.js" */
/** @import { Context, Opened } from "../page/state.js" */
/** @import { Subject, View } from "./barcode/state.js" */

/** @type {[string, string][]} */
const KEYS = [
  ["↑↓", " row "],
  ["Enter", " go there "],
  ["+ −", " zoom "],
  ["?", " keys"],
];

/**
 * The view with its elements, which are not in the page yet.
 * @param {Subject} subject
 * @returns {View}
 */
function viewOf(subject) {
  const [picture, over] = [canvas(), canvas()];
  const label = `Bars of ${bare(subject.data.url)}: arrow keys move through the rows, Enter opens one`;
  const scene = pictureOf(subject);
  scene.scroll = Number(subject.state.scroll) || 0;
  const area = areaOf("application", label, {}, picture, over);
  const rowsOf = () => ({
    area,
    rows: scene.order.rows,
    current: scene.current,
    address: (/** @type {Row} */ row) => addressFrom({ url: row.url }),
    captures: scene.captures,
  });
  const frames = framesOf(() => drawView(view));
  const table = tableSwitch(subject.context.set, rowsOf);
  const view = { ...subject, scene, area, picture, over, readout: el("p"), table, redraw: frames.ask };
  return view;
}

/**
 * What the picture shows, for tests.
 * @param {View} view
 */
const shown = ({ data, direction, scene }) => ({
  url: data.url,
  direction,
  scroll: scene.scroll,
  from: scene.from,
  to: scene.to,
  captures: scene.captures.map(({ time, status, shows }) => ({ time, status, shows })),
  rows: scene.order.rows.map(({ url, runs }) => ({
    url,
    runs: runs.map(({ first, last, gone }) => [first, last, gone]),
  })),
});

/**
 * @param {Context} context
 * @returns {Promise<Opened | undefined>}
 */
export async function open(context) {
  const { root, set, call, isOpen } = context;
  let { state } = context;
  const direction = state.dir === "in" ? "in" : "out";
  const answer = await call(asks.barcode(state)[0]);
  if (!isOpen()) return undefined;
  if (!state.dir && !answer.captures.length) {
    // A URL that was never captured has in-links only.
    set({ dir: "in" });
    state = { ...state, dir: "in" };
    return open({ ...context, state });
  }
  const subject = subjectOf(context, state, direction, answer);
  if (isWhole(subject)) await load(subject);
  if (!isOpen()) return undefined;
  const view = viewOf(subject);
  const outside = openAt(view, timeOf(state.from), timeOf(state.to));
  root.replaceChildren(
    heading(view),
    tools(view),
    ...outside,
    view.area,
    keyOf(barsKey(view.data.outward)),
    readLine(view.readout, KEYS),
  );
  watchPointers(view);
  resize(view);
  if (state.table) view.table.toggle();
  return {
    key: (event) => key(view, event),
    resize: () => resize(view),
    close: whenResized(view.area, () => resize(view)),
    print: () => sheets(view),
    picture: () => shown(view),
  };
}
