// The state of the view of a neighbourhood: what is around the page, and what of it is there at the date that is shown.

import { timesOf } from "../../data/barcode.js";
import { degreeOf, extentOf, linksAt, putRings, spansOf, surroundings, unsureOf } from "../../data/surroundings.js";
import { lastSecondOf } from "../../text/dates.js";
import { namesOf, safe } from "../../text/names.js";
import { count, many, within } from "../../text/numbers.js";
import { DAY } from "../../text/time.js";

/** @import { Barcode, Neighbourhood, Unit, Ways } from "../../data/answers.js" */
/** @import { Around, LinksAt } from "../../data/surroundings.js" */
/** @import { Context, State } from "../../page/state.js" */
/** @import { TableRow, tableSwitch } from "../../parts/rows.js" */

/** Pixels: of the rings, of their middle and radius, and of the time below. */
/**
 * @typedef {{ width: number, height: number, round: number, x: number, y: number, time: { width: number, height: number
 *   } }} Layout
 */

/**
 * The graph at the date that is shown.
 * @typedef {object} Dated
 * @property {number} now The date, in seconds.
 * @property {LinksAt} links
 * @property {Uint8Array} ring The ring of each node; 0 if the node is not there.
 * @property {Uint8Array} fresh Whether each node is new.
 * @property {number[]} counts The number of nodes in each ring.
 * @property {number} unsure The number of nodes of which it is unknown whether they are there.
 */

/**
 * The drawing between two frames.
 * @typedef {object} Drawn
 * @property {Float32Array} shown How much of each node is shown, from 0 to 1, while it comes or goes.
 * @property {Uint8Array} ring The ring that each node was last in.
 * @property {Float32Array} x
 * @property {Float32Array} y
 * @property {Uint8Array} placed The ring for which x and y were computed; 0 if they were not.
 */

/**
 * What the server said about ways, or why it said nothing.
 * @typedef {Partial<Ways> & { error?: string }} Found
 */

/**
 * The state of the view.
 * @typedef {object} Scene
 * @property {Context} context
 * @property {State} state
 * @property {Neighbourhood} answer
 * @property {Unit} unit
 * @property {Around} around
 * @property {string[]} names The names of the nodes.
 * @property {number[]} captures The captures of the page, in seconds.
 * @property {number} first The first second that is known.
 * @property {number} end The last second that is known.
 * @property {number} wanted The date that the address names.
 * @property {Dated} dated
 * @property {Drawn} drawn
 * @property {{ time: number, links: number }[]} degree The links of the page after each change.
 * @property {number} pointed The node that is pointed at; -1 if there is none.
 * @property {number} dimmed The sector that is not dim; -1 if no sector is dim.
 * @property {Found} [found]
 * @property {number} asks How often ways were asked for.
 * @property {boolean} isPlaying
 * @property {number} lastFrame When the last frame was drawn, in milliseconds; 0 if the picture stood still.
 * @property {{ text: string, time: number }} side What the list of domains shows, and since when, in milliseconds.
 * @property {Promise<unknown>} [learning] The answer about the date, while it is awaited.
 * @property {Layout} [layout]
 */

/**
 * The elements of the view.
 * @typedef {object} Elements
 * @property {HTMLElement} area The area of the rings.
 * @property {HTMLCanvasElement} picture
 * @property {HTMLElement} slider The area of time.
 * @property {HTMLCanvasElement} timeline
 * @property {HTMLElement} outside Says that the date is outside of what is known.
 * @property {HTMLElement} date
 * @property {HTMLElement} play The button that plays time.
 * @property {HTMLElement} domains The list of domains.
 * @property {HTMLElement} readout The line below.
 * @property {ReturnType<typeof tableSwitch<TableRow>>} table
 * @property {() => void} redraw Draws in the next frame.
 * @property {() => void} stop Cancels that.
 */

/** @typedef {Scene & Elements} View */

/** How long a node counts as new, in seconds. */
const FRESH = 183 * DAY;

/**
 * The state at the date of the address, or at the end of what is known; nothing is there before `find`.
 * @param {Context} context
 * @param {Neighbourhood} answer
 * @param {Barcode} own The captures of the page.
 * @returns {Scene}
 */
export function sceneOf(context, answer, own) {
  const { state } = context;
  // The server chooses what a node is where the address does not say it.
  const { unit } = answer;
  const around = surroundings(answer);
  const { nodes, centre, size } = around;
  const captures = timesOf(own.captures);
  const [first, end] = extentOf(around, captures);
  const wanted = lastSecondOf(state.at) ?? end;
  const now = within(wanted, first, end);
  const links = { ...around.links, places: [] };
  return {
    ...{ context, state: { ...state }, answer, unit, around, captures, first, end, wanted },
    degree: degreeOf(around, [first, end]),
    names: unit === "page" ? namesOf(nodes, nodes[centre]) : nodes.map(safe),
    dated: { now, links, ring: new Uint8Array(size), fresh: new Uint8Array(size), counts: [0, 0, 0], unsure: 0 },
    drawn: {
      shown: new Float32Array(size),
      ring: new Uint8Array(size),
      x: new Float32Array(size),
      y: new Float32Array(size),
      placed: new Uint8Array(size),
    },
    ...{ pointed: -1, dimmed: -1, asks: 0, isPlaying: false, lastFrame: 0, side: { text: "", time: 0 } },
  };
}

/**
 * Finds which nodes are there at the date.
 * @param {Scene} scene
 */
export function find(scene) {
  const { around, dated, drawn } = scene;
  const before = new Uint8Array(around.size);
  dated.links = linksAt(around, dated.now);
  putRings(around, dated.links, dated.ring);
  putRings(around, linksAt(around, dated.now - FRESH), before);
  dated.unsure = unsureOf(around, dated.links, dated.ring, dated.now);
  dated.counts = [0, 0, 0];
  for (let node = 0; node < around.size; node += 1) {
    const ring = dated.ring[node];
    dated.counts[ring] += 1;
    dated.fresh[node] = ring && !before[node] ? 1 : 0;
    if (ring) drawn.ring[node] = ring;
  }
  if (scene.pointed >= 0 && !dated.ring[scene.pointed]) scene.pointed = -1;
}

/**
 * Whether a node is part of the picture.
 * @type {(scene: Scene, node: number) => boolean}
 */
export const isNode = ({ around, dated }, node) => node === around.centre || dated.ring[node] > 0;

/**
 * Whether a link of this date is part of the picture.
 * @type {(scene: Scene, at: number) => boolean}
 */
export function isThere(scene, at) {
  const { around, dated } = scene;
  const [one, other] = [dated.links.source[at], dated.links.target[at]];
  return (one === around.centre || dated.ring[one] === 1) && isNode(scene, other);
}

/**
 * Nodes that are there, by ring and angle.
 * @type {(scene: Scene) => number[]}
 */
export function inOrder({ around: { angle }, dated: { ring } }) {
  const list = Array.from(ring.keys()).filter((node) => ring[node]);
  return list.sort((one, other) => ring[one] - ring[other] || angle[one] - angle[other]);
}

/**
 * How many nodes are there, of those that the answer has.
 * @type {(scene: Scene) => string}
 */
export function numbersOf({ answer, around, dated: { counts, unsure } }) {
  const of = answer.left_out ? ` of the ${count(around.size)} nodes shown` : "";
  const unknown = unsure ? `, of ${count(unsure)} it is unknown` : "";
  return `${count(counts[1])}${of} at one step, ${count(counts[2])} at two${unknown}`;
}

/**
 * The links of a node at this date, in words.
 * @type {(scene: Scene, node: number) => string}
 */
export function linksWords(scene, node) {
  const { links, now } = scene.dated;
  let [out, into, unsure] = [0, 0, 0];
  for (const at of links.places) {
    const [isOut, isIn] = [links.source[at] === node, links.target[at] === node];
    if ((!isOut && !isIn) || !isThere(scene, at)) continue;
    if (links.unknown[at] <= now) unsure += 1;
    if (isOut) out += 1;
    if (isIn) into += 1;
  }
  const unknown = unsure ? `, ${count(unsure)} of them unknown by then` : "";
  return `${many(out, "link")} from it, ${count(into)} to it${unknown}`;
}

/**
 * A row for each node that is there: its stretch in the graph.
 * @type {(scene: Scene) => TableRow[]}
 */
export function rowsOf(scene) {
  const { around, dated, end } = scene;
  const spans = spansOf(around, (node) => dated.ring[node] > 0);
  return inOrder(scene).map((node) => {
    const [since, to] = spans.get(node) || [dated.now, Infinity];
    const until = Math.min(to, end);
    const run = { first: since, last: until, gone: to === Infinity ? 0 : to };
    return { url: around.nodes[node], runs: [run], first: since, last: until, life: until - since };
  });
}
