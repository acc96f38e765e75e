// Elements. Text from a store only ever becomes text: nothing here reads markup.

/**
 * What an element has: `class`, `text`, attributes, and handlers of events. One that is undefined, null or false is
 * left out.
 * @typedef {{ [K in keyof HTMLElementEventMap as `on${K}`]?: (event: HTMLElementEventMap[K]) => unknown } & { class?:
 *   string, text?: string, [name: string]: unknown }} Properties
 */

/**
 * What is inside of an element; nothing is left out.
 * @typedef {Node | string | undefined | null} Child
 */

/**
 * An element with properties and children.
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Properties} properties
 * @param {Child[]} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function el(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "class") made.className = String(value);
    else if (name === "text") made.textContent = String(value);
    else if (typeof value === "function") made.addEventListener(name.slice(2), /** @type {EventListener} */ (value));
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children.filter((child) => child !== undefined && child !== null));
  return made;
}

/**
 * The element of the page with this id.
 * @param {string} id
 */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`The page has no element ${id}.`);
  return found;
}

/**
 * Whether an event happened in an element that a selector names.
 * @param {Event} event
 * @param {string} selector
 */
export const isIn = (event, selector) => event.target instanceof Element && event.target.closest(selector) !== null;

/**
 * A dialog that is removed when it is closed.
 * @param {string} title
 * @param {Child[]} children
 */
export function dialog(title, ...children) {
  /** @type {HTMLDialogElement} */
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

/**
 * Whether an element gets what an event is meant to do in another tab or window.
 * @param {MouseEvent} event
 */
export const isElsewhere = (event) => event.metaKey || event.ctrlKey || event.shiftKey;
