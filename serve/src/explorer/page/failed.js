// What is shown instead of a picture: pages that are like the one that is not there, a field for a token, a choice of
// addresses, or the reason why no answer came.

import { call, failureOf, keepToken, path } from "../data/call.js";
import { isName } from "../data/targets.js";
import { el } from "../parts/dom.js";
import { bare, safe } from "../text/names.js";
import { link } from "./address.js";

/** @import { State } from "./state.js" */

/**
 * A state whose view failed, and what opens it again.
 * @typedef {{ state: State, again: () => void }} Attempt
 */

/** The most pages that are offered. */
const OFFERED = 20;

/**
 * Asks for the token that the server wants from its callers.
 * @type {(message: string, again: () => void) => Node[]}
 */
function tokenWanted(message, again) {
  const given = el("input", { type: "password", class: "filter", "aria-label": "Token", autocomplete: "off" });
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    keepToken(given.value.trim());
    again();
  };
  const form = el(
    "form",
    { onsubmit: submit },
    el("p", { text: safe(message) }),
    given,
    el("button", { text: "Use it" }),
  );
  return [el("h1", { text: "A token is needed" }), form];
}

/**
 * Fills a list with pages that are like the one that is not there.
 * @param {HTMLElement} list
 * @param {State} state
 */
async function offer(list, state) {
  const text = (state.url || "").replace(/^\w+:\/\//, "");
  const words = text.toLowerCase().split(/\s+/);
  const isLike = (/** @type {{ url: string }} */ page) =>
    words.length < 2 || words.every((word) => page.url.toLowerCase().includes(word));
  for (const q of words.length > 1 ? words : [text, text.split("/")[0]]) {
    const found = await call(path("v1/suggest", { q, limit: words.length > 1 ? 100 : 6 })).catch(() => undefined);
    const pages = found?.pages.filter(isLike) || [];
    if (pages.length) {
      const lines = pages.map((page) => el("li", {}, link({ v: state.v, url: page.url }, bare(page.url))));
      list.replaceChildren(...lines.slice(0, OFFERED));
      return;
    }
  }
  list.replaceChildren(el("li", { text: "Nothing in the store has that in its address." }));
}

/** @type {(message: string, state: State) => Node[]} */
function notThere(message, state) {
  const url = state.url || "";
  const near = /(\S+) is not in the store, but (\S+) is/.exec(message)?.[2];
  const list = el("ul", { class: "list", id: "like" });
  offer(list, state);
  if (/\s/.test(url))
    return [el("h1", { text: "Pages with these words in their address" }), ...nearTo(near, state), list];
  const whole = isName(url) ? [el("p", {}, link({ v: "backlinks", url }, `Who links to all of ${safe(url)}`))] : [];
  const said = el("p", { text: `${safe(message)}.` });
  return [el("h1", { text: "Not in the store" }), said, ...nearTo(near, state), ...whole, list];
}

/** @type {(near: string | undefined, state: State) => Node[]} */
const nearTo = (near, state) => (near ? [el("p", {}, link({ ...state, url: near }, bare(near)))] : []);

/** @type {(urls: string[], state: State) => Node[]} */
const choiceOf = (urls, state) => [
  el("h1", { text: "Two addresses" }),
  el("p", { text: "The store has both. Choose one of them." }),
  el("ul", { class: "list" }, ...urls.map((url) => el("li", {}, link({ ...state, url }, safe(url))))),
];

/** @type {(message: string, again: () => void) => Node[]} */
const noAnswer = (message, again) => [
  el("h1", { text: "The answer did not come" }),
  el("p", { text: safe(message) }),
  el("button", { type: "button", text: "Ask again", onclick: again }),
];

/**
 * What is shown for an error.
 * @param {unknown} error
 * @param {Attempt} attempt
 */
export function failed(error, { state, again }) {
  const { status, message } = failureOf(error);
  const both = /both (\S+) and (\S+) are in the store/.exec(message)?.slice(1);
  const isUrl = !/\s/.test(state.url || "");
  let parts;
  if (status === 404 || (status === 400 && !isUrl)) parts = notThere(message, state);
  else if (status === 401) parts = tokenWanted(message, again);
  else if (both) parts = choiceOf(both, state);
  else {
    console.warn(error);
    parts = noAnswer(message, again);
  }
  return el("div", { class: "said" }, ...parts);
}
