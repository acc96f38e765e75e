// Who links to a target, as /v1/backlinks says it: rows with their stays, and all rows as a file. The server selects
// rows and counts them; this file only reads what it says.

import { branchesOf } from "../text/cut.js";
import { bare } from "../text/names.js";
import { day, iso, secondsOf } from "../text/time.js";
import { path } from "./call.js";
import { targetIn } from "./targets.js";

/** @import { State } from "../page/state.js" */
/** @import { When } from "../text/dates.js" */
/** @import { Backlinks, BacklinksRow, Call, Path } from "./answers.js" */
/** @import { Run } from "./barcode.js" */
/** @import { Target } from "./targets.js" */

/** @typedef {"first" | "last" | "most" | "key"} Order */

/**
 * The rows that are meant.
 * @typedef {object} Choice
 * @property {string} match
 * @property {"page" | "host" | "domain"} unit What a row is.
 * @property {boolean} internal Whether pages of the target itself count.
 * @property {Order} order
 * @property {"any" | "standing" | "new" | "returned" | "lost"} event What happened to the links of a row.
 * @property {string} [source] The host of the pages that link.
 * @property {string} text A text that each row has in its address.
 * @property {"any" | "both" | "a" | "b"} who The target that each row links to, if there are two.
 */

/** @typedef {Pick<Run, "first" | "last" | "gone" | "began">} Span */

/**
 * A row. Where rows of two targets are one list, `who` is "both", "a" or "b", and `parts` has the row of each target.
 * @typedef {object} Row
 * @property {string} url
 * @property {string} page
 * @property {boolean} isPage
 * @property {number} pages
 * @property {number} targets
 * @property {Span[]} runs
 * @property {[number, number | undefined][]} unknown
 * @property {number} first
 * @property {number} last
 * @property {number} life
 * @property {"both" | "a" | "b"} [who]
 * @property {[string, Row][]} [parts]
 */

/**
 * A row with its name, as it is shown.
 * @typedef {Row & { name: string, branches: () => number[] }} NamedRow
 */

/**
 * A question, to which more can be added.
 * @typedef {(more?: { limit?: number, resume_key?: string }) => Path<Backlinks>} Ask
 */

/** Rows of a first answer, and of one in which a text is looked for: the most that the server gives at once. */
export const ROWS = 5000;
export const ROWS_MAX = 10_000;

/**
 * What a row may be chosen by: the word of the server and that of the page.
 * @type {[Choice["event"], string][]}
 */
export const EVENTS = [
  ["any", "all"],
  ["standing", "standing"],
  ["new", "new"],
  ["returned", "returned"],
  ["lost", "lost"],
];

/**
 * One of several words, or another one if it is none of them.
 * @template {string} T
 * @param {string | undefined} value
 * @param {T[]} words
 * @param {T} otherwise
 */
export const among = (value, words, otherwise) => words.find((word) => word === value) ?? otherwise;

/**
 * What an address says of which rows are meant.
 * @param {State} state
 * @returns {Choice}
 */
export function choiceOf(state) {
  return {
    match: targetIn(state).match,
    unit: among(state.unit, ["page", "host", "domain"], "page"),
    internal: state.internal === "1",
    order: among(state.order, ["first", "last", "most", "key"], "first"),
    event: among(state.event, ["any", "standing", "new", "returned", "lost"], "any"),
    source: state.source || undefined,
    text: state.text || "",
    who: among(state.who, ["any", "both", "a", "b"], "any"),
  };
}

/**
 * The question of a choice about a target, in a stretch of time; `more` has what else is asked.
 * @param {Target} target
 * @param {Choice} choice
 * @param {Partial<When>} when
 * @param {{ limit?: number, resume_key?: string }} more
 */
export function question({ url, match }, { unit, internal, order, source, event }, { from, to, span }, more = {}) {
  return path("v1/backlinks", {
    from: span && from,
    to: span && to,
    url,
    match,
    unit,
    internal: internal ? "true" : undefined,
    order,
    source,
    source_match: source ? "host" : undefined,
    event: event === "any" ? undefined : event,
    limit: ROWS,
    ...more,
  });
}

/**
 * A row: its stays as runs, its stretches that are unknown, and when it was there first and last.
 * @param {BacklinksRow} row
 * @returns {Row}
 */
export function rowOf(row) {
  const runs = row.stays.map((stay) => ({
    first: secondsOf(stay.first),
    last: secondsOf(stay.last),
    gone: secondsOf(stay.until),
    began: stay.began,
  }));
  return {
    url: row.name || row.page,
    page: row.page,
    isPage: !row.name,
    pages: row.pages || 1,
    targets: row.targets,
    runs,
    unknown: (row.unknown || []).map(([first, last]) => [secondsOf(first), last ? secondsOf(last) : undefined]),
    first: runs[0].first,
    last: runs[runs.length - 1].last,
    life: runs.reduce((sum, run) => sum + run.last - run.first + 1, 0),
  };
}

/**
 * The same rows, each with its `name` and where others that begin alike go other ways.
 * @param {Row[]} rows
 * @returns {NamedRow[]}
 */
export function named(rows) {
  const names = rows.map((row) => bare(row.url));
  const branches = branchesOf(names);
  return rows.map((row, at) => ({ ...row, name: names[at], branches: branches[at] }));
}

/**
 * What is so of a row in the end: "stands", "unknown", or the day by which it was lost.
 * @param {Row} row
 */
export function endOfRow(row) {
  const { gone } = row.runs[row.runs.length - 1];
  if (row.unknown.some(([, last]) => last === undefined)) return "unknown";
  return gone ? day(gone) : "stands";
}

/**
 * The hosts of the pages that link.
 * @param {Backlinks} answer
 */
export const hostsOf = ({ hosts }) => hosts.map((host) => ({ ...host, first: secondsOf(host.first) }));

/**
 * All rows of a question, from answer to answer; `tell` is told how many there are so far.
 * @param {Call} call
 * @param {Ask} ask
 * @param {(read: number, of: number) => void} tell
 */
export async function allRows(call, ask, tell) {
  /** @type {Row[]} */
  const rows = [];
  /** @type {string | undefined} */
  let resumeKey;
  do {
    /** @type {Backlinks} */
    const answer = await call(ask({ limit: ROWS_MAX, resume_key: resumeKey }));
    for (const row of answer.rows) rows.push(rowOf(row));
    resumeKey = answer.resume_key;
    tell(rows.length, answer.rows_selected);
  } while (resumeKey);
  return rows;
}

export const COLUMNS = ["referrer", "page", "pages", "targets", "began", "first", "last", "until", "end"];

/**
 * Rows as lines of a file, one for each stay.
 * @param {Row[]} rows
 */
export const linesOf = (rows) =>
  rows.flatMap((row) =>
    row.runs.map((run) => ({
      referrer: row.url,
      page: row.page,
      pages: row.pages,
      targets: row.targets,
      began: run.began,
      first: iso(run.first),
      last: iso(run.last),
      until: iso(run.gone),
      end: run.gone ? "lost" : endOfRow(row),
    })),
  );
