// Hosts with the most pages that link to a target, or to either of two targets.

import { hostsOfBoth } from "../../data/beside.js";
import { hostsOf } from "../../data/referrers.js";
import { el } from "../../parts/dom.js";
import { cell, line, numberCell, table } from "../../parts/table.js";
import { act } from "../../parts/tools.js";
import { safe } from "../../text/names.js";
import { month } from "../../text/time.js";

/** @import { Backlinks } from "../../data/answers.js" */
/** @import { Head } from "../../parts/table.js" */

/**
 * A host with two numbers of pages; undefined where an answer does not say.
 * @typedef {{ host: string, numbers: (number | undefined)[], first: number }} Row
 */

/**
 * Whether an answer has all hosts that link, and not only those with the most pages.
 * @param {Backlinks} answer
 */
const isWhole = (answer) => answer.hosts.reduce((sum, host) => sum + host.pages, 0) === answer.pages;

/**
 * Rows with their heads: pages and how many link now; of two targets, the pages that ever linked to each.
 * @param {Backlinks} answer
 * @param {Backlinks | undefined} beside
 * @returns {{ heads: string[], rows: Row[] }}
 */
function columns(answer, beside) {
  if (!beside) {
    const rows = hostsOf(answer).map((host) => ({ ...host, numbers: [host.pages, host.standing] }));
    return { heads: ["pages", "now"], rows };
  }
  const both = hostsOfBoth([hostsOf(answer), isWhole(answer)], [hostsOf(beside), isWhole(beside)]);
  return { heads: ["to A", "to B"], rows: both.map((host) => ({ ...host, numbers: [host.a, host.b] })) };
}

/** @param {number | undefined} number */
const cellOf = (number) =>
  number === undefined
    ? el("td", { class: "n", text: "?", title: "Not among the hosts with the most pages" })
    : numberCell(number);

/**
 * The table; `choose` takes the host that is clicked.
 * @param {Backlinks} answer
 * @param {Backlinks | undefined} beside
 * @param {(host: string) => void} choose
 */
export function hostTable(answer, beside, choose) {
  const { heads, rows } = columns(answer, beside);
  const lineOf = (/** @type {Row} */ { host, numbers, first }) =>
    line(
      el(
        "td",
        {},
        act(safe(host) || "no host", () => host && choose(host)),
      ),
      ...numbers.map(cellOf),
      cell(month(first), "n middle"),
    );
  /** @type {Head[]} */
  const titles = [["From host", ""], ...heads.map((text) => /** @type {Head} */ ([text, "n"])), ["since", "n middle"]];
  return el(
    "div",
    { class: "hosts", tabindex: 0, role: "region", "aria-label": "Hosts that link" },
    table(titles, rows.map(lineOf)),
  );
}
