// Draws the calendar: a line a year, a mark a capture, darker the more links changed, and both flags.

import { hatch } from "../../drawing/bars.js";
import { day, MONTHS, ofYear, year } from "../../text/time.js";

/** @import { Pen, Theme } from "../../drawing/canvas.js" */
/** @import { Layout, View } from "./state.js" */

/** @typedef {View & { layout: Layout }} Laid */

/** Pixels above the years, for the months, and below, for a flag of the last one; and at the left, for years. */
const [ABOVE, BELOW] = [22, 16];
const LEFT = 36;
/** Up to how many changed links a mark has each of the five steps of ink. */
const STEPS = [0, 2, 7, 19, Infinity];

/**
 * The calendar on so many pixels, each year `line` high.
 * @type {(view: View, width: number, line: number) => Layout}
 */
function layoutOf({ data: { captures } }, width, line) {
  const first = year(captures[0].time);
  const years = year(captures[captures.length - 1].time) - first + 1;
  return { width, height: ABOVE + years * line + BELOW, left: LEFT, line, first, years };
}

/**
 * The calendar in an area of the page.
 * @type {(view: View, width: number, height: number) => Layout}
 */
export function fitted(view, width, height) {
  const { years } = layoutOf(view, width, 0);
  return layoutOf(view, width, Math.max(4, Math.min(24, (height - ABOVE - BELOW) / years)));
}

/**
 * The calendar with all its years, on paper.
 * @type {(view: View) => Layout}
 */
export const onPaper = (view) => layoutOf(view, 700, 14);

/** @type {(layout: Layout, time: number) => number} */
export const xOf = ({ left, width }, time) => left + (ofYear(time) / 366) * (width - left - 4);

/** @type {(layout: Layout, time: number) => number} */
export const yOf = ({ first, line }, time) => ABOVE + (year(time) - first) * line;

/**
 * Whether a y is in a year, as a number of years away.
 * @type {(layout: Layout, time: number, y: number) => number}
 */
const yearsAway = ({ first, line }, time, y) => Math.abs(year(time) - first - Math.floor((y - ABOVE) / line));

/**
 * The place of the capture nearest to a point; -1 if there is none.
 * @type {(view: Laid, x: number, y: number, among: number[]) => number}
 */
export function nearestTo({ data: { captures }, layout }, x, y, among) {
  let [best, near] = [-1, Infinity];
  for (const at of among) {
    const { time } = captures[at];
    const far = Math.abs(xOf(layout, time) - x) + 60 * yearsAway(layout, time, y);
    if (far < near) [best, near] = [at, far];
  }
  return best;
}

/** @type {(context: Pen, layout: Layout, theme: Theme) => void} */
function drawMonths(context, { left, width, years, line }, theme) {
  context.font = `11px ${theme.sans}`;
  context.fillStyle = theme.ink2;
  const every = width < 330 ? 3 : 1;
  MONTHS.forEach((name, month) => {
    const x = left + (month / 12) * (width - left - 4);
    if (month % every === 0) context.fillText(name, x, 12);
    context.fillStyle = theme.faint;
    context.fillRect(x, ABOVE, 1, years * line);
    context.fillStyle = theme.ink2;
  });
}

/** @type {(context: Pen, layout: Layout, theme: Theme) => void} */
function drawYears(context, { left, width, years, line, first }, theme) {
  const rare = Math.ceil(11 / line);
  for (let at = 0; at < years; at += 1) {
    const y = ABOVE + at * line;
    context.fillStyle = theme.ink2;
    if (at % rare === 0) context.fillText(String(first + at), 0, y + line / 2 + 4);
    context.fillStyle = theme.faint;
    context.fillRect(left, y + line - 0.5, width - left, 1);
  }
}

/** @type {(context: Pen, view: Laid, at: number, theme: Theme) => void} */
function drawMark(context, { data: { captures }, changed, layout }, at, theme) {
  const { time, shows } = captures[at];
  const [x, y] = [xOf(layout, time), yOf(layout, time) + 1];
  const high = Math.max(3, layout.line - (layout.line < 9 ? 2 : 4));
  if (shows === "unknown") hatch(context, x - 2, y, 5, high, theme.hatch);
  else if (shows === "nothing") {
    context.strokeStyle = theme.ink3;
    context.lineWidth = 1;
    context.strokeRect(x - 1.5, y + 0.5, 3, high - 1);
  } else {
    const inks = [theme.rule, theme.bar2, theme.ink3, theme.bar, theme.ink];
    context.fillStyle = inks[STEPS.findIndex((most) => changed[at] <= most)];
    context.fillRect(x - 1, y, 2, high);
  }
}

/** @type {(context: Pen, layout: Layout, time: number, name: string, colour: string, theme: Theme) => void} */
function drawFlag(context, layout, time, name, colour, theme) {
  const [x, y] = [xOf(layout, time), yOf(layout, time)];
  const left = x + 16 > layout.width ? x - 16 : x + 1;
  context.fillStyle = colour;
  context.fillRect(x - 1.5, y - 1, 3, layout.line);
  context.fillRect(left, y, 14, 14);
  context.fillStyle = theme.paper;
  context.font = `600 10px ${theme.sans}`;
  context.textAlign = "center";
  context.fillText(name, left + 7, y + 10.5);
  context.textAlign = "left";
}

/** @type {(context: Pen, view: Laid, theme: Theme) => void} */
export function drawCalendar(context, view, theme) {
  const { layout, a, b } = view;
  const { captures } = view.data;
  drawMonths(context, layout, theme);
  drawYears(context, layout, theme);
  for (const at of captures.keys()) drawMark(context, view, at, theme);
  drawFlag(context, layout, captures[a].time, "A", theme.ink, theme);
  drawFlag(context, layout, captures[b].time, "B", theme.accent, theme);
}

/**
 * Both flags in words.
 * @type {(view: View) => string}
 */
export const flagsText = ({ data: { captures }, a, b }) => `A ${day(captures[a].time)}, B ${day(captures[b].time)}`;
