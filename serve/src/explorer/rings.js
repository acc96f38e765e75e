// The pictures of a neighbourhood: the rings with their nodes, and time below. Both draw into a canvas or an SVG.
//
// `view` is the state of the view, which it changes between two pictures: the time `now` with the `links` that are
// there; of each node its `ring` (0: not there), whether it is `fresh`, how much of it is `shown`, and the ring that it
// was last in (`drawnRing`); the node that is `pointed` at, the sector that is not `dimmed`, the ways that were `found`,
// and the `layout` in pixels.

import { fitted, safe } from "./names.js";
import { ticks } from "./time.js";

/** Ends of the rings, as parts of the radius of the circle; and where each node was one step away at some time. */
const WIDE = [
  [0, 0],
  [0.33, 0.56],
  [0.67, 0.97],
];
const NARROW = [
  [0, 0],
  [0.28, 0.8],
  [0.87, 0.97],
];
const BOTTOM = 18;
const TAU = 2 * Math.PI;

/** What draws the nodes around a page, which have these names. */
export function ringsOf(around, names, view) {
  const { nodes, centre, size, isCaptured, angle, radius, sectors, sectorOf } = around;
  const { ring, fresh, shown, drawnRing, isThere, isNode, unit, first, end, captures } = view;
  const ends = around.isWide ? WIDE : NARROW;

  // Where nodes are, for the size of the window and the rings they were last in.
  const [px, py, placed] = [new Float32Array(size), new Float32Array(size), new Uint8Array(size)];
  const distance = (node) => {
    const [near, far] = ends[drawnRing[node]];
    return view.layout.round * (near + (far - near) * (0.06 + 0.88 * radius[node]));
  };
  const place = (node) => {
    if (node === centre) return [view.layout.x, view.layout.y];
    if (placed[node] !== drawnRing[node]) {
      const far = distance(node);
      px[node] = view.layout.x + Math.cos(angle[node]) * far;
      py[node] = view.layout.y + Math.sin(angle[node]) * far;
      placed[node] = drawnRing[node];
    }
    return [px[node], py[node]];
  };
  const dot = () => Math.max(1.5, Math.min(4.5, view.layout.round / 12 / Math.sqrt(1 + view.counts[1] / 12)));

  function circle(context, x, y, r) {
    context.moveTo(x + r, y);
    context.arc(x, y, r, 0, TAU);
  }

  function draw(context, theme) {
    const { x, y, round } = view.layout;
    for (const [[near, far], fill] of [
      [ends[2], theme.panel],
      [ends[1], theme.faint],
    ]) {
      context.fillStyle = fill;
      context.beginPath();
      circle(context, x, y, round * (far + 0.02));
      context.fill();
      context.fillStyle = theme.paper;
      context.beginPath();
      circle(context, x, y, round * (near - 0.02));
      context.fill();
    }
    drawSectors(context, theme);
    drawLinks(context, theme);
    drawNodes(context, theme);
    context.globalAlpha = 1;
    context.fillStyle = theme.ink;
    context.beginPath();
    circle(context, x, y, 6);
    context.fill();
    drawNames(context, theme);
  }

  /** A path for each look: captured or not, new or not, dim or not; and one for each node on its way in or out. */
  function drawNodes(context, theme) {
    const looks = Array.from({ length: 8 }, () => []);
    const moving = [];
    for (let node = 0; node < size; node += 1) {
      if (shown[node] <= 0 || node === centre) continue;
      if (shown[node] < 1) moving.push(node);
      else {
        const isDim = view.dimmed >= 0 && sectorOf[node] !== view.dimmed;
        looks[fresh[node] * 4 + isCaptured[node] * 2 + (isDim ? 1 : 0)].push(node);
      }
    }
    const small = dot();
    const add = (node, r) => {
      const [x, y] = place(node);
      // A circle of two pixels is a square, which is drawn much faster.
      if (r < 1.6) {
        context.moveTo(x - r, y - r);
        context.lineTo(x + r, y - r);
        context.lineTo(x + r, y + r);
        context.lineTo(x - r, y + r);
        context.lineTo(x - r, y - r);
      } else circle(context, x, y, r);
    };
    const finish = (isNew, captured) => {
      const colour = isNew ? theme.accent : theme.bar;
      context.lineWidth = 1;
      if (captured) {
        context.fillStyle = colour;
        context.fill();
      } else {
        context.strokeStyle = colour;
        context.stroke();
      }
    };
    looks.forEach((nodes, look) => {
      if (!nodes.length) return;
      context.globalAlpha = look % 2 ? 0.15 : 1;
      context.beginPath();
      for (const node of nodes) add(node, drawnRing[node] === 1 ? small : small * 0.8);
      finish(look >= 4, look % 4 >= 2);
    });
    // In steps of a quarter, so that many that move together are one path.
    for (let step = 1; step <= 4; step += 1) {
      const part = step / 4;
      const own = moving.filter((node) => Math.ceil(shown[node] * 4) === step);
      for (const isNew of [0, 1]) {
        for (const captured of [0, 1]) {
          context.globalAlpha = part;
          context.beginPath();
          for (const node of own) {
            if (fresh[node] === isNew && isCaptured[node] === captured) add(node, small * (0.4 + 0.6 * part));
          }
          finish(isNew, captured);
        }
      }
    }
    context.globalAlpha = 1;
  }

  /** The rim, an arc for each sector with its name. */
  function drawSectors(context, theme) {
    const { x, y, round } = view.layout;
    context.lineWidth = 1.5;
    context.font = `11px ${theme.sans}`;
    const taken = [];
    for (const [at, sector] of sectors.entries()) {
      const gap = Math.min(0.012, (sector.to - sector.from) / 8);
      context.strokeStyle = view.dimmed >= 0 && view.dimmed !== at ? theme.rule : theme.ink3;
      context.beginPath();
      context.moveTo(x + Math.cos(sector.from + gap) * (round + 4), y + Math.sin(sector.from + gap) * (round + 4));
      context.arc(x, y, round + 4, sector.from + gap, sector.to - gap);
      context.stroke();
      const middle = (sector.from + sector.to) / 2;
      const [cos, sin] = [Math.cos(middle), Math.sin(middle)];
      const align = cos > 0.3 ? "left" : cos < -0.3 ? "right" : "center";
      const [tx, ty] = [x + cos * (round + 11), y + sin * (round + 14) + 4];
      const room =
        align === "left" ? view.layout.width - tx : align === "right" ? tx : 2 * Math.min(tx, view.layout.width - tx);
      const text = fitted(context, sector.name.startsWith("others") ? "others" : safe(sector.name), Math.max(20, room));
      const width = context.measureText(text).width;
      const left = align === "left" ? tx : align === "right" ? tx - width : tx - width / 2;
      if (taken.some((box) => left < box[2] && left + width > box[0] && ty - 10 < box[3] && ty + 3 > box[1])) continue;
      taken.push([left - 4, ty - 12, left + width + 4, ty + 4]);
      context.textAlign = align;
      context.fillStyle = view.dimmed >= 0 && view.dimmed !== at ? theme.ink3 : theme.ink2;
      context.fillText(text, tx, ty);
    }
  }

  /** Lines from the page to the first ring, paler the more there are; those of the node that is pointed at; a way. */
  function drawLinks(context, theme) {
    const { x, y } = view.layout;
    context.lineWidth = 1;
    context.strokeStyle = theme.bar2;
    context.globalAlpha = Math.max(0.08, Math.min(0.7, 40 / (view.counts[1] + 1)));
    context.beginPath();
    for (let node = 0; node < size; node += 1) {
      if (ring[node] !== 1 || (view.dimmed >= 0 && sectorOf[node] !== view.dimmed)) continue;
      const [nx, ny] = place(node);
      context.moveTo(x, y);
      context.lineTo(nx, ny);
    }
    context.stroke();
    context.globalAlpha = 1;
    if (view.pointed >= 0) {
      context.strokeStyle = theme.accent;
      context.beginPath();
      const { source, target, places } = view.links;
      for (const at of places) {
        if ((source[at] !== view.pointed && target[at] !== view.pointed) || !isThere(at)) continue;
        context.moveTo(...place(source[at]));
        context.lineTo(...place(target[at]));
      }
      context.stroke();
    }
    const way = view.found?.ways?.[0]?.map((url) => nodes.indexOf(url));
    if (way && unit === "page") {
      context.strokeStyle = theme.accent;
      context.lineWidth = 2;
      context.beginPath();
      for (let step = 1; step < way.length; step += 1) {
        if (way[step - 1] < 0 || way[step] < 0 || !isNode(way[step])) break;
        context.moveTo(...place(way[step - 1]));
        context.lineTo(...place(way[step]));
      }
      context.stroke();
    }
  }

  /** Names of nodes where they do not touch: of the one pointed at, then of the first ring, by their places. */
  function drawNames(context, theme) {
    const taken = [[view.layout.x - 12, view.layout.y - 12, view.layout.x + 12, view.layout.y + 12]];
    context.font = `11px ${theme.sans}`;
    const put = (node, isStrong) => {
      const [nx, ny] = place(node);
      const text = fitted(context, names[node], isStrong ? 320 : 110);
      const width = context.measureText(text).width;
      const isLeft = nx + 8 + width > view.layout.width || (nx < view.layout.x && nx - 8 - width > 0);
      const left = isLeft ? nx - 8 - width : nx + 8;
      const box = [left - 3, ny - 8, left + width + 3, ny + 8];
      if (
        !isStrong &&
        taken.some((other) => box[0] < other[2] && box[2] > other[0] && box[1] < other[3] && box[3] > other[1])
      ) {
        return;
      }
      taken.push(box);
      context.globalAlpha = 0.85;
      context.fillStyle = theme.paper;
      context.fillRect(box[0], box[1], box[2] - box[0], 16);
      context.globalAlpha = 1;
      context.fillStyle = isStrong ? theme.accent : theme.ink2;
      context.textAlign = "left";
      context.fillText(text, left, ny + 4);
    };
    if (view.pointed >= 0) put(view.pointed, true);
    for (const node of view.found?.ways?.[0] || []) {
      const at = nodes.indexOf(node);
      if (at >= 0 && at !== centre && ring[at]) put(at, true);
    }
    if (view.playing) return;
    const most = view.layout.width < 560 ? 5 : 14;
    const near = [];
    for (let node = 0; node < size; node += 1) if (ring[node] === 1 && shown[node] > 0.5) near.push(node);
    // The same names at every date, as far as they are there.
    near.sort((one, other) => radius[one] - radius[other]);
    for (const node of near.slice(0, 200)) {
      if (taken.length > most) break;
      if (node !== view.pointed) put(node, false);
    }
  }

  const timeX = (time) => 6 + ((time - first) / (end - first)) * (view.layout.time.width - 12);
  const timeOf = (px) => first + ((px - 6) / (view.layout.time.width - 12)) * (end - first);

  /** How many links the page has over time, as steps; captures as ticks; the date. */
  function drawTime(context, theme) {
    const { width, height } = view.layout.time;
    const floor = height - BOTTOM;
    const steps = around.degree(first, end);
    const most = Math.max(1, ...steps.map((step) => step.links));
    context.fillStyle = theme.bar2;
    steps.forEach((step, at) => {
      const [start, stop] = [timeX(step.time), timeX(at + 1 < steps.length ? steps[at + 1].time : end)];
      const tall = (step.links / most) * (floor - 10);
      context.fillRect(Math.floor(start), floor - tall, Math.max(1, Math.ceil(stop) - Math.floor(start)), tall);
    });
    context.fillStyle = theme.ink3;
    for (const time of captures) context.fillRect(Math.round(timeX(time)), floor, 1, 3);
    context.font = `11px ${theme.sans}`;
    context.textAlign = "left";
    for (const tick of ticks(first, end, width, 46)) {
      context.fillStyle = theme.rule;
      context.fillRect(Math.round(timeX(tick.time)), floor + 3, 1, 4);
      context.fillStyle = theme.ink2;
      if (timeX(tick.time) + 30 < width) context.fillText(tick.text, timeX(tick.time) + 3, height - 4);
    }
    context.fillStyle = theme.accent;
    context.fillRect(Math.round(timeX(view.now)) - 1, 0, 2, floor);
    context.beginPath();
    circle(context, timeX(view.now), floor, 4.5);
    context.fill();
  }

  return { place, draw, drawTime, timeOf, resized: () => placed.fill(0) };
}
