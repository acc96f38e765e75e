// The search field with its suggestions.

import { call, path } from "../data/call.js";
import { byId, el } from "../parts/dom.js";
import { bare, safe } from "../text/names.js";
import { many } from "../text/numbers.js";

/** @import { Suggested, SuggestedPage } from "../data/answers.js" */
/** @import { State } from "./state.js" */

/**
 * The field, the list below it, and the options in the list.
 * @typedef {object} Field
 * @property {HTMLInputElement} input
 * @property {HTMLElement} list
 * @property {{ wanted: State, element: HTMLElement }[]} options Each with the state that it opens.
 * @property {number} selected The place of the option that keys have chosen; -1 if there is none.
 * @property {number} asked How often the server was asked.
 * @property {(state: State) => void} choose
 */

/** Suggestions of one answer, and the most hosts of them that are shown. */
const LIMIT = 9;
const HOSTS = 5;
/** Milliseconds after which a text that is being typed is looked for. */
const PAUSE = 60;

/**
 * "3 captures, 2008 – 2010", or how many pages link to a URL that was never captured.
 * @param {SuggestedPage} page
 */
function facts(page) {
  if (!page.captures) return `${many(page.inlinks, "page")} link${page.inlinks === 1 ? "s" : ""} · not captured`;
  const [first, last] = [page.first, page.last].map((time) => (time || "").slice(0, 4));
  return `${many(page.captures, "capture")} · ${first === last ? first : `${first} – ${last}`}`;
}

/**
 * A name with the part that was typed marked.
 * @param {string} name
 * @param {string} typed
 */
function marked(name, typed) {
  const at = typed ? name.toLowerCase().indexOf(typed.toLowerCase()) : -1;
  if (at < 0) return el("span", { class: "name", text: name });
  return el(
    "span",
    { class: "name" },
    name.slice(0, at),
    el("b", { text: name.slice(at, at + typed.length) }),
    name.slice(at + typed.length),
  );
}

/**
 * The domain that was typed, if hosts of the store lie below it and it is none itself.
 * @param {string} typed
 * @param {{ host: string }[]} hosts
 */
function domainOf(typed, hosts) {
  const name = typed.toLowerCase().replace(/\/.*$/, "");
  const isAbove = name.includes(".") && hosts.some(({ host }) => host.endsWith(`.${name}`));
  return isAbove && !hosts.some(({ host }) => host === name) ? name : undefined;
}

/** @param {Field} field */
function close(field) {
  field.list.hidden = true;
  field.selected = -1;
  field.input.setAttribute("aria-expanded", "false");
  field.input.removeAttribute("aria-activedescendant");
}

/** @type {(field: Field, wanted: State) => void} */
function take(field, wanted) {
  close(field);
  field.input.blur();
  field.choose(wanted);
}

/** @type {(field: Field, at: number) => void} */
function select(field, at) {
  field.selected = at;
  field.options.forEach((option, own) => {
    option.element.setAttribute("aria-selected", String(own === at));
  });
  const chosen = field.options[at]?.element;
  if (!chosen) return;
  field.input.setAttribute("aria-activedescendant", chosen.id);
  chosen.scrollIntoView({ block: "nearest" });
}

/**
 * An option: what it opens, its class, its name, and a fact.
 * @type {(...option: [State, string, Node, string]) => Option}
 */
const optionOf = (wanted, kind, name, fact) => ({
  wanted,
  kind,
  parts: [name, el("span", { class: "fact", text: fact })],
});
/** @typedef {{ wanted: State, kind: string, parts: Node[] }} Option */

/**
 * The options of an answer in the order of keys: pages, the domain that was typed, and hosts.
 * @param {Suggested} answer
 * @param {string} part
 */
function optionsOf(answer, part) {
  const domain = domainOf(part, answer.hosts);
  const whole = { v: "backlinks", url: domain, match: "domain" };
  return [
    ...answer.pages.map((page) => optionOf({ url: page.url }, "page", marked(bare(page.url), part), facts(page))),
    ...(domain ? [optionOf(whole, "host", marked(domain, part), "domain, all its hosts")] : []),
    ...answer.hosts.slice(0, HOSTS).map(({ host, urls }) => {
      const name = marked(safe(host), part.split("/")[0]);
      return optionOf({ v: "backlinks", url: host }, "host", name, many(urls, "URL"));
    }),
  ];
}

/**
 * Shows options below the field: the domain first, because a person who types a whole name means it rather than one of
 * its pages.
 * @type {(field: Field, options: Option[], typed: string) => void}
 */
function fill(field, options, typed) {
  field.options = options.map(({ wanted, kind, parts }, at) => {
    const onpointerdown = (/** @type {Event} */ event) => {
      event.preventDefault();
      take(field, wanted);
    };
    const own = { class: `option ${kind}`, role: "option", id: `option-${at}`, "aria-selected": "false" };
    return { wanted, element: el("div", { ...own, onpointerdown }, ...parts) };
  });
  const nothing = `Nothing in the store has “${safe(typed)}” in its address.`;
  const [domain, others] = [true, false].map((isDomain) =>
    field.options.filter(({ wanted }) => Boolean(wanted.match) === isDomain).map(({ element }) => element),
  );
  const made = [...domain, ...others];
  field.list.replaceChildren(...(made.length ? made : [el("div", { class: "option" }, nothing)]));
  field.list.hidden = false;
  field.selected = -1;
  field.input.setAttribute("aria-expanded", "true");
}

/**
 * Asks for suggestions, and shows them if nothing else was typed since.
 * @param {Field} field
 */
async function suggest(field) {
  const typed = field.input.value.trim();
  field.asked += 1;
  const own = field.asked;
  const answer = await call(path("v1/suggest", { q: typed || undefined, limit: LIMIT })).catch(() => undefined);
  if (own !== field.asked || document.activeElement !== field.input || !answer) return;
  fill(field, optionsOf(answer, typed.replace(/^\w+:\/\//, "")), typed);
}

/** @type {(field: Field, event: KeyboardEvent) => void} */
function pressed(field, event) {
  const { selected, options } = field;
  const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
  if (step && options.length) {
    select(field, (selected + step + options.length + (selected < 0 && step < 0 ? 1 : 0)) % options.length);
    event.preventDefault();
  } else if (event.key === "Escape") {
    close(field);
    field.input.blur();
  }
}

/**
 * Opens what is chosen, or else what is typed.
 * @param {Field} field
 */
function submit(field) {
  const typed = field.input.value.trim();
  const own = field.options.find(({ wanted }) => wanted.v === "backlinks" && wanted.url === typed.toLowerCase());
  const wanted = field.options[field.selected]?.wanted || own?.wanted || (typed && { url: typed });
  if (wanted) take(field, wanted);
}

/**
 * Makes the field suggest; `choose` opens what was chosen.
 * @param {HTMLInputElement} input
 * @param {(state: State) => void} choose
 */
export function startSearch(input, choose) {
  /** @type {Field} */
  const field = { input, list: byId("suggestions"), options: [], selected: -1, asked: 0, choose };
  let timer = 0;
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = window.setTimeout(() => suggest(field), PAUSE);
  });
  input.addEventListener("focus", () => {
    input.select();
    suggest(field);
  });
  input.addEventListener("blur", () => close(field));
  input.addEventListener("keydown", (event) => pressed(field, event));
  byId("search").addEventListener("submit", (event) => {
    event.preventDefault();
    submit(field);
  });
}
