// The words for the views in the header, and the list of keys.

import { byId, dialog, el } from "../parts/dom.js";
import { link } from "./address.js";
import { isOffered, VIEWS } from "./views.js";

/** @import { State } from "./state.js" */
/** @import { Known } from "./views.js" */

const KEYS = [
  ["/", "search"],
  [`1 – ${VIEWS.length}`, "views"],
  ["↑ ↓ PgUp PgDn Home End", "rows; PgUp and PgDn move a date by a year"],
  ["Enter", "go there"],
  ["+ − 0", "zoom"],
  ["← →", "move in time, or to the next change"],
  ["a b", "which date moves"],
  ["k", "keep a target of backlinks, or no longer"],
  ["Space", "play"],
  ["t", "dark or light"],
  ["?", "this list"],
];

/**
 * The state in which a view opens from another one; the view of the store keeps the URL for the others.
 * @param {Known} view
 * @param {State} state
 * @returns {State}
 */
export const stateIn = (view, state) => (isOffered(view, state) ? { v: view.id, url: state.url } : {});

/**
 * Fills the strip: which view is open, and which others can be.
 * @param {Known} view
 * @param {State} state
 */
export function fillStrip(view, state) {
  const words = VIEWS.map((own) => {
    // Without a URL there is nothing that these views could show.
    if (!isOffered(own, state)) {
      return el("a", { role: "link", "aria-disabled": "true", title: "Choose a URL first", text: own.word });
    }
    const made = link(stateIn(own, state), own.word);
    if (own === view) made.setAttribute("aria-current", "page");
    return made;
  });
  const strip = byId("views");
  strip.replaceChildren(...words);
  // On a phone the words are a strip, which shows the current one.
  const current = words[VIEWS.indexOf(view)];
  if (current) strip.scrollLeft = current.offsetLeft + current.offsetWidth - strip.offsetLeft - strip.clientWidth;
}

/** Shows what keys do. */
export const showKeys = () =>
  dialog(
    "Keys",
    el("dl", {}, ...KEYS.flatMap(([key, what]) => [el("dt", {}, el("kbd", { text: key })), el("dd", { text: what })])),
  );
