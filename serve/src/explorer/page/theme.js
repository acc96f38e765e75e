// Dark or light; and white, as paper is, while the page is printed.

import { isDark } from "../drawing/canvas.js";
import { el } from "../parts/dom.js";

const html = document.documentElement;

/** Shows the theme that was chosen before, if the browser has kept it. */
export function restoreTheme() {
  try {
    const kept = localStorage.getItem("theme");
    if (kept === "dark" || kept === "light") html.dataset.theme = kept;
  } catch {
    /* A browser may keep nothing. */
  }
}

/** Shows the other theme. */
export function turnTheme() {
  const theme = isDark() ? "light" : "dark";
  html.dataset.theme = theme;
  try {
    localStorage.setItem("theme", theme);
  } catch {
    /* A browser may keep nothing: the choice holds until the page is loaded again. */
  }
}

/**
 * Prints in light colours. `resize` is called when the theme has changed, and `print` gives the elements of the sheet.
 * @param {() => void} resize
 * @param {() => Node[] | undefined} print
 */
export function watchPaper(resize, print) {
  /** @type {string | undefined} */
  let onScreen;
  addEventListener("beforeprint", () => {
    onScreen = html.dataset.theme;
    html.dataset.theme = "light";
    html.dataset.printed = "1";
    resize();
    const sheet = print();
    if (sheet) document.body.append(el("div", { id: "sheet" }, ...sheet));
  });
  addEventListener("afterprint", () => {
    document.getElementById("sheet")?.remove();
    delete html.dataset.printed;
    if (onScreen) html.dataset.theme = onScreen;
    else delete html.dataset.theme;
    resize();
  });
}
