// The line below the head of backlinks: the target beside this one, the targets that a person keeps, and the host and
// the domain that a page lies in. All of it is in the address, so that the whole bench can be sent.

import { go, link } from "./address.js";
import { act, count, el, many } from "./dom.js";
import { safe } from "./names.js";
import * as targets from "./targets.js";

/** A word that does something, with a name that says to what. */
function does(text, name, onclick) {
  const button = act(text, onclick);
  button.setAttribute("aria-label", name);
  button.title = name;
  return button;
}

/**
 * The line. `now` gives the state of the address. `other` is {target, missing} for the target beside, where `missing`
 * says why there is no answer. `keep` is told the list when it changes. `update` is called when dates were chosen, which
 * go along to other targets.
 */
export function bench({ now, target, other, call, isOpen, say, keep }) {
  const word = targets.wordOf(target);
  const kept = () => targets.keptIn(now());
  const offered = [targets.hostAbove(target)].filter(Boolean);
  const besideField = el("input", {
    class: "filter",
    type: "text",
    id: "beside",
    placeholder: "URL or domain",
    autocomplete: "off",
    autocapitalize: "off",
    spellcheck: "false",
    "aria-label": "Compare with the target",
    onkeydown: (event) => {
      const text = besideField.value.trim();
      if (event.key === "Enter" && text) beside(text);
    },
  });
  const comparison = el("span", { class: "with" });
  const list = el("span", { class: "kept", role: "group", "aria-label": "Kept targets" });
  const wider = el("span", { class: "wider" });
  const element = el("div", { class: "tools bench" }, comparison, list, wider);
  const label = (text) => el("span", { class: "label", text });
  const there = (named, text) => link(targets.stateFor(now(), named), text);

  function beside(text) {
    if (text !== word) go({ ...now(), and: text, who: undefined });
    else say("This target is the one that is shown");
  }

  function compare() {
    if (!other) {
      comparison.replaceChildren(label("Compare with"), besideField);
      return;
    }
    const name = targets.nameOf(other.target);
    const alone = () => go({ ...now(), and: undefined, who: undefined });
    const turned = () => go({ ...targets.stateFor(now(), other.target), and: word });
    comparison.replaceChildren(
      label("Compared with"),
      there(other.target, name),
      other.missing
        ? el("span", { class: "wrong", role: "status", text: other.missing })
        : does("swap", `Show ${name} as A`, turned),
      does("×", `Compare no longer with ${name}`, alone),
    );
  }

  function fill() {
    const words = kept();
    const items = words.map((own) => {
      const named = targets.targetOf(own);
      const name = targets.nameOf(named);
      const lead = there(named, name);
      if (own === word) lead.setAttribute("aria-current", "page");
      const isShown = own === word || own === now().and;
      return el(
        "span",
        { class: "item" },
        lead,
        isShown ? undefined : does("compare", `Compare with ${name}`, () => beside(own)),
        does("×", `Keep ${name} no longer`, () => change(kept().filter((one) => one !== own))),
      );
    });
    const add = does("+ this", `Keep ${targets.nameOf(target)} in the list`, toggle);
    list.replaceChildren(label("Kept"), ...items, ...(words.includes(word) ? [] : [add]));
  }

  function widen() {
    const text = ({ match, url }) => `to all ${match === "host" ? "URLs" : "hosts"} of ${safe(url)}`;
    const words = offered.map((above) => there(above, text(above)));
    wider.replaceChildren(...(words.length ? [label("Wider"), ...words] : []));
  }

  function change(words) {
    if (words.length > targets.KEPT_MAX) {
      say(`The list is full: it keeps ${count(targets.KEPT_MAX)} targets`);
      return;
    }
    const isMore = words.length > kept().length;
    const hadFocus = list.contains(document.activeElement);
    keep(targets.listOf(words));
    update();
    if (hadFocus) list.querySelector("button, a")?.focus();
    say(`${isMore ? "Kept" : "Removed"}: ${many(words.length, "target")} in the list`);
  }

  /** Keeps this target, or no longer. */
  function toggle() {
    const words = kept();
    change(words.includes(word) ? words.filter((own) => own !== word) : [...words, word]);
  }

  /** Offers the domain that the target lies in, when the server has said which it is. */
  async function offer() {
    const domain = await targets.domainAbove(target, call).catch(() => undefined);
    if (!domain || !isOpen()) return;
    offered.push(domain);
    widen();
  }

  function update() {
    compare();
    fill();
    widen();
  }

  update();
  return { element, toggle, offer, update };
}
