// Where the two dates of a page stand: each on the capture that a question as of its date would take.

import { lastSecondOf, timeOf } from "../text/dates.js";
import { safe } from "../text/names.js";
import { day, digits } from "../text/time.js";
import { saidOf } from "./captures.js";

/** @import { Capture } from "./captures.js" */
/**
 * The dates of two flags, as texts.
 * @typedef {{ a?: string, b?: string }} Dates
 */

/**
 * The place of the last of `known` captures by a time, else the first one.
 * @type {(captures: Capture[], known: number[], time: number) => number}
 */
const asOf = (captures, known, time) => known.findLast((at) => captures[at].time <= time) ?? known[0];

/**
 * Why the capture that is shown is not the one that a question as of the date that a text names would take, or is not
 * of that date; empty where it is both.
 * @param {Capture[]} captures
 * @param {string} text
 * @param {Capture} shown
 */
function why(captures, text, shown) {
  const [from, to] = [timeOf(text), lastSecondOf(text)];
  if (from === undefined || to === undefined) return `“${safe(text)}” is not a date`;
  const said = (/** @type {Capture} */ capture) => `${day(capture.time)}: ${saidOf(capture)}`;
  const decides = captures.findLast(({ time, shows }) => time <= to && shows !== "nothing");
  if (decides && decides !== shown) return said(decides);
  if (decides && decides.time >= from) return "";
  const outage = captures.findLast(({ time }) => from <= time && time <= to);
  return outage ? said(outage) : `No capture of ${text.length < 14 ? safe(text) : day(from)}`;
}

/**
 * The places of both flags for the dates that are asked for, as texts: A is the earlier one. Without texts they are the
 * first and the last of the `known` captures, which tell the links; A without a text stands before B. `said` tells
 * which flag is not of its date.
 * @param {Capture[]} captures
 * @param {number[]} known
 * @param {Dates} asked
 */
export function flagsOf(captures, known, asked) {
  const last = known[known.length - 1];
  /** @type {(text: string | undefined, otherwise: number) => number} */
  const place = (text, otherwise) => {
    const time = lastSecondOf(text);
    return time === undefined ? otherwise : asOf(captures, known, time);
  };
  let b = place(asked.b, last);
  let a = place(asked.a, asked.b ? known[Math.max(0, known.indexOf(b) - 1)] : known[0]);
  let texts = [asked.a, asked.b];
  if (a > b) {
    [a, b] = [b, a];
    texts = texts.toReversed();
  }
  const reasonOf = (/** @type {number} */ at, /** @type {string | undefined} */ text) =>
    text ? why(captures, text, captures[at]) : "";
  const moved = [a, b]
    .map((at, side) => ({ at, flag: "AB"[side], reason: reasonOf(at, texts[side]) }))
    .filter(({ reason }) => reason);
  if (!moved.length) return { a, b, said: "" };
  const reasons = moved.map(({ reason }) => reason).join(". ");
  if (a === b) return { a, b, said: `${reasons}. A and B are both ${day(captures[a].time)}: choose another.` };
  const flags = moved.map(({ at, flag }) => `${flag} is now ${day(captures[at].time)}`).join(" and ");
  const rule = moved.some(({ at }) => at !== known[0]) ? "the latest by then" : "the first";
  return { a, b, said: `${reasons}. ${flags}, ${rule} that tells the links.` };
}

/**
 * A flag's capture, as an address names it.
 * @type {(captures: Capture[], a: number, b: number) => { a: string, b: string }}
 */
export const addressOf = (captures, a, b) => ({ a: digits(captures[a].time), b: digits(captures[b].time) });
