// The rows of a barcode as a table, for screen readers and for those who want numbers: 200 rows at a time.

import { saidOf } from "./captures.js";
import { count, el, many } from "./dom.js";
import { safe } from "./names.js";
import { day, length } from "./time.js";

const ROWS = 200;
/** Runs of a row that are named. */
const RUNS = 6;

/** The runs of a row, and the stretches in which it is not known whether it was there; by target if it has several. */
function stretchesOf(row) {
  if (row.parts) return row.parts.map(([name, part]) => `${name}: ${stretchesOf(part)}`).join(" · ");
  const named = row.runs.slice(0, RUNS).map((run) => `${day(run.first)} – ${day(run.last)}`);
  const rest = row.runs.length - named.length;
  const unknown = (row.unknown || []).map(([first, last]) => `not known ${day(first)} – ${last ? day(last) : "now"}`);
  return [...named, ...(rest ? [`${many(rest, "more run")}`] : []), ...unknown].join("; ");
}

/** The captures that show no links, as a table that opens. */
function blanks(captures) {
  const told = captures.filter((capture) => saidOf(capture));
  if (!told.length) return undefined;
  const line = (capture) => el("tr", {}, el("td", { text: day(capture.time) }), el("td", { text: saidOf(capture) }));
  return el(
    "details",
    {},
    el("summary", { text: `${many(told.length, "capture")} without links` }),
    el("table", {}, el("tbody", {}, ...told.slice(0, ROWS).map(line))),
    told.length > ROWS ? el("p", { text: `The first ${count(ROWS)} of ${count(told.length)}` }) : undefined,
  );
}

/** When the link was gone for good, as far as is known. */
function goneBy(row) {
  const ends = (row.parts || [["", row]]).map(([, { runs }]) => runs[runs.length - 1].gone);
  return ends.every((gone) => gone) ? day(Math.max(...ends)) : "";
}

/**
 * A table of rows around one of them; `address` gives the address that a row leads to. `captures` are those that the
 * rows have in common.
 */
export function table(rows, around, address, captures = []) {
  let start = Math.max(0, Math.min(around - ROWS / 2, rows.length - ROWS));
  const element = el("div", { class: "rows", tabindex: 0, role: "region", "aria-label": "Rows as a table" });
  // The picture below would take the pointer's way through the table for its own.
  for (const kind of ["pointerdown", "pointermove", "pointerup", "wheel"]) {
    element.addEventListener(kind, (event) => event.stopPropagation());
  }
  const go = (step) =>
    el("button", {
      class: "act",
      type: "button",
      text: step < 0 ? "Earlier rows" : "Later rows",
      onclick: () => {
        start = Math.max(0, Math.min(start + step * ROWS, rows.length - ROWS));
        fill();
      },
    });

  function fill() {
    const shown = rows.slice(start, start + ROWS);
    const line = (row) =>
      el(
        "tr",
        {},
        el("td", {}, el("a", { href: address(row), text: safe(row.url) })),
        el("td", { class: "n", text: day(row.first) }),
        el("td", { class: "n", text: day(row.last) }),
        el("td", { class: "n middle", text: goneBy(row) }),
        el("td", { class: "n middle", text: length(row.life) }),
        el("td", { class: "runs middle", text: stretchesOf(row) }),
      );
    const titles = [
      ["URL", ""],
      ["first", "n"],
      ["last", "n"],
      ["gone by", "n middle"],
      ["there for", "n middle"],
      ["runs", "middle"],
    ];
    element.replaceChildren(
      el("p", {
        text: rows.length
          ? `Rows ${count(start + 1)} to ${count(start + shown.length)} of ${count(rows.length)}`
          : "No rows",
      }),
      el(
        "table",
        { "aria-rowcount": rows.length + 1 },
        el("thead", {}, el("tr", {}, ...titles.map(([text, kind]) => el("th", { class: kind, scope: "col", text })))),
        el("tbody", {}, ...shown.map(line)),
      ),
      el("p", {}, start > 0 ? go(-1) : undefined, start + ROWS < rows.length ? go(1) : undefined),
      blanks(captures) || "",
    );
  }

  fill();
  return {
    element,
    update: (now) => {
      rows = now;
      start = 0;
      fill();
    },
  };
}
