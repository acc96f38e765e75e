// Draws how many link over time, as steps, and below it what came, upward, and what went, downward; into a canvas or an
// SVG. Of the target beside, B, all is hollow.

import { ticks, xOf } from "../../drawing/axis.js";
import { hatch } from "../../drawing/bars.js";
import { axisOf, RIGHT } from "./places.js";
import { drawScales } from "./scales.js";

/** @import { Mark } from "../../data/months.js" */
/** @import { Axis } from "../../drawing/axis.js" */
/** @import { Pen, Theme } from "../../drawing/canvas.js" */
/** @import { Laid } from "./places.js" */

/**
 * Heights in pixels, and the largest number of each scale: the ground of the steps; that of what came and went, with
 * its room upward and downward; the most links, and the most that came or went in one period.
 * @typedef {{ middle: number, zero: number, up: number, down: number, most: number, flow: number }} Scales
 */

/**
 * Where a step starts and ends, how high it is, and how high what is unknown stands on it.
 * @typedef {[start: number, end: number, tall: number, more: number]} Step
 */

/**
 * Lines of years, with their texts below.
 * @type {(context: Pen, axis: Axis, width: number, theme: Theme, height: number, hasText: boolean) => void}
 */
export function drawYears(context, axis, width, theme, height, hasText) {
  for (const tick of ticks(axis.from, axis.to, axis.width, 46)) {
    const x = xOf(axis, tick.time);
    context.fillStyle = theme.faint;
    context.fillRect(Math.round(x), 0, 1, height);
    if (!hasText || x + 3 + context.measureText(tick.text).width > width) continue;
    context.fillStyle = theme.ink2;
    context.textAlign = "left";
    context.fillText(tick.text, x + 3, height + 10);
  }
}

/**
 * What came in a period.
 * @type {(mark: Mark) => number}
 */
const came = (mark) => mark.found + mark.new + mark.returned;

/** @type {(marks: Mark[], height: number) => Scales} */
function scalesOf(marks, height) {
  const middle = Math.round((height - 18) * 0.55);
  const bottom = height - 20;
  const zero = Math.round(middle + (bottom - middle) * 0.55);
  const most = marks.reduce((least, mark) => Math.max(least, mark.standing + mark.unknown), 0);
  const flow = marks.reduce((least, mark) => Math.max(least, came(mark), mark.lost), 1);
  return { middle, zero, up: zero - middle - 8, down: bottom - zero - 2, most, flow };
}

/** @type {(marks: Mark[], axis: Axis, scales: Scales) => Step[]} */
function stepsOf(marks, axis, { middle, most }) {
  const tall = (/** @type {number} */ number) => (most ? (number / most) * (middle - 16) : 0);
  return marks.map((mark, at) => {
    const start = xOf(axis, Math.max(mark.time, axis.from));
    const end = xOf(axis, marks[at + 1]?.time ?? axis.to);
    return [start, end, tall(mark.standing), tall(mark.unknown)];
  });
}

/** @type {(context: Pen, steps: Step[], ground: number, theme: Theme) => void} */
function drawSteps(context, steps, ground, theme) {
  for (const [start, end, tall, more] of steps) {
    context.fillStyle = theme.bar2;
    context.fillRect(start, ground - tall, end - start + 0.5, tall);
    context.fillStyle = theme.bar;
    context.fillRect(start, ground - tall - 1, end - start + 0.5, 1.5);
    if (more > 0) hatch(context, start, ground - tall - more, end - start + 0.5, more, theme.hatch);
  }
}

/**
 * Steps of B: a line from the ground and back, on paper.
 * @type {(context: Pen, steps: Step[], ground: number, theme: Theme) => void}
 */
function drawHollowSteps(context, steps, ground, theme) {
  if (!steps.length) return;
  for (const [start, end, tall, more] of steps) {
    if (more > 0) hatch(context, start, ground - tall - more, end - start, more, theme.hatch);
  }
  for (const [colour, thick] of /** @type {[string, number][]} */ ([
    [theme.paper, 4],
    [theme.ink, 1.5],
  ])) {
    context.strokeStyle = colour;
    context.lineWidth = thick;
    context.beginPath();
    context.moveTo(steps[0][0], ground);
    for (const [start, end, tall] of steps) {
      context.lineTo(start, ground - tall - 0.5);
      context.lineTo(end, ground - tall - 0.5);
    }
    context.stroke();
  }
}

/**
 * A root scale, or one crawl would flatten all else.
 * @type {(scales: Scales, number: number, room: number) => number}
 */
const rooted = ({ flow }, number, room) => Math.sqrt(number / flow) * room;

/**
 * What came in a period, found, new and returned on each other; and what was lost.
 * @type {(context: Pen, mark: Mark, axis: Axis, scales: Scales, theme: Theme) => void}
 */
function drawFlow(context, mark, axis, scales, theme) {
  const { zero, up, down } = scales;
  const start = xOf(axis, Math.max(mark.time, axis.from)) + 0.5;
  const wide = Math.max(1, xOf(axis, Math.min(mark.end, axis.to)) - start - 0.5);
  const all = came(mark);
  const part = (/** @type {number} */ number) => (all ? (rooted(scales, all, up) * number) / all : 0);
  let base = zero;
  if (mark.found) {
    base -= part(mark.found);
    context.fillStyle = theme.soft;
    context.fillRect(start, base, wide, part(mark.found));
    context.fillStyle = theme.accent;
    context.fillRect(start, base, wide, 1);
  }
  if (mark.new) {
    base -= part(mark.new);
    context.fillStyle = theme.accent;
    context.fillRect(start, base, wide, part(mark.new));
  }
  if (mark.returned) {
    base -= part(mark.returned);
    hatch(context, start, base, wide, part(mark.returned), theme.accent);
  }
  context.fillStyle = theme.bar;
  if (mark.lost) context.fillRect(start, zero + 1, wide, Math.max(1, rooted(scales, mark.lost, down)));
}

/** @type {(context: Pen, mark: Mark, axis: Axis, scales: Scales) => void} */
function drawHollowFlow(context, mark, axis, scales) {
  const { zero, up, down } = scales;
  const start = Math.round(xOf(axis, Math.max(mark.time, axis.from))) + 0.5;
  const wide = Math.max(2, Math.round(xOf(axis, Math.min(mark.end, axis.to)) - start - 1));
  const tallest = Math.round(rooted(scales, came(mark), up));
  const lowest = Math.max(2, Math.round(rooted(scales, mark.lost, down)));
  if (tallest) context.strokeRect(start, zero - tallest + 0.5, wide, tallest);
  if (mark.lost) context.strokeRect(start, zero + 0.5, wide, lowest);
}

/**
 * The period that is chosen, or else the one that is pointed at.
 * @type {(context: Pen, scene: Laid, height: number, theme: Theme) => void}
 */
function drawChosen(context, scene, height, theme) {
  const { marks, pointed, when, from, to } = scene;
  const mark = marks[pointed];
  const chosen = when.span || (mark && [mark.time, mark.end]);
  if (!chosen) return;
  const axis = axisOf(scene);
  const [start, end] = [xOf(axis, Math.max(from, chosen[0])), xOf(axis, Math.min(to, chosen[1]))];
  context.fillStyle = theme.accent;
  context.fillRect(start, height - 17, Math.max(2, end - start), 2);
  if (!when.span) return;
  context.fillRect(start, 0, 1, height - 17);
  context.fillRect(Math.max(start + 1, end), 0, 1, height - 17);
}

/** @type {(context: Pen, scene: Laid, theme: Theme) => void} */
export function drawChart(context, scene, theme) {
  const { marks, otherMarks = [], layout } = scene;
  const height = layout.chart;
  const axis = axisOf(scene);
  const scales = scalesOf([...marks, ...otherMarks], height);
  context.font = `11px ${theme.sans}`;
  drawYears(context, axis, layout.width, theme, height - 14, true);
  drawSteps(context, stepsOf(marks, axis, scales), scales.middle, theme);
  drawHollowSteps(context, stepsOf(otherMarks, axis, scales), scales.middle, theme);
  for (const mark of marks) drawFlow(context, mark, axis, scales, theme);
  context.strokeStyle = theme.ink;
  context.lineWidth = 1;
  for (const mark of otherMarks) drawHollowFlow(context, mark, axis, scales);
  context.fillStyle = theme.ink3;
  context.fillRect(layout.left, scales.zero, layout.width - layout.left - RIGHT, 1);
  if (marks.length) drawScales(context, scene, scales, theme);
  drawChosen(context, scene, height, theme);
}
