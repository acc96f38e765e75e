// Addresses: every state of the page is one, and links open states without loading the page again.

import { el, isElsewhere } from "../parts/dom.js";

/** @import { State } from "./state.js" */

/**
 * The state of an address, of which this is what follows the path.
 * @param {string} search
 * @returns {State}
 */
export const stateOf = (search) => Object.fromEntries(new URLSearchParams(search));

/**
 * The address of a state; parameters without a value are left out.
 * @param {State} state
 */
export function addressOf(state) {
  const given = Object.entries(state).flatMap(([name, value]) => (value ? [[name, value]] : []));
  return given.length ? `?${new URLSearchParams(given)}` : location.pathname;
}

/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;
/** @type {State | undefined} */
let waiting;

/**
 * A state with what goes along to each state that does not say otherwise: the targets that a person keeps.
 * @type {(state: State) => State}
 */
const along = (state) => ({ list: (waiting || stateOf(location.search)).list, ...state });

/**
 * The address of a state that is opened from this one.
 * @param {State} state
 */
export const addressFrom = (state) => addressOf(along(state));

function write() {
  clearTimeout(timer);
  if (waiting) history.replaceState(null, "", addressOf(waiting));
  waiting = undefined;
}

/**
 * Changes the address in place, a moment after the last change.
 * @param {State} state
 */
export function replaceSoon(state) {
  clearTimeout(timer);
  waiting = state;
  timer = setTimeout(write, 120);
}

/** Another entry of the history is open: what was chosen on the one before is not written into it. */
export function forget() {
  clearTimeout(timer);
  waiting = undefined;
}

/**
 * Opens a state as a new entry of the history. The entry before keeps what was chosen last.
 * @param {State} state
 */
export function go(state) {
  write();
  history.pushState(null, "", addressFrom(state));
  dispatchEvent(new PopStateEvent("popstate"));
}

/**
 * A link to a state.
 * @param {State} state
 * @param {string} text
 */
export const link = (state, text, open = () => go(state)) =>
  el("a", {
    href: addressFrom(state),
    text,
    onclick: (event) => {
      if (isElsewhere(event)) return;
      event.preventDefault();
      open();
    },
  });
