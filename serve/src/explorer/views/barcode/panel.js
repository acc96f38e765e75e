// What stands around a barcode: its head, its toolbar, and what is saved of it.

import { archiveOf, barcodePath } from "../../data/barcode.js";
import { endedOf } from "../../data/captures.js";
import { colours } from "../../drawing/canvas.js";
import { framed, partOf } from "../../drawing/framed.js";
import { el } from "../../parts/dom.js";
import { factsIn, headOf, outLinks } from "../../parts/head.js";
import { barsKey, keyText } from "../../parts/key.js";
import { paperOf, pictureActs, saveLines } from "../../parts/save.js";
import { curl, dataAct, quoted } from "../../parts/source.js";
import { act, chooser, filterField, same, toolbar } from "../../parts/tools.js";
import { nameFor } from "../../text/lines.js";
import { bare } from "../../text/names.js";
import { count, many } from "../../text/numbers.js";
import { day, iso } from "../../text/time.js";
import { drawOnPaper } from "./draw.js";
import { choose, layAcross, reorder } from "./moves.js";
import { AXIS, fit, sceneOf, timesOf, unrolled } from "./scene.js";
import { load, orderOf } from "./state.js";

/** @import { Picture } from "../../drawing/framed.js" */
/** @import { Choice, Scene } from "./scene.js" */
/** @import { Direction, Subject, View } from "./state.js" */

/** Rows on a sheet of paper, and the most sheets. */
const SHEET = 28;
const SHEETS = 40;
const COLUMNS = ["url", "first", "last", "until", "began"];

/**
 * How many captures there are, and from when to when.
 * @type {(view: Subject) => (Node | string)[]}
 */
function capturesFact({ data: { captures } }) {
  if (!captures.length) return ["never captured"];
  const span = `${day(captures[0].time)} – ${day(captures[captures.length - 1].time)}`;
  return [el("b", { text: count(captures.length) }), ` capture${captures.length === 1 ? "" : "s"}, ${span}`];
}

/**
 * How many rows there are, and of how many hosts. If captures leave links unknown, there may be more.
 * @type {(view: Subject) => (Node | string)[]}
 */
function rowsFact({ data, all }) {
  const hosts = new Set(all.map((row) => row.host)).size;
  const rows = all.length + (data.rest?.links || 0);
  const isOpen = data.outward && data.captures.some((capture) => capture.shows === "unknown");
  if (isOpen && !rows) return ["; it is unknown whether it has links"];
  const plural = rows === 1 ? "" : "s";
  const whose = `${data.rest || isOpen ? "at least " : ""}${many(hosts, "host")}`;
  return [
    data.outward ? `, with ${isOpen ? "at least " : ""}` : ", linked from ",
    el("b", { text: count(rows) }),
    data.outward ? ` link${plural} to ${whose}` : ` page${plural} of ${whose}`,
  ];
}

/** @type {(view: Subject) => HTMLElement} */
export function heading(view) {
  const { data } = view;
  const end = endedOf(data.captures);
  const facts = [...capturesFact(view), ...rowsFact(view), ...(end ? ["; ", el("b", { text: end })] : [])];
  return headOf(
    bare(data.url),
    el("p", {}, ...facts),
    data.captures.length ? outLinks(archiveOf(data.url)) : undefined,
  );
}

/** @type {(view: View) => HTMLElement} */
export function tools(view) {
  const { choice, context, data, direction, state } = view;
  /** @type {<N extends keyof Choice>(name: N, again: (view: View) => unknown) => (value: Choice[N]) => void} */
  const choosing = (name, again) => (value) => {
    choice[name] = value;
    context.set({ [name]: value });
    again(view);
  };
  const turn = (/** @type {Direction} */ dir) =>
    dir !== direction && context.go({ ...state, dir, across: undefined, scroll: undefined });
  /** @type {[Direction, string][]} */
  const ways = [
    ["out", "Links"],
    ["in", "In-links"],
  ];
  /** @type {Choice["across"][]} */
  const axes = ["time", "captures"];
  return toolbar(
    [
      chooser("", ways, direction, turn),
      chooser("Sort", same("birth", "death", "life", "name"), choice.sort, choosing("sort", choose)),
      chooser("Group", same("none", "host", "year"), choice.group, choosing("group", reorder)),
      data.outward ? chooser("Across", same(...axes), choice.across, (across) => layAcross(view, across)) : undefined,
      chooser("Rows", same("read", "dense", "all"), choice.rows, choosing("rows", reorder)),
      filterField(choice.text, choosing("text", choose)),
    ],
    [
      view.table.button,
      act("CSV", () => saveRows(view)),
      ...pictureActs(() => saved(view), nameFor(data.url)),
      dataAct(() => sourceOf(view)),
    ],
  );
}

/** @type {(view: View) => [string, ...string[]][]} */
function sourceOf({ data, direction }) {
  const call = curl(barcodePath(data.url, direction));
  return [
    ["On the command line:", `webstrata links STORE ${quoted(data.url)}${data.outward ? "" : " --in"} --lifespans`],
    ["Over HTTP, in columns:", call],
    ["Over HTTP, a line a run:", call.replace("/v1/barcode", "/v1/lifespans")],
  ];
}

/**
 * Saves all rows with the text that is looked for, a line for each run; also rows that a first answer leaves out.
 * @param {View} view
 */
async function saveRows(view) {
  await load(view);
  if (!view.context.isOpen()) return;
  const lines = orderOf(view).rows.flatMap(({ url, runs }) =>
    runs.map(({ first, last, gone, began }) => ({ url, first: iso(first), last: iso(last), until: iso(gone), began })),
  );
  saveLines(COLUMNS, lines, "csv", nameFor(view.data.url));
}

/**
 * The rows of a scene as a picture that stands by itself. `part` says which of all rows they are.
 * @type {(view: View, own: Scene, part: string) => Picture}
 */
function whole({ context, data, scene }, own, part) {
  const { width, height } = own.layout;
  const key = keyText(barsKey(data.outward));
  const [from, to] = timesOf(scene).map(day);
  const facts = `${factsIn(context.root)}; shown from ${from} to ${to}${part}`;
  const theme = colours();
  return framed({ title: bare(data.url), facts, key }, [width, height], theme, (pen) => drawOnPaper(pen, own, theme));
}

/**
 * All rows as one picture; of very many the first ones.
 * @type {(view: View) => Picture}
 */
function saved(view) {
  const { scene, data, choice } = view;
  const { rows } = scene.order;
  // A first answer leaves rows out. It is read on where rows with a text are looked for.
  const left = choice.text ? 0 : data.rest?.links || 0;
  const own = unrolled(scene);
  return whole(view, own, partOf(own.order.rows.length, rows.length + left));
}

/**
 * All rows for paper, so many on a sheet; of very many the first ones.
 * @param {View} view
 */
export function sheets(view) {
  const { scene, data, all, choice } = view;
  const { rows } = scene.order;
  const found = [];
  for (let at = 0; at < Math.min(rows.length, SHEETS * SHEET); at += SHEET) {
    const order = { rows: rows.slice(at, at + SHEET), groups: [] };
    const own = sceneOf(data, all, { ...choice, rows: "read" }, order);
    [own.from, own.to] = [scene.from, scene.to];
    fit(own, 900, AXIS + order.rows.length * 15 + 2);
    found.push(paperOf(whole(view, own, "")));
  }
  const rest = rows.length - SHEETS * SHEET;
  return rest > 0 ? [...found, el("p", { text: `${many(rest, "more row")} on the screen` })] : found;
}
