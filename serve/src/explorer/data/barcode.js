// The answer of a barcode with times instead of columns.
//
// `captures`: {time, status, shows}, see captures.js. `rows`: {url, runs}, each run {first, last, gone, began}: seconds
// of the first and the last capture with the link; of the first that shows the page without it after that (0: none);
// and how it began: "found" in the first capture of its page that tells, so that nobody knows when the link came, "new"
// or "returned". Out-links also have `from` and `to`, the places of the first and the last capture, and `parts`: a run
// passes over captures that do not tell whether the page has the link, and a part ends before a cut capture in which
// the link was not found.

import { digits } from "../text/time.js";
import { home, path } from "./call.js";
import { showsOf, tells } from "./captures.js";

/** @import { Barcode } from "./answers.js" */
/** @import { Capture } from "./captures.js" */

/**
 * A stretch in which a link was there. In-links have no places, because their pages have captures of their own.
 * @typedef {object} Run
 * @property {number} first The first capture with the link, in seconds.
 * @property {number} last The last capture with the link, in seconds.
 * @property {number} gone The first capture after it that shows the page without the link; 0 if there is none.
 * @property {string} [began]
 * @property {number} from The place of the first capture.
 * @property {number} to The place of the last capture.
 * @property {number} goneAt The place of the capture without the link; -1 if there is none.
 * @property {[number, number][]} parts The places of the first and the last capture of each part.
 */

/**
 * @typedef {object} Bars
 * @property {string} url
 * @property {number} uid
 * @property {boolean} outward
 * @property {Capture[]} captures
 * @property {{ url: string, runs: Run[] }[]} rows
 * @property {Barcode["rest"]} rest
 * @property {string} replay
 */

/** The largest `limit` of a barcode. */
export const BARCODE_MAX = 100_000;

/**
 * The question for a barcode.
 * @param {string | undefined} url
 * @param {"out" | "in"} direction
 * @param {number} [limit] Rows in the answer; the server has a smaller one for pictures.
 */
export const barcodePath = (url, direction, limit) => path("v1/barcode", { url, direction, limit });

/**
 * Where a capture of a page can be seen: in the archive that replays what the store was built from.
 * @param {{ replay: string, url: string }} page
 * @param {{ time: number }} capture
 */
export const mementoOf = ({ replay, url }, capture) => `${replay}${digits(capture.time)}/${url}`;

/**
 * The TimeMap and the CDX lines of a URL.
 * @param {string} url
 * @returns {[string, string][]}
 */
export const archiveOf = (url) => [
  ["TimeMap", `${home}timemap/link/${url}`],
  ["CDX", home + path("cdx", { url })],
];

/**
 * The times of captures, which an answer has as differences.
 * @param {number[]} differences
 */
export function timesOf(differences) {
  let time = 0;
  return differences.map((difference) => {
    time += difference;
    return time;
  });
}

/**
 * @param {Barcode} answer
 * @returns {Capture[]}
 */
function capturesOf(answer) {
  const statuses = new Map();
  for (const [status, places] of Object.entries(answer.statuses)) {
    for (const place of places) statuses.set(place, Number(status));
  }
  const cut = new Map();
  for (const [reason, places] of Object.entries(answer.cut ?? {})) {
    for (const place of places) cut.set(place, reason);
  }
  const unknown = new Set(answer.unknown);
  return timesOf(answer.captures).map((time, at) => {
    const status = statuses.get(at) ?? 200;
    return { time, status, shows: showsOf(status, unknown.has(at)), cut: cut.get(at) };
  });
}

/**
 * For each capture the place of the next one from there on that tells which links the page has; -1 if there is none.
 * @param {Capture[]} captures
 */
function nextKnown(captures) {
  const next = new Int32Array(captures.length + 1).fill(-1);
  for (let at = captures.length - 1; at >= 0; at -= 1) next[at] = tells(captures[at]) ? at : next[at + 1];
  return next;
}

/**
 * How a run began.
 * @type {(isFound: boolean, run: number) => string}
 */
const began = (isFound, run) => (isFound ? "found" : run ? "returned" : "new");

/**
 * The runs of out-links with their parts: of each part how many captures lie before it, and how many captures more than
 * one it has.
 * @param {Barcode} answer
 * @param {Capture[]} captures
 */
function outwardRuns(answer, captures) {
  const next = nextKnown(captures);
  let at = 0;
  return answer.counts.map((count) => {
    /** @type {[number, number][][]} */
    const runs = [];
    let end = 0;
    for (let left = count; left > 0; left -= 1) {
      const [from, to] = [end + answer.runs[at], end + answer.runs[at] + answer.runs[at + 1]];
      // The first capture after the part before that tells what the page has lies before this part, or not.
      const isNew = !end || (next[end] >= 0 && next[end] < from);
      if (isNew) runs.push([[from, to]]);
      else runs[runs.length - 1].push([from, to]);
      at += 2;
      end = to + 1;
    }
    return runs.map((parts, run) => {
      const [from, to] = [parts[0][0], parts[parts.length - 1][1]];
      const [first, last, goneAt] = [captures[from].time, captures[to].time, next[to + 1]];
      const gone = goneAt < 0 ? 0 : captures[goneAt].time;
      return { from, to, first, last, gone, goneAt, parts, began: began(next[0] < 0 || from <= next[0], run) };
    });
  });
}

/**
 * Whether the link of a row was found in a capture, given its place.
 * @param {{ runs: Run[] }} row
 * @param {number} at
 */
export const isFoundIn = ({ runs }, at) =>
  runs.some((run) => run.from <= at && at <= run.to && run.parts.some(([from, to]) => from <= at && at <= to));

/**
 * The runs of in-links, which are times.
 * @param {Barcode} answer
 */
function inwardRuns({ counts, runs, first_known: firstKnown }) {
  // A cut capture may have the link before the first capture that tells; 0 is for a page without such a capture.
  const isFound = (/** @type {number} */ row, /** @type {number} */ first) =>
    !firstKnown?.[row] || first <= firstKnown[row];
  let at = 0;
  return counts.map((count, row) =>
    Array.from({ length: count }, (_, run) => {
      const [first, last, gone] = runs.slice(at, at + 3);
      at += 3;
      return { from: 0, to: 0, first, last, gone, goneAt: -1, parts: [], began: began(isFound(row, first), run) };
    }),
  );
}

/**
 * @param {Barcode} answer
 * @returns {Bars}
 */
export function barcode(answer) {
  const captures = capturesOf(answer);
  const { url, uid, links, rest, replay } = answer;
  const outward = answer.direction === "out";
  const runs = outward ? outwardRuns(answer, captures) : inwardRuns(answer);
  const rows = links.map((link, row) => ({ url: link, runs: runs[row] }));
  return { url, uid, outward, captures, rows, rest, replay };
}
