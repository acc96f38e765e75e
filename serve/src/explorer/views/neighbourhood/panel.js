// What stands around the rings: the head, the toolbar, the list of domains, the line below, and what is saved.

import { shifted } from "../../drawing/bars.js";
import { colours } from "../../drawing/canvas.js";
import { framed } from "../../drawing/framed.js";
import { go } from "../../page/address.js";
import { asks } from "../../page/asks.js";
import { el } from "../../parts/dom.js";
import { headOf } from "../../parts/head.js";
import { keyText, nearKey } from "../../parts/key.js";
import { pictureActs, saveLines } from "../../parts/save.js";
import { curl, dataAct, quoted } from "../../parts/source.js";
import { cell, line, table } from "../../parts/table.js";
import { act, chooser, toolbar } from "../../parts/tools.js";
import { nameFor } from "../../text/lines.js";
import { bare, safe } from "../../text/names.js";
import { count, many, sum } from "../../text/numbers.js";
import { day, iso } from "../../text/time.js";
import { drawRings } from "./rings.js";
import { isThere, linksWords, numbersOf } from "./state.js";
import { drawTime } from "./timeline.js";
import { waysList } from "./ways.js";

/** @import { Unit } from "../../data/answers.js" */
/** @import { Pen } from "../../drawing/canvas.js" */
/** @import { Picture } from "../../drawing/framed.js" */
/** @import { Head } from "../../parts/table.js" */
/** @import { Scene, View } from "./state.js" */

/** @type {Record<Unit, string>} */
const NOUNS = { page: "pages", directory: "directories", host: "hosts", domain: "domains" };
const UNITS = /** @type {[Unit, string][]} */ (Object.entries(NOUNS));
const COLUMNS = ["from", "until", "source", "target", "unknown"];
/** @type {Head[]} */
const HEADS = [
  ["Domain", ""],
  ["1 step", "n"],
  ["2 steps", "n"],
];
/** Milliseconds that the list of domains is left as it is while time moves. */
const REST = 200;

/** @type {(scene: Scene) => HTMLElement} */
export function heading({ state, unit, around, answer }) {
  const why = state.unit || unit === "page" ? "" : ` of ${count(sum(answer.urls))} URLs`;
  const what = `What it links to and what links to it, and what those link to: ${NOUNS[unit]}${why}`;
  return headOf(bare(state.url || ""), el("p", { text: around.size > 1 ? what : nothingOf(unit) }));
}

/** @type {(unit: Unit) => string} */
const nothingOf = (unit) =>
  unit === "page"
    ? "Nothing links to it, and it links to nothing."
    : `It links to no other ${unit}, and no other ${unit} links to it. Count pages to see its own.`;

/**
 * Says that the date that was asked for is outside of what is known.
 * @type {(scene: Scene) => string}
 */
export function outsideText({ wanted, first, dated }) {
  const when = wanted < first ? "before" : "after";
  return `Nothing around it is known ${when} ${day(dated.now)}, which is shown in the place of ${day(wanted)}.`;
}

/**
 * The toolbar; `seek` is called with the URL to which ways are looked for.
 * @type {(view: View, seek: (to: string | undefined) => void) => HTMLElement}
 */
export function tools(view, seek) {
  const { state, unit, context } = view;
  const field = el("input", {
    class: "filter",
    type: "text",
    placeholder: "Ways to…",
    "aria-label": "Ways to this URL",
    value: state.to || "",
  });
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    seek(field.value.trim() || undefined);
  });
  return toolbar(
    [chooser("Show", UNITS, unit, (value) => context.go({ ...state, unit: value })), field],
    [
      view.table.button,
      act("CSV", () => saveLinks(view)),
      ...pictureActs(() => whole(view), nameFor(state.url || "")),
      dataAct(() => sourceOf(view)),
    ],
  );
}

/** @type {(view: View) => [string, ...string[]][]} */
function sourceOf({ state, unit, dated }) {
  const own = unit === "page" ? "" : ` --unit ${unit}`;
  const at = new Date(dated.now * 1000).toISOString().slice(0, 19);
  const page = quoted(state.url);
  /** @type {[string, ...string[]][]} */
  const ways = state.to ? [["Ways:", `webstrata ways STORE ${page} ${quoted(state.to)} --at ${at}`]] : [];
  return [
    [
      "On the command line, the links of this date:",
      `webstrata neighbourhood STORE ${page}${own} --at ${at} --limit 0`,
    ],
    ["Over HTTP, those of all dates:", curl(asks.neighbourhood(state)[0])],
    ...ways,
  ];
}

/**
 * The links that are there at this date, as a table for other tools.
 * @param {View} view
 */
async function saveLinks(view) {
  await view.learning;
  const { around, dated, state } = view;
  const { links } = dated;
  const lines = links.places
    .filter((at) => isThere(view, at))
    .map((at) => ({
      from: iso(links.from[at]),
      until: iso(links.until[at]),
      source: around.nodes[links.source[at]],
      target: around.nodes[links.target[at]],
      unknown: links.unknown[at] <= dated.now ? iso(links.unknown[at]) : "",
    }));
  saveLines(COLUMNS, lines, "csv", nameFor(state.url || ""));
}

/**
 * The picture as it stands by itself.
 * @type {(view: View) => Picture}
 */
export function whole(view) {
  const theme = colours();
  const { layout, state, dated, unit } = view;
  const facts = `${day(dated.now)}: ${numbersOf(view)}`;
  const frame = { title: `Around ${bare(state.url || "")}`, facts, key: keyText(nearKey(unit)) };
  if (!layout) throw new Error("The picture has no size yet.");
  const draw = (/** @type {Pen} */ context) => {
    drawRings(context, { ...view, layout }, theme);
    shifted(context, 0, layout.height, () => drawTime(context, { ...view, layout }, theme));
  };
  return framed(frame, [layout.width, layout.height + layout.time.height], theme, draw);
}

/**
 * Says what is pointed at.
 * @type {(view: View) => void}
 */
export function tell(view) {
  const { around, answer, pointed, readout, dated } = view;
  if (pointed >= 0) {
    const steps = dated.ring[pointed] === 1 ? "one step" : "two steps";
    const captured = around.isCaptured[pointed] ? "" : "; never captured";
    readout.replaceChildren(
      el("b", { text: safe(around.nodes[pointed]) }),
      `  ${steps} away; here ${linksWords(view, pointed)}${captured}`,
    );
    return;
  }
  const all = count(around.size + answer.left_out);
  const shown = answer.left_out ? ` Shown: the ${count(around.size)} of ${all} that were there longest.` : "";
  const unread = answer.unread ? ` The links of ${many(answer.unread, "page")} at one step were not read.` : "";
  const more = answer.unknown_pages ? ` ${many(answer.unknown_pages, "page")} with unknown links may have more.` : "";
  readout.textContent = `${numbersOf(view)}.${shown}${unread}${more}`;
}

/**
 * How many nodes each sector has in each ring.
 * @type {(view: View) => number[][]}
 */
function sectorNumbers({ around, dated: { ring } }) {
  const numbers = around.sectors.map(() => [0, 0, 0]);
  for (let node = 0; node < around.size; node += 1) if (ring[node]) numbers[around.sectorOf[node]][ring[node]] += 1;
  return numbers;
}

/**
 * Domains with the nodes that are there, by ring, below the ways.
 * @type {(view: View) => void}
 */
export function fillDomains(view) {
  const { around, domains, side } = view;
  side.time = performance.now();
  const numbers = sectorNumbers(view);
  const text = JSON.stringify([numbers, view.found, view.dimmed, view.state.to]);
  if (text === side.text) return;
  side.text = text;
  const dim = (/** @type {number} */ sector) => {
    view.dimmed = sector;
    view.redraw();
  };
  const totals = numbers.map((own) => own[1] + own[2]);
  const order = around.sectors.map((_, at) => at).sort((one, other) => totals[other] - totals[one]);
  const lines = order.map((at) => {
    const made = line(
      cell(safe(around.sectors[at].name) || "no host", ""),
      ...numbers[at].slice(1).map((number) => cell(number ? count(number) : "·")),
    );
    made.addEventListener("pointerenter", () => dim(at));
    made.addEventListener("pointerleave", () => dim(-1));
    return made;
  });
  domains.replaceChildren(...waysList(view, (url) => enter(view, url)), table(HEADS, lines));
}

/**
 * The same, but not while it was done a moment ago.
 * @type {(view: View) => void}
 */
export function fillDomainsSoon(view) {
  if (performance.now() - view.side.time > REST) fillDomains(view);
}

/**
 * Opens what a node is.
 * @type {(view: Scene, name: string) => void}
 */
export function enter({ unit, state }, name) {
  if (unit === "page" || name.includes("://")) go({ v: "neighbourhood", url: name, at: state.at });
  // A directory begins with its host.
  else go({ v: "backlinks", url: name.split("/")[0] });
}
