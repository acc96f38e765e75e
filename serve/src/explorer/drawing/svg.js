// What a canvas context draws, as SVG: rectangles, lines, texts and the clip of a rectangle. Views draw a picture into
// either with the same calls.

/** @type {(text: string | number) => string} */
const escaped = (text) => String(text).replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);

/**
 * How SVG says where a text is anchored.
 * @type {Record<string, string>}
 */
const ANCHORS = { right: "end", center: "middle" };

export class Svg {
  fillStyle = "#000";
  strokeStyle = "#000";
  lineWidth = 1;
  font = "12px sans-serif";
  /** @type {CanvasTextAlign} */
  textAlign = "left";
  globalAlpha = 1;
  /** @type {string[]} */
  #parts = [];
  /** @type {string[]} */
  #path = [];
  /**
   * How many groups are open since each `save`.
   * @type {number[]}
   */
  #stack = [];

  /**
   * @param {number} width
   * @param {number} height
   * @param {string} paper
   */
  constructor(width, height, paper) {
    this.width = width;
    this.height = height;
    this.fillStyle = paper;
    this.fillRect(0, 0, width, height);
  }

  #opacity() {
    return this.globalAlpha < 1 ? ` opacity="${this.globalAlpha}"` : "";
  }

  /** @type {(x: number, y: number, width: number, height: number) => void} */
  fillRect(x, y, width, height) {
    const [w, h] = [Math.max(0, width), Math.max(0, height)];
    this.#parts.push(
      `<rect x="${x.toFixed(2)}" y="${y.toFixed(2)}" width="${w.toFixed(2)}" height="${h.toFixed(2)}" ` +
        `fill="${escaped(this.fillStyle)}"${this.#opacity()}/>`,
    );
  }

  /** @type {(x: number, y: number, width: number, height: number) => void} */
  strokeRect(x, y, width, height) {
    this.#parts.push(
      `<rect x="${x}" y="${y}" width="${width}" height="${height}" fill="none" ` +
        `stroke="${escaped(this.strokeStyle)}"/>`,
    );
  }

  beginPath() {
    this.#path = [];
  }

  /** @type {(x: number, y: number) => void} */
  moveTo(x, y) {
    this.#path.push(`M${x.toFixed(2)} ${y.toFixed(2)}`);
  }

  /** @type {(x: number, y: number) => void} */
  lineTo(x, y) {
    this.#path.push(`L${x.toFixed(2)} ${y.toFixed(2)}`);
  }

  /**
   * A circle, or a part of one; angles in radians, clockwise from the right.
   * @type {(x: number, y: number, r: number, from: number, to: number) => void}
   */
  arc(x, y, r, from, to) {
    const at = (/** @type {number} */ angle) =>
      `${(x + r * Math.cos(angle)).toFixed(2)} ${(y + r * Math.sin(angle)).toFixed(2)}`;
    const half = (from + to) / 2;
    const large = (to - from) / 2 > Math.PI ? 1 : 0;
    const part = (/** @type {number} */ angle) => `A${r.toFixed(2)} ${r.toFixed(2)} 0 ${large} 1 ${at(angle)}`;
    this.#path.push(`L${at(from)}${part(half)}${part(to)}`);
  }

  fill() {
    this.#parts.push(`<path d="${this.#path.join("")}" fill="${escaped(this.fillStyle)}"${this.#opacity()}/>`);
  }

  stroke() {
    this.#parts.push(
      `<path d="${this.#path.join("")}" fill="none" stroke="${escaped(this.strokeStyle)}" ` +
        `stroke-width="${this.lineWidth}"${this.#opacity()}/>`,
    );
  }

  /** @type {(text: string, x: number, y: number) => void} */
  fillText(text, x, y) {
    const anchor = ANCHORS[this.textAlign] || "start";
    const [, size = "12", family = "sans-serif"] = /([\d.]+)px (.*)/.exec(this.font) || [];
    const weight = /\b600\b/.test(this.font) ? ' font-weight="600"' : "";
    this.#parts.push(
      `<text x="${x.toFixed(2)}" y="${y.toFixed(2)}" font-size="${size}" ` +
        `font-family="${escaped(family)}"${weight} text-anchor="${anchor}" fill="${escaped(this.fillStyle)}">` +
        `${escaped(text)}</text>`,
    );
  }

  /** @param {string} text */
  measureText(text) {
    return { width: text.length * 6.4 };
  }

  save() {
    this.#stack.push(0);
  }

  /** Ends what was cut since the last `save`. */
  restore() {
    this.#parts.push("</g>".repeat(this.#stack.pop() || 0));
  }

  /**
   * Draws further right and lower by so many pixels.
   * @type {(x: number, y: number, draw: () => void) => void}
   */
  shifted(x, y, draw) {
    this.#parts.push(`<g transform="translate(${x} ${y})">`);
    draw();
    this.#parts.push("</g>");
  }

  /**
   * Cuts what follows, up to `restore`, to a rectangle.
   * @type {(x: number, y: number, width: number, height: number) => void}
   */
  clipTo(x, y, width, height) {
    const id = `c${this.#parts.length}`;
    this.#parts.push(
      `<clipPath id="${id}"><rect x="${x}" y="${y}" width="${width}" height="${height}"/></clipPath>` +
        `<g clip-path="url(#${id})">`,
    );
    this.#stack[this.#stack.length - 1] += 1;
  }

  /** As a document of this size: by itself in pixels. */
  text([width, height] = [String(this.width), String(this.height)]) {
    return (
      `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" ` +
      `viewBox="0 0 ${this.width} ${this.height}">${this.#parts.join("\n")}</svg>\n`
    );
  }
}
