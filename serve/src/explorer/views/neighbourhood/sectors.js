// Draws the rim of the rings: an arc for each sector with its name, where names do not touch.

import { fitted } from "../../text/cut.js";
import { safe } from "../../text/names.js";

/** @import { Sector } from "../../data/places.js" */
/** @import { Pen, Theme } from "../../drawing/canvas.js" */
/** @import { Layout, Scene } from "./state.js" */

/**
 * Left, top, right and bottom.
 * @typedef {[number, number, number, number]} Box
 */

/**
 * Whether two boxes have a point in common.
 * @type {(one: Box, other: Box) => boolean}
 */
export const touch = (one, other) => one[0] < other[2] && one[2] > other[0] && one[1] < other[3] && one[3] > other[1];

/** @type {(context: Pen, layout: Layout, sector: Sector) => void} */
function drawArc(context, { x, y, round }, sector) {
  const gap = Math.min(0.012, (sector.to - sector.from) / 8);
  const [from, to] = [sector.from + gap, sector.to - gap];
  context.beginPath();
  context.moveTo(x + Math.cos(from) * (round + 4), y + Math.sin(from) * (round + 4));
  context.arc(x, y, round + 4, from, to);
  context.stroke();
}

/**
 * The name of a sector: how it is aligned, its place, as much of it as there is room for, and where it begins and ends.
 * @param {Pen} context
 * @param {Layout} layout
 * @param {Sector} sector
 */
function nameOf(context, { x, y, round, width: wide }, sector) {
  const middle = (sector.from + sector.to) / 2;
  const [cos, sin] = [Math.cos(middle), Math.sin(middle)];
  /** @type {CanvasTextAlign} */
  const align = cos > 0.3 ? "left" : cos < -0.3 ? "right" : "center";
  const [tx, ty] = [x + cos * (round + 11), y + sin * (round + 14) + 4];
  const room = align === "left" ? wide - tx : align === "right" ? tx : 2 * Math.min(tx, wide - tx);
  const name = sector.name.startsWith("others") ? "others" : safe(sector.name);
  const text = fitted(context, name, Math.max(20, room));
  const width = context.measureText(text).width;
  const left = align === "left" ? tx : align === "right" ? tx - width : tx - width / 2;
  return { align, tx, ty, text, left, right: left + width };
}

/** @type {(context: Pen, scene: Scene & { layout: Layout }, theme: Theme) => void} */
export function drawSectors(context, { around, layout, dimmed }, theme) {
  context.lineWidth = 1.5;
  context.font = `11px ${theme.sans}`;
  /** @type {Box[]} */
  const taken = [];
  for (const [at, sector] of around.sectors.entries()) {
    const isDim = dimmed >= 0 && dimmed !== at;
    context.strokeStyle = isDim ? theme.rule : theme.ink3;
    drawArc(context, layout, sector);
    const { align, tx, ty, text, left, right } = nameOf(context, layout, sector);
    if (taken.some((box) => touch([left, ty - 10, right, ty + 3], box))) continue;
    taken.push([left - 4, ty - 12, right + 4, ty + 4]);
    context.textAlign = align;
    context.fillStyle = isDim ? theme.ink3 : theme.ink2;
    context.fillText(text, tx, ty);
  }
}
