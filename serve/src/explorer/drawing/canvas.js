// Canvases and the colours that are drawn with.

/** @import { Svg } from "./svg.js" */

/**
 * What draws: the context of a canvas, or an SVG, with the same calls.
 * @typedef {CanvasRenderingContext2D | Svg} Pen
 */

/**
 * Colours by name, and the family of fonts.
 * @typedef {Record<"paper" | "panel" | "faint" | "rule" | "ink" | "ink2" | "ink3" | "bar" | "bar2" | "accent" | "soft"
 *   | "hatch" | "sans", string>} Theme
 */

const NAMES = ["paper", "panel", "faint", "rule", "ink", "ink2", "ink3", "bar", "bar2", "accent", "soft", "hatch"];

/** Whether the theme that is shown is the dark one: the one that was chosen, or else that of the system. */
export function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

/**
 * The colours of the theme, as CSS has them now: `light-dark()` is not resolved in a property of one's own.
 * @returns {Theme}
 */
export function colours() {
  const style = getComputedStyle(document.documentElement);
  const at = isDark() ? 1 : 0;
  const colourOf = (/** @type {string} */ name) =>
    style.getPropertyValue(`--${name}`).match(/#[0-9a-f]{6}/g)?.[at] ?? "#000000";
  const found = Object.fromEntries(NAMES.map((name) => [name, colourOf(name)]));
  found.sans = style.getPropertyValue("--sans").trim();
  return /** @type {Theme} */ (found);
}

/**
 * The context of a canvas, which every browser of the page has.
 * @param {HTMLCanvasElement} canvas
 */
export const contextOf = (canvas) => /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));

/**
 * Sizes a canvas in CSS pixels; its context draws in these too.
 * @param {HTMLCanvasElement} canvas
 * @param {number} width
 * @param {number} height
 */
export function sized(canvas, width, height) {
  const scale = window.devicePixelRatio || 1;
  const [w, h] = [Math.max(1, Math.round(width * scale)), Math.max(1, Math.round(height * scale))];
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const context = contextOf(canvas);
  context.setTransform(scale, 0, 0, scale, 0, 0);
  return context;
}

/**
 * The same, with nothing drawn.
 * @type {typeof sized}
 */
export function cleared(canvas, width, height) {
  const context = sized(canvas, width, height);
  context.clearRect(0, 0, width, height);
  return context;
}
