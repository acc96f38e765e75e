// Addresses: every state of the page is one, and links open states without loading the page again.

import { el } from "./dom.js";

export const stateOf = (search) => Object.fromEntries(new URLSearchParams(search));

/** The address of a state; parameters without a value are left out. */
export function addressOf(state) {
  const given = Object.entries(state).filter(([, value]) => value !== undefined && value !== "");
  return given.length ? `?${new URLSearchParams(given)}` : location.pathname;
}

let timer;
let waiting;

/** A state with what goes along to each state that does not say otherwise: the targets that a person keeps. */
const along = (state) => ({ list: (waiting || stateOf(location.search)).list, ...state });

/** The address of a state that is opened from this one. */
export const addressFrom = (state) => addressOf(along(state));

function write() {
  clearTimeout(timer);
  if (waiting) history.replaceState(null, "", addressOf(waiting));
  waiting = undefined;
}

/** Changes the address in place, a moment after the last change. */
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

/** Opens a state as a new entry of the history. The entry before keeps what was chosen last. */
export function go(state) {
  write();
  history.pushState(null, "", addressFrom(state));
  dispatchEvent(new PopStateEvent("popstate"));
}

/** A link to a state. */
export function link(state, text) {
  return el("a", {
    href: addressFrom(state),
    text,
    onclick: (event) => {
      if (event.metaKey || event.ctrlKey || event.shiftKey) return;
      event.preventDefault();
      go(state);
    },
  });
}
