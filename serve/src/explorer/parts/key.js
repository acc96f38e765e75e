// What the marks of a picture mean: the same words below a picture in the page and in one that is saved.

import { el } from "./dom.js";

/** @import { Unit } from "../data/answers.js" */

/**
 * The class of a mark, and what it means.
 * @typedef {[mark: string, text: string]} Mark
 */

/**
 * The five states of a link in a row of bars, and the tick of a failure.
 * @type {Mark[]}
 */
const BARS = [
  ["bar", "there, from the first to the last capture that has it"],
  ["thin", "gone by the end of the line"],
  ["iu", "captured, not all links known"],
  ["pale", "not captured for 150 days"],
  ["none", "captured, not there"],
  ["tick", "a capture that failed"],
];

/**
 * The states that rows can have: captures of the page itself are not those of the pages that link to it.
 * @param {boolean} isOutward
 */
export const barsKey = (isOutward) => (isOutward ? BARS : BARS.slice(0, 2));

/**
 * The rows and the chart of backlinks.
 * @type {Mark[]}
 */
export const BACKLINKS = [
  ...BARS.slice(0, 2),
  ["iu", "links not known"],
  ["soft", "found with its page"],
  ["new", "new on a known page"],
  ["back", "returned"],
  ["down", "lost"],
];

/**
 * Nodes of a neighbourhood, which are pages, hosts or domains, and the time below.
 * @param {Unit} unit
 * @returns {Mark[]}
 */
export const nearKey = (unit) => [
  ["dot", unit === "page" ? "captured" : "there at the date"],
  .../** @type {Mark[]} */ (unit === "page" ? [["dot hollow", "never captured"]] : []),
  ["dot new", "came in the last six months before the date"],
  ["area", "how many links it has over time; ticks: its captures"],
];

/**
 * A key as an element; what a mark looks like is also said, for those who do not see it.
 * @param {Mark[]} marks
 */
export const keyOf = (marks) =>
  el(
    "div",
    { class: "legend key" },
    ...marks.map(([mark, text]) =>
      el("span", {}, el("i", { class: mark }), el("b", { class: "hidden", text: `${WORDS[mark]}: ` }), text),
    ),
  );

/**
 * What each mark looks like.
 * @type {Record<string, string>}
 */
const WORDS = {
  bar: "bar",
  thin: "thin line",
  iu: "hatched",
  pale: "pale",
  none: "nothing",
  tick: "dark tick",
  soft: "pale accent",
  new: "accent",
  back: "hatched accent",
  down: "downward",
  dot: "filled",
  "dot hollow": "hollow",
  "dot new": "accent",
  area: "below",
};

/**
 * A key as a sentence.
 * @param {Mark[]} marks
 */
export const keyText = (marks) => `${marks.map(([mark, text]) => `${WORDS[mark]}: ${text}`).join("; ")}.`;
