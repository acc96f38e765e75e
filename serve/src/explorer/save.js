// Saves a picture or a table as a file. The files are made in the page; no server sees them.

import { el } from "./dom.js";
import { shifted } from "./drawing.js";

function save(blob, name) {
  const link = el("a", { href: URL.createObjectURL(blob), download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/** The name of a file for a URL, without its end. */
export const nameFor = (url) =>
  url
    .replace(/^\w+:\/\//, "")
    .replace(/[^\w.-]+/g, "-")
    .slice(0, 60);

export const fileName = (url, end) => `${nameFor(url)}.${end}`;

export const saveText = (text, type, name) => save(new Blob([text], { type }), name);

/** Saves lines, objects with these columns, as CSV (RFC 4180) or as JSON. */
export function saveLines(columns, lines, kind, name) {
  const one = (line) => Object.fromEntries(columns.map((column) => [column, line[column]]));
  if (kind === "json") return saveText(JSON.stringify(lines.map(one), null, 1), "application/json", `${name}.json`);
  const quoted = (value) => (/[",\r\n]/.test(value) ? `"${String(value).replaceAll('"', '""')}"` : (value ?? ""));
  const text = [columns, ...lines.map((line) => columns.map((column) => quoted(line[column])))];
  return saveText(`${text.map((line) => line.join(",")).join("\r\n")}\r\n`, "text/csv", `${name}.csv`);
}

/** Pixels around a picture that stands by itself. */
const MARGIN = 24;
/** The sides of A4 without margins, in millimetres, and the pixels of one. */
const [LONG, SHORT] = [277, 190];
const MM = 96 / 25.4;

/** A text in lines of about so many pixels; of a long one, the first lines. */
function linesOf(text, size, width, lines) {
  const most = Math.max(20, Math.floor(width / (size * 0.52)));
  return (text.match(new RegExp(`\\S.{0,${most - 1}}(?=\\s|$)|\\S.{0,${most - 1}}`, "g")) || []).slice(0, lines);
}

/**
 * A picture that stands by itself, as on a page of paper: what it is of, what it says, where it comes from, the drawing
 * of [width, height] pixels, and what its marks mean. `draw` is called with a canvas context or an SVG.
 */
export function framed({ title, facts, key }, [width, height], theme, draw) {
  const block = (size, colour, text, most) => linesOf(text, size, width, most).map((line) => ({ line, size, colour }));
  const above = [
    ...block(20, theme.ink, title, 2),
    ...block(12, theme.ink2, facts, 3),
    ...block(9, theme.ink3, location.href, 6),
  ];
  const below = block(10, theme.ink2, key, 20);
  const high = (lines) => lines.reduce((sum, { size }) => sum + size * 1.4, 0);
  const top = MARGIN + high(above) + 12;
  const paint = (context) => {
    let y = MARGIN / 2;
    const write = ({ line, size, colour }) => {
      y += size * 1.4;
      context.font = `${size}px ${theme.sans}`;
      context.fillStyle = colour;
      context.textAlign = "left";
      context.fillText(line, MARGIN, y);
    };
    above.forEach(write);
    shifted(context, MARGIN, top, () => draw(context));
    y = top + height + 6;
    below.forEach(write);
  };
  return { width: width + 2 * MARGIN, height: top + height + high(below) + MARGIN, paper: theme.paper, paint };
}

function svgOf({ width, height, paper, paint }) {
  const svg = new Svg(width, height, paper);
  paint(svg);
  return svg;
}

/** Saves a picture as SVG, of a size that fits on A4: upright or across, whichever makes it larger. */
export function saveSvg(picture, name) {
  const { width, height } = picture;
  const fits = ([wide, high]) => Math.min(1 / MM, wide / width, high / height);
  const scale = Math.max(fits([LONG, SHORT]), fits([SHORT, LONG]));
  const size = [width, height].map((pixels) => `${(pixels * scale).toFixed(1)}mm`);
  saveText(svgOf(picture).text(size), "image/svg+xml", name);
}

/** Saves a picture as PNG, with as many pixels as paper needs. */
export function savePng({ width, height, paper, paint }, name) {
  const canvas = el("canvas", { width: Math.ceil(width * 2), height: Math.ceil(height * 2) });
  const context = canvas.getContext("2d");
  context.scale(2, 2);
  context.fillStyle = paper;
  context.fillRect(0, 0, width + 1, height + 1);
  paint(context);
  canvas.toBlob((blob) => blob && save(blob, name), "image/png");
}

const escaped = (text) => String(text).replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);

/** A picture as an element, which is not read out. */
export function elementOf(picture) {
  const svg = picture instanceof Svg ? picture : svgOf(picture);
  const made = new DOMParser().parseFromString(svg.text(), "image/svg+xml").documentElement;
  made.setAttribute("aria-hidden", "true");
  return document.importNode(made, true);
}

/**
 * What a canvas context draws, as SVG: rectangles, lines, texts and the clip of a rectangle. Views draw a picture into
 * either with the same calls.
 */
export class Svg {
  constructor(width, height, paper) {
    Object.assign(this, { width, height, parts: [], fillStyle: "#000", strokeStyle: "#000", lineWidth: 1 });
    Object.assign(this, { font: "12px sans-serif", textAlign: "left", globalAlpha: 1, stack: [], path: [] });
    this.fillStyle = paper;
    this.fillRect(0, 0, width, height);
  }

  attributes() {
    return this.globalAlpha < 1 ? ` opacity="${this.globalAlpha}"` : "";
  }

  fillRect(x, y, width, height) {
    const [w, h] = [Math.max(0, width), Math.max(0, height)];
    this.parts.push(
      `<rect x="${x.toFixed(2)}" y="${y.toFixed(2)}" width="${w.toFixed(2)}" height="${h.toFixed(2)}" ` +
        `fill="${escaped(this.fillStyle)}"${this.attributes()}/>`,
    );
  }

  strokeRect(x, y, width, height) {
    this.parts.push(
      `<rect x="${x}" y="${y}" width="${width}" height="${height}" fill="none" ` +
        `stroke="${escaped(this.strokeStyle)}"/>`,
    );
  }

  beginPath() {
    this.path = [];
  }

  moveTo(x, y) {
    this.path.push(`M${x.toFixed(2)} ${y.toFixed(2)}`);
  }

  lineTo(x, y) {
    this.path.push(`L${x.toFixed(2)} ${y.toFixed(2)}`);
  }

  /** A circle, or a part of one; angles in radians, clockwise from the right. */
  arc(x, y, r, from, to) {
    const at = (angle) => `${(x + r * Math.cos(angle)).toFixed(2)} ${(y + r * Math.sin(angle)).toFixed(2)}`;
    const half = (from + to) / 2;
    const large = (to - from) / 2 > Math.PI ? 1 : 0;
    const part = (angle) => `A${r.toFixed(2)} ${r.toFixed(2)} 0 ${large} 1 ${at(angle)}`;
    this.path.push(`L${at(from)}${part(half)}${part(to)}`);
  }

  fill() {
    this.parts.push(`<path d="${this.path.join("")}" fill="${escaped(this.fillStyle)}"${this.attributes()}/>`);
  }

  stroke() {
    this.parts.push(
      `<path d="${this.path.join("")}" fill="none" stroke="${escaped(this.strokeStyle)}" ` +
        `stroke-width="${this.lineWidth}"${this.attributes()}/>`,
    );
  }

  fillText(text, x, y) {
    const anchor = { right: "end", center: "middle" }[this.textAlign] || "start";
    const [, size, family] = /([\d.]+)px (.*)/.exec(this.font);
    const weight = /\b600\b/.test(this.font) ? ' font-weight="600"' : "";
    this.parts.push(
      `<text x="${x.toFixed(2)}" y="${y.toFixed(2)}" font-size="${size}" ` +
        `font-family="${escaped(family)}"${weight} text-anchor="${anchor}" fill="${escaped(this.fillStyle)}">` +
        `${escaped(text)}</text>`,
    );
  }

  measureText(text) {
    return { width: text.length * 6.4 };
  }

  save() {
    this.stack.push(0);
  }

  /** Ends what was cut since the last `save`. */
  restore() {
    this.parts.push("</g>".repeat(this.stack.pop() || 0));
  }

  /** Draws further right and lower by so many pixels. */
  shifted(x, y, draw) {
    this.parts.push(`<g transform="translate(${x} ${y})">`);
    draw();
    this.parts.push("</g>");
  }

  /** Cuts what follows, up to `restore`, to a rectangle. */
  clipTo(x, y, width, height) {
    const id = `c${this.parts.length}`;
    this.parts.push(
      `<clipPath id="${id}"><rect x="${x}" y="${y}" width="${width}" height="${height}"/></clipPath>` +
        `<g clip-path="url(#${id})">`,
    );
    this.stack[this.stack.length - 1] += 1;
  }

  /** As a document of this size: by itself in pixels. */
  text([width, height] = [this.width, this.height]) {
    return (
      `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" ` +
      `viewBox="0 0 ${this.width} ${this.height}">${this.parts.join("\n")}</svg>\n`
    );
  }
}
