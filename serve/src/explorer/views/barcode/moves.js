// What moves the picture of a barcode: other rows, another place, another stretch of the axis.

import { cleared, colours } from "../../drawing/canvas.js";
import { notice } from "../../parts/head.js";
import { bare } from "../../text/names.js";
import { many, within } from "../../text/numbers.js";
import { DAY, day, digits } from "../../text/time.js";
import { draw } from "./draw.js";
import { drawOver } from "./over.js";
import { tell } from "./readout.js";
import { fit, isTime, timesOf, unitsOf } from "./scene.js";
import { isWhole, load, orderOf } from "./state.js";

/** @import { Scene } from "./scene.js" */
/** @import { View } from "./state.js" */

/**
 * Opens the axis at two times; where nothing is known of these, it shows all and says so.
 * @param {Pick<View, "context" | "scene">} view
 * @param {number | undefined} begin
 * @param {number | undefined} stop
 */
export function openAt({ context, scene }, begin, stop) {
  if (begin === undefined || stop === undefined || begin >= stop) return [];
  const [first, last] = scene.extent[scene.choice.across];
  const [from, to] = unitsOf(scene, begin, stop);
  if (from < last && to > first) {
    [scene.from, scene.to] = [Math.max(first, from), Math.min(last, to)];
    return [];
  }
  context.set({ from: undefined, to: undefined });
  return [notice(`Nothing is known from ${day(begin)} to ${day(stop)}. Here is all that is known.`)];
}

/**
 * Shows the rows that are chosen, which may have to be asked for.
 * @type {(view: View) => Promise<void>}
 */
export async function choose(view) {
  if (isWhole(view)) await load(view);
  if (view.context.isOpen()) reorder(view);
}

/** @type {(view: View) => void} */
export function reorder(view) {
  const { scene, data, all } = view;
  Object.assign(scene, { data, all });
  scene.order = orderOf(view);
  scene.scroll = 0;
  scene.current = -1;
  resize(view);
  view.table.update(scene.order.rows);
}

/** @type {(view: View) => void} */
export function resize(view) {
  const { area, scene } = view;
  if (area.clientWidth < 10) return;
  fit(scene, area.clientWidth, area.clientHeight);
  scrollTo(view, scene.scroll);
}

/**
 * Scrolls to a position; the picture is drawn in the next frame.
 * @type {(view: View, position: number) => void}
 */
export function scrollTo({ context, scene, redraw }, position) {
  scene.scroll = within(Math.round(position), 0, scene.layout.total - scene.layout.chart.height);
  context.set({ scroll: scene.scroll ? String(scene.scroll) : undefined });
  redraw();
}

/**
 * Draws the picture.
 * @type {(view: View) => void}
 */
export function drawView(view) {
  const { context, scene, picture } = view;
  const { width, height } = scene.layout;
  if (!context.isOpen() || !width) return;
  draw(cleared(picture, width, height), scene, colours());
  hover(view);
  tell(view);
  context.drawn();
}

/**
 * Draws the row and the line of the pointer.
 * @type {(view: View) => void}
 */
export function hover({ scene, over }) {
  drawOver(cleared(over, scene.layout.width, scene.layout.height), scene, colours());
}

/**
 * Zooms around a unit of the axis.
 * @type {(view: View, factor: number, middle: number) => void}
 */
export function zoom(view, factor, middle) {
  const { scene } = view;
  const [first, last] = scene.extent[scene.choice.across];
  const least = isTime(scene) ? 2 * DAY : 4;
  const size = Math.min(last - first, Math.max(least, (scene.to - scene.from) * factor));
  const share = (middle - scene.from) / (scene.to - scene.from);
  moveTo(view, middle - share * size, size);
}

/**
 * Moves the axis to where it begins, if it has so many units.
 * @type {(view: View, start: number, size?: number) => void}
 */
export function moveTo({ context, scene, redraw }, start, size = scene.to - scene.from) {
  const [first, last] = scene.extent[scene.choice.across];
  scene.from = within(start, first, last - size);
  scene.to = scene.from + size;
  const isAll = size >= last - first;
  if (isAll) [scene.from, scene.to] = [first, last];
  // The address has whole seconds, and another window shall show the same.
  else if (isTime(scene)) [scene.from, scene.to] = [Math.round(scene.from), Math.round(scene.to)];
  const [begin, end] = timesOf(scene);
  context.set({ from: isAll ? undefined : digits(begin), to: isAll ? undefined : digits(end) });
  scene.thinImage = undefined;
  redraw();
}

/**
 * Puts the axis across time or across captures.
 * @type {(view: View, across: Scene["choice"]["across"]) => void}
 */
export function layAcross(view, across) {
  const { choice, context, scene } = view;
  choice.across = across;
  [scene.from, scene.to] = scene.extent[across];
  context.set({ across, from: undefined, to: undefined });
  resize(view);
}

/**
 * Chooses a row, and brings it into view.
 * @type {(view: View, row: number) => void}
 */
export function select(view, row) {
  const { context, scene } = view;
  const { tops, rowHeight, chart } = scene.layout;
  scene.current = within(row, 0, scene.order.rows.length - 1);
  const top = tops[scene.current];
  if (top < scene.scroll) scrollTo(view, top - 2);
  else if (top + rowHeight > scene.scroll + chart.height) scrollTo(view, top + rowHeight - chart.height + 2);
  else view.redraw();
  const own = scene.order.rows[scene.current];
  if (own) context.say(`${bare(own.url)}, ${day(own.first)} to ${day(own.last)}, ${many(own.runs.length, "run")}`);
}
