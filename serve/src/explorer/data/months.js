// What happened to links in each month, as /v1/backlinks says it, and months put together to what a picture has room
// for.

import { DAY, MONTHS, secondsOf, year } from "../text/time.js";

/** @import { Backlinks } from "./answers.js" */
/** @import { Row } from "./referrers.js" */

/** @typedef {"found" | "new" | "returned" | "lost"} Kind */

/**
 * What happened in a period, and how many links stand at its end, and of how many that is unknown.
 * @typedef {{ time: number, standing: number, unknown: number } & Record<Kind, number>} Month
 */

/**
 * A period of `size` months; `end` is the first second after it.
 * @typedef {Month & { end: number, size: number }} Mark
 */

/** @type {Kind[]} */
const KINDS = ["found", "new", "returned", "lost"];

/**
 * What happened in each month, and what is so at its end.
 * @param {Backlinks} answer
 * @returns {Month[]}
 */
export function monthsOf(answer) {
  return answer.periods.map((start, at) => ({
    time: secondsOf(`${start}T00:00:00Z`),
    standing: answer.standing[at],
    unknown: answer.unknown[at],
    found: answer.found[at],
    new: answer.new[at],
    returned: answer.returned[at],
    lost: answer.lost[at],
  }));
}

/**
 * From the first month to the last thing that is known; the last month is whole.
 * @param {Month[]} months
 * @param {Row[]} rows
 * @returns {[number, number]}
 */
export function extentOf(months, rows) {
  const first = months.length ? months[0].time : Infinity;
  const last = months.length ? months[months.length - 1].time + 31 * DAY : -Infinity;
  const ends = rows.flatMap((row) => row.runs.map((run) => Math.max(run.last, run.gone)));
  const begin = rows.reduce((least, row) => Math.min(least, row.first), first);
  const end = ends.reduce((most, one) => Math.max(most, one), last);
  return begin < end ? [begin, end] : [0, 0];
}

/**
 * Months, quarters or years, whichever are `least` pixels wide between two times on `width` pixels: what happened in
 * each, and what is so at its end.
 * @param {Month[]} months
 * @param {[number, number]} extent
 * @param {number} width
 * @param {number} least
 */
export function marksOf(months, [from, to], width, least) {
  const size = [1, 3, 12].find((step) => (width / (to - from)) * step * 30.4 * DAY >= least) || 12;
  /** @type {Mark[]} */
  const found = [];
  for (const month of months) {
    const at = new Date(month.time * 1000);
    const begin = Math.floor(at.getUTCMonth() / size) * size;
    const start = Date.UTC(at.getUTCFullYear(), begin, 1) / 1000;
    let last = found[found.length - 1];
    if (!last || last.time !== start) {
      const end = Date.UTC(at.getUTCFullYear(), begin + size, 1) / 1000;
      last = { time: start, end, size, found: 0, new: 0, returned: 0, lost: 0, standing: 0, unknown: 0 };
      found.push(last);
    }
    for (const kind of KINDS) last[kind] += month[kind];
    last.standing = month.standing;
    last.unknown = month.unknown;
  }
  return found;
}

/**
 * "Mar 2004", "Q2 2004" or "2004".
 * @param {Mark} mark
 */
export function nameOf(mark) {
  const at = new Date(mark.time * 1000);
  if (mark.size === 12) return String(year(mark.time));
  if (mark.size === 3) return `Q${at.getUTCMonth() / 3 + 1} ${year(mark.time)}`;
  return `${MONTHS[at.getUTCMonth()]} ${year(mark.time)}`;
}

/**
 * The period of a mark as the texts of a first and a last date: "2004-01" and "2004-03".
 * @param {Mark} mark
 */
export function textsOf(mark) {
  if (mark.size === 12) return { from: String(year(mark.time)), to: String(year(mark.time)) };
  const month = (/** @type {number} */ at) => new Date(at * 1000).toISOString().slice(0, 7);
  return { from: month(mark.time), to: month(mark.end - DAY) };
}
