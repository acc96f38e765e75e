// Two fields for a stretch of time: from and to, in any form that a question takes. They show what the address has, so
// that a period that is clicked stands in them too.

import { act, el } from "./dom.js";
import { safe } from "./names.js";
import { timeOf } from "./time.js";

/** What stands before both fields, and what they are called. */
const WORDS = { before: "Between", among: "and", from: "First date", to: "Last date" };
const NO_TIME = "not a time (write 2008, 2008-06 or 2008-06-01)";

/**
 * What an address says of a stretch of time: the texts of its two sides, and `span`, its first second and the one after
 * its last, where a side that is left open has no end. `wrong` says by side what is no time: there is no span then.
 */
export function whenOf({ from = "", to = "" }) {
  const [start, last] = [timeOf(from), timeOf(to, true)];
  const wrong = {};
  if (from && start === undefined) wrong.from = NO_TIME;
  if (to && last === undefined) wrong.to = NO_TIME;
  if (start > last) wrong.to = "earlier than the first date";
  const isChosen = (from || to) && !wrong.from && !wrong.to;
  const span = isChosen ? [start ?? -Infinity, last === undefined ? Infinity : last + 1] : undefined;
  return { from, to, wrong, span };
}

/** The fields; `apply` takes {from, to} as they were written. `show` fills them. */
export function between(when, apply, words = WORDS) {
  const said = el("span", { class: "wrong", role: "status", id: "between-wrong" });
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
  const show = ({ from, to, wrong }) => {
    for (const [input, text, error] of [
      [first, from, wrong.from],
      [last, to, wrong.to],
    ]) {
      input.value = text;
      if (error) input.setAttribute("aria-invalid", "true");
      else input.removeAttribute("aria-invalid");
    }
    clear.hidden = words !== WORDS || (!from && !to);
    const texts = [wrong.from && `“${safe(from)}” is ${wrong.from}`, wrong.to && `“${safe(to)}” is ${wrong.to}`];
    said.textContent = [...new Set(texts.filter(Boolean))].join(", ");
  };
  show(when);
  const names = [el("span", { text: words.before }), el("span", { text: words.among })];
  const element = el("div", { class: "between" }, names[0], first, names[1], last, clear, said);
  return { element, show };
}
