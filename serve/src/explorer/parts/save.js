// Saves a picture or lines as a file. The files are made in the page; no server sees them.

import { fitsOnPaper, svgOf } from "../drawing/framed.js";
import { csvOf, jsonOf } from "../text/lines.js";
import { el } from "./dom.js";
import { act } from "./tools.js";

/** @import { Picture } from "../drawing/framed.js" */
/** @import { Line } from "../text/lines.js" */

/**
 * @param {Blob} blob
 * @param {string} name
 */
function save(blob, name) {
  const link = el("a", { href: URL.createObjectURL(blob), download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/** @type {(text: string, type: string, name: string) => void} */
const saveText = (text, type, name) => save(new Blob([text], { type }), name);

/**
 * Saves lines as CSV or as JSON.
 * @param {string[]} columns
 * @param {Line[]} lines
 * @param {"csv" | "json"} kind
 * @param {string} name Without its end.
 */
export function saveLines(columns, lines, kind, name) {
  if (kind === "json") saveText(jsonOf(columns, lines), "application/json", `${name}.json`);
  else saveText(csvOf(columns, lines), "text/csv", `${name}.csv`);
}

/**
 * Saves a picture as PNG, with as many pixels as paper needs.
 * @param {Picture} picture
 * @param {string} name
 */
function savePng({ width, height, paper, paint }, name) {
  const canvas = el("canvas", { width: Math.ceil(width * 2), height: Math.ceil(height * 2) });
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.scale(2, 2);
  context.fillStyle = paper;
  context.fillRect(0, 0, width + 1, height + 1);
  paint(context);
  canvas.toBlob((blob) => blob && save(blob, name), "image/png");
}

/**
 * The words that save a picture as SVG and as PNG.
 * @param {() => Picture} pictureOf
 * @param {string} name Without its end.
 */
export const pictureActs = (pictureOf, name) => [
  act("SVG", () => {
    const picture = pictureOf();
    saveText(svgOf(picture).text(fitsOnPaper(picture)), "image/svg+xml", `${name}.svg`);
  }),
  act("PNG", () => savePng(pictureOf(), `${name}.png`)),
];

/**
 * A picture as an element, which is not read out.
 * @param {{ text: () => string }} svg
 */
export function elementOf(svg) {
  const made = new DOMParser().parseFromString(svg.text(), "image/svg+xml").documentElement;
  made.setAttribute("aria-hidden", "true");
  return document.importNode(made, true);
}

/**
 * A picture that stands by itself as an element, for paper.
 * @param {Picture} picture
 */
export const paperOf = (picture) => elementOf(svgOf(picture));
