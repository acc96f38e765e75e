// Hosts with the most pages that link to a target, or to either of two targets.

import { hostsOfBoth } from "./beside.js";
import { act, count, el } from "./dom.js";
import { safe } from "./names.js";
import { hostsOf } from "./referrers.js";
import { month } from "./time.js";

/** Whether an answer has all hosts that link, and not only those with the most pages. */
const isWhole = (answer) => answer.hosts.reduce((sum, host) => sum + host.pages, 0) === answer.pages;

/** Columns of a row: pages and how many link now; of two targets, the pages that ever linked to each. */
function columns(answer, beside) {
  if (!beside) {
    const rows = hostsOf(answer).map((host) => ({ ...host, numbers: [host.pages, host.standing] }));
    return { heads: ["pages", "now"], rows };
  }
  const both = hostsOfBoth([hostsOf(answer), isWhole(answer)], [hostsOf(beside), isWhole(beside)]);
  return { heads: ["to A", "to B"], rows: both.map((host) => ({ ...host, numbers: [host.a, host.b] })) };
}

/** The table; `choose` takes the host that is clicked. */
export function hostTable(answer, beside, choose) {
  const { heads, rows } = columns(answer, beside);
  const line = ({ host, numbers, first }) =>
    el(
      "tr",
      {},
      el(
        "td",
        {},
        act(safe(host) || "no host", () => host && choose(host)),
      ),
      ...numbers.map((number) =>
        number === undefined
          ? el("td", { class: "n", text: "?", title: "Not among the hosts with the most pages" })
          : el("td", { class: "n", text: count(number) }),
      ),
      el("td", { class: "n middle", text: month(first) }),
    );
  const head = (text, kind) => el("th", { scope: "col", class: kind, text });
  const titles = [head("From host", ""), ...heads.map((text) => head(text, "n")), head("since", "n middle")];
  return el(
    "div",
    { class: "hosts", tabindex: 0, role: "region", "aria-label": "Hosts that link" },
    el("table", {}, el("thead", {}, el("tr", {}, ...titles)), el("tbody", {}, ...rows.map(line))),
  );
}
