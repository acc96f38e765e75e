// A picture that stands by itself, as on a page of paper: what it is of, what it says, where it comes from, the
// drawing, and what its marks mean. A picture with rows has all of them, also those that are not in view, as long as
// browsers can make an image of that height.

import { count } from "../text/numbers.js";
import { shifted } from "./bars.js";
import { Svg } from "./svg.js";

/** @import { Pen, Theme } from "./canvas.js" */

/**
 * Sizes in pixels, the colour of the paper, and what draws.
 * @typedef {{ width: number, height: number, paper: string, paint: (context: Pen) => void }} Picture
 */
/** @typedef {{ line: string, size: number, colour: string }} Text */

/** The most pixels of all rows together: an image of twice as many is what every browser makes. */
export const ROWS_HEIGHT_MAX = 7000;
/** Pixels around the drawing. */
const MARGIN = 24;
/** The sides of A4 without margins, in millimetres, and the pixels of one. */
const [LONG, SHORT] = [277, 190];
const MM = 96 / 25.4;

/**
 * A text in lines of about so many pixels; of a long one, the first `most` lines.
 * @param {string} text
 * @param {number} size
 * @param {number} width
 * @param {number} most
 */
function linesOf(text, size, width, most) {
  const wide = Math.max(20, Math.floor(width / (size * 0.52)));
  return (text.match(new RegExp(`\\S.{0,${wide - 1}}(?=\\s|$)|\\S.{0,${wide - 1}}`, "g")) || []).slice(0, most);
}

/** @type {(lines: Text[]) => number} */
const heightOf = (lines) => lines.reduce((sum, { size }) => sum + size * 1.4, 0);

/**
 * Writes lines one below the other, from a height on.
 * @param {Pen} context
 * @param {Text[]} lines
 * @param {number} top
 * @param {Theme} theme
 */
function write(context, lines, top, theme) {
  let y = top;
  for (const { line, size, colour } of lines) {
    y += size * 1.4;
    context.font = `${size}px ${theme.sans}`;
    context.fillStyle = colour;
    context.textAlign = "left";
    context.fillText(line, MARGIN, y);
  }
}

/**
 * The picture. `draw` draws [width, height] pixels into a canvas context or an SVG.
 * @param {{ title: string, facts: string, key: string }} frame
 * @param {[number, number]} size
 * @param {Theme} theme
 * @param {(context: Pen) => void} draw
 * @returns {Picture}
 */
export function framed({ title, facts, key }, [width, height], theme, draw) {
  /** @type {(size: number, colour: string, text: string, most: number) => Text[]} */
  const block = (size, colour, text, most) => linesOf(text, size, width, most).map((line) => ({ line, size, colour }));
  const above = [
    ...block(20, theme.ink, title, 2),
    ...block(12, theme.ink2, facts, 3),
    ...block(9, theme.ink3, location.href, 6),
  ];
  const below = block(10, theme.ink2, key, 20);
  const top = MARGIN + heightOf(above) + 12;
  /** @type {(context: Pen) => void} */
  const paint = (context) => {
    write(context, above, MARGIN / 2, theme);
    shifted(context, MARGIN, top, () => draw(context));
    write(context, below, top + height + 6, theme);
  };
  return { width: width + 2 * MARGIN, height: top + height + heightOf(below) + MARGIN, paper: theme.paper, paint };
}

/**
 * What a picture says if it has not all rows: "; the first 37 of 82 rows".
 * @type {(rows: number, all: number) => string}
 */
export const partOf = (rows, all) => (rows < all ? `; the first ${count(rows)} of ${count(all)} rows` : "");

/** @param {Picture} picture */
export function svgOf({ width, height, paper, paint }) {
  const svg = new Svg(width, height, paper);
  paint(svg);
  return svg;
}

/**
 * The size of a picture that fits on A4: upright or across, whichever makes it larger.
 * @param {{ width: number, height: number }} picture
 */
export function fitsOnPaper({ width, height }) {
  const fits = (/** @type {number[]} */ [wide, high]) => Math.min(1 / MM, wide / width, high / height);
  const scale = Math.max(fits([LONG, SHORT]), fits([SHORT, LONG]));
  const mm = (/** @type {number} */ pixels) => `${(pixels * scale).toFixed(1)}mm`;
  return /** @type {[string, string]} */ ([mm(width), mm(height)]);
}
