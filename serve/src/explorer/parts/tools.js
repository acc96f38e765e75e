// The toolbar of a view: words to choose from, a field, and at its right what saves and shows the data of the picture.

import { el } from "./dom.js";

/** @import { Child } from "./dom.js" */

/**
 * A word that does something.
 * @param {string} text
 * @param {(event: MouseEvent) => unknown} onclick
 */
export const act = (text, onclick) => el("button", { type: "button", class: "act", text, onclick });

/** @type {Record<string, number>} */
const STEPS = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 };

/**
 * A row of words of which one is chosen; `words` are pairs of a value and a word. Arrow keys move the choice.
 * @template {string} T
 * @param {string} label
 * @param {[T, string][]} words
 * @param {T} value
 * @param {(value: T) => unknown} choose
 */
export function chooser(label, words, value, choose) {
  const buttons = words.map(([own, word]) =>
    el("button", {
      type: "button",
      role: "radio",
      text: word,
      "aria-checked": String(own === value),
      tabindex: own === value ? 0 : -1,
      onclick: () => set(own, false),
    }),
  );
  /** @type {(own: T, focus: boolean) => void} */
  const set = (own, focus) => {
    buttons.forEach((button, at) => {
      const chosen = words[at][0] === own;
      button.setAttribute("aria-checked", String(chosen));
      button.tabIndex = chosen ? 0 : -1;
      if (chosen && focus) button.focus();
    });
    choose(own);
  };
  const keys = (/** @type {KeyboardEvent} */ event) => {
    const step = STEPS[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    const at = buttons.indexOf(/** @type {HTMLButtonElement} */ (document.activeElement));
    set(words[(at + step + words.length) % words.length][0], true);
  };
  const shown = label ? [el("span", { text: label, "aria-hidden": "true" })] : [];
  return el(
    "div",
    { class: "choose", role: "radiogroup", "aria-label": label || "Direction", onkeydown: keys },
    ...shown,
    ...buttons,
  );
}

/**
 * Pairs for a chooser whose values are its words.
 * @template {string} T
 * @param {T[]} words
 * @returns {[T, T][]}
 */
export const same = (...words) => words.map((word) => [word, word]);

/**
 * A field that keeps only the rows with a text.
 * @param {string} value
 * @param {(text: string) => unknown} oninput
 */
export function filterField(value, oninput) {
  /** @type {HTMLInputElement} */
  const field = el("input", {
    class: "filter",
    type: "text",
    placeholder: "Only rows with…",
    "aria-label": "Only rows with",
    value,
    oninput: () => oninput(field.value.trim()),
  });
  return field;
}

/**
 * The toolbar: what chooses, and at the right what saves and shows data.
 * @param {Child[]} choosers
 * @param {Child[]} outputs
 */
export const toolbar = (choosers, outputs) =>
  el("div", { class: "tools" }, ...choosers, el("div", { class: "right" }, ...outputs));
