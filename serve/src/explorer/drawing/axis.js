// Axes of time: where a time is on a picture, and the ticks with their texts.

import { DAY, day, january, MONTHS, YEAR, year } from "../text/time.js";

/**
 * A stretch from `from` to `to` on `width` pixels from `left` on.
 * @typedef {{ from: number, to: number, left: number, width: number }} Axis
 * @typedef {{ time: number, text: string, strong: boolean }} Tick
 */

/**
 * The x of a time; or of any other unit of the axis.
 * @param {Axis} axis
 * @param {number} time
 */
export const xOf = ({ from, to, left, width }, time) => left + ((time - from) / (to - from)) * width;

/**
 * The time at an x.
 * @param {Axis} axis
 * @param {number} x
 */
export const timeAt = ({ from, to, left, width }, x) => from + ((x - left) / width) * (to - from);

/** The most ticks of months or days. */
const MOST = 400;

/** @type {(from: number, to: number, step: number) => Tick[]} */
function monthTicks(from, to, step) {
  const found = [];
  const first = year(from);
  for (let month = 0; ; month += step) {
    const time = Date.UTC(first, month, 1) / 1000;
    if (time > to) return found;
    const isJanuary = month % 12 === 0;
    const text = isJanuary ? String(year(time)) : MONTHS[month % 12];
    if (time >= from) found.push({ time, text, strong: isJanuary });
  }
}

/** @type {(from: number, to: number, step: number) => Tick[]} */
function dayTicks(from, to, step) {
  const found = [];
  for (let at = Math.ceil(from / (step * DAY)) * step * DAY; at <= to && found.length < MOST; at += step * DAY) {
    found.push({ time: at, text: day(at).replace(/ \d+$/, ""), strong: false });
  }
  return found;
}

/**
 * Ticks that lie at least `pixels` apart: time and text, the text empty where it would touch.
 * @param {number} from
 * @param {number} to
 * @param {number} width
 * @param {number} pixels
 * @returns {Tick[]}
 */
export function ticks(from, to, width, pixels) {
  const scale = width / (to - from);
  const yearWidth = YEAR * scale;
  if (yearWidth >= pixels * 6) {
    const step = [1, 3, 6].find((months) => (yearWidth / 12) * months >= pixels) || 6;
    const found = monthTicks(from, to, step);
    if (found.length > 0 && found.length < MOST) return found;
    return dayTicks(from, to, [1, 2, 5, 10, 15].find((days) => days * DAY * scale >= pixels) || 15);
  }
  /** @type {Tick[]} */
  const found = [];
  const step = [1, 2, 5, 10, 20, 50, 100].find((years) => years * yearWidth >= pixels) || 200;
  for (let y = year(from); january(y) <= to; y += 1) {
    if (january(y) >= from) found.push({ time: january(y), text: y % step === 0 ? String(y) : "", strong: true });
  }
  return found;
}
