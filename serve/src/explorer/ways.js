// The shortest ways from the page in the middle of a neighbourhood to another page, as words and a list.

import { addressFrom } from "./address.js";
import { path } from "./data.js";
import { el, many } from "./dom.js";
import { bare, cut, safe } from "./names.js";
import { day, digits } from "./time.js";

/**
 * Ways of a `state` of the address at the date of a `view`, which keeps in `found` what the server said. `enter` opens
 * the neighbourhood of a URL.
 */
export function waysOf(state, view, { call, enter }) {
  let asks = 0;

  /** Asks for the ways; whether the answer is to the last question. */
  async function ask() {
    asks += 1;
    const own = asks;
    const question = path("v1/ways", { url: state.url, target: state.to, at: digits(view.now), limit: 5 });
    const given = await call(question).catch((error) => ({ error: error.message }));
    if (own !== asks) return false;
    view.found = given;
    return true;
  }

  /** What was found, in a sentence. */
  function text() {
    if (!view.found) return "";
    if (view.found.error) return `${safe(view.found.error)}.`;
    const to = cut(bare(state.to), 60);
    if (view.found.unknown) {
      const over = safe(view.found.unknown[0]);
      return `Unknown whether there is a way to ${to} on ${day(view.now)}: it may go over ${over}.`;
    }
    const most = view.found.isCut ? " of 6 links or fewer" : "";
    if (view.found.links === null) return `No way to ${to}${most} on ${day(view.now)}.`;
    return `${many(view.found.links, "link")} to ${to} on ${day(view.now)}`;
  }

  /** The sentence and the ways; nothing where none are asked for. */
  function elements() {
    if (!state.to) return [];
    const step = (url) => el("li", {}, linkTo(url, cut(bare(url), 60)));
    const steps = (way) => el("li", {}, el("ol", {}, ...way.slice(1).map(step)));
    const found = view.found?.ways || [];
    const list = found.length ? [el("ul", { class: "ways" }, ...found.map(steps))] : [];
    return [el("h2", { text: text() }), ...list];
  }

  const linkTo = (url, words) =>
    el("a", {
      href: addressFrom({ v: "neighbourhood", url, at: state.at }),
      text: words,
      onclick: (event) => {
        if (event.metaKey || event.ctrlKey || event.shiftKey) return;
        event.preventDefault();
        enter(url);
      },
    });

  return { ask, text, elements };
}
