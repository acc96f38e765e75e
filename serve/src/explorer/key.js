// What the marks of a picture mean: the same words below a picture in the page and in one that is saved.

import { el } from "./dom.js";

/** The five states of a link in a row of bars: class of the mark, and what it means. */
const BARS = [
  ["bar", "there, from the first to the last capture that has it"],
  ["thin", "gone by the end of the line"],
  ["iu", "captured, links not known"],
  ["pale", "not captured for 150 days"],
  ["none", "captured, not there"],
];

/** The states that rows can have: captures of the page itself are not those of the pages that link to it. */
export const barsKey = (isOutward) => (isOutward ? BARS : BARS.slice(0, 2));

/** A key as an element. */
export const keyOf = (marks) =>
  el(
    "div",
    { class: "legend key" },
    ...marks.map(([mark, text]) => el("span", {}, el("i", { class: mark }), text)),
  );

const WORDS = { bar: "bar", thin: "thin line", iu: "hatched", pale: "pale", none: "nothing" };

/** A key as a sentence. */
export const keyText = (marks) => `${marks.map(([mark, text]) => `${WORDS[mark]}: ${text}`).join("; ")}.`;
