// What the view of backlinks says in words: how many link, what a row and a period are, and which rows are shown.

import { nameOf } from "../../data/months.js";
import { endOfRow } from "../../data/referrers.js";
import { el } from "../../parts/dom.js";
import { safe } from "../../text/names.js";
import { count, many } from "../../text/numbers.js";
import { day, length, month } from "../../text/time.js";
import { isUnited } from "./state.js";

/** @import { Mark } from "../../data/months.js" */
/** @import { Choice, Row } from "../../data/referrers.js" */
/** @import { Scene, Side } from "./state.js" */

/** @type {("found" | "new" | "returned" | "lost")[]} */
const KINDS = ["found", "new", "returned", "lost"];

/**
 * How many link to a target at the latest capture, and how many did before.
 * @param {Side} side
 * @param {Choice} choice
 */
export function factsOf({ answer, months }, { unit, source }) {
  const last = months[months.length - 1];
  const whose = source ? ` of ${safe(source)}` : "";
  if (!last) return [`no ${unit}${whose} links`];
  const { standing, unknown } = last;
  // The first months may be those of captures of which it is unknown.
  const since = months.find((own) => own.found + own.new + own.returned) || last;
  return [
    el("b", { text: count(standing) }),
    ` ${unit}${standing === 1 ? "" : "s"}${whose} link${standing === 1 ? "s" : ""} at the latest capture, `,
    el("b", { text: count(answer.rows_total - standing - unknown) }),
    ` did before${unknown ? `, of ${count(unknown)} it is unknown` : ""}; since ${month(since.time)}`,
  ];
}

/**
 * The same in a few words: "A: 18 of 74 link at the latest capture".
 * @param {string} name
 * @param {Side} side
 */
export function shortFacts(name, { answer, months }) {
  const standing = months[months.length - 1]?.standing ?? 0;
  return `${name}: ${count(standing)} of ${count(answer.rows_total)} link at the latest capture`;
}

/** @param {Row} row */
function staysOf(row) {
  const last = row.runs[row.runs.length - 1];
  return (
    `${day(row.first)} – ${day(row.last)}, ${length(row.life)} in ${many(row.runs.length, "stay")}` +
    `${last.gone ? `, lost by ${day(last.gone)}` : `, ${endOfRow(row)}`}` +
    `${row.isPage ? `, to ${many(row.targets, "URL")}` : `, ${many(row.pages, "page")}`}`
  );
}

/**
 * In a few words, where two stand side by side.
 * @param {Row} row
 */
function briefly(row) {
  const { gone } = row.runs[row.runs.length - 1];
  const stays = row.runs.length > 1 ? ` in ${many(row.runs.length, "stay")}` : "";
  return `${day(row.first)} – ${day(row.last)}${stays}, ${gone ? `lost by ${day(gone)}` : endOfRow(row)}`;
}

/**
 * A row: when it linked, to each target if there are two.
 * @param {Row} row
 */
export function toldRow(row) {
  const stays = row.parts ? row.parts.map(([side, part]) => `${side}: ${briefly(part)}`).join("; ") : staysOf(row);
  return [el("b", { text: safe(row.url) }), `  ${stays}`];
}

/**
 * A period: what is so at its end, and what happened in it.
 * @param {Mark | undefined} mark
 */
function numbersOf(mark) {
  if (!mark) return "no links yet";
  const unknown = mark.unknown ? `, ${count(mark.unknown)} unknown` : "";
  const kinds = KINDS.filter((kind) => mark[kind]);
  return `${many(mark.standing, "link")}${unknown}${kinds.map((kind) => `, ${count(mark[kind])} ${kind}`).join("")}`;
}

/**
 * A period; with that of B if there is a B.
 * @param {Mark} mark
 * @param {Mark[]} [others]
 */
export function toldMark(mark, others) {
  const other = others?.find((own) => own.time === mark.time);
  const text = others ? `A: ${numbersOf(mark)}; B: ${numbersOf(other)}` : numbersOf(mark);
  return [el("b", { text: nameOf(mark) }), `  ${text}`];
}

/**
 * What is chosen of rows: what happened to them, when, and their text.
 * @type {(scene: Scene) => { kind: string, dated: string, having: string }}
 */
function chosenWords({ choice: { event, text }, when: { span } }) {
  const since = span && span[0] > -Infinity ? ` from ${day(span[0])}` : "";
  return {
    kind: event === "any" ? (span ? " that came or went" : "") : ` ${event}`,
    dated: since + (span && span[1] < Infinity ? ` to ${day(span[1] - 1)}` : ""),
    having: text ? ` with “${safe(text)}”` : "",
  };
}

/**
 * How many rows are shown, and of how many they are chosen.
 * @param {Scene} scene
 */
export function toldRows(scene) {
  const { all, sides } = scene;
  const { kind, dated, having } = chosenWords(scene);
  const { rows_selected: rowsSelected, rows_total: rowsTotal } = sides[0].answer;
  const [selected, total] = isUnited(scene) ? [all.length, all.length] : [rowsSelected, rowsTotal];
  const shown = scene.rows.length;
  if (selected > all.length) {
    // B's rows are not among them then.
    const whose = sides.length > 1 ? " of A" : "";
    const first = `the first ${count(all.length)} of ${count(selected)} rows${whose}${kind}${dated}`;
    return having ? `${count(shown)}${having} of ${first}` : `T${first.slice(1)}`;
  }
  const of = shown < total ? ` of ${count(total)}` : "";
  return `${count(shown)}${of} row${(of ? total : shown) === 1 ? "" : "s"}${having}${kind}${dated}`;
}
