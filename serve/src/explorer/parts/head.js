// What stands above a picture: the name of its subject with facts and links, and notices.

import { el } from "./dom.js";

/** @import { Child } from "./dom.js" */

/**
 * The head of a view: a URL on two lines at most, the rest of it on demand, and what is said of it.
 * @param {string} url
 * @param {Child[]} facts
 */
export function headOf(url, ...facts) {
  const title = el("h1", { text: url });
  const more = el("button", {
    type: "button",
    class: "more",
    text: "whole",
    hidden: true,
    "aria-expanded": "false",
    onclick: () => {
      const isWhole = title.classList.toggle("whole");
      more.setAttribute("aria-expanded", String(isWhole));
      more.textContent = isWhole ? "short" : "whole";
    },
  });
  requestAnimationFrame(() => {
    more.hidden = title.scrollHeight <= title.clientHeight + 1;
  });
  return el("div", { class: "head" }, title, more, ...facts);
}

/**
 * The facts in the head of a view, as text.
 * @param {HTMLElement} root
 */
export const factsIn = (root) => root.querySelector(".head p")?.textContent ?? "";

/**
 * Links that lead out of the page: pairs of a word and an address.
 * @param {[string, string][]} links
 */
export const outLinks = (links) =>
  el(
    "span",
    { class: "out" },
    ...links.map(([text, href]) => el("a", { href, text, target: "_blank", rel: "noopener" })),
  );

/**
 * A line that says that something is not as it was asked for.
 * @param {Child[]} children
 */
export const notice = (...children) => el("p", { class: "notice", role: "status" }, ...children);

/**
 * What is said where there is no picture.
 * @param {string} title
 * @param {Child[]} children
 */
export const said = (title, ...children) => el("div", { class: "said" }, el("h1", { text: title }), ...children);
