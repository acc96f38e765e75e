// The state of the picture of a barcode: which rows are shown, where they and times are, and what is chosen.
//
// Rows of in-links are pages with captures of their own, so what is known of the captures of the page itself (gaps,
// failures, unknown links) is drawn with its own links only. A unit of the axis is a second, or a capture. What is dear
// to draw is kept: rows that are thinner than a pixel as an image until the axis changes, and the map of all rows until
// the order does.

import { timeAt, xOf } from "../../drawing/axis.js";
import { ROWS_HEIGHT_MAX } from "../../drawing/framed.js";
import { DAY } from "../../text/time.js";

/** @import { Bars, Run } from "../../data/barcode.js" */
/** @import { Capture } from "../../data/captures.js" */
/** @import { Group, Grouping, Row, Sort } from "../../data/order.js" */
/** @import { Axis } from "../../drawing/axis.js" */

/**
 * How rows are shown, and which.
 * @typedef {object} Choice
 * @property {Sort} sort
 * @property {Grouping} group
 * @property {"time" | "captures"} across What the axis has.
 * @property {"read" | "dense" | "all"} rows How high rows are.
 * @property {string} text A text that each row has in its address.
 */

/** @typedef {{ rows: Row[], groups: Group[] }} Order */

/**
 * A group with the top of its head; `steps` are how many of its rows were there, once they are counted.
 * @typedef {Group & { y: number, steps?: [number, number][] }} PlacedGroup
 */

/**
 * Pixels.
 * @typedef {object} Layout
 * @property {number} width
 * @property {number} height
 * @property {number} map The width of the map; 0 if there is none.
 * @property {{ left: number, top: number, width: number, height: number }} chart
 * @property {number} rowHeight
 * @property {Float64Array} tops The top of each row, then the bottom of the last one.
 * @property {PlacedGroup[]} groups
 * @property {number} total The height of all rows.
 */

/**
 * The state of the picture.
 * @typedef {object} Scene
 * @property {Bars} data
 * @property {Row[]} all
 * @property {Choice} choice
 * @property {Order} order
 * @property {Capture[]} captures The captures that all rows have in common.
 * @property {Record<Choice["across"], [number, number]>} extent The first and the last unit of each axis.
 * @property {number} from The first unit in view.
 * @property {number} to The last unit in view.
 * @property {number} scroll Pixels.
 * @property {number} current The place of the row that is pointed at; -1 if there is none.
 * @property {{ x: number, y: number }} [pointer]
 * @property {Layout} layout
 * @property {ImageData} [thinImage]
 * @property {OffscreenCanvas} [mapImage]
 */

/** Pixels of the axis above the rows, of the head of a group, of the map, and of a row by how rows are shown. */
export const AXIS = 36;
export const HEAD = 22;
const MAP = 46;
const HEIGHTS = { read: 15, dense: 6, all: 0 };
/** The width below which there is no map. */
const PHONE = 560;

/** @type {(data: Bars, all: Row[], captures: Capture[]) => Scene["extent"]} */
function extentOf(data, all, captures) {
  const times = captures.map((capture) => capture.time);
  for (const row of data.outward ? [] : all)
    times.push(row.first, Math.max(row.last, ...row.runs.map((run) => run.gone)));
  let first = times.reduce((least, time) => Math.min(least, time), Infinity);
  let last = times.reduce((most, time) => Math.max(most, time), -Infinity);
  if (first > last) [first, last] = [0, DAY];
  const pad = Math.max((last - first) * 0.004, last - first < DAY ? 15 * DAY : 0);
  return { time: [first - pad, last + pad], captures: [0, Math.max(1, captures.length)] };
}

/**
 * The tops of rows and of the heads of groups.
 * @type {(order: Order, rowHeight: number, hasHeads: boolean) => Pick<Layout, "tops" | "groups" | "total">}
 */
function topsOf(order, rowHeight, hasHeads) {
  const tops = new Float64Array(order.rows.length + 1);
  /** @type {PlacedGroup[]} */
  const groups = [];
  let y = 0;
  for (let row = 0; row < order.rows.length; row += 1) {
    const group = order.groups[groups.length];
    if (hasHeads && group?.start === row) {
      groups.push({ ...group, y });
      y += HEAD;
    }
    tops[row] = y;
    y += rowHeight;
  }
  tops[order.rows.length] = y;
  return { tops, groups, total: y };
}

/** @type {(order: Order, choice: Choice, width: number, height: number) => Layout} */
function layoutOf(order, choice, width, height) {
  const isPhone = width < PHONE;
  const names = Math.min(300, Math.round(width * (isPhone ? 0.34 : 0.25)));
  const map = isPhone ? 0 : MAP;
  const wide = width - names - (map ? map + 10 : 0);
  const chart = { left: names, top: AXIS, width: wide, height: Math.max(1, height - AXIS) };
  const rowHeight = HEIGHTS[choice.rows] || Math.min(15, (chart.height - 2) / Math.max(1, order.rows.length));
  return { width, height, map, chart, rowHeight, ...topsOf(order, rowHeight, choice.rows !== "all") };
}

/**
 * A picture that has no size yet.
 * @type {(data: Bars, all: Row[], choice: Choice, order: Order) => Scene}
 */
export function sceneOf(data, all, choice, order) {
  const captures = data.outward ? data.captures : [];
  const extent = extentOf(data, all, captures);
  const [from, to] = extent[choice.across];
  const layout = layoutOf(order, choice, 0, 0);
  return { data, all, choice, order, captures, extent, from, to, scroll: 0, current: -1, layout };
}

/**
 * Finds where everything is, for an area of this size.
 * @type {(scene: Scene, width: number, height: number) => void}
 */
export function fit(scene, width, height) {
  scene.layout = layoutOf(scene.order, scene.choice, width, height);
  scene.thinImage = undefined;
  scene.mapImage = undefined;
}

/**
 * The same picture with all its rows, for a file: none is above or below the area. Of very many rows, the first ones.
 * @type {(scene: Scene) => Scene}
 */
export function unrolled({ data, all, choice, order, from, to, layout }) {
  // Rows that are as low as it takes are all in view.
  const isLow = choice.rows === "all";
  const end = isLow ? order.rows.length : rowNear(sceneOf(data, all, choice, order), ROWS_HEIGHT_MAX);
  const groups = order.groups.filter((group) => group.start < end);
  const own = sceneOf(data, all, choice, { rows: order.rows.slice(0, end), groups });
  fit(own, layout.width, isLow ? layout.height : AXIS + Math.max(own.layout.total, 3 * AXIS));
  return Object.assign(own, { from, to });
}

/** @type {(scene: Scene) => Axis} */
export const axisOf = ({ from, to, layout: { chart } }) => ({ from, to, left: chart.left, width: chart.width });

/**
 * How many pixels a unit of the axis has.
 * @type {(scene: Scene) => number}
 */
export const scaleOf = ({ from, to, layout }) => layout.chart.width / (to - from);

/**
 * The unit of the axis at an x.
 * @type {(scene: Scene, x: number) => number}
 */
export const unitAt = (scene, x) => timeAt(axisOf(scene), x);

/**
 * Whether a unit of the axis is a second.
 * @type {(scene: Scene) => boolean}
 */
export const isTime = ({ choice }) => choice.across === "time";

/**
 * The x of a capture of the page.
 * @type {(scene: Scene, at: number) => number}
 */
export const placeOf = (scene, at) => xOf(axisOf(scene), isTime(scene) ? scene.captures[at].time : at + 0.5);

/**
 * The units of the ends of a run.
 * @type {(scene: Scene) => (run: Run) => [number, number]}
 */
export const unitsOfRun = (scene) => (isTime(scene) ? (run) => [run.first, run.last] : (run) => [run.from, run.to + 1]);

/**
 * The x of the ends of a run; and, across time, of the capture that lacks the link.
 * @type {(scene: Scene) => { x: (run: Run) => number[], gone: (run: Run) => number }}
 */
export function endsOf(scene) {
  const [axis, units] = [axisOf(scene), unitsOfRun(scene)];
  const isGone = (/** @type {Run} */ run) => isTime(scene) && run.gone;
  return {
    x: (run) => units(run).map((unit) => xOf(axis, unit)),
    gone: (run) => (isGone(run) ? xOf(axis, run.gone) : -1),
  };
}

/**
 * The row at a height of the picture; -1 if there is none.
 * @type {(scene: Scene, y: number) => number}
 */
export function rowAt({ scroll, order, layout }, y) {
  const at = y - AXIS + scroll;
  if (y < AXIS || at < 0 || at >= layout.total) return -1;
  let [low, high] = [0, order.rows.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (layout.tops[middle] <= at) low = middle;
    else high = middle - 1;
  }
  return at < layout.tops[low] + layout.rowHeight ? low : -1;
}

/**
 * The first row that is not above a position.
 * @type {(scene: Scene, y: number) => number}
 */
export function rowNear({ order, layout }, y) {
  let [low, high] = [0, order.rows.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (layout.tops[middle] + layout.rowHeight <= y) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * The capture nearest to an x; -1 for in-links, which have captures of their own.
 * @type {(scene: Scene, x: number) => number}
 */
export function captureNear(scene, x) {
  const { captures } = scene;
  if (!captures.length) return -1;
  const unit = unitAt(scene, x);
  if (!isTime(scene)) return Math.max(0, Math.min(captures.length - 1, Math.floor(unit)));
  let [low, high] = [0, captures.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (captures[middle].time < unit) low = middle + 1;
    else high = middle;
  }
  const before = captures[low - 1];
  return before && unit - before.time < captures[low].time - unit ? low - 1 : low;
}

/**
 * The capture whose tick in the axis is at a point.
 * @type {(scene: Scene, point: Scene["pointer"]) => Capture | undefined}
 */
export function tickAt(scene, point) {
  if (!point || point.y >= AXIS || point.x < scene.layout.chart.left) return undefined;
  const near = captureNear(scene, point.x);
  return near >= 0 && Math.abs(placeOf(scene, near) - point.x) < 5 ? scene.captures[near] : undefined;
}

/**
 * The ends of the axis as times, which the address keeps: across captures those of the first and the last one.
 * @type {(scene: Scene) => [number, number]}
 */
export function timesOf(scene) {
  if (isTime(scene)) return [Math.round(scene.from), Math.round(scene.to)];
  const { captures } = scene.data;
  const time = (/** @type {number} */ at) => captures[Math.min(captures.length - 1, Math.round(at))].time;
  return [time(scene.from), time(scene.to)];
}

/**
 * The units of the axis at two times.
 * @type {(scene: Scene, begin: number, end: number) => [number, number]}
 */
export function unitsOf(scene, begin, end) {
  if (isTime(scene)) return [begin, end];
  const { captures } = scene.data;
  const place = (/** @type {number} */ time) => captures.findIndex((capture) => capture.time >= time);
  const [from, to] = [place(begin), place(end)];
  const size = captures.length;
  return [Math.max(0, from), to < 0 || to === size - 1 ? size : to];
}
