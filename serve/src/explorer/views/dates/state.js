// The state of the view of two dates: the captures of a page, both flags, and what was lost, kept and gained.

import { tells } from "../../data/captures.js";
import { addressOf, flagsOf } from "../../data/flags.js";
import { measured } from "../../data/order.js";
import { notice } from "../../parts/head.js";
import { iso, YEAR } from "../../text/time.js";

/** @import { Bars } from "../../data/barcode.js" */
/** @import { Dates } from "../../data/flags.js" */
/** @import { Row } from "../../data/order.js" */
/** @import { Context } from "../../page/state.js" */
/** @import { between } from "../../parts/between.js" */
/** @import { Line } from "./lists.js" */

/** @typedef {"lost" | "kept" | "gained"} Change */
/** @typedef {Record<Change, Row[]>} Parts */

/**
 * Pixels of the calendar: its width, where its years begin, their height, and the first year with how many there are.
 * @typedef {{ width: number, height: number, left: number, line: number, first: number, years: number }} Layout
 */

/**
 * The state of the view, and its elements.
 * @typedef {object} View
 * @property {Context} context
 * @property {Bars} data
 * @property {Row[]} rows
 * @property {number[]} changed The links that came or went with each capture.
 * @property {number[]} known The places of the captures that show links; others cannot be compared.
 * @property {number} a The place of the capture of flag A.
 * @property {number} b The place of the capture of flag B.
 * @property {"a" | "b"} moving The flag that keys move.
 * @property {boolean} isOnlyChanges Whether kept links are left out.
 * @property {Parts} parts
 * @property {Line[]} lines The lines of the lists.
 * @property {Layout} [layout]
 * @property {HTMLElement} area The area of the calendar.
 * @property {HTMLCanvasElement} canvas
 * @property {HTMLElement} pointed Says which capture is pointed at.
 * @property {HTMLElement} legend
 * @property {HTMLElement} head The heads of both sides.
 * @property {HTMLElement} list The lists of both sides.
 * @property {HTMLElement} moved Says that a flag is not of its date.
 * @property {ReturnType<typeof between>} fields The fields of both dates.
 * @property {CanvasRenderingContext2D} ruler Measures names as the lists show them.
 */

/**
 * What a view is before it has elements.
 * @typedef {Pick<View, "context" | "data" | "rows" | "changed" | "known">} Subject
 */

/** @type {Change[]} */
export const CHANGES = ["lost", "kept", "gained"];

/**
 * For each capture how many links came or went since the one before; nothing for the first and for unknown ones.
 * @type {(captures: number, rows: Row[]) => number[]}
 */
function changesOf(captures, rows) {
  const numbers = new Array(captures).fill(0);
  for (const run of rows.flatMap((row) => row.runs)) {
    if (run.began !== "found") numbers[run.from] += 1;
    if (run.gone) numbers[run.goneAt] += 1;
  }
  return numbers;
}

/** @type {(context: Context, data: Bars) => Subject} */
export function subjectOf(context, data) {
  const rows = measured(data);
  const known = data.captures.map((_, at) => at).filter((at) => tells(data.captures[at]));
  return { context, data, rows, changed: changesOf(data.captures.length, rows), known };
}

/**
 * The places of the flags that an address asks for, and what is to be said of them.
 * @type {(view: Subject, asked: Dates) => { a: number, b: number, said: string }}
 */
export const placesOf = ({ data, known }, asked) => flagsOf(data.captures, known, asked);

/**
 * Puts both flags where a question as of their dates has them, and the address on what is shown.
 * @type {(view: View, asked: Dates) => void}
 */
export function stand(view, asked) {
  const { a, b, said } = placesOf(view, asked);
  Object.assign(view, { a, b });
  view.moved.replaceChildren(...(said ? [notice(said)] : []));
  if (asked.a || asked.b) view.context.set(addressIn(view));
}

/**
 * Both flags, as an address names them.
 * @type {(view: View) => { a: string, b: string }}
 */
export const addressIn = ({ data, a, b }) => addressOf(data.captures, a, b);

/**
 * The days of both flags, as their fields have them.
 * @type {(view: Pick<View, "data" | "a" | "b">) => { from: string, to: string, wrong: {} }}
 */
export function written({ data, a, b }) {
  const [from, to] = [a, b].map((at) => iso(data.captures[at].time).slice(0, 10));
  return { from, to, wrong: {} };
}

/**
 * Whether a row was there in a capture.
 * @type {(row: Row, at: number) => boolean}
 */
const isThere = (row, at) => row.runs.some((run) => run.from <= at && at <= run.to);

/**
 * What was lost, kept and gained from one flag to the other.
 * @type {(view: Pick<View, "rows" | "a" | "b">) => Parts}
 */
export function partsOf({ rows, a, b }) {
  /** @type {Parts} */
  const parts = { lost: [], kept: [], gained: [] };
  for (const row of rows) {
    const [before, after] = [isThere(row, a), isThere(row, b)];
    if (before || after) parts[before && after ? "kept" : before ? "lost" : "gained"].push(row);
  }
  return parts;
}

/**
 * The place of the next capture that changed something, or of the last one there is.
 * @type {(view: View, way: number) => number}
 */
export function nextChange({ known, changed, moving, a, b }, way) {
  let at = known.indexOf(moving === "a" ? a : b) + way;
  while (at > 0 && at < known.length - 1 && !changed[known[at]]) at += way;
  return known[at] ?? -1;
}

/**
 * The place of the capture a year on, or of the next one where there is none for longer.
 * @type {(view: View, way: number) => number}
 */
export function nextYear({ data: { captures }, known, moving, a, b }, way) {
  const here = moving === "a" ? a : b;
  const time = captures[here].time + way * YEAR;
  const far = (/** @type {number} */ at) => Math.abs(captures[at].time - time);
  const nearest = known.reduce((best, at) => (far(at) < far(best) ? at : best), known[0]);
  return nearest === here ? (known[known.indexOf(here) + way] ?? here) : nearest;
}
