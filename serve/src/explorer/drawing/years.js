// Pictures by year: the years below, and bars above and below a line. They draw with the calls of a canvas.

import { count, most, sum } from "../text/numbers.js";

/** @import { Pen, Theme } from "./canvas.js" */

/**
 * A number a year, in a colour of the theme.
 * @typedef {{ values: number[], colour: keyof Theme }} Part
 */

/** Where the first year begins, in pixels. */
export const YEARS_LEFT = 44;

/**
 * A text at a place.
 * @param {Pen} context
 * @param {Theme} theme
 * @param {string} words
 * @param {number} x
 * @param {number} y
 * @param {{ align?: CanvasTextAlign, colour?: string, bold?: boolean }} look
 */
export function text(context, theme, words, x, y, { align = "left", colour = theme.ink2, bold = false } = {}) {
  context.font = `${bold ? "600 " : ""}11px ${theme.sans}`;
  context.fillStyle = colour;
  context.textAlign = align;
  context.fillText(words, x, y);
}

/**
 * Writes the years below; their texts are at the height `y`. Gives the x of each year, and how wide it is.
 * @param {Pen} context
 * @param {Theme} theme
 * @param {{ first: number, length: number, left: number, width: number, y: number }} axis
 */
export function years(context, theme, { first, length, left, width, y }) {
  const step = (width - left) / length;
  const every = [1, 2, 5, 10, 20].find((number) => number * step >= 40) || 50;
  for (let at = 0; at < length; at += 1) {
    if ((first + at) % every === 0 || length === 1) {
      text(context, theme, String(first + at), left + (at + 0.5) * step, y, { align: "center" });
    }
  }
  return { step, x: (/** @type {number} */ at) => left + at * step };
}

/**
 * Bars above and below a line, each year a column of stacked numbers.
 * @param {Pen} context
 * @param {Theme} theme
 * @param {number} width
 * @param {{ first: number, up: Part[], down: { values: number[] }, words: [string, string], height: number }} flows
 */
export function yearFlows(context, theme, width, { first, up, down, words, height }) {
  const [left, bottom] = [YEARS_LEFT, height - 22];
  const ups = up[0].values.map((_, at) => sum(up.map((part) => part.values[at])));
  const all = most(ups) + most(down.values) || 1;
  const zero = 16 + ((bottom - 32) * most(ups)) / all;
  const scale = (bottom - 32) / all;
  const { step, x } = years(context, theme, { first, length: ups.length, left, width, y: height - 4 });
  const bar = Math.max(1, step - 1);
  ups.forEach((_, at) => {
    let y = zero;
    for (const { values, colour } of up) {
      y -= values[at] * scale;
      context.fillStyle = theme[colour];
      if (values[at]) context.fillRect(x(at), y, bar, Math.max(1, values[at] * scale));
    }
    context.fillStyle = theme.bar;
    if (down.values[at]) context.fillRect(x(at), zero, bar, Math.max(1, down.values[at] * scale));
  });
  context.fillStyle = theme.accent;
  context.fillRect(left, zero, width - left, 0.7);
  text(context, theme, words[0], left - 6, 20, { align: "right", colour: theme.accent });
  text(context, theme, words[1], left - 6, bottom, { align: "right" });
  /** @type {(values: number[], y: (at: number) => number) => void} */
  const name = (values, y) => {
    const at = values.indexOf(most(values));
    const middle = Math.min(x(at) + bar / 2, width - 16);
    if (values[at]) text(context, theme, count(values[at]), middle, y(at), { align: "center", colour: theme.ink });
  };
  name(ups, (at) => zero - ups[at] * scale - 4);
  name(down.values, (at) => zero + down.values[at] * scale + 12);
}
