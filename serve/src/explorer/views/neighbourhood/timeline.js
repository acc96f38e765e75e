// Draws time below the rings: how many links the page has, as steps; its captures as ticks; and the date.

import { ticks, timeAt, xOf } from "../../drawing/axis.js";
import { circle } from "./rings.js";

/** @import { Axis } from "../../drawing/axis.js" */
/** @import { Pen, Theme } from "../../drawing/canvas.js" */
/** @import { Layout, Scene } from "./state.js" */

/** Pixels below the steps, and beside the axis. */
const BOTTOM = 18;
const BESIDE = 6;

/** @type {(scene: Scene & { layout: Layout }) => Axis} */
const axisOf = ({ first, end, layout }) => ({
  from: first,
  to: end,
  left: BESIDE,
  width: layout.time.width - 2 * BESIDE,
});

/**
 * The time at an x.
 * @type {(scene: Scene & { layout: Layout }, x: number) => number}
 */
export const timeIn = (scene, x) => timeAt(axisOf(scene), x);

/** @type {(context: Pen, scene: Scene, axis: Axis, floor: number) => void} */
function drawSteps(context, scene, axis, floor) {
  const steps = scene.degree;
  const most = steps.reduce((least, step) => Math.max(least, step.links), 1);
  steps.forEach((step, at) => {
    const [start, stop] = [xOf(axis, step.time), xOf(axis, steps[at + 1]?.time ?? scene.end)];
    const tall = (step.links / most) * (floor - 10);
    context.fillRect(Math.floor(start), floor - tall, Math.max(1, Math.ceil(stop) - Math.floor(start)), tall);
  });
}

/** @type {(context: Pen, scene: Scene & { layout: Layout }, theme: Theme) => void} */
export function drawTime(context, scene, theme) {
  const { width, height } = scene.layout.time;
  const floor = height - BOTTOM;
  const axis = axisOf(scene);
  context.fillStyle = theme.bar2;
  drawSteps(context, scene, axis, floor);
  context.fillStyle = theme.ink3;
  for (const time of scene.captures) context.fillRect(Math.round(xOf(axis, time)), floor, 1, 3);
  context.font = `11px ${theme.sans}`;
  context.textAlign = "left";
  for (const tick of ticks(scene.first, scene.end, width, 46)) {
    const x = xOf(axis, tick.time);
    context.fillStyle = theme.rule;
    context.fillRect(Math.round(x), floor + 3, 1, 4);
    context.fillStyle = theme.ink2;
    if (x + 30 < width) context.fillText(tick.text, x + 3, height - 4);
  }
  const now = xOf(axis, scene.dated.now);
  context.fillStyle = theme.accent;
  context.fillRect(Math.round(now) - 1, 0, 2, floor);
  context.beginPath();
  circle(context, now, floor, 4.5);
  context.fill();
}
