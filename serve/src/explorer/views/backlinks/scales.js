// Draws what the chart of backlinks means, left of it, and the largest number of each of its scales.

import { hatch } from "../../drawing/bars.js";
import { count } from "../../text/numbers.js";

/** @import { Pen, Theme } from "../../drawing/canvas.js" */
/** @import { Scales } from "./chart.js" */
/** @import { Laid } from "./places.js" */

/** From which width on the key stands beside the chart, not in it. */
const KEY = 200;
/** Pixels of a box of the key. */
const BOX = 9;

/**
 * Draws a box of the key, of which this is the place.
 * @typedef {(x: number, y: number) => void} Box
 */

/**
 * The boxes of the key, by what they mean.
 * @type {(context: Pen, theme: Theme) => Record<"link" | "hollow" | "found" | "new" | "returned" | "lost", Box>}
 */
function boxesOf(context, theme) {
  /** @type {(fill: string) => Box} */
  const filled = (fill) => (x, y) => {
    context.fillStyle = fill;
    context.fillRect(x, y, BOX, BOX);
  };
  return {
    link: filled(theme.bar2),
    hollow: (x, y) => {
      context.strokeStyle = theme.ink;
      context.lineWidth = 1;
      context.strokeRect(x + 0.5, y + 0.5, BOX - 1, BOX - 1);
    },
    found: (x, y) => {
      filled(theme.soft)(x, y);
      context.fillStyle = theme.accent;
      context.fillRect(x, y, BOX, 1);
    },
    new: filled(theme.accent),
    returned: (x, y) => hatch(context, x, y, BOX, BOX, theme.accent),
    lost: filled(theme.bar),
  };
}

/** @type {(context: Pen, scene: Laid, scales: Scales, theme: Theme) => void} */
function drawKey(context, scene, { middle, zero }, theme) {
  const text = scene.layout.left - 60;
  const boxes = boxesOf(context, theme);
  /** @type {(word: string, y: number, box?: Box) => void} */
  const line = (word, y, box) => {
    context.fillStyle = theme.ink2;
    context.fillText(word, text, y);
    box?.(text + 8, y - 8);
  };
  if (scene.otherMarks) {
    line("link to A", 20, boxes.link);
    line("to B, all hollow", 36, boxes.hollow);
  } else line("link", 20);
  const step = Math.max(11, Math.min(16, (zero - middle - 4) / 3));
  line("found with its page", zero - 2.3 * step, boxes.found);
  line("new on a known page", zero - 1.3 * step, boxes.new);
  line("returned", zero - 0.3 * step, boxes.returned);
  line("lost (root scale)", zero + 0.9 * step, boxes.lost);
}

/** @type {(context: Pen, scene: Laid, scales: Scales, theme: Theme) => void} */
export function drawScales(context, scene, scales, theme) {
  const { zero, up, down, most, flow } = scales;
  const { left, keyLeft } = scene.layout;
  const edge = left - 6;
  context.textAlign = "right";
  context.fillStyle = theme.ink3;
  context.fillText(count(most), edge, 20);
  context.fillText(`+${count(flow)}`, edge, zero - up + 6);
  context.fillText(`−${count(flow)}`, edge, zero + down);
  if (left - keyLeft >= KEY) drawKey(context, scene, scales, theme);
  context.textAlign = "left";
}
