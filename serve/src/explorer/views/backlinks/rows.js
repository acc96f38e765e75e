// Draws a row for each referrer: its name, its columns, and its bars; into a canvas or an SVG.

import { endOfRow } from "../../data/referrers.js";
import { xOf } from "../../drawing/axis.js";
import { bars, clip, hatch, hollowBars } from "../../drawing/bars.js";
import { fitted } from "../../text/cut.js";
import { count } from "../../text/numbers.js";
import { day } from "../../text/time.js";
import { drawYears } from "./chart.js";
import { axisOf, HEADS, LINE, RIGHT } from "./places.js";
import { isUnited } from "./state.js";

/** @import { NamedRow, Row, Span } from "../../data/referrers.js" */
/** @import { Axis } from "../../drawing/axis.js" */
/** @import { Pen, Theme } from "../../drawing/canvas.js" */
/** @import { Laid } from "./places.js" */

/**
 * Columns at the left of the bars, each by where it ends; and the room for names.
 * @typedef {{ columns: { name: string, right: number }[], room: number }} Columns
 */

/** From which width on a row says since when, and when it was lost. */
const SINCE = 300;
const LOST = 460;
const COLUMN = 88;
const NUMBER = 56;

/**
 * The columns that there is room for.
 * @type {(scene: Laid) => Columns}
 */
function columnsOf(scene) {
  const { left } = scene.layout;
  let right = left - 14;
  if (isUnited(scene)) {
    if (left < LOST) return { columns: [], room: right };
    const columns = [
      { name: "B since", right },
      { name: "A since", right: right - COLUMN },
    ];
    return { columns, room: right - 2 * COLUMN - 4 };
  }
  const columns = [];
  const number = scene.choice.unit === "page" ? "links to" : "pages";
  for (const [name, least, wide] of /** @type {[string, number, number][]} */ ([
    ["lost by", LOST, COLUMN],
    ["since", SINCE, COLUMN],
    [number, SINCE, NUMBER],
  ])) {
    if (left < least) continue;
    columns.push({ name, right });
    right -= wide;
  }
  return { columns, room: right - 4 };
}

/**
 * What stands in the columns of a row.
 * @type {(row: Row) => Record<string, string>}
 */
function valuesOf(row) {
  const values = {
    since: day(row.first),
    "lost by": endOfRow(row),
    "links to": count(row.targets),
    pages: count(row.pages),
  };
  const { A, B } = Object.fromEntries(row.parts || []);
  return { ...values, "A since": A ? day(A.first) : "–", "B since": B ? day(B.first) : "–" };
}

/**
 * The name and the columns of a row.
 * @type {(context: Pen, row: NamedRow, y: number, isChosen: boolean, columns: Columns, theme: Theme) => void}
 */
function drawTexts(context, row, y, isChosen, { columns, room }, theme) {
  context.textAlign = "left";
  context.font = `${isChosen ? "600 " : ""}12px ${theme.sans}`;
  context.fillStyle = isChosen ? theme.accent : theme.ink;
  context.fillText(fitted(context, row.name, room, row.branches), 0, y + 15);
  const values = valuesOf(row);
  context.textAlign = "right";
  context.font = `11px ${theme.sans}`;
  for (const { name, right } of columns) {
    context.fillStyle = values[name] === "stands" ? theme.ink : theme.ink2;
    context.fillText(values[name], right, y + 15);
  }
  context.textAlign = "left";
}

/**
 * One row of bars, or half a line for each target: those of B are hollow.
 * @type {(context: Pen, scene: Laid, row: Row, y: number, isChosen: boolean, theme: Theme) => void}
 */
function drawBars(context, scene, row, y, isChosen, theme) {
  const { left, width } = scene.layout;
  const axis = axisOf(scene);
  const x = (/** @type {Span} */ run) => [
    xOf(axis, run.first),
    Math.max(xOf(axis, run.last), xOf(axis, run.first) + 1),
  ];
  const gone = (/** @type {Span} */ run) => xOf(axis, run.gone || run.last);
  const area = { x, gone, left, right: width - RIGHT, thickness: 7 };
  const colour = isChosen ? theme.accent : theme.bar;
  const outline = isChosen ? theme.accent : theme.ink;
  clip(context, left, y, width - left, LINE);
  for (const [side, part] of row.parts || [["", row]]) {
    const line = side ? { y: y + (side === "A" ? 1 : 10), height: 11 } : { y, height: LINE };
    if (side === "B") hollowBars(context, part, line, area, [outline, theme.bar2]);
    else bars(context, part, line, area, [colour, theme.bar2]);
    for (const stretch of part.unknown) {
      drawUnknown(context, axis, stretch, side ? line : { y: y + 6, height: 10 }, theme);
    }
  }
  context.restore();
}

/**
 * @type {(context: Pen, axis: Axis, stretch: [number, number | undefined], line: { y: number, height: number }, theme:
 *   Theme) => void}
 */
function drawUnknown(context, axis, [since, until], { y, height }, theme) {
  const [start, end] = [xOf(axis, since), xOf(axis, until || axis.to)];
  hatch(context, start, y, Math.max(3, end - start), height, theme.hatch);
}

/** @type {(context: Pen, scene: Laid, columns: Columns, theme: Theme) => void} */
function drawHeads(context, scene, { columns }, theme) {
  context.font = `11px ${theme.sans}`;
  context.fillStyle = theme.ink2;
  context.textAlign = "left";
  context.fillText(scene.choice.unit, 0, 14);
  context.textAlign = "right";
  for (const { name, right } of columns) context.fillText(name, right, 14);
  context.textAlign = "left";
  context.fillStyle = theme.rule;
  context.fillRect(0, HEADS - 1, scene.layout.width, 1);
}

/**
 * The ground of the stretch that is chosen.
 * @type {(context: Pen, scene: Laid, theme: Theme) => void}
 */
function drawSpan(context, scene, theme) {
  const { span } = scene.when;
  if (!span) return;
  const axis = axisOf(scene);
  const [start, end] = [xOf(axis, Math.max(scene.from, span[0])), xOf(axis, Math.min(scene.to, span[1]))];
  context.fillStyle = theme.panel;
  context.fillRect(start, HEADS, Math.max(1, end - start), scene.layout.height - HEADS);
}

/**
 * The rows in view, below the heads of their columns.
 * @type {(context: Pen, scene: Laid, theme: Theme) => void}
 */
export function drawRows(context, scene, theme) {
  const { rows, scroll, current, layout } = scene;
  const { width, height } = layout;
  const columns = columnsOf(scene);
  drawYears(context, axisOf(scene), width, theme, height, false);
  drawSpan(context, scene, theme);
  clip(context, 0, HEADS, width, Math.max(0, height - HEADS));
  const first = Math.floor(scroll / LINE);
  for (let at = first; at < Math.min(rows.length, first + Math.ceil(height / LINE) + 1); at += 1) {
    const y = HEADS + at * LINE - scroll;
    context.fillStyle = theme.faint;
    context.fillRect(0, y + LINE - 1, width, 1);
    drawTexts(context, rows[at], y, at === current, columns, theme);
    drawBars(context, scene, rows[at], y, at === current, theme);
  }
  context.restore();
  drawHeads(context, scene, columns, theme);
}
