// Draws rows of bars into a canvas or an SVG. The caller says where each row is, and how a time becomes an x.

/** Rows thinner than this are counted by pixel and shown as darkness, because bars would cover each other. */
export const THIN = 2;
/** Days without a capture after which the ground is pale. */
const GAP = 150 * 86400;

/** A rectangle that limits what is drawn until `restore`. */
export function clip(context, x, y, width, height) {
  context.save();
  if (context.clipTo) context.clipTo(x, y, width, height);
  else {
    context.beginPath();
    context.rect(x, y, width, height);
    context.clip();
  }
}

/** Draws further right and lower by so many pixels. */
export function shifted(context, x, y, draw) {
  if (context.shifted) return context.shifted(x, y, draw);
  context.save();
  context.translate(x, y);
  draw();
  return context.restore();
}

function line(context, x1, y1, x2, y2, colour, width = 1) {
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.beginPath();
  context.moveTo(x1, y1);
  context.lineTo(x2, y2);
  context.stroke();
}

/** Lines at 45 degrees, every 5 pixels. */
export function hatch(context, x, y, width, height, colour) {
  clip(context, x, y, width, height);
  context.strokeStyle = colour;
  context.lineWidth = 0.9;
  context.beginPath();
  const start = Math.floor((x - height) / 5) * 5;
  for (let at = start; at < x + width; at += 5) {
    context.moveTo(at, y + height);
    context.lineTo(at + height, y);
  }
  context.stroke();
  context.restore();
}

/** The ground: pale where the page was not captured for long, and a line for each tick. */
export function ground(context, { left, top, width, height, captures, x, ticks, across }, colours) {
  clip(context, left, top, width, height);
  if (across === "time") {
    for (let at = 1; at < captures.length; at += 1) {
      if (captures[at].time - captures[at - 1].time > GAP) {
        const [from, to] = [x(captures[at - 1].time), x(captures[at].time)];
        context.fillStyle = colours.panel;
        context.fillRect(from + 1, top, Math.max(0, to - from - 2), height);
      }
    }
  }
  for (const tick of ticks) line(context, tick.x, top, tick.x, top + height, colours.faint);
  context.restore();
}

/** Stretches of captures whose links are unknown, as pairs of x; `place` gives the x of a capture. */
export function unknown(captures, place) {
  const found = [];
  for (let at = 0; at < captures.length; at += 1) {
    if (captures[at].shows !== "unknown") continue;
    let end = at;
    while (end + 1 < captures.length && captures[end + 1].shows === "unknown") end += 1;
    const before = at > 0 ? place(at - 1) : place(at);
    const after = end + 1 < captures.length ? place(end + 1) : place(end);
    const from = Math.min((before + place(at)) / 2, place(at) - 2);
    const to = Math.max((after + place(end)) / 2, place(end) + 2);
    found.push([from, to]);
    at = end;
  }
  return found;
}

/** The bars of one row: filled while the link was there, and a thin line up to the capture that has it no more. */
export function bars(context, row, y, height, area, colour, thin) {
  const fill = (start, end, top) => {
    context.fillStyle = colour;
    context.fillRect(start, top, Math.max(1, end - start), area.thickness);
  };
  runs(context, row, y, height, area, fill, thin);
}

/** The same with bars that are outlines. */
export function hollowBars(context, row, y, height, area, colour, thin) {
  const outline = (start, end, top) => {
    context.strokeStyle = colour;
    context.lineWidth = 1;
    context.strokeRect(start + 0.5, top + 0.5, Math.max(1, end - start - 1), area.thickness - 1);
  };
  runs(context, row, y, height, area, outline, thin);
}

function runs(context, row, y, height, { x, left, right, thickness }, bar, thin) {
  const top = y + (height - thickness) / 2;
  for (const run of row.runs) {
    const [from, to] = x(run);
    if (from > right) continue;
    if (to >= left) bar(Math.max(from, left - 2), Math.min(to, right + 2), top);
    const end = x.gone(run);
    if (end > to + 1.5 && end >= left && thickness > 3) {
      const middle = Math.round(y + height / 2) + 0.5;
      line(context, Math.max(to, left), middle, Math.min(end, right), middle, thin);
      line(context, end, middle - 2.5, end, middle + 2.5, thin);
    }
  }
}

/**
 * Rows that are thinner than a pixel or two, as darkness: each line of pixels shows how many of its rows were there,
 * from 0.4 for one to 1 for all. Returns an image of `width` by `height` device pixels in the colour of bars.
 */
export function raster(rows, width, height, x, colour) {
  const counts = new Float32Array((width + 1) * height);
  const rowsOfLine = new Float32Array(height);
  rows.forEach((row, at) => {
    const first = Math.floor((at * height) / rows.length);
    const end = Math.max(first + 1, Math.floor(((at + 1) * height) / rows.length));
    for (let y = first; y < end; y += 1) {
      rowsOfLine[y] += 1;
      for (const run of row.runs) {
        const [from, to] = x(run);
        const start = Math.max(0, Math.floor(from));
        const stop = Math.min(width, Math.max(Math.ceil(to), start + 1));
        if (stop > 0 && start < width) {
          counts[y * (width + 1) + start] += 1;
          counts[y * (width + 1) + stop] -= 1;
        }
      }
    }
  });
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

function rgb(colour) {
  const hex = /^#(..)(..)(..)$/.exec(colour);
  return hex ? hex.slice(1).map((part) => parseInt(part, 16)) : [80, 80, 80];
}
