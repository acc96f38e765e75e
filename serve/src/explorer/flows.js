// The pictures of backlinks: how many link over time with what came and went, and a row of bars for each referrer. Both
// have one axis, and draw into a canvas or an SVG.
//
// A view is {from, to, width, left, keyLeft, marks, otherMarks, rows, span, pointed, current, scroll, height}: times of
// the axis, pixels, and what is chosen. `otherMarks` are those of the target beside, B, of which all is hollow;
// `isUnited` if the rows have parts of both.

import { count } from "./dom.js";
import { bars, clip, hatch, hollowBars } from "./drawing.js";
import { fitted } from "./names.js";
import { endOfRow } from "./referrers.js";
import { day, ticks } from "./time.js";

export const LINE = 22;
export const RIGHT = 12;
/** Pixels above the rows, for the heads of their columns. */
export const HEADS = 22;
/** From which width on a row says since when, and when it was lost. */
const SINCE = 300;
const LOST = 460;
const COLUMN = 88;
/** From which width on the key stands beside the chart, not in it. */
const KEY = 200;

const xOf = (view, at) => view.left + ((at - view.from) / (view.to - view.from)) * (view.width - view.left - RIGHT);
export const timeAt = (view, x) =>
  view.from + ((x - view.left) / (view.width - view.left - RIGHT)) * (view.to - view.from);

function years(context, view, theme, height, withText) {
  for (const tick of ticks(view.from, view.to, view.width - view.left - RIGHT, 46)) {
    const x = xOf(view, tick.time);
    context.fillStyle = theme.faint;
    context.fillRect(Math.round(x), 0, 1, height);
    if (!withText || x + 3 + context.measureText(tick.text).width > view.width) continue;
    context.fillStyle = theme.ink2;
    context.textAlign = "left";
    context.fillText(tick.text, x + 3, height + 10);
  }
}

/** A line of steps from the ground and back: for each step its start and end, and its top. */
function steps(context, tops, ground, colour, thick) {
  if (!tops.length) return;
  context.strokeStyle = colour;
  context.lineWidth = thick;
  context.beginPath();
  context.moveTo(tops[0][0], ground);
  for (const [start, end, top] of tops) {
    context.lineTo(start, top - 0.5);
    context.lineTo(end, top - 0.5);
  }
  context.stroke();
}

/** How many link, as steps; below it what came, upward, and what went, downward. */
export function drawChart(context, theme, view, height) {
  const { marks, otherMarks = [], left, width, from, to, span, pointed } = view;
  const x = (at) => xOf(view, at);
  const middle = Math.round((height - 18) * 0.55);
  const bottom = height - 20;
  const zero = Math.round(middle + (bottom - middle) * 0.55);
  context.font = `11px ${theme.sans}`;
  years(context, view, theme, height - 14, true);
  const most = Math.max(0, ...[...marks, ...otherMarks].map((mark) => mark.standing + mark.unknown));
  const tall = (number) => (most ? (number / most) * (middle - 16) : 0);
  marks.forEach((mark, at) => {
    const [start, end] = [x(Math.max(mark.time, from)), at + 1 < marks.length ? x(marks[at + 1].time) : x(to)];
    const top = tall(mark.standing);
    context.fillStyle = theme.bar2;
    context.fillRect(start, middle - top, end - start + 0.5, top);
    context.fillStyle = theme.bar;
    context.fillRect(start, middle - top - 1, end - start + 0.5, 1.5);
    const more = tall(mark.unknown);
    if (more > 0) hatch(context, start, middle - top - more, end - start + 0.5, more, theme.hatch);
  });
  const tops = otherMarks.map((mark, at) => [
    x(Math.max(mark.time, from)),
    at + 1 < otherMarks.length ? x(otherMarks[at + 1].time) : x(to),
    middle - tall(mark.standing),
    tall(mark.unknown),
  ]);
  for (const [start, end, top, more] of tops) {
    if (more > 0) hatch(context, start, top - more, end - start, more, theme.hatch);
  }
  for (const [colour, thick] of [
    [theme.paper, 4],
    [theme.ink, 1.5],
  ]) {
    steps(context, tops, middle, colour, thick);
  }
  // A root scale, or one crawl would flatten all else.
  const came = (mark) => mark.found + mark.new + mark.returned;
  const flow = Math.max(1, ...[...marks, ...otherMarks].map((mark) => Math.max(came(mark), mark.lost)));
  const [up, down] = [zero - middle - 8, bottom - zero - 2];
  const scale = (number, room) => Math.sqrt(number / flow) * room;
  for (const mark of marks) {
    const start = x(Math.max(mark.time, from)) + 0.5;
    const wide = Math.max(1, x(Math.min(mark.end, to)) - start - 0.5);
    let base = zero;
    for (const [kind, fill] of [
      ["found", theme.soft],
      ["new", theme.accent],
      ["returned", undefined],
    ]) {
      const part = came(mark) ? (scale(came(mark), up) * mark[kind]) / came(mark) : 0;
      if (!part) continue;
      if (fill) {
        context.fillStyle = fill;
        context.fillRect(start, base - part, wide, part);
        context.fillStyle = theme.accent;
        if (kind === "found") context.fillRect(start, base - part, wide, 1);
      } else hatch(context, start, base - part, wide, part, theme.accent);
      base -= part;
    }
    context.fillStyle = theme.bar;
    if (mark.lost) context.fillRect(start, zero + 1, wide, Math.max(1, scale(mark.lost, down)));
  }
  context.strokeStyle = theme.ink;
  context.lineWidth = 1;
  for (const mark of otherMarks) {
    const start = Math.round(x(Math.max(mark.time, from))) + 0.5;
    const wide = Math.max(2, Math.round(x(Math.min(mark.end, to)) - start - 1));
    const tallest = Math.round(scale(came(mark), up));
    if (tallest) context.strokeRect(start, zero - tallest + 0.5, wide, tallest);
    if (mark.lost) context.strokeRect(start, zero + 0.5, wide, Math.max(2, Math.round(scale(mark.lost, down))));
  }
  context.fillStyle = theme.ink3;
  context.fillRect(left, zero, width - left - RIGHT, 1);
  drawScales(context, theme, view, { most, flow, middle, zero, up, down, isEmpty: !marks.length });
  const chosen = span || (marks[pointed] && [marks[pointed].time, marks[pointed].end]);
  if (!chosen) return;
  context.fillStyle = theme.accent;
  const [start, end] = [x(Math.max(from, chosen[0])), x(Math.min(to, chosen[1]))];
  context.fillRect(start, height - 17, Math.max(2, end - start), 2);
  if (!span) return;
  context.fillRect(start, 0, 1, height - 17);
  context.fillRect(Math.max(start + 1, end), 0, 1, height - 17);
}

/** What the chart means, left of it, and the largest number of each of its scales. */
function drawScales(context, theme, view, { most, flow, middle, zero, up, down, isEmpty }) {
  if (isEmpty) return;
  const { left, keyLeft } = view;
  const edge = left - 6;
  context.textAlign = "right";
  context.fillStyle = theme.ink3;
  context.fillText(count(most), edge, 20);
  context.fillText(`+${count(flow)}`, edge, zero - up + 6);
  context.fillText(`−${count(flow)}`, edge, zero + down);
  if (left - keyLeft < KEY) {
    context.textAlign = "left";
    return;
  }
  const text = left - 60;
  const line = (word, y, colour, draw) => {
    context.fillStyle = colour;
    context.fillText(word, text, y);
    draw?.(text + 8, y - 8);
  };
  const hollow = (px, py) => {
    context.strokeStyle = theme.ink;
    context.lineWidth = 1;
    context.strokeRect(px + 0.5, py + 0.5, 8, 8);
  };
  if (view.otherMarks) {
    line("link to A", 20, theme.ink2, (px, py) => {
      context.fillStyle = theme.bar2;
      context.fillRect(px, py, 9, 9);
    });
    line("to B, all hollow", 36, theme.ink2, hollow);
  } else line("link", 20, theme.ink2);
  const box = (fill) => (x, y) => {
    context.fillStyle = fill;
    context.fillRect(x, y, 9, 9);
  };
  const step = Math.max(11, Math.min(16, (zero - middle - 4) / 3));
  line("found with its page", zero - 2.3 * step, theme.ink2, (x, y) => {
    box(theme.soft)(x, y);
    context.fillStyle = theme.accent;
    context.fillRect(x, y, 9, 1);
  });
  line("new on a known page", zero - 1.3 * step, theme.ink2, box(theme.accent));
  line("returned", zero - 0.3 * step, theme.ink2, (x, y) => hatch(context, x, y, 9, 9, theme.accent));
  line("lost (root scale)", zero + 0.9 * step, theme.ink2, box(theme.bar));
  context.textAlign = "left";
}

/** Where the columns at the left of the bars end: each {name, right}, those that there is room for. */
function columnsOf(view, unit) {
  const columns = [];
  let right = view.left - 14;
  if (view.isUnited) {
    if (view.left < LOST) return { columns, room: right };
    columns.push({ name: "B since", right }, { name: "A since", right: right - COLUMN });
    return { columns, room: right - 2 * COLUMN - 4 };
  }
  if (view.left >= LOST) {
    columns.push({ name: "lost by", right });
    right -= COLUMN;
  }
  if (view.left >= SINCE) {
    columns.push({ name: "since", right });
    right -= COLUMN;
  }
  if (view.left >= SINCE) {
    columns.push({ name: unit === "page" ? "links to" : "pages", right });
    right -= 56;
  }
  return { columns, room: right - 4 };
}

/** What stands in the columns of a row. */
function valuesOf(row) {
  const values = { since: day(row.first), "lost by": endOfRow(row), "links to": row.targets, pages: row.pages };
  const parts = Object.fromEntries(row.parts || []);
  for (const name of ["A", "B"]) values[`${name} since`] = parts[name] ? day(parts[name].first) : "–";
  return values;
}

/** The rows, below the heads of their columns. */
export function drawRows(context, theme, view, unit) {
  const { rows, width, height, left, span, scroll, current } = view;
  const { columns, room } = columnsOf(view, unit);
  const x = (at) => xOf(view, at);
  years(context, view, theme, height, false);
  if (span) {
    const [start, end] = [x(Math.max(view.from, span[0])), x(Math.min(view.to, span[1]))];
    context.fillStyle = theme.panel;
    context.fillRect(start, HEADS, Math.max(1, end - start), height - HEADS);
  }
  const place = (run) => [x(run.first), Math.max(x(run.last), x(run.first) + 1)];
  place.gone = (run) => (run.gone ? x(run.gone) : x(run.last));
  clip(context, 0, HEADS, width, Math.max(0, height - HEADS));
  const first = Math.floor(scroll / LINE);
  for (let at = first; at < Math.min(rows.length, first + Math.ceil(height / LINE) + 1); at += 1) {
    const [row, y] = [rows[at], HEADS + at * LINE - scroll];
    const chosen = at === current;
    context.fillStyle = theme.faint;
    context.fillRect(0, y + LINE - 1, width, 1);
    context.textAlign = "left";
    context.font = `${chosen ? "600 " : ""}12px ${theme.sans}`;
    context.fillStyle = chosen ? theme.accent : theme.ink;
    context.fillText(fitted(context, row.name, room, row.branches), 0, y + 15);
    const values = valuesOf(row);
    context.textAlign = "right";
    context.font = `11px ${theme.sans}`;
    for (const { name, right } of columns) {
      const value = values[name];
      context.fillStyle = value === "stands" ? theme.ink : theme.ink2;
      context.fillText(typeof value === "number" ? count(value) : value, right, y + 15);
    }
    context.textAlign = "left";
    clip(context, left, y, width - left, LINE);
    // One row of bars, or half a line for each target: those of B are hollow.
    const [colour, outline] = chosen ? [theme.accent, theme.accent] : [theme.bar, theme.ink];
    const area = { x: place, left, right: width - RIGHT, thickness: 7 };
    const halves = row.parts || [["", row]];
    for (const [side, part] of halves) {
      const [top, tall] = side ? [y + (side === "A" ? 1 : 10), 11] : [y, LINE];
      if (side === "B") hollowBars(context, part, top, tall, area, outline, theme.bar2);
      else bars(context, part, top, tall, area, colour, theme.bar2);
      for (const [since, until] of part.unknown) {
        const [start, end] = [x(since), until ? x(until) : x(view.to)];
        hatch(context, start, top + (side ? 0 : 6), Math.max(3, end - start), side ? tall : 10, theme.hatch);
      }
    }
    context.restore();
  }
  context.restore();
  context.font = `11px ${theme.sans}`;
  context.fillStyle = theme.ink2;
  context.textAlign = "left";
  context.fillText(unit, 0, 14);
  context.textAlign = "right";
  for (const { name, right } of columns) context.fillText(name, right, 14);
  context.textAlign = "left";
  context.fillStyle = theme.rule;
  context.fillRect(0, HEADS - 1, width, 1);
}
