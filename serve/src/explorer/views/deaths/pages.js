// The table of dead pages, and who links to each of them.

import { mementoOf } from "../../data/barcode.js";
import { link } from "../../page/address.js";
import { deathsPath } from "../../page/asks.js";
import { el } from "../../parts/dom.js";
import { outLinks } from "../../parts/head.js";
import { cell, line, tableOf } from "../../parts/table.js";
import { act } from "../../parts/tools.js";
import { bare, safe } from "../../text/names.js";
import { count, many } from "../../text/numbers.js";
import { secondsOf } from "../../text/time.js";
import { dateOf } from "./picture.js";
import { nameOf } from "./state.js";

/** @import { DeadPage } from "../../data/answers.js" */
/** @import { Head } from "../../parts/table.js" */
/** @import { View } from "./state.js" */

/** The most pages that link that the server names of each dead page. */
export const LINKERS = 100;
/** @type {Head[]} */
const HEADS = [
  ["Died", ""],
  ["status", "n"],
  ["last seen", "middle"],
  ["returned", "middle"],
  ["Linked by", ""],
  ["Page", ""],
];

/**
 * The table, which is empty.
 * @type {(view: View) => HTMLElement}
 */
export const table = ({ body }) => tableOf(HEADS, body, { class: "dead" });

/**
 * The day of a capture of a dead page, which opens it in the archive.
 * @type {(view: View, row: DeadPage, time: string) => HTMLElement}
 */
function seen({ answer: { replay } }, row, time) {
  const memento = mementoOf({ replay, url: row.page }, { time: secondsOf(time) });
  return outLinks([[dateOf(time), memento]]);
}

/** @type {(view: View, row: DeadPage) => HTMLElement} */
function lineOf(view, row) {
  const unknown = row.unknown ? `${row.linking ? ", " : ""}${count(row.unknown)} unknown` : "";
  const said = row.linking || !row.unknown ? many(row.linking, "page") : "";
  const linkers = act(said + unknown, () => toggle(view, made, row, linkers));
  linkers.setAttribute("aria-expanded", "false");
  const isLinked = row.linking + (row.unknown || 0) > 0;
  const page = link({ v: "barcode", url: row.page }, nameOf(view, row.page));
  const made = line(
    el("td", {}, seen(view, row, row.died)),
    cell(String(row.status)),
    el("td", { class: "middle" }, row.seen ? seen(view, row, row.seen) : ""),
    el("td", { class: "middle" }, row.returned ? seen(view, row, row.returned) : ""),
    el("td", {}, isLinked ? linkers : "none"),
    el("td", { class: "name", title: safe(row.page) }, page),
  );
  return made;
}

/**
 * Whether the line after one is that of its linkers.
 * @type {(line: HTMLElement) => Element | undefined}
 */
const linkersAfter = ({ nextElementSibling: next }) => (next?.classList.contains("linkers") ? next : undefined);

/**
 * Shows who links to a page below its line, or no longer.
 * @type {(view: View, line: HTMLElement, row: DeadPage, button: HTMLElement) => Promise<void>}
 */
async function toggle({ context }, line, row, button) {
  const open = linkersAfter(line);
  if (open) {
    open.remove();
    button.setAttribute("aria-expanded", "false");
    return;
  }
  const where = deathsPath({ url: row.page }, { url: row.page, match: "exact", limit: 1, linkers: LINKERS });
  const found = await context.call(where);
  if (!context.isOpen() || linkersAfter(line)) return;
  line.after(linkersOf(row, found.rows[0]?.linkers || []));
  button.setAttribute("aria-expanded", "true");
  context.drawn();
}

/** @type {(row: DeadPage, linkers: string[]) => HTMLElement} */
function linkersOf(row, linkers) {
  const all = { v: "backlinks", url: row.page, match: "exact", event: "standing", internal: "1" };
  const words = linkers.length < row.linking ? `all ${count(row.linking)}, since when` : "since when";
  const list = el("ul", {}, ...linkers.map((url) => el("li", {}, link({ v: "barcode", url }, bare(url)))));
  return el("tr", { class: "linkers" }, el("td", { colspan: 6 }, list, link(all, words)));
}

/**
 * Fills the table.
 * @type {(view: View) => void}
 */
export function fill(view) {
  view.body.replaceChildren(...view.rows.map((row) => lineOf(view, row)));
  fillFoot(view);
}

/**
 * How many of the deaths are shown, and the next ones.
 * @type {(view: View) => void}
 */
export function fillFoot(view) {
  const { answer, rows, foot } = view;
  const isPart = answer.resume_key !== undefined;
  const statuses = answer.statuses.map(({ status, died }) => `${count(died)} with status ${status}`).join(", ");
  const shown = `${isPart ? `${count(rows.length)} of ` : ""}${many(answer.rows_selected, "death")}`;
  foot.replaceChildren(
    rows.length ? shown : "No death",
    answer.statuses.length > 1 ? `: ${statuses}. ` : ". ",
    isPart ? act("Show more", () => showMore(view)) : "",
  );
}

/**
 * Asks for the next deaths, and shows them.
 * @type {(view: View) => Promise<void>}
 */
async function showMore(view) {
  const { context, state, body } = view;
  const own = view.asks;
  const found = await context.call(deathsPath(state, { resume_key: view.answer.resume_key }));
  if (!context.isOpen() || own !== view.asks) return;
  view.answer = { ...view.answer, resume_key: found.resume_key };
  view.rows = [...view.rows, ...found.rows];
  body.append(...found.rows.map((row) => lineOf(view, row)));
  fillFoot(view);
  context.drawn();
}
