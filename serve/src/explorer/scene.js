// The picture of a barcode: where rows and times are, and how they are drawn into a canvas or an SVG.
//
// Rows of in-links are pages with captures of their own, so what is known of the captures of the page itself (gaps,
// failures, unknown links) is drawn with its own links only. A unit of the axis is a second, or a capture. Rows outside
// the window are not visited. What is dear to draw is kept: rows that are thinner than a pixel as an image until the
// axis changes, and the map of all rows until the order does.

import { failed, withoutLinks } from "./captures.js";
import { count, many } from "./dom.js";
import { bars, clip, ground, hatch, raster, THIN, unknown } from "./drawing.js";
import { fitted, safe } from "./names.js";
import { standing } from "./order.js";
import { DAY, day, digits, ticks } from "./time.js";

export const AXIS = 36;
const HEAD = 22;
const MAP = 46;
const HEIGHTS = { read: 15, dense: 6 };

/** The state of the picture: `from` and `to` of the axis, `scroll` in pixels, the row in the accent, and the pointer. */
export class Scene {
  constructor(data, all, choice, order) {
    Object.assign(this, { data, all, choice, order, scroll: 0, current: -1 });
    // The captures that the rows have in common.
    this.captures = data.outward ? data.captures : [];
    this.extent = this.extentOf();
    [this.from, this.to] = this.extent[choice.across];
  }

  extentOf() {
    const times = this.captures.map((capture) => capture.time);
    for (const row of this.data.outward ? [] : this.all)
      times.push(row.first, Math.max(row.last, ...row.runs.map((run) => run.gone)));
    let first = Infinity;
    let last = -Infinity;
    for (const time of times) {
      first = Math.min(first, time);
      last = Math.max(last, time);
    }
    if (first > last) [first, last] = [0, DAY];
    const pad = Math.max((last - first) * 0.004, last - first < DAY ? 15 * DAY : 0);
    return { time: [first - pad, last + pad], captures: [0, Math.max(1, this.captures.length)] };
  }

  /** Finds where everything is, for an area of this size. */
  fit(width, height) {
    const { order, choice } = this;
    const phone = width < 560;
    const names = Math.min(300, Math.round(width * (phone ? 0.34 : 0.25)));
    const map = phone ? 0 : MAP;
    const wide = width - names - (map ? map + 10 : 0);
    const chart = { left: names, top: AXIS, width: wide, height: Math.max(1, height - AXIS) };
    const rows = order.rows.length;
    const heads = choice.rows === "all" ? 0 : order.groups.length;
    const rowHeight = HEIGHTS[choice.rows] || Math.min(15, (chart.height - 2) / Math.max(1, rows));
    // The top of each row.
    const tops = new Float64Array(rows + 1);
    const groups = [];
    let y = 0;
    let group = 0;
    for (let row = 0; row < rows; row += 1) {
      if (heads && order.groups[group]?.start === row) {
        groups.push({ ...order.groups[group], y });
        group += 1;
        y += HEAD;
      }
      tops[row] = y;
      y += rowHeight;
    }
    tops[rows] = y;
    this.layout = { width, height, map, chart, rowHeight, tops, groups, total: y };
    this.thinImage = undefined;
    this.mapImage = undefined;
  }

  scale() {
    return this.layout.chart.width / (this.to - this.from);
  }

  xOf(unit) {
    return this.layout.chart.left + (unit - this.from) * this.scale();
  }

  unitAt(x) {
    return this.from + (x - this.layout.chart.left) / this.scale();
  }

  isTime() {
    return this.choice.across === "time";
  }

  /** The x of a capture of the page. */
  place(at) {
    return this.isTime() ? this.xOf(this.captures[at].time) : this.xOf(at + 0.5);
  }

  /** The x of the ends of a run; `gone` has the x of the capture that lacks the link. */
  ends() {
    const pair = this.isTime()
      ? (run) => [this.xOf(run.first), this.xOf(run.last)]
      : (run) => [this.xOf(run.from), this.xOf(run.to + 1)];
    pair.gone = this.isTime() ? (run) => (run.gone ? this.xOf(run.gone) : -1) : () => -1;
    return pair;
  }

  rowAt(y) {
    const at = y - AXIS + this.scroll;
    if (y < AXIS || at < 0 || at >= this.layout.total) return -1;
    let [low, high] = [0, this.order.rows.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.layout.tops[middle] <= at) low = middle;
      else high = middle - 1;
    }
    return at < this.layout.tops[low] + this.layout.rowHeight ? low : -1;
  }

  visibleTicks() {
    if (this.isTime())
      return ticks(this.from, this.to, this.layout.chart.width, 44).map((tick) => ({
        ...tick,
        x: this.xOf(tick.time),
      }));
    const step = Math.max(1, Math.ceil(60 / this.scale()));
    const found = [];
    for (let at = Math.ceil(this.from / step) * step; at < this.to && at < this.captures.length; at += step) {
      found.push({ x: this.xOf(at), text: digits(this.captures[at].time).slice(0, 4), strong: true });
    }
    return found.map((tick, at) => (at && tick.text === found[at - 1].text ? { ...tick, text: "" } : tick));
  }

  axis(context, marks, theme) {
    const { chart } = this.layout;
    context.font = `11px ${theme.sans}`;
    context.fillStyle = theme.ink2;
    context.textAlign = "left";
    context.fillText(many(this.order.rows.length, this.data.outward ? "link" : "page"), 0, 14);
    if (chart.left > 160 && this.captures.length) {
      context.textAlign = "right";
      context.fillText("captures", chart.left - 10, 32);
      context.textAlign = "left";
    }
    clip(context, chart.left, 0, chart.width, AXIS);
    context.fillStyle = theme.ink2;
    let free = -Infinity;
    for (const mark of marks) {
      context.fillRect(mark.x, mark.text ? 10 : 16, 1, mark.text ? 11 : 5);
      const width = context.measureText(mark.text).width;
      if (mark.text && mark.x + 4 >= free && mark.x + 4 + width <= chart.left + chart.width) {
        context.fillText(mark.text, mark.x + 4, 14);
        free = mark.x + 10 + width;
      }
    }
    for (const [at, capture] of this.captures.entries()) {
      const x = this.place(at);
      if (x < chart.left - 1 || x > chart.left + chart.width) continue;
      const [fails, lacks] = [failed(capture), capture.shows === "unknown"];
      context.fillStyle = fails ? theme.ink : lacks ? theme.hatch : theme.ink3;
      context.globalAlpha = fails || lacks ? 1 : 0.55;
      context.fillRect(Math.round(x), fails ? 23 : 25, fails ? 2 : 1, fails ? 11 : 8);
    }
    context.globalAlpha = 1;
    context.restore();
    context.fillStyle = theme.rule;
    context.fillRect(0, AXIS - 1, this.layout.width, 1);
  }

  /** The name of a row as it is shown. */
  nameOf(row) {
    const own = this.order.rows[row];
    return this.choice.group === "host" && this.choice.rows !== "all" ? own.path : own.name;
  }

  /** The names at the left; of thin rows only those of the rows that lived longest, with a line to their row. */
  rowNames(context, first, end, theme) {
    const { chart, rowHeight, tops } = this.layout;
    const room = chart.left - 12;
    context.font = `12px ${theme.sans}`;
    context.textAlign = "left";
    clip(context, 0, AXIS, chart.left, chart.height);
    if (rowHeight >= 11) {
      for (let row = first; row < end; row += 1) {
        context.fillStyle = row === this.current ? theme.accent : theme.ink2;
        const { text, branches } = this.nameOf(row);
        context.fillText(
          fitted(context, text, room, branches),
          0,
          chart.top + tops[row] - this.scroll + rowHeight - 3.5,
        );
      }
    } else {
      // As on a map: what lived longest gets its name first, others only where no name would touch another.
      const inSight = this.order.rows.slice(first, end).map((row, at) => ({ row, at: first + at }));
      const taken = [];
      for (const { row, at } of inSight.sort((one, other) => other.row.life - one.row.life).slice(0, 2000)) {
        const middle = chart.top + tops[at] - this.scroll + rowHeight / 2;
        const base = Math.min(Math.max(middle + 4, chart.top + 11), chart.top + chart.height - 4);
        if (taken.some((other) => Math.abs(other - base) < 14)) continue;
        taken.push(base);
        const shown = fitted(context, this.nameOf(at).text, room - 14, this.nameOf(at).branches);
        context.fillStyle = at === this.current ? theme.accent : theme.ink2;
        context.fillText(shown, 0, base);
        context.fillStyle = theme.rule;
        const begin = context.measureText(shown).width + 6;
        context.fillRect(begin, Math.round(base - 4), chart.left - 4 - begin, 1);
        if (taken.length > chart.height / 16) break;
      }
    }
    context.restore();
  }

  /** The first row that is not above a position. */
  rowNear(y) {
    let [low, high] = [0, this.order.rows.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.layout.tops[middle] + this.layout.rowHeight <= y) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Draws what is in view; `isVector` where the context takes lines and rectangles only. */
  draw(context, theme, isVector) {
    const { chart, rowHeight, tops } = this.layout;
    const { height } = chart;
    const offset = this.scroll;
    const marks = this.visibleTicks();
    const right = chart.left + chart.width;
    ground(
      context,
      {
        ...chart,
        height,
        captures: this.captures,
        x: (time) => this.xOf(time),
        ticks: marks.filter((mark) => mark.text),
        across: this.choice.across,
      },
      theme,
    );
    const first = this.rowNear(this.scroll);
    const end = Math.min(this.order.rows.length, this.rowNear(this.scroll + chart.height) + 1);
    const x = this.ends();
    if (rowHeight < THIN && !isVector) {
      const device = window.devicePixelRatio || 1;
      const [w, h] = [
        Math.round(chart.width * device),
        Math.max(1, Math.round(Math.min(chart.height, this.layout.total) * device)),
      ];
      this.thinImage ||= raster(
        this.order.rows,
        w,
        h,
        (run) => x(run).map((at) => (at - chart.left) * device),
        theme.bar,
      );
      // The image is put by way of a canvas, since a canvas draws what is below it and pixels alone do not.
      const sheet = new OffscreenCanvas(w, h);
      sheet.getContext("2d").putImageData(this.thinImage, 0, 0);
      context.drawImage(sheet, chart.left, chart.top, w / device, h / device);
    } else {
      clip(context, chart.left, chart.top, chart.width, height);
      const thickness = Math.max(Math.min(1, rowHeight), Math.min(7, rowHeight >= 11 ? 7 : rowHeight - 2));
      for (let row = first; row < end; row += 1) {
        const y = chart.top + tops[row] - offset;
        bars(
          context,
          this.order.rows[row],
          y,
          rowHeight,
          { x, left: chart.left, right, thickness },
          theme.bar,
          theme.bar2,
        );
      }
      context.restore();
    }
    for (const group of this.layout.groups) {
      const y = chart.top + group.y - offset;
      if (y > -HEAD && y < chart.top + height) this.groupHead(context, group, y, theme);
    }
    for (const [begin, stop] of unknown(this.captures, (at) => this.place(at))) {
      const [x1, x2] = [Math.max(begin, chart.left), Math.min(stop, right)];
      if (x2 <= x1) continue;
      context.globalAlpha = 0.75;
      context.fillStyle = theme.paper;
      context.fillRect(x1, chart.top, x2 - x1, height);
      context.globalAlpha = 1;
      hatch(context, x1, chart.top, x2 - x1, height, theme.hatch);
    }
    this.rowNames(context, first, end, theme);
    this.axis(context, marks, theme);
    if (this.layout.map && !isVector) this.drawMap(context, theme);
    if (!this.order.rows.length) {
      context.font = `13px ${theme.sans}`;
      context.fillStyle = theme.ink2;
      context.textAlign = "left";
      context.fillText(this.nothing(), chart.left + 12, chart.top + 28);
    }
  }

  nothing() {
    if (this.all.length) return `No row has “${this.choice.text}” in its address.`;
    if (!this.data.outward) return "No captured page links here.";
    if (!this.data.captures.length)
      return "This URL was never captured. Its in-links are known: choose In-links above.";
    return withoutLinks(this.data.captures);
  }

  /** A group's name, and an area that says how many of its rows were there. */
  groupHead(context, group, y, theme) {
    const { chart } = this.layout;
    context.fillStyle = theme.paper;
    context.fillRect(0, y, chart.left + chart.width, HEAD);
    const size = group.end - group.start;
    clip(context, chart.left, y, chart.width, HEAD);
    context.fillStyle = theme.bar2;
    if (this.isTime()) {
      group.steps ||= standing(this.order.rows.slice(group.start, group.end));
      const most = group.steps.reduce((least, [, number]) => Math.max(least, number), 1);
      group.steps.forEach(([time, number], at) => {
        const next = group.steps[at + 1]?.[0] ?? time;
        const high = (number / most) * (HEAD - 8);
        if (number)
          context.fillRect(this.xOf(time), y + HEAD - 3 - high, Math.max(0.5, this.xOf(next) - this.xOf(time)), high);
      });
    }
    context.restore();
    context.font = `600 12px ${theme.sans}`;
    context.textAlign = "left";
    context.fillStyle = theme.ink;
    context.fillText(fitted(context, safe(group.name), chart.left - 60), 0, y + 16);
    context.font = `12px ${theme.sans}`;
    context.fillStyle = theme.ink3;
    context.textAlign = "right";
    context.fillText(count(size), chart.left - 12, y + 16);
    context.textAlign = "left";
  }

  drawMap(context, theme) {
    const { chart, width, map, total } = this.layout;
    const left = width - map;
    const device = window.devicePixelRatio || 1;
    const [w, h] = [Math.round(map * device), Math.round(chart.height * device)];
    if (!this.mapImage) {
      const [first, last] = this.extent[this.choice.across];
      const x = this.isTime() ? (run) => [run.first, run.last] : (run) => [run.from, run.to + 1];
      this.mapImage = new OffscreenCanvas(w, h);
      const image = raster(
        this.order.rows,
        w,
        h,
        (run) => x(run).map((unit) => ((unit - first) / (last - first)) * w),
        theme.bar,
      );
      this.mapImage.getContext("2d").putImageData(image, 0, 0);
    }
    context.globalAlpha = 0.7;
    context.drawImage(this.mapImage, left, chart.top, map, chart.height);
    context.globalAlpha = 1;
    const [first, last] = this.extent[this.choice.across];
    const part = (unit) => left + ((unit - first) / (last - first)) * map;
    const share = Math.min(1, chart.height / total);
    context.strokeStyle = theme.accent;
    context.lineWidth = 1;
    const y = chart.top + (this.scroll / Math.max(1, total)) * chart.height;
    context.strokeRect(
      part(this.from) + 0.5,
      y + 0.5,
      Math.max(3, part(this.to) - part(this.from) - 1),
      Math.max(3, share * chart.height - 1),
    );
  }

  /** The capture nearest to an x; for in-links, which have captures of their own, none. */
  captureNear(x) {
    if (!this.captures.length) return -1;
    if (!this.isTime()) return Math.max(0, Math.min(this.captures.length - 1, Math.floor(this.unitAt(x))));
    const time = this.unitAt(x);
    let [low, high] = [0, this.captures.length - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.captures[middle].time < time) low = middle + 1;
      else high = middle;
    }
    const before = this.captures[low - 1];
    return before && time - before.time < this.captures[low].time - time ? low - 1 : low;
  }

  drawOver(context, theme) {
    const { chart, rowHeight, tops } = this.layout;
    const row = this.order.rows[this.current];
    const y = chart.top + tops[Math.max(0, this.current)] - this.scroll;
    clip(context, 0, chart.top - 1, this.layout.width, chart.height + 1);
    if (row && y > chart.top - rowHeight) {
      const height = Math.max(rowHeight, 2);
      if (rowHeight >= 11) {
        context.fillStyle = theme.paper;
        context.fillRect(0, y, chart.left, rowHeight);
        context.font = `12px ${theme.sans}`;
        context.fillStyle = theme.accent;
        const { text, branches } = this.nameOf(this.current);
        context.fillText(fitted(context, text, chart.left - 12, branches), 0, y + rowHeight - 3.5);
      }
      clip(context, chart.left, chart.top, chart.width, chart.height);
      const thickness = Math.max(2, Math.min(7, rowHeight >= 11 ? 7 : rowHeight));
      bars(
        context,
        row,
        y,
        height,
        { x: this.ends(), left: chart.left, right: chart.left + chart.width, thickness },
        theme.accent,
        theme.accent,
      );
      context.restore();
    }
    context.restore();
    if (
      this.pointer &&
      this.pointer.x > chart.left &&
      this.pointer.x < chart.left + chart.width &&
      this.pointer.y > chart.top
    ) {
      const near = this.captureNear(this.pointer.x);
      const x = near >= 0 ? this.place(near) : this.pointer.x;
      const text = day(near >= 0 ? this.captures[near].time : this.unitAt(this.pointer.x));
      context.fillStyle = theme.accent;
      context.fillRect(Math.round(x), 22, 1, this.layout.height - 22);
      context.font = `11px ${theme.sans}`;
      const width = context.measureText(text).width + 8;
      const left = Math.min(Math.max(x - width / 2, chart.left), chart.left + chart.width - width);
      context.fillStyle = theme.paper;
      context.fillRect(left, 2, width, 17);
      context.fillStyle = theme.accent;
      context.textAlign = "left";
      context.fillText(text, left + 4, 14);
    }
  }
}
