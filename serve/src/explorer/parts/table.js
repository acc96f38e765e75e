// Tables.

import { count } from "../text/numbers.js";
import { el } from "./dom.js";

/** @import { Child, Properties } from "./dom.js" */

/**
 * The text of a head and the class of its column: "n" for numbers.
 * @typedef {[text: string, kind: string]} Head
 */

/**
 * A table of lines below heads.
 * @param {Head[]} heads
 * @param {Child[]} lines
 * @param {Properties} properties
 */
export const table = (heads, lines, properties = {}) => tableOf(heads, el("tbody", {}, ...lines), properties);

/**
 * The same with a body that is filled elsewhere.
 * @param {Head[]} heads
 * @param {HTMLElement} body
 * @param {Properties} properties
 */
export const tableOf = (heads, body, properties = {}) =>
  el(
    "table",
    properties,
    el("thead", {}, el("tr", {}, ...heads.map(([text, kind]) => el("th", { scope: "col", class: kind, text })))),
    body,
  );

/**
 * A line of a table.
 * @param {Child[]} cells
 */
export const line = (...cells) => el("tr", {}, ...cells);

/**
 * A cell with a text.
 * @param {string} text
 */
export const cell = (text, kind = "n") => el("td", { class: kind || undefined, text });

/**
 * A cell with a number.
 * @param {number} number
 */
export const numberCell = (number) => cell(count(number));
