// Where the chart and the rows of backlinks are, which have one axis.

import { timeAt } from "../../drawing/axis.js";

/** @import { Axis } from "../../drawing/axis.js" */
/** @import { Scene } from "./state.js" */

/**
 * Pixels: of the rows; where bars begin, and where the key of the chart begins at the left of them; and of the chart.
 * @typedef {{ width: number, height: number, left: number, keyLeft: number, chart: number, chartWidth: number }} Layout
 */

/**
 * A scene with its pixels.
 * @typedef {Scene & { layout: Layout }} Laid
 */

/** Pixels of a row, at the right of the bars, and above the rows, for the heads of their columns. */
export const LINE = 22;
export const RIGHT = 12;
export const HEADS = 22;
/** Below the first width, the chart is below the hosts; below the second, its key stands in it. */
const PHONE = 560;
const NARROW = 900;

/**
 * Where bars and the key of the chart begin, in areas of this width.
 * @type {(width: number) => Pick<Layout, "left" | "keyLeft">}
 */
export function leftsOf(width) {
  const wide = Math.min(540, Math.max(300, width * 0.43));
  const left = Math.round(width < PHONE ? Math.max(110, width * 0.36) : wide);
  return { left, keyLeft: width < NARROW ? left : Math.round(left - 210) };
}

/**
 * The columns of the hosts and of the chart.
 * @type {(width: number, lefts: Pick<Layout, "keyLeft">) => string}
 */
export const gridOf = (width, { keyLeft }) => (width < PHONE ? "1fr" : `${keyLeft - 16}px 1fr`);

/** @type {(scene: Laid) => Axis} */
export const axisOf = ({ from, to, layout: { left, width } }) => ({ from, to, left, width: width - left - RIGHT });

/**
 * The place of the row at a height; -1 if there is none.
 * @type {(scene: Scene, y: number) => number}
 */
export function rowAt({ rows, scroll }, y) {
  const at = y < HEADS ? -1 : Math.floor((y - HEADS + scroll) / LINE);
  return at < rows.length ? at : -1;
}

/**
 * The place of the mark at an x; -1 if there is none.
 * @type {(scene: Laid, x: number) => number}
 */
export function markAt(scene, x) {
  const at = timeAt(axisOf(scene), x);
  return scene.marks.findIndex((mark) => mark.time <= at && at < mark.end);
}
