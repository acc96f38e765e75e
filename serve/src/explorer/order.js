// The rows of a barcode in the order in which they are shown, in groups.

import { branchesOf, hostOf, namesOf, pathsOf } from "./names.js";
import { year } from "./time.js";

const ORDERS = {
  birth: (one, other) => one.first - other.first || other.life - one.life,
  death: (one, other) => one.last - other.last || one.first - other.first,
  life: (one, other) => other.life - one.life || one.first - other.first,
  name: () => 0,
};

/** What is shown of each row: its name, when it was there first and last, and for how long in all. */
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
 * Rows in order: {rows, groups}. `groups` are {name, start, end}, the places of their rows; none without grouping.
 * The host of the page itself comes first, then the host with most rows. Rows whose URL lacks `text` are left out.
 */
export function ordered(all, { sort, group, text }, own) {
  const wanted = text ? all.filter((row) => row.url.toLowerCase().includes(text.toLowerCase())) : all;
  const rows = [...wanted].sort((one, other) => ORDERS[sort](one, other) || one.at - other.at);
  if (group === "none") return { rows, groups: [] };
  const of = group === "host" ? (row) => row.host : (row) => String(year(row.first));
  const found = new Map();
  for (const row of rows) {
    const name = of(row);
    if (!found.has(name)) found.set(name, []);
    found.get(name).push(row);
  }
  const lists = [...found].sort(([one, a], [other, b]) =>
    group === "host"
      ? Number(other === own) - Number(one === own) || b.length - a.length || (one < other ? -1 : 1)
      : Number(one) - Number(other),
  );
  const groups = [];
  const inOrder = [];
  for (const [name, list] of lists) {
    groups.push({ name, start: inOrder.length, end: inOrder.length + list.length });
    inOrder.push(...list);
  }
  return { rows: inOrder, groups };
}

/** How many rows of a stretch were there, as steps: pairs of a time and a number from there on. */
export function standing(rows) {
  const steps = [];
  for (const row of rows) for (const run of row.runs) steps.push([run.first, 1], [run.last, -1]);
  steps.sort((one, other) => one[0] - other[0] || other[1] - one[1]);
  let number = 0;
  return steps.map(([time, step]) => [time, (number += step)]);
}
