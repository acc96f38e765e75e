// The rows of a picture as a table over it, for screen readers and for those who want numbers: 200 rows at a time.

import { saidOf } from "../data/captures.js";
import { safe } from "../text/names.js";
import { count, many, within } from "../text/numbers.js";
import { day, length } from "../text/time.js";
import { el } from "./dom.js";
import { cell, line, table } from "./table.js";

/** @import { Capture } from "../data/captures.js" */
/** @import { Head } from "./table.js" */

/**
 * A row of the table.
 * @typedef {object} TableRow
 * @property {string} url
 * @property {{ first: number, last: number, gone: number }[]} runs
 * @property {number} first
 * @property {number} last
 * @property {number} life The seconds of all runs.
 * @property {[number, number | undefined][]} [unknown] Stretches in which it is unknown whether the link was there.
 * @property {[string, TableRow][]} [parts] The row of each target, if there are two.
 */

const ROWS = 200;
/** Runs of a row that are named. */
const RUNS = 6;
/** @type {Head[]} */
const HEADS = [
  ["URL", ""],
  ["first", "n"],
  ["last", "n"],
  ["gone by", "n middle"],
  ["there for", "n middle"],
  ["runs", "middle"],
];

/**
 * The runs of a row, and the stretches in which it is not known whether it was there; by target if it has several.
 * @param {TableRow} row
 * @returns {string}
 */
function stretchesOf(row) {
  if (row.parts) return row.parts.map(([name, part]) => `${name}: ${stretchesOf(part)}`).join(" · ");
  const named = row.runs.slice(0, RUNS).map((run) => `${day(run.first)} – ${day(run.last)}`);
  const rest = row.runs.length - named.length;
  const unknown = (row.unknown || []).map(([first, last]) => `not known ${day(first)} – ${last ? day(last) : "now"}`);
  return [...named, ...(rest ? [`${many(rest, "more run")}`] : []), ...unknown].join("; ");
}

/**
 * The captures that show no links, as a table that opens.
 * @param {Capture[]} captures
 */
function blanks(captures) {
  const told = captures.filter((capture) => saidOf(capture));
  if (!told.length) return "";
  const lines = told.slice(0, ROWS).map((capture) => line(cell(day(capture.time), ""), cell(saidOf(capture), "")));
  return el(
    "details",
    {},
    el("summary", { text: `${many(told.length, "capture")} without links` }),
    el("table", {}, el("tbody", {}, ...lines)),
    told.length > ROWS ? el("p", { text: `The first ${count(ROWS)} of ${count(told.length)}` }) : undefined,
  );
}

/**
 * When the link was gone for good, if that is known.
 * @param {TableRow} row
 */
function goneBy(row) {
  const parts = row.parts ? row.parts.map(([, part]) => part) : [row];
  const ends = parts.map(({ runs }) => runs[runs.length - 1].gone);
  return ends.every((gone) => gone) ? day(Math.max(...ends)) : "";
}

/**
 * A table of rows around one of them; `address` gives the address that a row leads to. `captures` are those that the
 * rows have in common.
 * @template {TableRow} R
 * @param {R[]} all
 * @param {number} around
 * @param {(row: R) => string} address
 * @param {Capture[]} captures
 */
function rowsTable(all, around, address, captures) {
  let rows = all;
  let start = within(around - ROWS / 2, 0, rows.length - ROWS);
  const element = el("div", { class: "rows", tabindex: 0, role: "region", "aria-label": "Rows as a table" });
  // The picture below would take the pointer's way through the table for its own.
  for (const kind of ["pointerdown", "pointermove", "pointerup", "wheel"]) {
    element.addEventListener(kind, (event) => event.stopPropagation());
  }
  const go = (/** @type {number} */ step) =>
    el("button", {
      class: "act",
      type: "button",
      text: step < 0 ? "Earlier rows" : "Later rows",
      onclick: () => {
        start = within(start + step * ROWS, 0, rows.length - ROWS);
        fill();
      },
    });
  const lineOf = (/** @type {R} */ row) =>
    line(
      el("td", {}, el("a", { href: address(row), text: safe(row.url) })),
      cell(day(row.first)),
      cell(day(row.last)),
      cell(goneBy(row), "n middle"),
      cell(length(row.life), "n middle"),
      cell(stretchesOf(row), "runs middle"),
    );

  function fill() {
    const shown = rows.slice(start, start + ROWS);
    const said = rows.length
      ? `Rows ${count(start + 1)} to ${count(start + shown.length)} of ${count(rows.length)}`
      : "No rows";
    element.replaceChildren(
      el("p", { text: said }),
      table(HEADS, shown.map(lineOf), { "aria-rowcount": rows.length + 1 }),
      el("p", {}, start > 0 ? go(-1) : undefined, start + ROWS < rows.length ? go(1) : undefined),
      blanks(captures),
    );
  }

  fill();
  const update = (/** @type {R[]} */ next) => {
    rows = next;
    start = 0;
    fill();
  };
  return { element, update };
}

/**
 * The word of the toolbar that shows the rows of a picture as a table. The parts of the view come with the first press:
 * the element of the picture, its rows, which of them is chosen, where a row leads to, and captures that all rows have
 * in common; nothing where there are no rows to show. `set` changes the address.
 * @template {TableRow} R
 * @param {(changes: Record<string, string | undefined>) => void} set
 * @param {() => { area: HTMLElement, rows: R[], current: number, address: (row: R) => string, captures?: Capture[] } |
 *   undefined} of
 */
export function tableSwitch(set, of) {
  /** @type {{ element: HTMLElement, update: (rows: R[]) => void } | undefined} */
  let shown;
  const button = el("button", {
    class: "act",
    type: "button",
    text: "Table",
    "aria-pressed": "false",
    onclick: () => toggle(),
  });
  function toggle() {
    if (shown) {
      shown.element.remove();
      shown = undefined;
    } else {
      const parts = of();
      if (!parts) return;
      const { area, rows, current, address, captures = [] } = parts;
      shown = rowsTable(rows, Math.max(0, current), address, captures);
      area.append(shown.element);
    }
    button.setAttribute("aria-pressed", String(Boolean(shown)));
    set({ table: shown && "1" });
  }
  return { button, toggle, isShown: () => Boolean(shown), update: (/** @type {R[]} */ rows) => shown?.update(rows) };
}
