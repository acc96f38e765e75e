// The lists of both sides: links that were lost at the left, gained at the right, and kept at both. Only the lines in
// sight, and a few beside them, are elements.

import { listsBy } from "../../data/order.js";
import { link } from "../../page/address.js";
import { el } from "../../parts/dom.js";
import { branchesOf, fitted } from "../../text/cut.js";
import { hostOf, pathsOf, safe } from "../../text/names.js";
import { CHANGES } from "./state.js";

/** @import { Name, Row } from "../../data/order.js" */
/** @import { Child } from "../../parts/dom.js" */
/** @import { Change, View } from "./state.js" */

/**
 * A link with the name that it has below its host.
 * @typedef {{ url: string, name: Name }} Named
 */
/**
 * A link, and what became of it.
 * @typedef {{ kind: Change, row: Row }} Changed
 */

/**
 * A line: the head of a host with numbers of its links; a link that was kept; or one that was lost, one that was
 * gained, or both.
 * @typedef {{ host: string, numbers: Record<Change, number> } | { kept: Named } | { left?: Named, right?: Named }} Line
 */

/** Pixels of a line. */
const LINE = 22;

/** @type {(list: Changed[], kind: Change) => number} */
const numberOf = (list, kind) => list.filter((line) => line.kind === kind).length;

/** @type {(list: Changed[]) => number} */
const changesIn = (list) => list.length - numberOf(list, "kept");

/**
 * The links of a host, in the order of the store, with their names.
 * @type {(list: Changed[]) => { kind: Change, named: Named }[]}
 */
function namedIn(list) {
  const sorted = [...list].sort((one, other) => one.row.at - other.row.at);
  const paths = pathsOf(sorted.map((line) => line.row.url));
  const branches = branchesOf(paths);
  return sorted.map(({ kind, row }, at) => ({
    kind,
    named: { url: row.url, name: { text: paths[at], branches: branches[at] } },
  }));
}

/**
 * Lines of a host. Lost and gained links between two kept ones stand beside each other.
 * @type {(list: Changed[], isOnlyChanges: boolean) => Line[]}
 */
function linesOfHost(list, isOnlyChanges) {
  /** @type {Line[]} */
  const found = [];
  /** @type {Named[]} */
  let left = [];
  /** @type {Named[]} */
  let right = [];
  const flush = () => {
    for (let at = 0; at < Math.max(left.length, right.length); at += 1)
      found.push({ left: left[at], right: right[at] });
    [left, right] = [[], []];
  };
  for (const { kind, named } of namedIn(list)) {
    if (kind === "kept") {
      flush();
      if (!isOnlyChanges) found.push({ kept: named });
    } else (kind === "lost" ? left : right).push(named);
  }
  flush();
  return found;
}

/**
 * Lines by host, the page's own first, then by change.
 * @type {(view: View) => Line[]}
 */
export function linesOf({ parts, data, isOnlyChanges }) {
  const all = CHANGES.flatMap((kind) => parts[kind].map((row) => ({ kind, row })));
  const own = hostOf(data.url);
  const hosts = [...listsBy(all, ({ row }) => row.host)].sort(
    ([one, first], [other, second]) =>
      Number(other === own) - Number(one === own) || changesIn(second) - changesIn(first) || (one < other ? -1 : 1),
  );
  return hosts
    .filter(([, list]) => !isOnlyChanges || changesIn(list))
    .flatMap(([host, list]) => {
      const [lost, kept, gained] = CHANGES.map((kind) => numberOf(list, kind));
      return [{ host, numbers: { lost, kept, gained } }, ...linesOfHost(list, isOnlyChanges)];
    });
}

/**
 * One side of a line: its class, its sign, and its link, if there is one.
 * @type {(view: View, width: number, side: [string, string, Named | undefined]) => HTMLElement}
 */
function cellOf({ ruler }, width, [kind, sign, named]) {
  if (!named) return el("div");
  const made = link({ url: named.url }, "");
  made.className = kind;
  made.title = safe(named.url);
  const name = fitted(ruler, named.name.text, width, named.name.branches);
  made.append(...(sign ? [el("span", { class: "sign", text: sign })] : []), name);
  return made;
}

/**
 * What is in a line.
 * @type {(view: View, width: number, line: Line) => Child[]}
 */
function insideOf(view, width, line) {
  if ("host" in line) {
    const { lost, gained, kept } = line.numbers;
    const numbers = el("span", { text: `  −${lost} +${gained} ${kept} kept` });
    return [el("div", {}, safe(line.host), numbers)];
  }
  if ("kept" in line) {
    return [cellOf(view, width, ["kept", "", line.kept]), cellOf(view, width, ["kept", "", line.kept])];
  }
  return [cellOf(view, width, ["lost", "−", line.left]), cellOf(view, width, ["gained", "+", line.right])];
}

/**
 * Shows the lines in sight.
 * @type {(view: View) => void}
 */
export function fillLists(view) {
  const { list, lines, isOnlyChanges } = view;
  const first = Math.max(0, Math.floor(list.scrollTop / LINE) - 8);
  const end = Math.min(lines.length, first + Math.ceil(list.clientHeight / LINE) + 16);
  const spacer = el("div");
  spacer.style.height = `${lines.length * LINE}px`;
  const width = (list.clientWidth - 28) / 2 - 30;
  const made = lines.slice(first, end).map((line, at) => {
    const box = el("div", { class: "host" in line ? "line host" : "line" }, ...insideOf(view, width, line));
    box.style.top = `${(first + at) * LINE}px`;
    return box;
  });
  const nothing = isOnlyChanges ? "Nothing changed between these dates." : "Neither capture has a link.";
  list.replaceChildren(spacer, ...made, ...(lines.length ? [] : [el("p", { text: nothing })]));
}
