// Draws rows of bars into a canvas or an SVG. The caller says where each row is, and how a time becomes an x.

import { Svg } from "./svg.js";

/** @import { Capture } from "../data/captures.js" */
/** @import { Pen, Theme } from "./canvas.js" */

/**
 * Where bars are: the x of the ends of a run and of the capture that has it no more, the edges, and how thick a bar is.
 * @template R
 * @typedef {object} Bars
 * @property {(run: R) => number[]} x
 * @property {(run: R) => number} gone
 * @property {number} left
 * @property {number} right
 * @property {number} thickness
 */

/** Days without a capture after which the ground is pale. */
const GAP = 150 * 86400;

/**
 * A rectangle that limits what is drawn until `restore`.
 * @type {(context: Pen, x: number, y: number, width: number, height: number) => void}
 */
export function clip(context, x, y, width, height) {
  context.save();
  if (context instanceof Svg) context.clipTo(x, y, width, height);
  else {
    context.beginPath();
    context.rect(x, y, width, height);
    context.clip();
  }
}

/**
 * Draws further right and lower by so many pixels.
 * @type {(context: Pen, x: number, y: number, draw: () => void) => void}
 */
export function shifted(context, x, y, draw) {
  if (context instanceof Svg) return context.shifted(x, y, draw);
  context.save();
  context.translate(x, y);
  draw();
  return context.restore();
}

/** @type {(context: Pen, x1: number, y1: number, x2: number, y2: number, colour: string, width?: number) => void} */
function line(context, x1, y1, x2, y2, colour, width = 1) {
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.beginPath();
  context.moveTo(x1, y1);
  context.lineTo(x2, y2);
  context.stroke();
}

/**
 * Lines at 45 degrees, every 5 pixels.
 * @type {(context: Pen, x: number, y: number, width: number, height: number, colour: string) => void}
 */
export function hatch(context, x, y, width, height, colour) {
  clip(context, x, y, width, height);
  context.strokeStyle = colour;
  context.lineWidth = 0.9;
  context.beginPath();
  const start = Math.floor((x - height) / 5) * 5;
  for (let at = start; at < x + width; at += 5) {
    context.moveTo(at, y + height);
    context.lineTo(at + height, y);
  }
  context.stroke();
  context.restore();
}

/**
 * The ground: pale where the page was not captured for long, and a line for each tick.
 * @param {Pen} context
 * @param {{ left: number, top: number, width: number, height: number, captures: Capture[], x: (time: number) => number,
 *   ticks: { x: number }[], across: string }} area
 * @param {Theme} colours
 */
export function ground(context, { left, top, width, height, captures, x, ticks, across }, colours) {
  clip(context, left, top, width, height);
  if (across === "time") {
    for (let at = 1; at < captures.length; at += 1) {
      if (captures[at].time - captures[at - 1].time > GAP) {
        const [from, to] = [x(captures[at - 1].time), x(captures[at].time)];
        context.fillStyle = colours.panel;
        context.fillRect(from + 1, top, Math.max(0, to - from - 2), height);
      }
    }
  }
  for (const tick of ticks) line(context, tick.x, top, tick.x, top + height, colours.faint);
  context.restore();
}

/**
 * The x where what the captures from `at` to `end` say begins and ends: in the middle between captures, and at least
 * two pixels from them; `place` gives the x of a capture.
 * @param {Capture[]} captures
 * @param {(at: number) => number} place
 * @param {number} at
 * @param {number} end
 * @returns {[number, number]}
 */
export function stretch(captures, place, at, end) {
  const before = at > 0 ? place(at - 1) : place(at);
  const after = end + 1 < captures.length ? place(end + 1) : place(end);
  return [Math.min((before + place(at)) / 2, place(at) - 2), Math.max((after + place(end)) / 2, place(end) + 2)];
}

/**
 * Stretches of captures that leave links unknown.
 * @param {Capture[]} captures
 * @param {(at: number) => number} place
 */
export function unknown(captures, place) {
  /** @type {[number, number][]} */
  const found = [];
  for (let at = 0; at < captures.length; at += 1) {
    if (captures[at].shows !== "unknown") continue;
    let end = at;
    while (end + 1 < captures.length && captures[end + 1].shows === "unknown") end += 1;
    found.push(stretch(captures, place, at, end));
    at = end;
  }
  return found;
}

/**
 * Draws the runs of a row: `bar` from the first to the last capture with the link, and a thin line up to the capture
 * that has it no more.
 * @template R
 * @param {Pen} context
 * @param {{ runs: R[] }} row
 * @param {{ y: number, height: number }} line
 * @param {Bars<R>} area
 * @param {(start: number, end: number, top: number) => void} bar
 * @param {string} thin
 */
function runs(context, row, { y, height }, { x, gone, left, right, thickness }, bar, thin) {
  const top = y + (height - thickness) / 2;
  for (const run of row.runs) {
    const [from, to] = x(run);
    if (from > right) continue;
    if (to >= left) bar(Math.max(from, left - 2), Math.min(to, right + 2), top);
    const end = gone(run);
    if (end > to + 1.5 && end >= left && thickness > 3) {
      const middle = Math.round(y + height / 2) + 0.5;
      line(context, Math.max(to, left), middle, Math.min(end, right), middle, thin);
      line(context, end, middle - 2.5, end, middle + 2.5, thin);
    }
  }
}

/**
 * The bars of one row: filled while the link was there, in the first of two colours; the second is that of thin lines.
 * @template R
 * @param {Pen} context
 * @param {{ runs: R[] }} row
 * @param {{ y: number, height: number }} line
 * @param {Bars<R>} area
 * @param {[string, string]} colours
 */
export function bars(context, row, line, area, [colour, thin]) {
  /** @type {(start: number, end: number, top: number) => void} */
  const fill = (start, end, top) => {
    context.fillStyle = colour;
    context.fillRect(start, top, Math.max(1, end - start), area.thickness);
  };
  runs(context, row, line, area, fill, thin);
}

/**
 * The same with bars that are outlines.
 * @type {typeof bars}
 */
export function hollowBars(context, row, line, area, [colour, thin]) {
  /** @type {(start: number, end: number, top: number) => void} */
  const outline = (start, end, top) => {
    context.strokeStyle = colour;
    context.lineWidth = 1;
    context.strokeRect(start + 0.5, top + 0.5, Math.max(1, end - start - 1), area.thickness - 1);
  };
  runs(context, row, line, area, outline, thin);
}
