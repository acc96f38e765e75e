// Two targets beside each other, A and B: who links to both, to A only, and to B only. That is known once all rows of
// both are read; before, a row that B has not yet could still come.

import { hostOf } from "../text/names.js";
import { linesOf } from "./referrers.js";

/** @import { Choice, Order, Row, Span } from "./referrers.js" */
/** @typedef {{ host: string, pages: number, first: number }} Host */

/**
 * "com,example,)/a" of "https://example.com/a": hosts of a domain stand beside each other.
 * @param {string} url
 */
function keyOf(url) {
  const host = hostOf(url) || (url.includes("/") ? "" : url);
  return host ? `${host.split(".").reverse().join(",")},)${url.slice(url.indexOf(host) + host.length)}` : url;
}

/** @type {Record<Order, (one: Row, other: Row) => number>} */
const ORDERS = {
  first: (one, other) => one.first - other.first,
  last: (one, other) => other.last - one.last,
  most: (one, other) => other.pages - one.pages || other.targets - one.targets || one.first - other.first,
  key: (one, other) => (keyOf(one.url) < keyOf(other.url) ? -1 : 1),
};

/**
 * How many seconds are in any of several runs.
 * @param {Span[]} runs
 */
function lengthOf(runs) {
  let [sum, end] = [0, -Infinity];
  for (const run of [...runs].sort((one, other) => one.first - other.first)) {
    sum += Math.max(0, run.last - Math.max(run.first, end + 1) + 1);
    end = Math.max(end, run.last);
  }
  return sum;
}

/**
 * One row for each that links to A or to B: with its parts, and `who`, which is "both", "a" or "b".
 * @param {Row[]} rowsOfA
 * @param {Row[]} rowsOfB
 * @param {Order} order
 */
export function united(rowsOfA, rowsOfB, order) {
  /** @type {Map<string, Row>} */
  const found = new Map(rowsOfA.map((row) => [row.url, { ...row, who: "a", parts: [["A", row]] }]));
  for (const row of rowsOfB) {
    const own = found.get(row.url);
    if (!own) {
      found.set(row.url, { ...row, who: "b", parts: [["B", row]] });
      continue;
    }
    own.who = "both";
    own.parts?.push(["B", row]);
    own.first = Math.min(own.first, row.first);
    own.last = Math.max(own.last, row.last);
    own.pages = Math.max(own.pages, row.pages);
    own.targets += row.targets;
    own.life = lengthOf([...own.runs, ...row.runs]);
  }
  return [...found.values()].sort(ORDERS[order]);
}

/**
 * How many rows there are of each kind.
 * @param {Row[]} rows
 */
export function countsOf(rows) {
  /** @type {Record<Choice["who"], number>} */
  const counts = { any: rows.length, both: 0, a: 0, b: 0 };
  for (const { who } of rows) if (who) counts[who] += 1;
  return counts;
}

/**
 * The stays of rows as lines of a file, each with the target that it is of.
 * @param {Row[]} rows
 * @param {Record<string, string | undefined>} names
 */
export const linesOfBoth = (rows, names) =>
  rows.flatMap((row) =>
    (row.parts || []).flatMap(([side, part]) =>
      linesOf([part]).map((line) => ({ target: names[side], who: row.who, ...line })),
    ),
  );

/**
 * The hosts that link to either, with the pages of each: undefined where an answer, which has the hosts with the most
 * pages, does not say.
 * @param {[Host[], boolean]} a
 * @param {[Host[], boolean]} b
 */
export function hostsOfBoth([hostsOfA, isWholeA], [hostsOfB, isWholeB]) {
  const [a, b] = [hostsOfA, hostsOfB].map((hosts) => new Map(hosts.map((host) => [host.host, host])));
  const names = [...new Set([...a.keys(), ...b.keys()])];
  /** @type {(own: Map<string, Host>, name: string, isWhole: boolean) => number | undefined} */
  const pages = (own, name, isWhole) => own.get(name)?.pages ?? (isWhole ? 0 : undefined);
  const rows = names.map((host) => ({
    host,
    a: pages(a, host, isWholeA),
    b: pages(b, host, isWholeB),
    first: Math.min(a.get(host)?.first ?? Infinity, b.get(host)?.first ?? Infinity),
  }));
  return rows.sort((one, other) => (other.a || 0) + (other.b || 0) - (one.a || 0) - (one.b || 0));
}
