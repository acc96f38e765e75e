// The line below the head of backlinks: the target beside this one, the targets that a person keeps, and the host and
// the domain that a page lies in. All of it is in the address, so that the whole bench can be sent.

import * as targets from "../../data/targets.js";
import { go, link } from "../../page/address.js";
import { el } from "../../parts/dom.js";
import { act } from "../../parts/tools.js";
import { safe } from "../../text/names.js";
import { count, many } from "../../text/numbers.js";

/** @import { Target } from "../../data/targets.js" */
/** @import { Context, State } from "../../page/state.js" */
/** @import { Other } from "./state.js" */

/**
 * The line: its state, and its elements.
 * @typedef {object} Bench
 * @property {Pick<Context, "call" | "isOpen" | "say">} context
 * @property {Target} target
 * @property {string} word The target as a word of an address.
 * @property {Other} [other]
 * @property {Target[]} offered The host and the domain that the target lies in.
 * @property {() => State} now Gives the state of the address.
 * @property {(list: string | undefined) => void} keep Takes the list of targets when it changes.
 * @property {HTMLElement} element
 * @property {HTMLElement} comparison
 * @property {HTMLElement} list
 * @property {HTMLElement} wider
 * @property {HTMLInputElement} field The field for another target.
 */

/**
 * A word that does something, with a name that says to what.
 * @type {(text: string, name: string, onclick: () => void) => HTMLElement}
 */
function does(text, name, onclick) {
  const button = act(text, onclick);
  button.setAttribute("aria-label", name);
  button.title = name;
  return button;
}

/** @type {(text: string) => HTMLElement} */
const label = (text) => el("span", { class: "label", text });

/**
 * A link to another target.
 * @type {(bench: Bench, target: Target, text: string) => HTMLElement}
 */
const there = ({ now }, target, text) => link(targets.stateFor(now(), target), text);

/** @type {(bench: Bench) => string[]} */
const keptIn = ({ now }) => targets.keptIn(now());

/**
 * Puts a target beside this one.
 * @type {(bench: Bench, text: string) => void}
 */
function compareWith({ word, now, context }, text) {
  if (text !== word) go({ ...now(), and: text, who: undefined });
  else context.say("This target is the one that is shown");
}

/**
 * Fills the part about the target beside.
 * @type {(bench: Bench) => void}
 */
function fillComparison(bench) {
  const { other, comparison, field, now, word } = bench;
  if (!other) {
    comparison.replaceChildren(label("Compare with"), field);
    return;
  }
  const name = targets.nameOf(other.target);
  const alone = () => go({ ...now(), and: undefined, who: undefined });
  const turned = () => go({ ...targets.stateFor(now(), other.target), and: word });
  comparison.replaceChildren(
    label("Compared with"),
    there(bench, other.target, name),
    other.missing
      ? el("span", { class: "wrong", role: "status", text: other.missing })
      : does("swap", `Show ${name} as A`, turned),
    does("×", `Compare no longer with ${name}`, alone),
  );
}

/**
 * A target that is kept.
 * @type {(bench: Bench, own: string) => HTMLElement}
 */
function itemOf(bench, own) {
  const target = targets.targetOf(own);
  const name = targets.nameOf(target);
  const lead = there(bench, target, name);
  if (own === bench.word) lead.setAttribute("aria-current", "page");
  const isShown = own === bench.word || own === bench.now().and;
  const without = () =>
    change(
      bench,
      keptIn(bench).filter((one) => one !== own),
    );
  return el(
    "span",
    { class: "item" },
    lead,
    isShown ? undefined : does("compare", `Compare with ${name}`, () => compareWith(bench, own)),
    does("×", `Keep ${name} no longer`, without),
  );
}

/**
 * Fills the list of targets that are kept.
 * @type {(bench: Bench) => void}
 */
function fillKept(bench) {
  const words = keptIn(bench);
  const items = words.map((own) => itemOf(bench, own));
  const add = does("+ this", `Keep ${targets.nameOf(bench.target)} in the list`, () => toggleKept(bench));
  bench.list.replaceChildren(label("Kept"), ...items, ...(words.includes(bench.word) ? [] : [add]));
}

/**
 * Fills the part about what the target lies in.
 * @type {(bench: Bench) => void}
 */
function fillWider(bench) {
  const text = (/** @type {Target} */ { match, url }) =>
    `to all ${match === "host" ? "URLs" : "hosts"} of ${safe(url)}`;
  const words = bench.offered.map((above) => there(bench, above, text(above)));
  bench.wider.replaceChildren(...(words.length ? [label("Wider"), ...words] : []));
}

/**
 * Keeps these targets.
 * @type {(bench: Bench, words: string[]) => void}
 */
function change(bench, words) {
  const { context, list, keep } = bench;
  if (words.length > targets.KEPT_MAX) {
    context.say(`The list is full: it keeps ${count(targets.KEPT_MAX)} targets`);
    return;
  }
  const isMore = words.length > keptIn(bench).length;
  const hadFocus = list.contains(document.activeElement);
  keep(targets.listOf(words));
  updateBench(bench);
  const first = list.querySelector("button, a");
  if (hadFocus && first instanceof HTMLElement) first.focus();
  context.say(`${isMore ? "Kept" : "Removed"}: ${many(words.length, "target")} in the list`);
}

/**
 * Keeps this target, or no longer.
 * @type {(bench: Bench) => void}
 */
export function toggleKept(bench) {
  const { word } = bench;
  const words = keptIn(bench);
  change(bench, words.includes(word) ? words.filter((own) => own !== word) : [...words, word]);
}

/**
 * Offers the domain that the target lies in, when the server has said which it is.
 * @type {(bench: Bench) => Promise<void>}
 */
export async function offerDomain(bench) {
  const { target, context } = bench;
  const domain = await targets.domainAbove(target, context.call).catch(() => undefined);
  if (!domain || !context.isOpen()) return;
  bench.offered.push(domain);
  fillWider(bench);
}

/**
 * Shows the state of the address, as after dates were chosen, which go along to other targets.
 * @type {(bench: Bench) => void}
 */
export function updateBench(bench) {
  fillComparison(bench);
  fillKept(bench);
  fillWider(bench);
}

/**
 * @param {Pick<Bench, "context" | "target" | "other" | "now" | "keep">} parts
 * @returns {Bench}
 */
export function benchOf(parts) {
  const comparison = el("span", { class: "with" });
  const list = el("span", { class: "kept", role: "group", "aria-label": "Kept targets" });
  const wider = el("span", { class: "wider" });
  const field = el("input", {
    class: "filter",
    type: "text",
    id: "beside",
    placeholder: "URL or domain",
    autocomplete: "off",
    autocapitalize: "off",
    spellcheck: "false",
    "aria-label": "Compare with the target",
  });
  const above = targets.hostAbove(parts.target);
  const element = el("div", { class: "tools bench" }, comparison, list, wider);
  const offered = above ? [above] : [];
  const bench = { ...parts, word: targets.wordOf(parts.target), offered, element, comparison, list, wider, field };
  field.addEventListener("keydown", (event) => {
    const text = field.value.trim();
    if (event.key === "Enter" && text) compareWith(bench, text);
  });
  updateBench(bench);
  return bench;
}
