// The rows of a barcode in the order in which they are shown, in groups.

import { branchesOf } from "../text/cut.js";
import { hostOf, namesOf, pathsOf } from "../text/names.js";
import { year } from "../text/time.js";

/** @import { Bars, Run } from "./barcode.js" */

/**
 * A name, and the places at which names that begin alike go other ways.
 * @typedef {{ text: string, branches: () => number[] }} Name
 */

/**
 * A row as it is shown.
 * @typedef {object} Row
 * @property {string} url
 * @property {Run[]} runs
 * @property {number} at The place in the answer.
 * @property {Name} name
 * @property {Name} path The name below the name of the host.
 * @property {string} host
 * @property {number} life The seconds that the link was there in all.
 * @property {number} first The first second of the link.
 * @property {number} last The last second of the link.
 */

/**
 * The rows `start` to `end` under one name.
 * @typedef {{ name: string, start: number, end: number }} Group
 * @typedef {"birth" | "death" | "life" | "name"} Sort
 */
/** @typedef {"none" | "host" | "year"} Grouping */

/** @type {Record<Sort, (one: Row, other: Row) => number>} */
const ORDERS = {
  birth: (one, other) => one.first - other.first || other.life - one.life,
  death: (one, other) => one.last - other.last || one.first - other.first,
  life: (one, other) => other.life - one.life || one.first - other.first,
  name: () => 0,
};

/**
 * What is shown of each row.
 * @param {Bars} barcode
 * @returns {Row[]}
 */
export function measured(barcode) {
  const urls = barcode.rows.map((row) => row.url);
  const names = namesOf(urls, barcode.url);
  const paths = pathsOf(urls);
  const [branches, pathBranches] = [branchesOf(names), branchesOf(paths)];
  return barcode.rows.map((row, at) => {
    const life = row.runs.reduce((sum, run) => sum + run.last - run.first + 1, 0);
    return {
      ...row,
      at,
      // Below the name of its host a row needs no host.
      name: { text: names[at], branches: branches[at] },
      path: { text: paths[at], branches: pathBranches[at] },
      host: hostOf(row.url) || "no host",
      life,
      first: row.runs[0].first,
      last: row.runs[row.runs.length - 1].last,
    };
  });
}

/**
 * Rows in order: {rows, groups}. `groups` are {name, start, end}, the places of their rows; none without grouping. The
 * host of the page itself, `own`, comes first, then the host with most rows. Rows whose URL lacks `text` are left out.
 * @param {Row[]} all
 * @param {{ sort: Sort, group: Grouping, text: string }} choice
 * @param {string} own
 * @returns {{ rows: Row[], groups: Group[] }}
 */
export function ordered(all, { sort, group, text }, own) {
  const wanted = text ? all.filter((row) => row.url.toLowerCase().includes(text.toLowerCase())) : all;
  const rows = [...wanted].sort((one, other) => ORDERS[sort](one, other) || one.at - other.at);
  if (group === "none") return { rows, groups: [] };
  const found = listsBy(rows, (row) => (group === "host" ? row.host : String(year(row.first))));
  const lists = [...found].sort(([one, a], [other, b]) =>
    group === "host"
      ? Number(other === own) - Number(one === own) || b.length - a.length || (one < other ? -1 : 1)
      : Number(one) - Number(other),
  );
  /** @type {Group[]} */
  const groups = [];
  /** @type {Row[]} */
  const inOrder = [];
  for (const [name, list] of lists) {
    groups.push({ name, start: inOrder.length, end: inOrder.length + list.length });
    inOrder.push(...list);
  }
  return { rows: inOrder, groups };
}

/**
 * Lists of what has the same name, in the order in which names come first.
 * @template T
 * @param {T[]} all
 * @param {(one: T) => string} nameOf
 * @returns {Map<string, T[]>}
 */
export function listsBy(all, nameOf) {
  const found = new Map();
  for (const one of all) {
    const name = nameOf(one);
    if (!found.has(name)) found.set(name, []);
    found.get(name).push(one);
  }
  return found;
}

/**
 * How many rows of a stretch were there, as steps: pairs of a time and a number from there on.
 * @param {Row[]} rows
 * @returns {[number, number][]}
 */
export function standing(rows) {
  /** @type {[number, number][]} */
  const steps = [];
  for (const row of rows) for (const run of row.runs) steps.push([run.first, 1], [run.last, -1]);
  steps.sort((one, other) => one[0] - other[0] || other[1] - one[1]);
  let number = 0;
  return steps.map(([time, step]) => {
    number += step;
    return [time, number];
  });
}
