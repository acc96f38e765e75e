// Saves a picture or a table as a file. The files are made in the page; no server sees them.

import { el } from "./dom.js";

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

/** A time in seconds as text of files; empty for none, which is 0 or no end. */
export const iso = (at) => (at && at !== Infinity ? `${new Date(at * 1000).toISOString().slice(0, 19)}Z` : "");

/** Saves lines, objects with these columns, as CSV (RFC 4180) or as JSON. */
export function saveLines(columns, lines, kind, name) {
  const one = (line) => Object.fromEntries(columns.map((column) => [column, line[column]]));
  if (kind === "json") return saveText(JSON.stringify(lines.map(one), null, 1), "application/json", `${name}.json`);
  const quoted = (value) => (/[",\r\n]/.test(value) ? `"${String(value).replaceAll('"', '""')}"` : (value ?? ""));
  const text = [columns, ...lines.map((line) => columns.map((column) => quoted(line[column])))];
  return saveText(`${text.map((line) => line.join(",")).join("\r\n")}\r\n`, "text/csv", `${name}.csv`);
}

export function savePicture(canvas, name) {
  canvas.toBlob((blob) => blob && save(blob, name), "image/png");
}

const escaped = (text) => String(text).replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);

/** Pixels around a picture that stands by itself, and above it. */
const MARGIN = 24;
const TOP = 76;

/**
 * A picture that stands by itself, as on a page of paper: what it is of, what it says, where it comes from, the drawing
 * of [width, height] pixels, and what its marks mean.
 */
export function framed({ title, facts, key }, [width, height], theme, draw) {
  const lines = key.match(/.{1,140}(\s|$)/g) || [];
  const svg = new Svg(width + 2 * MARGIN, height + TOP + MARGIN + lines.length * 14, theme.paper);
  const line = (text, y, size, colour) => {
    svg.font = `${size}px ${theme.sans}`;
    svg.fillStyle = colour;
    svg.fillText(text, MARGIN, y);
  };
  line(title.slice(0, 120), 28, 20, theme.ink);
  line(facts, 46, 12, theme.ink2);
  line(location.href.slice(0, 200), 62, 9, theme.ink3);
  svg.shifted(MARGIN, TOP, () => draw(svg));
  lines.forEach((text, at) => line(text.trim(), TOP + height + 16 + at * 14, 10, theme.ink2));
  return svg;
}

export const saveSvg = (svg, name) => saveText(svg.text(), "image/svg+xml", name);

/** A picture as an element, which is not read out. */
export function elementOf(svg) {
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

  text() {
    return (
      `<svg xmlns="http://www.w3.org/2000/svg" width="${this.width}" height="${this.height}" ` +
      `viewBox="0 0 ${this.width} ${this.height}">${this.parts.join("\n")}</svg>\n`
    );
  }
}
