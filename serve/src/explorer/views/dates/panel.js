// What stands around the calendar and the lists: the head, the toolbar, the heads of both sides, and what is saved.

import { archiveOf, mementoOf } from "../../data/barcode.js";
import { path } from "../../data/call.js";
import { endedOf, saidOf, withoutLinks } from "../../data/captures.js";
import { colours } from "../../drawing/canvas.js";
import { framed } from "../../drawing/framed.js";
import { link } from "../../page/address.js";
import { el } from "../../parts/dom.js";
import { headOf, outLinks, said } from "../../parts/head.js";
import { paperOf, pictureActs, saveLines } from "../../parts/save.js";
import { curl, dataAct, quoted } from "../../parts/source.js";
import { act, chooser, toolbar } from "../../parts/tools.js";
import { nameFor } from "../../text/lines.js";
import { bare, safe } from "../../text/names.js";
import { count, many } from "../../text/numbers.js";
import { clock, day } from "../../text/time.js";
import { drawCalendar, flagsText, onPaper } from "./calendar.js";
import { addressIn, CHANGES } from "./state.js";

/** @import { Picture } from "../../drawing/framed.js" */
/** @import { Change, Subject, View } from "./state.js" */

/** @type {(view: Subject) => HTMLElement} */
export function heading({ data, changed }) {
  const { captures, url } = data;
  const end = endedOf(captures);
  const facts = el(
    "p",
    {},
    el("b", { text: count(captures.length) }),
    ` capture${captures.length === 1 ? "" : "s"}, of which `,
    el("b", { text: count(changed.filter((number) => number > 0).length) }),
    " changed the links",
    ...(end ? ["; ", el("b", { text: end })] : []),
  );
  return headOf(bare(url), facts, outLinks(archiveOf(url)));
}

/**
 * Why there is nothing to compare.
 * @type {(view: Subject) => HTMLElement}
 */
export function nothing({ known, data }) {
  const why = known.length
    ? "The links of one capture of this page are known, so there is nothing to compare."
    : withoutLinks(data.captures);
  const lead = link({ url: data.url, dir: "in" }, "See the pages that link to it");
  return said("Nothing to compare", el("p", { text: why }), el("p", {}, lead));
}

/** What the marks of the calendar and of the lists mean. */
export const legend = () =>
  el(
    "div",
    { class: "legend" },
    "links changed",
    ...["0", "1–2", "3–7", "8–19", "20+"].map((text, at) => el("span", {}, el("i", { class: `i${at}` }), text)),
    el("span", {}, el("i", { class: "iu" }), "hatched: unknown"),
    el("span", {}, el("i", { class: "if" }), "hollow: failed, says nothing"),
    el("span", {}, el("i", { class: "lost" }), "struck through: lost"),
    el("span", {}, el("i", { class: "gained" }), "gained"),
    el("span", {}, el("i", { class: "kept" }), "kept"),
  );

/**
 * The toolbar. `step` moves a flag to the next change or to the one before, `compare` shows other lines.
 * @type {(view: View, step: (way: number) => void, compare: () => void) => HTMLElement}
 */
export function tools(view, step, compare) {
  /** @type {["all" | "changes", string][]} */
  const words = [
    ["all", "all"],
    ["changes", "only changes"],
  ];
  const show = (/** @type {"all" | "changes"} */ value) => {
    view.isOnlyChanges = value === "changes";
    view.context.set({ only: view.isOnlyChanges ? value : undefined });
    compare();
  };
  return toolbar(
    [view.fields.element, chooser("Show", words, view.isOnlyChanges ? "changes" : "all", show)],
    [
      act("← change", () => step(-1)),
      act("change →", () => step(1)),
      act("CSV", () => saveLists(view)),
      ...pictureActs(() => whole(view), nameFor(view.data.url)),
      dataAct(() => sourceOf(view)),
    ],
  );
}

/** @type {(view: View) => [string, ...string[]][]} */
function sourceOf(view) {
  const { url } = view.data;
  const { a, b } = addressIn(view);
  return [
    ["On the command line:", `webstrata links STORE ${quoted(url)} --changed ${a} ${b}`],
    ["Over HTTP:", curl(path("v1/changed", { url, from_date: a, to_date: b }))],
  ];
}

/**
 * The head of one side: its flag, its date, and what its capture shows.
 * @type {(view: View, flag: "a" | "b") => HTMLElement}
 */
function sideOf(view, flag) {
  const { data, parts } = view;
  const capture = data.captures[view[flag]];
  const links = parts[flag === "a" ? "lost" : "gained"].length + parts.kept.length;
  const facts = saidOf(capture) || many(links, "link");
  return el(
    "div",
    {},
    el("b", { class: `flag ${flag}`, text: flag.toUpperCase() }),
    el("h2", { text: day(capture.time) }),
    el("span", { text: `${clock(capture.time)} · ${facts}` }),
    outLinks([["open", mementoOf(data, capture)]]),
  );
}

/**
 * How much was lost, kept and gained, as parts of a line.
 * @type {(view: View) => HTMLElement}
 */
function share({ parts }) {
  const made = CHANGES.filter((kind) => parts[kind].length).map((kind) => {
    const part = el("div", { class: kind, text: `${count(parts[kind].length)} ${kind}` });
    part.style.flex = `${parts[kind].length} 1 ${parts[kind].length < 3 ? "52px" : "64px"}`;
    return part;
  });
  return el("div", { class: "share" }, ...made);
}

/**
 * Fills the head of both sides.
 * @type {(view: View) => void}
 */
export function fillHead(view) {
  view.head.replaceChildren(el("div", { class: "pair" }, sideOf(view, "a"), sideOf(view, "b")), share(view));
}

/**
 * Says which capture is meant by the pointer.
 * @type {(view: View, at: number) => void}
 */
export function tell({ data, changed, pointed }, at) {
  const capture = data.captures[at];
  const shows = capture && (saidOf(capture) || `${many(changed[at], "link")} changed`);
  pointed.textContent = capture ? `${day(capture.time)}, ${clock(capture.time)}: ${shows}` : "";
}

/**
 * The calendar with all its years, as a picture that stands by itself.
 * @type {(view: View) => Picture}
 */
function whole(view) {
  const { data, parts, legend: marksOf } = view;
  const layout = onPaper(view);
  const changes = CHANGES.map((kind) => `${count(parts[kind].length)} ${kind}`).join(", ");
  const marks = [...marksOf.querySelectorAll("span")].map((own) => own.textContent).slice(5, 7);
  const key = `A mark a capture, darker the more links changed: 0, 1–2, 3–7, 8–19, 20 or more; ${marks.join("; ")}.`;
  const theme = colours();
  const frame = { title: bare(data.url), facts: `${flagsText(view)}: ${changes}`, key };
  return framed(frame, [layout.width, layout.height], theme, (pen) => drawCalendar(pen, { ...view, layout }, theme));
}

/**
 * The calendar and both lists, for paper.
 * @type {(view: View) => Node[]}
 */
export function sheets(view) {
  const { data, parts, a, b } = view;
  const list = (/** @type {Change} */ kind) =>
    el(
      "section",
      {},
      el("h2", { text: `${many(parts[kind].length, "link")} ${kind}` }),
      el("ul", {}, ...parts[kind].map(({ url }) => el("li", { text: safe(url) }))),
    );
  const title = `${bare(data.url)}, ${day(data.captures[a].time)} and ${day(data.captures[b].time)}`;
  return [el("h1", { text: title }), paperOf(whole(view)), list("lost"), list("gained"), list("kept")];
}

/**
 * Saves both lists: each link, and what became of it.
 * @type {(view: View) => void}
 */
function saveLists(view) {
  const lines = CHANGES.flatMap((change) => view.parts[change].map(({ url }) => ({ change, url })));
  const { a, b } = addressIn(view);
  saveLines(["change", "url"], lines, "csv", `${nameFor(view.data.url)}-${a}-${b}`);
}
