// The row and the line of the pointer, on a canvas over the picture, so that hovering never draws the picture again.

import { bars, clip } from "../../drawing/bars.js";
import { fitted } from "../../text/cut.js";
import { day } from "../../text/time.js";
import { NAMED, nameOf } from "./legend.js";
import { captureNear, endsOf, placeOf, unitAt } from "./scene.js";

/** @import { Theme } from "../../drawing/canvas.js" */
/** @import { Scene } from "./scene.js" */

/**
 * The row in the accent.
 * @type {(context: CanvasRenderingContext2D, scene: Scene, y: number, theme: Theme) => void}
 */
function drawCurrent(context, scene, y, theme) {
  const { chart, rowHeight } = scene.layout;
  if (rowHeight >= NAMED) {
    context.fillStyle = theme.paper;
    context.fillRect(0, y, chart.left, rowHeight);
    context.font = `12px ${theme.sans}`;
    context.fillStyle = theme.accent;
    const { text, branches } = nameOf(scene, scene.current);
    context.fillText(fitted(context, text, chart.left - 12, branches), 0, y + rowHeight - 3.5);
  }
  clip(context, chart.left, chart.top, chart.width, chart.height);
  const thickness = Math.max(2, Math.min(7, rowHeight >= NAMED ? 7 : rowHeight));
  const area = { ...endsOf(scene), left: chart.left, right: chart.left + chart.width, thickness };
  const line = { y, height: Math.max(rowHeight, 2) };
  bars(context, scene.order.rows[scene.current], line, area, [theme.accent, theme.accent]);
  context.restore();
}

/**
 * The line at the capture nearest to a point, with its date.
 * @type {(context: CanvasRenderingContext2D, scene: Scene, at: number, theme: Theme) => void}
 */
function drawLine(context, scene, at, theme) {
  const { chart, height } = scene.layout;
  const near = captureNear(scene, at);
  const x = near >= 0 ? placeOf(scene, near) : at;
  const text = day(near >= 0 ? scene.captures[near].time : unitAt(scene, at));
  context.fillStyle = theme.accent;
  context.fillRect(Math.round(x), 22, 1, height - 22);
  context.font = `11px ${theme.sans}`;
  const width = context.measureText(text).width + 8;
  const left = Math.min(Math.max(x - width / 2, chart.left), chart.left + chart.width - width);
  context.fillStyle = theme.paper;
  context.fillRect(left, 2, width, 17);
  context.fillStyle = theme.accent;
  context.textAlign = "left";
  context.fillText(text, left + 4, 14);
}

/** @type {(context: CanvasRenderingContext2D, scene: Scene, theme: Theme) => void} */
export function drawOver(context, scene, theme) {
  const { chart, rowHeight, tops, width } = scene.layout;
  const y = chart.top + tops[Math.max(0, scene.current)] - scene.scroll;
  clip(context, 0, chart.top - 1, width, chart.height + 1);
  if (scene.order.rows[scene.current] && y > chart.top - rowHeight) drawCurrent(context, scene, y, theme);
  context.restore();
  const { pointer } = scene;
  if (!pointer || pointer.y <= chart.top) return;
  if (pointer.x > chart.left && pointer.x < chart.left + chart.width) drawLine(context, scene, pointer.x, theme);
}
