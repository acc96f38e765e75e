// What the picture of a barcode says in words: names of rows, heads of groups, and the axis.

import { failed } from "../../data/captures.js";
import { standing } from "../../data/order.js";
import { xOf } from "../../drawing/axis.js";
import { clip } from "../../drawing/bars.js";
import { fitted } from "../../text/cut.js";
import { safe } from "../../text/names.js";
import { count, many } from "../../text/numbers.js";
import { AXIS, axisOf, HEAD, isTime, placeOf } from "./scene.js";

/** @import { Capture } from "../../data/captures.js" */
/** @import { Name } from "../../data/order.js" */
/** @import { Pen, Theme } from "../../drawing/canvas.js" */
/** @import { PlacedGroup, Scene } from "./scene.js" */

/** The height from which on each row has its name. */
export const NAMED = 11;

/**
 * Ticks with their texts, where these do not touch.
 * @type {(context: Pen, scene: Scene, marks: { x: number, text: string }[], theme: Theme) => void}
 */
function drawTicks(context, { layout: { chart } }, marks, theme) {
  context.fillStyle = theme.ink2;
  let free = -Infinity;
  for (const mark of marks) {
    context.fillRect(mark.x, mark.text ? 10 : 16, 1, mark.text ? 11 : 5);
    const width = context.measureText(mark.text).width;
    if (mark.text && mark.x + 4 >= free && mark.x + 4 + width <= chart.left + chart.width) {
      context.fillText(mark.text, mark.x + 4, 14);
      free = mark.x + 10 + width;
    }
  }
}

/**
 * The tick of a capture: dark and high where it failed, hatched in colour where its links are unknown.
 * @type {(context: Pen, capture: Capture, x: number, theme: Theme) => void}
 */
function drawCapture(context, capture, x, theme) {
  const [fails, lacks] = [failed(capture), capture.shows === "unknown"];
  const ordinary = lacks ? theme.hatch : theme.ink3;
  context.fillStyle = fails ? theme.ink : ordinary;
  context.globalAlpha = fails || lacks ? 1 : 0.55;
  if (fails) context.fillRect(Math.round(x), 23, 2, 11);
  else context.fillRect(Math.round(x), 25, 1, 8);
}

/**
 * A tick for each capture in view.
 * @type {(context: Pen, scene: Scene, theme: Theme) => void}
 */
function drawCaptures(context, scene, theme) {
  const { left, width } = scene.layout.chart;
  for (const [at, capture] of scene.captures.entries()) {
    const x = placeOf(scene, at);
    if (x >= left - 1 && x <= left + width) drawCapture(context, capture, x, theme);
  }
  context.globalAlpha = 1;
}

/**
 * The axis above the rows.
 * @type {(context: Pen, scene: Scene, marks: { x: number, text: string }[], theme: Theme) => void}
 */
export function drawAxis(context, scene, marks, theme) {
  const { chart, width } = scene.layout;
  context.font = `11px ${theme.sans}`;
  context.fillStyle = theme.ink2;
  context.textAlign = "left";
  context.fillText(many(scene.order.rows.length, scene.data.outward ? "link" : "page"), 0, 14);
  if (chart.left > 160 && scene.captures.length) {
    context.textAlign = "right";
    context.fillText("captures", chart.left - 10, 32);
    context.textAlign = "left";
  }
  clip(context, chart.left, 0, chart.width, AXIS);
  drawTicks(context, scene, marks, theme);
  drawCaptures(context, scene, theme);
  context.restore();
  context.fillStyle = theme.rule;
  context.fillRect(0, AXIS - 1, width, 1);
}

/**
 * The name of a row as it is shown: below the name of its host it needs no host.
 * @type {(scene: Scene, row: number) => Name}
 */
export function nameOf({ order, choice }, row) {
  const own = order.rows[row];
  return choice.group === "host" && choice.rows !== "all" ? own.path : own.name;
}

/**
 * The names at the left.
 * @type {(context: Pen, scene: Scene, first: number, end: number, theme: Theme) => void}
 */
export function drawNames(context, scene, first, end, theme) {
  const { chart, rowHeight } = scene.layout;
  context.font = `12px ${theme.sans}`;
  context.textAlign = "left";
  clip(context, 0, AXIS, chart.left, chart.height);
  if (rowHeight >= NAMED) drawEachName(context, scene, first, end, theme);
  else drawSomeNames(context, scene, first, end, theme);
  context.restore();
}

/** @type {typeof drawNames} */
function drawEachName(context, scene, first, end, theme) {
  const { chart, rowHeight, tops } = scene.layout;
  for (let row = first; row < end; row += 1) {
    context.fillStyle = row === scene.current ? theme.accent : theme.ink2;
    const { text, branches } = nameOf(scene, row);
    const y = chart.top + tops[row] - scene.scroll + rowHeight - 3.5;
    context.fillText(fitted(context, text, chart.left - 12, branches), 0, y);
  }
}

/**
 * As on a map: what lived longest gets its name first, with a line to its row, others only where no name would touch
 * another.
 * @type {typeof drawNames}
 */
function drawSomeNames(context, scene, first, end, theme) {
  const { chart, rowHeight, tops } = scene.layout;
  const inSight = scene.order.rows.slice(first, end).map((row, at) => ({ row, at: first + at }));
  /** @type {number[]} */
  const taken = [];
  for (const { at } of inSight.sort((one, other) => other.row.life - one.row.life).slice(0, 2000)) {
    const middle = chart.top + tops[at] - scene.scroll + rowHeight / 2;
    const base = Math.min(Math.max(middle + 4, chart.top + 11), chart.top + chart.height - 4);
    if (taken.some((other) => Math.abs(other - base) < 14)) continue;
    taken.push(base);
    const { text, branches } = nameOf(scene, at);
    const shown = fitted(context, text, chart.left - 26, branches);
    context.fillStyle = at === scene.current ? theme.accent : theme.ink2;
    context.fillText(shown, 0, base);
    context.fillStyle = theme.rule;
    const begin = context.measureText(shown).width + 6;
    context.fillRect(begin, Math.round(base - 4), chart.left - 4 - begin, 1);
    if (taken.length > chart.height / 16) break;
  }
}

/**
 * An area that says how many rows of a group were there.
 * @type {(context: Pen, scene: Scene, group: PlacedGroup, y: number) => void}
 */
function drawStanding(context, scene, group, y) {
  group.steps ||= standing(scene.order.rows.slice(group.start, group.end));
  const { steps } = group;
  const axis = axisOf(scene);
  const most = steps.reduce((least, [, number]) => Math.max(least, number), 1);
  steps.forEach(([time, number], at) => {
    if (!number) return;
    const [start, stop] = [xOf(axis, time), xOf(axis, steps[at + 1]?.[0] ?? time)];
    const high = (number / most) * (HEAD - 8);
    context.fillRect(start, y + HEAD - 3 - high, Math.max(0.5, stop - start), high);
  });
}

/**
 * A group's name, and how many rows it has.
 * @type {(context: Pen, scene: Scene, group: PlacedGroup, y: number, theme: Theme) => void}
 */
export function drawGroupHead(context, scene, group, y, theme) {
  const { chart } = scene.layout;
  context.fillStyle = theme.paper;
  context.fillRect(0, y, chart.left + chart.width, HEAD);
  clip(context, chart.left, y, chart.width, HEAD);
  context.fillStyle = theme.bar2;
  if (isTime(scene)) drawStanding(context, scene, group, y);
  context.restore();
  context.font = `600 12px ${theme.sans}`;
  context.textAlign = "left";
  context.fillStyle = theme.ink;
  context.fillText(fitted(context, safe(group.name), chart.left - 60), 0, y + 16);
  context.font = `12px ${theme.sans}`;
  context.fillStyle = theme.ink3;
  context.textAlign = "right";
  context.fillText(count(group.end - group.start), chart.left - 12, y + 16);
  context.textAlign = "left";
}
