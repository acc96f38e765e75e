// Who links to a target, as /v1/backlinks says it: rows with their stays, what happened in each period, and all rows as
// a file. The server selects rows and counts them; this file only reads what it says.

import { path } from "./data.js";
import { branchesOf, bare } from "./names.js";
import { targetIn } from "./targets.js";
import { DAY, MONTHS, day, iso, year } from "./time.js";

/** Rows of a first answer, and of one in which a text is looked for: the most that the server gives at once. */
export const ROWS = 5000;
export const ROWS_MAX = 10_000;

/** What a row may be chosen by: the word of the server and that of the page. */
export const EVENTS = [
  ["any", "all"],
  ["standing", "standing"],
  ["new", "new"],
  ["returned", "returned"],
  ["lost", "lost"],
];

const KINDS = ["found", "new", "returned", "lost"];

const time = (text) => (text ? Date.parse(text) / 1000 : 0);

/** What an address says of which rows are meant. */
export function choiceOf(state) {
  const among = (value, words, otherwise) => (words.includes(value) ? value : otherwise);
  return {
    match: targetIn(state).match,
    unit: among(state.unit, ["host", "domain"], "page"),
    internal: state.internal === "1",
    order: among(state.order, ["last", "most", "key"], "first"),
    event: among(state.event, ["standing", "new", "returned", "lost"], "any"),
    source: state.source || undefined,
    text: state.text || "",
    who: among(state.who, ["both", "a", "b"], "any"),
  };
}

/** The question of a choice about a target, in a stretch of time; `more` has what else is asked. */
export function question({ url, match }, { unit, internal, order, source, event }, { from, to, span }, more = {}) {
  return path("v1/backlinks", {
    from: span && from,
    to: span && to,
    url,
    matchType: match,
    unit,
    internal: internal ? "true" : undefined,
    order,
    source,
    sourceMatch: source ? "host" : undefined,
    event: event === "any" ? undefined : event,
    limit: ROWS,
    ...more,
  });
}

/** A row: its stays as runs, its stretches that are unknown, and when it was there first and last. */
export function rowOf(row) {
  const runs = row.stays.map((stay) => ({
    first: time(stay.first),
    last: time(stay.last),
    gone: time(stay.gone),
    began: stay.began,
  }));
  return {
    url: row.name || row.page,
    page: row.page,
    isPage: !row.name,
    pages: row.pages || 1,
    targets: row.targets,
    runs,
    unknown: (row.unknown || []).map(([first, last]) => [time(first), last ? time(last) : undefined]),
    first: runs[0].first,
    last: runs[runs.length - 1].last,
    life: runs.reduce((sum, run) => sum + run.last - run.first + 1, 0),
  };
}

/** The same rows, each with its `name` and where others that begin alike go other ways. */
export function named(rows) {
  const names = rows.map((row) => bare(row.url));
  const branches = branchesOf(names);
  return rows.map((row, at) => ({ ...row, name: names[at], branches: branches[at] }));
}

/** What is so of a row in the end: "stands", "unknown", or the day by which it was lost. */
export function endOfRow(row) {
  const { gone } = row.runs[row.runs.length - 1];
  if (row.unknown.some(([, last]) => last === undefined)) return "unknown";
  return gone ? day(gone) : "stands";
}

/** The hosts of the pages that link. */
export const hostsOf = ({ hosts }) => hosts.map((host) => ({ ...host, first: time(host.first) }));

/** What happened in each month, and what is so at its end. */
export function monthsOf(answer) {
  return answer.periods.map((start, at) => ({
    time: time(`${start}T00:00:00Z`),
    standing: answer.standing[at],
    unknown: answer.unknown[at],
    ...Object.fromEntries(KINDS.map((kind) => [kind, answer[kind][at]])),
  }));
}

/** From the first month to the last thing that is known; the last month is whole. */
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
 */
export function marksOf(months, [from, to], width, least) {
  const size = [1, 3, 12].find((step) => (width / (to - from)) * step * 30.4 * DAY >= least) || 12;
  const found = [];
  for (const month of months) {
    const at = new Date(month.time * 1000);
    const begin = Math.floor(at.getUTCMonth() / size) * size;
    const start = Date.UTC(at.getUTCFullYear(), begin, 1) / 1000;
    let last = found[found.length - 1];
    if (!last || last.time !== start) {
      const end = Date.UTC(at.getUTCFullYear(), begin + size, 1) / 1000;
      last = { time: start, end, size, found: 0, new: 0, returned: 0, lost: 0 };
      found.push(last);
    }
    for (const kind of KINDS) last[kind] += month[kind];
    last.standing = month.standing;
    last.unknown = month.unknown;
  }
  return found;
}

/** "Mar 2004", "Q2 2004" or "2004". */
export function nameOf(mark) {
  const at = new Date(mark.time * 1000);
  if (mark.size === 12) return String(year(mark.time));
  if (mark.size === 3) return `Q${at.getUTCMonth() / 3 + 1} ${year(mark.time)}`;
  return `${MONTHS[at.getUTCMonth()]} ${year(mark.time)}`;
}

/** The period of a mark as the texts of a first and a last date: "2004-01" and "2004-03". */
export function textsOf(mark) {
  if (mark.size === 12) return { from: String(year(mark.time)), to: String(year(mark.time)) };
  const month = (at) => new Date(at * 1000).toISOString().slice(0, 7);
  return { from: month(mark.time), to: month(mark.end - DAY) };
}

/** All rows of a question, from answer to answer; `tell` is told how many there are so far. */
export async function allRows(call, ask, tell) {
  const rows = [];
  let resumeKey;
  do {
    const answer = await call(ask({ limit: ROWS_MAX, resumeKey }));
    for (const row of answer.rows) rows.push(rowOf(row));
    resumeKey = answer.resumeKey;
    tell(rows.length, answer.rowsSelected);
  } while (resumeKey);
  return rows;
}

export const COLUMNS = ["referrer", "page", "pages", "targets", "began", "first", "last", "gone", "end"];

/** Rows as lines of a file, one for each stay. */
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
      gone: iso(run.gone),
      end: run.gone ? "lost" : endOfRow(row),
    })),
  );
