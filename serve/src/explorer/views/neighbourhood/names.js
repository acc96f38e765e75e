// Draws names of nodes where they do not touch: of the one pointed at, of a way, then of the first ring, by their
// places.

import { fitted } from "../../text/cut.js";
import { touch } from "./sectors.js";

/** @import { Pen, Theme } from "../../drawing/canvas.js" */
/** @import { Box } from "./sectors.js" */
/** @import { Layout, Scene } from "./state.js" */

/** @typedef {Scene & { layout: Layout }} Laid */

/**
 * The nodes of the first ring that may have a name; the same at every date, as far as they are there.
 * @type {(scene: Laid) => number[]}
 */
function nearNodes({ around, dated, drawn }) {
  const near = Array.from(dated.ring.keys()).filter((node) => dated.ring[node] === 1 && drawn.shown[node] > 0.5);
  return near.sort((one, other) => around.radius[one] - around.radius[other]).slice(0, 200);
}

/**
 * @param {Pen} context
 * @param {Laid} scene
 * @param {Theme} theme
 * @param {(node: number) => [number, number]} place
 */
export function drawNames(context, scene, theme, place) {
  const { around, layout, dated, pointed } = scene;
  /** @type {Box[]} */
  const taken = [[layout.x - 12, layout.y - 12, layout.x + 12, layout.y + 12]];
  context.font = `11px ${theme.sans}`;
  /** @type {(node: number, isStrong: boolean) => void} */
  const put = (node, isStrong) => {
    const [nx, ny] = place(node);
    const text = fitted(context, scene.names[node], isStrong ? 320 : 110);
    const width = context.measureText(text).width;
    const isLeft = nx + 8 + width > layout.width || (nx < layout.x && nx - 8 - width > 0);
    const left = isLeft ? nx - 8 - width : nx + 8;
    /** @type {Box} */
    const box = [left - 3, ny - 8, left + width + 3, ny + 8];
    if (!isStrong && taken.some((other) => touch(box, other))) return;
    taken.push(box);
    context.globalAlpha = 0.85;
    context.fillStyle = theme.paper;
    context.fillRect(box[0], box[1], box[2] - box[0], 16);
    context.globalAlpha = 1;
    context.fillStyle = isStrong ? theme.accent : theme.ink2;
    context.textAlign = "left";
    context.fillText(text, left, ny + 4);
  };
  if (pointed >= 0) put(pointed, true);
  for (const name of scene.found?.ways?.[0] || []) {
    const at = around.nodes.indexOf(name);
    if (at >= 0 && at !== around.centre && dated.ring[at]) put(at, true);
  }
  if (scene.isPlaying) return;
  const most = layout.width < 560 ? 5 : 14;
  for (const node of nearNodes(scene)) {
    if (taken.length > most) break;
    if (node !== pointed) put(node, false);
  }
}
