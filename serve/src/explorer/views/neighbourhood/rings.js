// Draws the rings with their nodes and links, into a canvas or an SVG.

import { drawNames } from "./names.js";
import { drawSectors } from "./sectors.js";
import { isNode, isThere } from "./state.js";

/** @import { Pen, Theme } from "../../drawing/canvas.js" */
/** @import { Layout, Scene } from "./state.js" */

/**
 * A scene with the pixels of its picture.
 * @typedef {Scene & { layout: Layout }} Laid
 */

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

/** @type {(scene: Laid) => number[][]} */
const endsOf = ({ around }) => (around.isWide ? WIDE : NARROW);

/**
 * Where a node is, for the size of the window and the ring that it was last in.
 * @type {(scene: Laid, node: number) => [number, number]}
 */
export function placeOf(scene, node) {
  const { around, drawn, layout } = scene;
  if (node === around.centre) return [layout.x, layout.y];
  if (drawn.placed[node] !== drawn.ring[node]) {
    const [near, far] = endsOf(scene)[drawn.ring[node]];
    const distance = layout.round * (near + (far - near) * (0.06 + 0.88 * around.radius[node]));
    drawn.x[node] = layout.x + Math.cos(around.angle[node]) * distance;
    drawn.y[node] = layout.y + Math.sin(around.angle[node]) * distance;
    drawn.placed[node] = drawn.ring[node];
  }
  return [drawn.x[node], drawn.y[node]];
}

/**
 * Adds a circle to a path.
 * @type {(context: Pen, x: number, y: number, r: number) => void}
 */
export function circle(context, x, y, r) {
  context.moveTo(x + r, y);
  context.arc(x, y, r, 0, 2 * Math.PI);
}

/**
 * Adds a node to a path.
 * @type {(context: Pen, scene: Laid, node: number, r: number) => void}
 */
function addNode(context, scene, node, r) {
  const [x, y] = placeOf(scene, node);
  if (r >= 1.6) {
    circle(context, x, y, r);
    return;
  }
  // A circle of two pixels is a square, which is drawn much faster.
  context.moveTo(x - r, y - r);
  context.lineTo(x + r, y - r);
  context.lineTo(x + r, y + r);
  context.lineTo(x - r, y + r);
  context.lineTo(x - r, y - r);
}

/**
 * Draws a path of nodes.
 * @type {(context: Pen, theme: Theme, isNew: boolean, isCaptured: boolean) => void}
 */
function finish(context, theme, isNew, isCaptured) {
  const colour = isNew ? theme.accent : theme.bar;
  context.lineWidth = 1;
  if (isCaptured) {
    context.fillStyle = colour;
    context.fill();
  } else {
    context.strokeStyle = colour;
    context.stroke();
  }
}

/**
 * Draws the nodes that stand still: a path for each look, captured or not, new or not, dim or not.
 * @type {(context: Pen, scene: Laid, small: number, theme: Theme) => void}
 */
function drawStill(context, scene, small, theme) {
  const { around, drawn, dated, dimmed } = scene;
  const looks = Array.from({ length: 8 }, () => /** @type {number[]} */ ([]));
  for (let node = 0; node < around.size; node += 1) {
    if (drawn.shown[node] < 1 || node === around.centre) continue;
    const isDim = dimmed >= 0 && around.sectorOf[node] !== dimmed;
    looks[dated.fresh[node] * 4 + around.isCaptured[node] * 2 + (isDim ? 1 : 0)].push(node);
  }
  looks.forEach((nodes, look) => {
    if (!nodes.length) return;
    context.globalAlpha = look % 2 ? 0.15 : 1;
    context.beginPath();
    for (const node of nodes) addNode(context, scene, node, drawn.ring[node] === 1 ? small : small * 0.8);
    finish(context, theme, look >= 4, look % 4 >= 2);
  });
}

/**
 * Draws the nodes on their way in or out: in steps of a quarter, so that many that move together are one path.
 * @type {(context: Pen, scene: Laid, small: number, theme: Theme) => void}
 */
function drawMoving(context, scene, small, theme) {
  const { around, drawn, dated } = scene;
  const moving = Array.from(drawn.shown.keys()).filter(
    (node) => drawn.shown[node] > 0 && drawn.shown[node] < 1 && node !== around.centre,
  );
  for (let look = 0; look < 16; look += 1) {
    const [step, isNew, isCaptured] = [Math.floor(look / 4) + 1, (look >> 1) & 1, look & 1];
    const part = step / 4;
    context.globalAlpha = part;
    context.beginPath();
    for (const node of moving) {
      const isOwn = dated.fresh[node] === isNew && around.isCaptured[node] === isCaptured;
      if (isOwn && Math.ceil(drawn.shown[node] * 4) === step) {
        addNode(context, scene, node, small * (0.4 + 0.6 * part));
      }
    }
    finish(context, theme, isNew === 1, isCaptured === 1);
  }
}

/** @type {(context: Pen, scene: Laid, theme: Theme) => void} */
function drawNodes(context, scene, theme) {
  const { layout, dated } = scene;
  const small = Math.max(1.5, Math.min(4.5, layout.round / 12 / Math.sqrt(1 + dated.counts[1] / 12)));
  drawStill(context, scene, small, theme);
  drawMoving(context, scene, small, theme);
  context.globalAlpha = 1;
}

/**
 * Lines from the page to the first ring, paler the more there are.
 * @type {(context: Pen, scene: Laid, theme: Theme) => void}
 */
function drawSpokes(context, scene, theme) {
  const { around, dated, layout, dimmed } = scene;
  context.lineWidth = 1;
  context.strokeStyle = theme.bar2;
  context.globalAlpha = Math.max(0.08, Math.min(0.7, 40 / (dated.counts[1] + 1)));
  context.beginPath();
  for (let node = 0; node < around.size; node += 1) {
    if (dated.ring[node] !== 1 || (dimmed >= 0 && around.sectorOf[node] !== dimmed)) continue;
    context.moveTo(layout.x, layout.y);
    context.lineTo(...placeOf(scene, node));
  }
  context.stroke();
  context.globalAlpha = 1;
}

/**
 * Lines of the node that is pointed at.
 * @type {(context: Pen, scene: Laid, theme: Theme) => void}
 */
function drawPointed(context, scene, theme) {
  const { pointed } = scene;
  const { source, target, places } = scene.dated.links;
  context.strokeStyle = theme.accent;
  context.beginPath();
  for (const at of places) {
    if ((source[at] !== pointed && target[at] !== pointed) || !isThere(scene, at)) continue;
    context.moveTo(...placeOf(scene, source[at]));
    context.lineTo(...placeOf(scene, target[at]));
  }
  context.stroke();
}

/**
 * The nodes of a way, as far as they are in the picture.
 * @type {(context: Pen, scene: Laid, way: number[], theme: Theme) => void}
 */
function drawWay(context, scene, way, theme) {
  context.strokeStyle = theme.accent;
  context.lineWidth = 2;
  context.beginPath();
  for (let step = 1; step < way.length; step += 1) {
    if (way[step - 1] < 0 || way[step] < 0 || !isNode(scene, way[step])) break;
    context.moveTo(...placeOf(scene, way[step - 1]));
    context.lineTo(...placeOf(scene, way[step]));
  }
  context.stroke();
}

/** @type {(context: Pen, scene: Laid, theme: Theme) => void} */
function drawLinks(context, scene, theme) {
  drawSpokes(context, scene, theme);
  if (scene.pointed >= 0) drawPointed(context, scene, theme);
  const way = scene.found?.ways?.[0]?.map((url) => scene.around.nodes.indexOf(url));
  if (way && scene.unit === "page") drawWay(context, scene, way, theme);
}

/**
 * The grounds of the rings.
 * @type {(context: Pen, scene: Laid, theme: Theme) => void}
 */
function drawGround(context, scene, theme) {
  const { x, y, round } = scene.layout;
  const ends = endsOf(scene);
  /** @type {(r: number, fill: string) => void} */
  const disc = (r, fill) => {
    context.fillStyle = fill;
    context.beginPath();
    circle(context, x, y, r);
    context.fill();
  };
  for (const [ring, fill] of /** @type {[number, string][]} */ ([
    [2, theme.panel],
    [1, theme.faint],
  ])) {
    const [near, far] = ends[ring];
    disc(round * (far + 0.02), fill);
    disc(round * (near - 0.02), theme.paper);
  }
}

/** @type {(context: Pen, scene: Laid, theme: Theme) => void} */
export function drawRings(context, scene, theme) {
  const { x, y } = scene.layout;
  drawGround(context, scene, theme);
  drawSectors(context, scene, theme);
  drawLinks(context, scene, theme);
  drawNodes(context, scene, theme);
  context.globalAlpha = 1;
  context.fillStyle = theme.ink;
  context.beginPath();
  circle(context, x, y, 6);
  context.fill();
  drawNames(context, scene, theme, (node) => placeOf(scene, node));
}
