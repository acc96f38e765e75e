// Elements, choosers and canvases. Text from a store only ever becomes text: nothing here reads markup.

/** An element with properties (`class`, `text`, attributes, `on...` handlers) and children. */
export function el(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "class") made.className = value;
    else if (name === "text") made.textContent = value;
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== undefined && child !== null));
  return made;
}

/** A word that does something. */
export const act = (text, onclick) => el("button", { type: "button", class: "act", text, onclick });

/** A row of words of which one is chosen; `words` are pairs of a value and a word. Arrow keys move the choice. */
export function chooser(label, words, value, choose) {
  const buttons = words.map(([own, word]) =>
    el("button", {
      type: "button",
      role: "radio",
      text: word,
      "aria-checked": String(own === value),
      tabindex: own === value ? 0 : -1,
      onclick: () => set(own, false),
    }),
  );
  const set = (own, focus) => {
    buttons.forEach((button, at) => {
      const chosen = words[at][0] === own;
      button.setAttribute("aria-checked", String(chosen));
      button.tabIndex = chosen ? 0 : -1;
      if (chosen && focus) button.focus();
    });
    choose(own);
  };
  const keys = (event) => {
    const step = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    const at = buttons.indexOf(document.activeElement);
    set(words[(at + step + words.length) % words.length][0], true);
  };
  const shown = label ? [el("span", { text: label, "aria-hidden": "true" })] : [];
  return el(
    "div",
    { class: "choose", role: "radiogroup", "aria-label": label || "Direction", onkeydown: keys },
    ...shown,
    ...buttons,
  );
}

/** Sizes a canvas in CSS pixels; its context draws in these too. */
export function sized(canvas, width, height) {
  const scale = window.devicePixelRatio || 1;
  const [w, h] = [Math.max(1, Math.round(width * scale)), Math.max(1, Math.round(height * scale))];
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  return context;
}

/** Whether the theme that is shown is the dark one: the one that was chosen, or else that of the system. */
export function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

const NAMES = "paper panel faint rule ink ink2 ink3 bar bar2 accent soft hatch".split(" ");

/** The colours of the theme by name, as CSS has them now: `light-dark()` is not resolved in a property of one's own. */
export function colours() {
  const style = getComputedStyle(document.documentElement);
  const at = isDark() ? 1 : 0;
  const found = Object.fromEntries(
    NAMES.map((name) => [name, style.getPropertyValue(`--${name}`).match(/#[0-9a-f]{6}/g)[at]]),
  );
  found.sans = style.getPropertyValue("--sans").trim();
  return found;
}

/** A dialog that is removed when it is closed. */
export function dialog(title, ...children) {
  const box = el(
    "dialog",
    { "aria-label": title, onclose: () => box.remove() },
    el("h2", { text: title }),
    ...children,
    el("form", { method: "dialog" }, el("button", { class: "act", text: "Close" })),
  );
  document.body.append(box);
  box.showModal();
  return box;
}

/** The head of a view: a URL on two lines at most, the rest of it on demand, and what is said of it. */
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
  requestAnimationFrame(() => (more.hidden = title.scrollHeight <= title.clientHeight + 1));
  return el("div", { class: "head" }, title, more, ...facts);
}

/** Links that lead out of the page: pairs of a word and an address. */
export const outLinks = (links) =>
  el(
    "span",
    { class: "out" },
    ...links.map(([text, href]) => el("a", { href, text, target: "_blank", rel: "noopener" })),
  );

/** A line that says that something is not as it was asked for. */
export const notice = (...children) => el("p", { class: "notice", role: "status" }, ...children);

/** A number with a comma before each three digits. What browsers have for it takes 20 ms to start. */
export const count = (number) => String(number).replace(/\B(?=(\d{3})+$)/g, ",");

/** A number with its noun: "1 link", "2,000 links". */
export const many = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
