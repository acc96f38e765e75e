// Two fields for a stretch of time: from and to, in any form that a question takes. They show what the address has, so
// that a period that is clicked stands in them too.

import { safe } from "../text/names.js";
import { el } from "./dom.js";
import { act } from "./tools.js";

/** @import { When } from "../text/dates.js" */

/** What stands before both fields, and what they are called. */
const WORDS = { before: "Between", among: "and", from: "First date", to: "Last date" };

/**
 * The fields; `apply` takes {from, to} as they were written. `show` fills them.
 * @param {When} when
 * @param {(texts: { from: string, to: string }) => unknown} apply
 */
export function between(when, apply, words = WORDS) {
  const said = el("span", { class: "wrong", role: "status", id: "between-wrong" });
  /** @type {(name: string, label: string, example: string) => HTMLInputElement} */
  const field = (name, label, example) =>
    el("input", {
      class: "filter date-field",
      type: "text",
      id: `between-${name}`,
      placeholder: example,
      autocomplete: "off",
      spellcheck: "false",
      maxlength: 40,
      "aria-label": label,
      "aria-describedby": "between-wrong",
      // Enter and leaving the field both apply what was changed.
      onchange: () => apply({ from: first.value.trim(), to: last.value.trim() }),
    });
  const first = field("from", `${words.from}: year, month, day or time`, "2008");
  const last = field("to", `${words.to}: year, month, day or time`, "2008-06-01");
  const clear = act("×", () => apply({ from: "", to: "" }));
  clear.setAttribute("aria-label", "All dates");
  /** @type {(input: HTMLInputElement, text: string, error: string | undefined) => void} */
  const put = (input, text, error) => {
    input.value = text;
    if (error) input.setAttribute("aria-invalid", "true");
    else input.removeAttribute("aria-invalid");
  };
  const show = (/** @type {When} */ { from, to, wrong }) => {
    put(first, from, wrong.from);
    put(last, to, wrong.to);
    clear.hidden = words !== WORDS || (!from && !to);
    const texts = [wrong.from && `“${safe(from)}” is ${wrong.from}`, wrong.to && `“${safe(to)}” is ${wrong.to}`];
    said.textContent = [...new Set(texts.filter(Boolean))].join(", ");
  };
  show(when);
  const names = [el("span", { text: words.before }), el("span", { text: words.among })];
  const element = el("div", { class: "between" }, names[0], first, names[1], last, clear, said);
  return { element, show };
}
