// Rows of bars that are too thin to be drawn, as darkness.

/** @import { Run } from "../data/barcode.js" */

/** Rows thinner than this are counted by pixel and shown as darkness, because bars would cover each other. */
export const THIN = 2;

/**
 * Rows that are thinner than a pixel or two, as darkness: each line of pixels shows how many of its rows were there,
 * from 0.4 for one to 1 for all. Returns an image of `width` by `height` device pixels in the colour of bars.
 * @param {{ runs: Run[] }[]} rows
 * @param {number} width
 * @param {number} height
 * @param {(run: Run) => number[]} x The ends of a run in pixels.
 * @param {string} colour
 */
export function raster(rows, width, height, x, colour) {
  const counts = new Float32Array((width + 1) * height);
  const rowsOfLine = new Float32Array(height);
  rows.forEach((row, at) => {
    const first = Math.floor((at * height) / rows.length);
    const end = Math.max(first + 1, Math.floor(((at + 1) * height) / rows.length));
    for (let y = first; y < end; y += 1) {
      rowsOfLine[y] += 1;
      for (const run of row.runs) mark(counts, y * (width + 1), width, x(run));
    }
  });
  return imageOf(counts, rowsOfLine, width, colour);
}

/**
 * Adds one where a run begins in a line of pixels, and takes it away where it ends.
 * @type {(counts: Float32Array, line: number, width: number, ends: number[]) => void}
 */
function mark(counts, line, width, [from, to]) {
  const start = Math.max(0, Math.floor(from));
  const stop = Math.min(width, Math.max(Math.ceil(to), start + 1));
  if (stop <= 0 || start >= width) return;
  counts[line + start] += 1;
  counts[line + stop] -= 1;
}

/**
 * @param {Float32Array} counts
 * @param {Float32Array} rowsOfLine
 * @param {number} width
 * @param {string} colour
 */
function imageOf(counts, rowsOfLine, width, colour) {
  const height = rowsOfLine.length;
  const image = new ImageData(width, height);
  const [red, green, blue] = rgb(colour);
  for (let y = 0; y < height; y += 1) {
    let number = 0;
    for (let at = 0; at < width; at += 1) {
      number += counts[y * (width + 1) + at];
      if (number < 0.5) continue;
      const place = (y * width + at) * 4;
      image.data[place] = red;
      image.data[place + 1] = green;
      image.data[place + 2] = blue;
      image.data[place + 3] = Math.round(255 * (0.4 + (0.6 * number) / Math.max(1, rowsOfLine[y])));
    }
  }
  return image;
}

/** @param {string} colour */
function rgb(colour) {
  const hex = /^#(..)(..)(..)$/.exec(colour);
  return hex ? hex.slice(1).map((part) => parseInt(part, 16)) : [80, 80, 80];
}
