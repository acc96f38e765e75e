// What stands around the pictures of backlinks: the head, the toolbar, the line below, and what is saved.

import { linesOfBoth, united } from "../../data/beside.js";
import { path } from "../../data/call.js";
import { COLUMNS, EVENTS, linesOf, question } from "../../data/referrers.js";
import { SERIES, series } from "../../data/series.js";
import { isName, keptIn, nameOf, wordOf } from "../../data/targets.js";
import { shifted } from "../../drawing/bars.js";
import { colours } from "../../drawing/canvas.js";
import { framed, partOf, ROWS_HEIGHT_MAX } from "../../drawing/framed.js";
import { el } from "../../parts/dom.js";
import { factsIn, headOf, said } from "../../parts/head.js";
import { BACKLINKS, keyText } from "../../parts/key.js";
import { pictureActs, saveLines } from "../../parts/save.js";
import { curl, dataAct, quoted } from "../../parts/source.js";
import { act, chooser, filterField, same, toolbar } from "../../parts/tools.js";
import { cut } from "../../text/cut.js";
import { nameFor } from "../../text/lines.js";
import { bare, safe } from "../../text/names.js";
import { drawChart } from "./chart.js";
import { load, readAll, say } from "./moves.js";
import { HEADS, LINE } from "./places.js";
import { drawRows } from "./rows.js";
import { isShown, sideNames, stateNow } from "./state.js";
import { factsOf, shortFacts, toldRows } from "./told.js";

/** @import { Choice } from "../../data/referrers.js" */
/** @import { Target } from "../../data/targets.js" */
/** @import { Picture } from "../../drawing/framed.js" */
/** @import { State } from "../../page/state.js" */
/** @import { Scene, View } from "./state.js" */

/**
 * The sign of one of two targets: filled or hollow, as its bars are.
 * @type {(name: string) => HTMLElement}
 */
const sign = (name) => el("span", { class: `side ${name.toLowerCase()}`, text: name });

/** @type {(scene: Scene) => HTMLElement} */
export function heading({ sides, target, choice }) {
  const [a, b] = sides;
  if (!a.months.length) return headOf(nameOf(target));
  if (!b) return headOf(nameOf(target), el("p", {}, ...factsOf(a, choice)));
  const name = el("b", { text: cut(nameOf(b.target), 80) });
  return headOf(
    nameOf(target),
    el("p", {}, sign("A"), ...factsOf(a, choice)),
    el("p", {}, sign("B"), name, ": ", ...factsOf(b, choice)),
  );
}

/**
 * What is said where nothing links to the target.
 * @type {(scene: Scene) => HTMLElement}
 */
export function empty(scene) {
  const { choice, context, state } = scene;
  const elsewhere = choice.internal || choice.source ? "" : " from elsewhere";
  const whose = choice.source ? `No page of ${safe(choice.source)}` : "No captured page";
  const again = (/** @type {State} */ changes) => () => context.go({ ...stateNow(scene), ...changes });
  const internal = { internal: "1", from: undefined, to: undefined };
  return said(
    `Nothing links to it${elsewhere}`,
    el("p", { text: `${whose} links to ${bare(state.url || "")}${elsewhere}.` }),
    choice.source ? act("Pages of all hosts", again({ source: undefined })) : undefined,
    choice.internal ? undefined : act("Count pages of its own, too", again(internal)),
  );
}

/**
 * What chooses rows: which URLs of the target, what a row is, whose pages, what happened, and the order.
 * @type {(view: View) => HTMLElement[]}
 */
function choosers(view) {
  const { choice, context, state } = view;
  /** @type {(name: string, value: string | undefined) => void} */
  const again = (name, value) =>
    context.go({ ...stateNow(view), [name]: value, text: undefined, from: undefined, to: undefined, who: undefined });
  const matches = same("domain", "host");
  /** @type {[string, string][]} */
  const exact = isName(state.url || "") ? [] : [["exact", "URL"]];
  /** @type {[Choice["unit"], string][]} */
  const units = [
    ["page", "pages"],
    ["host", "hosts"],
    ["domain", "domains"],
  ];
  const whose = choice.internal ? "everywhere" : "elsewhere";
  return [
    chooser("To its", [...matches, ...exact], choice.match, (value) => again("match", value)),
    chooser("Count", units, choice.unit, (value) => again("unit", value)),
    choice.source
      ? act(`Of ${safe(choice.source)} ×`, () => again("source", undefined))
      : chooser("From", same("elsewhere", "everywhere"), whose, (value) =>
          again("internal", value === "everywhere" ? "1" : undefined),
        ),
    chooser("Show", EVENTS, choice.event, (value) => {
      choice.event = value;
      context.set({ event: value === "any" ? undefined : value });
      load(view);
    }),
    chooser("Sort", same("first", "last", "most", "key"), choice.order, (order) =>
      context.go({ ...stateNow(view), order }),
    ),
  ];
}

/** @type {(view: View) => HTMLElement} */
export function tools(view) {
  const { choice, context, state } = view;
  const filter = filterField(choice.text, (text) => {
    choice.text = text;
    context.set({ text });
    load(view);
  });
  return toolbar(
    [...choosers(view), view.dates.element, filter, view.who],
    [
      view.table.button,
      act("CSV", () => saveRows(view, "csv")),
      act("JSON", () => saveRows(view, "json")),
      act("Series", () => saveSeries(view)),
      ...pictureActs(() => whole(view), nameFor(state.url || "")),
      dataAct(() => sourceOf(view)),
    ],
  );
}

/**
 * The options of the command line for a target.
 * @type {(choice: Choice, target: Target) => string}
 */
const optionsOf = (choice, { match }) =>
  [
    match === "exact" ? "" : ` --match ${match}`,
    choice.unit === "page" ? "" : ` --unit ${choice.unit}`,
    choice.internal ? " --internal" : "",
    choice.source ? ` --source ${quoted(choice.source)} --source-match host` : "",
  ].join("");

/** @type {(view: View) => [string, ...string[]][]} */
function sourceOf({ state, choice, when, sides }) {
  const side = (/** @type {"from" | "to"} */ name) =>
    when.span && when[name] ? ` --${name} ${quoted(when[name])}` : "";
  const selected = (choice.event === "any" ? "" : ` --${choice.event}`) + side("from") + side("to");
  const commands = sides.flatMap(({ target }) => {
    const command = `webstrata backlinks STORE ${quoted(target.url)}${optionsOf(choice, target)}`;
    return [`${command}${selected} --limit 0`, `${command} --period month`];
  });
  return [
    ["On the command line, the rows and the chart:", ...commands],
    ["Over HTTP:", ...sides.map(({ target }) => curl(question(target, choice, when)))],
    ["The other way round, what the URL links to:", curl(path("v1/lifespans", { url: state.url }))],
  ];
}

/**
 * Saves all rows that are chosen, also those that no picture has.
 * @type {(view: View, kind: "csv" | "json") => Promise<void>}
 */
async function saveRows(view, kind) {
  const read = await readAll(view);
  if (!view.context.isOpen()) return;
  const name = nameFor(view.state.url || "");
  if (view.sides.length > 1) {
    const rows = united(read[0], read[1], view.choice.order).filter((row) => isShown(view, row));
    saveLines(["target", "who", ...COLUMNS], linesOfBoth(rows, sideNames(view)), kind, name);
  } else saveLines(COLUMNS, linesOf(read[0].filter((row) => isShown(view, row))), kind, name);
  view.redraw();
}

/**
 * Saves the months of the target, of the one beside it, and of those that are kept.
 * @type {(view: View) => Promise<void>}
 */
async function saveSeries(view) {
  const { sides, kept, choice, context, state } = view;
  const words = [...sides.map(({ target }) => wordOf(target)), ...keptIn({ list: kept })];
  const lines = await series(context.call, [...new Set(words)], choice, (text) => say(view, text));
  if (context.isOpen()) saveLines(SERIES, lines, "csv", `${nameFor(state.url || "")}-series`);
  view.redraw();
}

/**
 * The picture as it stands by itself, with all rows that are there and not only those in view.
 * @type {(view: View) => Picture}
 */
export function whole(view) {
  const theme = colours();
  const { sides, context } = view;
  if (!view.layout) throw new Error("The picture has no size yet.");
  const rows = view.rows.slice(0, Math.floor(ROWS_HEIGHT_MAX / LINE));
  const layout = { ...view.layout, height: HEADS + rows.length * LINE };
  const [a, b] = sides.map(({ target }) => cut(nameOf(target), 60));
  const told = b ? `${shortFacts("A", sides[0])}; ${shortFacts("B", sides[1])}` : factsIn(context.root);
  const frame = {
    title: `Links to ${b ? `${a} (A) and to ${b} (B)` : a}`,
    facts: `${told}. ${toldRows(view)}${partOf(rows.length, view.rows.length)}`,
    key: keyText(BACKLINKS) + (b ? " Filled: links to A; hollow: links to B." : ""),
  };
  const laid = { ...view, layout, rows, scroll: 0, current: -1 };
  return framed(frame, [layout.width, layout.chart + layout.height], theme, (pen) => {
    drawChart(pen, laid, theme);
    shifted(pen, 0, layout.chart, () => drawRows(pen, laid, theme));
  });
}
