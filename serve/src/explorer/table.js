// The rows of a barcode as a table, for screen readers and for those who want numbers: 200 rows at a time.

import { count, el } from "./dom.js";
import { safe } from "./names.js";
import { day, length } from "./time.js";

const ROWS = 200;

/** When the link was gone for good, as far as is known. */
function goneBy(row) {
  const { gone } = row.runs[row.runs.length - 1];
  return gone ? day(gone) : "";
}

/** A table of rows around one of them; `address` gives the address that a row leads to. */
export function table(rows, around, address) {
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
        el("td", { class: "n middle", text: count(row.runs.length) }),
      );
    const titles = [
      ["URL", ""],
      ["first", "n"],
      ["last", "n"],
      ["gone by", "n middle"],
      ["there for", "n middle"],
      ["runs", "n middle"],
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
        el(
          "thead",
          {},
          el("tr", {}, ...titles.map(([text, kind]) => el("th", { class: kind, scope: "col", text }))),
        ),
        el("tbody", {}, ...shown.map(line)),
      ),
      el("p", {}, start > 0 ? go(-1) : undefined, start + ROWS < rows.length ? go(1) : undefined),
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
