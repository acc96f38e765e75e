// Draws the picture of a barcode into a canvas or an SVG. Rows outside of the window are not visited.

import { isFoundIn } from "../../data/barcode.js";
import { withoutLinks } from "../../data/captures.js";
import { ticks, xOf } from "../../drawing/axis.js";
import { bars, clip, ground, hatch, stretch, unknown } from "../../drawing/bars.js";
import { raster, THIN } from "../../drawing/raster.js";
import { digits } from "../../text/time.js";
import { drawAxis, drawGroupHead, drawNames } from "./legend.js";
import { axisOf, endsOf, HEAD, isTime, placeOf, rowNear, scaleOf, unitsOfRun } from "./scene.js";

/** @import { Pen, Theme } from "../../drawing/canvas.js" */
/** @import { Scene } from "./scene.js" */

/**
 * Ticks of the axis in view, with their x.
 * @type {(scene: Scene) => { x: number, text: string }[]}
 */
function visibleTicks(scene) {
  const { from, to, captures, layout } = scene;
  const axis = axisOf(scene);
  if (isTime(scene)) {
    return ticks(from, to, layout.chart.width, 44).map((tick) => ({ ...tick, x: xOf(axis, tick.time) }));
  }
  const step = Math.max(1, Math.ceil(60 / scaleOf(scene)));
  /** @type {{ x: number, text: string }[]} */
  const found = [];
  for (let at = Math.ceil(from / step) * step; at < to && at < captures.length; at += step) {
    found.push({ x: xOf(axis, at), text: digits(captures[at].time).slice(0, 4) });
  }
  return found.map((tick, at) => (at && tick.text === found[at - 1].text ? { ...tick, text: "" } : tick));
}

/**
 * Rows that are thinner than a pixel or two, as darkness.
 * @type {(context: CanvasRenderingContext2D, scene: Scene, theme: Theme) => void}
 */
function drawThin(context, scene, theme) {
  const { chart, total } = scene.layout;
  const device = window.devicePixelRatio || 1;
  const w = Math.round(chart.width * device);
  const h = Math.max(1, Math.round(Math.min(chart.height, total) * device));
  const { x } = endsOf(scene);
  scene.thinImage ||= raster(
    scene.order.rows,
    w,
    h,
    (run) => x(run).map((at) => (at - chart.left) * device),
    theme.bar,
  );
  // The image is put by way of a canvas, since a canvas draws what is below it and pixels alone do not.
  const sheet = new OffscreenCanvas(w, h);
  sheet.getContext("2d")?.putImageData(scene.thinImage, 0, 0);
  context.drawImage(sheet, chart.left, chart.top, w / device, h / device);
}

/** How thick a bar is in a row. @type {(height: number) => number} */
const thicknessOf = (height) => Math.max(Math.min(1, height), Math.min(7, height >= 11 ? 7 : height - 2));

/**
 * The bars of the rows from `first` to `end`.
 * @type {(context: Pen, scene: Scene, theme: Theme, first: number, end: number) => void}
 */
function drawBars(context, scene, theme, first, end) {
  const { chart, rowHeight, tops } = scene.layout;
  const thickness = thicknessOf(rowHeight);
  const area = { ...endsOf(scene), left: chart.left, right: chart.left + chart.width, thickness };
  clip(context, chart.left, chart.top, chart.width, chart.height);
  for (let row = first; row < end; row += 1) {
    const y = chart.top + tops[row] - scene.scroll;
    bars(context, scene.order.rows[row], { y, height: rowHeight }, area, [theme.bar, theme.bar2]);
  }
  context.restore();
}

/**
 * Hatches where the links of captures are unknown.
 * @type {(context: Pen, scene: Scene, theme: Theme) => void}
 */
function drawUnknown(context, scene, theme) {
  const { chart } = scene.layout;
  for (const [begin, stop] of unknown(scene.captures, (at) => placeOf(scene, at))) {
    const [x1, x2] = [Math.max(begin, chart.left), Math.min(stop, chart.left + chart.width)];
    if (x2 <= x1) continue;
    context.globalAlpha = 0.75;
    context.fillStyle = theme.paper;
    context.fillRect(x1, chart.top, x2 - x1, chart.height);
    context.globalAlpha = 1;
    hatch(context, x1, chart.top, x2 - x1, chart.height, theme.hatch);
  }
}

/**
 * The links that were found in cut captures, on the hatch.
 * @type {(context: Pen, scene: Scene, theme: Theme, first: number, end: number) => void}
 */
function drawFound(context, scene, theme, first, end) {
  const { captures, layout } = scene;
  const { chart, rowHeight, tops } = layout;
  const thickness = thicknessOf(rowHeight);
  const place = (/** @type {number} */ at) => placeOf(scene, at);
  clip(context, chart.left, chart.top, chart.width, chart.height);
  context.fillStyle = theme.bar;
  for (let at = 0; at < captures.length; at += 1) {
    if (!captures[at].cut) continue;
    const [from, to] = stretch(captures, place, at, at);
    if (to < chart.left || from > chart.left + chart.width) continue;
    for (let row = first; row < end; row += 1) {
      if (!isFoundIn(scene.order.rows[row], at)) continue;
      const y = chart.top + tops[row] - scene.scroll + (rowHeight - thickness) / 2;
      context.fillRect(from, y, to - from, thickness);
    }
  }
  context.restore();
}

/**
 * The image of all rows.
 * @type {(scene: Scene, theme: Theme) => OffscreenCanvas}
 */
function mapOf(scene, theme) {
  const { map, chart } = scene.layout;
  const device = window.devicePixelRatio || 1;
  const [w, h] = [Math.round(map * device), Math.round(chart.height * device)];
  const [first, last] = scene.extent[scene.choice.across];
  const units = unitsOfRun(scene);
  const image = raster(
    scene.order.rows,
    w,
    h,
    (run) => units(run).map((unit) => ((unit - first) / (last - first)) * w),
    theme.bar,
  );
  const made = new OffscreenCanvas(w, h);
  made.getContext("2d")?.putImageData(image, 0, 0);
  return made;
}

/**
 * The map of all rows, and what of it is in view.
 * @type {(context: CanvasRenderingContext2D, scene: Scene, theme: Theme) => void}
 */
function drawMap(context, scene, theme) {
  const { chart, width, map, total } = scene.layout;
  scene.mapImage ||= mapOf(scene, theme);
  const [from, to] = scene.extent[scene.choice.across];
  const axis = { from, to, left: width - map, width: map };
  context.globalAlpha = 0.7;
  context.drawImage(scene.mapImage, axis.left, chart.top, map, chart.height);
  context.globalAlpha = 1;
  const [begin, stop] = [xOf(axis, scene.from), xOf(axis, scene.to)];
  const share = Math.min(1, chart.height / total);
  const y = chart.top + (scene.scroll / Math.max(1, total)) * chart.height;
  context.strokeStyle = theme.accent;
  context.lineWidth = 1;
  context.strokeRect(begin + 0.5, y + 0.5, Math.max(3, stop - begin - 1), Math.max(3, share * chart.height - 1));
}

/**
 * Why there is no row, in a sentence.
 * @type {(scene: Scene) => string}
 */
export function nothingIn({ all, choice, data }) {
  if (all.length) return `No row has “${choice.text}” in its address.`;
  if (!data.outward) return "No captured page links here.";
  if (!data.captures.length) return "This URL was never captured. Its in-links are known: choose In-links above.";
  return withoutLinks(data.captures);
}

/**
 * Draws what is in view; on paper, rows that are thin are bars, and there is no map.
 * @type {(context: Pen, scene: Scene, theme: Theme, canvas?: CanvasRenderingContext2D) => void}
 */
function drawInto(context, scene, theme, canvas) {
  const { chart, rowHeight, map, groups } = scene.layout;
  const axis = axisOf(scene);
  const marks = visibleTicks(scene);
  const named = marks.filter((mark) => mark.text);
  const x = (/** @type {number} */ time) => xOf(axis, time);
  ground(context, { ...chart, captures: scene.captures, x, ticks: named, across: scene.choice.across }, theme);
  const first = rowNear(scene, scene.scroll);
  const end = Math.min(scene.order.rows.length, rowNear(scene, scene.scroll + chart.height) + 1);
  if (canvas && rowHeight < THIN) drawThin(canvas, scene, theme);
  else drawBars(context, scene, theme, first, end);
  for (const group of groups) {
    const y = chart.top + group.y - scene.scroll;
    if (y > -HEAD && y < chart.top + chart.height) drawGroupHead(context, scene, group, y, theme);
  }
  drawUnknown(context, scene, theme);
  if (!canvas || rowHeight >= THIN) drawFound(context, scene, theme, first, end);
  drawNames(context, scene, first, end, theme);
  drawAxis(context, scene, marks, theme);
  if (canvas && map) drawMap(canvas, scene, theme);
  if (scene.order.rows.length) return;
  context.font = `13px ${theme.sans}`;
  context.fillStyle = theme.ink2;
  context.textAlign = "left";
  context.fillText(nothingIn(scene), chart.left + 12, chart.top + 28);
}

/** @type {(canvas: CanvasRenderingContext2D, scene: Scene, theme: Theme) => void} */
export const draw = (canvas, scene, theme) => drawInto(canvas, scene, theme, canvas);

/**
 * The same on paper, where rows that are thin are bars, and there is no map.
 * @type {(context: Pen, scene: Scene, theme: Theme) => void}
 */
export const drawOnPaper = (context, scene, theme) => drawInto(context, scene, theme);
