// What is around a page over time, as an answer about a neighbourhood has it: which links and nodes are there at a
// time.
//
// A link is there while it stands, and while it is unknown whether it stands. The answer about all dates says since
// when that is unknown to this day; what was unknown at other dates only an answer about the date itself says.

import { DAY } from "../text/time.js";
import { placesOf } from "./places.js";

/** @import { Neighbourhood } from "./answers.js" */
/** @import { Places } from "./places.js" */

/**
 * Links as columns.
 * @typedef {object} Links
 * @property {Int32Array} source Places of nodes.
 * @property {Int32Array} target Places of nodes.
 * @property {Float64Array} from The first second of each link.
 * @property {Float64Array} until The second at which each link is gone; Infinity if it stands.
 * @property {Float64Array} unknown Since when it is unknown whether each link stands; Infinity if that is known.
 */

/**
 * Links, and the places in the columns of those that are there at a time.
 * @typedef {Links & { places: number[] }} LinksAt
 */

/**
 * The nodes and the links around a page.
 * @typedef {object} Surroundings
 * @property {string[]} nodes
 * @property {number} centre The place of the page itself.
 * @property {number} size The number of nodes.
 * @property {Links} links The links of all dates.
 * @property {{ time: number, links: Links }} learned The links of one date, as an answer about that date has them.
 * @property {Uint8Array} isCaptured
 * @property {boolean} isWide Whether some node never was one step away.
 */

/** @typedef {Surroundings & Places} Around */

/**
 * @param {Neighbourhood} answer
 * @returns {Around}
 */
export function surroundings(answer) {
  const { nodes, centre } = answer;
  const size = nodes.length;
  /** @type {Links} */
  const links = {
    source: Int32Array.from(answer.links.source),
    target: Int32Array.from(answer.links.target),
    from: Float64Array.from(answer.links.from),
    until: Float64Array.from(answer.links.until, (time) => time ?? Infinity),
    unknown: new Float64Array(answer.links.from.length).fill(Infinity),
  };
  for (const [at, time] of (answer.links.unknown || []).entries()) links.unknown[at] = time ?? Infinity;
  const isCaptured = new Uint8Array(size).fill(1);
  for (const place of answer.not_captured || []) isCaptured[place] = 0;
  const isNear = new Uint8Array(size);
  for (let at = 0; at < links.from.length; at += 1) {
    if (links.source[at] === centre) isNear[links.target[at]] = 1;
    if (links.target[at] === centre) isNear[links.source[at]] = 1;
  }
  const isWide = isNear.some((near, node) => !near && node !== centre);
  const all = { nodes, centre, size, links, learned: { time: NaN, links }, isCaptured, isWide };
  return { ...all, ...placesOf(answer, links, extentOf(all, [])[1]) };
}

/**
 * Takes an answer about one time. It also has the links of which it is unknown whether they stand then where a later
 * capture tells them again; and links of hosts and domains begin with those of their pages that stand then.
 * @param {Surroundings} around
 * @param {number} time
 * @param {Neighbourhood} answer
 */
export function learn(around, time, { nodes, links: those }) {
  const places = new Map(around.nodes.map((node, at) => [node, at]));
  const place = nodes.map((node) => places.get(node) ?? -1);
  const kept = those.from.map((_, at) => at);
  const known = kept.filter((at) => place[those.source[at]] >= 0 && place[those.target[at]] >= 0);
  const links = {
    source: Int32Array.from(known, (at) => place[those.source[at]]),
    target: Int32Array.from(known, (at) => place[those.target[at]]),
    from: Float64Array.from(known, (at) => those.from[at]),
    until: Float64Array.from(known, (at) => those.until[at] ?? Infinity),
    unknown: Float64Array.from(known, (at) => those.unknown?.[at] ?? Infinity),
  };
  around.learned = { time, links };
}

/**
 * The links that are there at a time: columns, and the `places` in these of the links that stand or of which that is
 * unknown, which it is since `unknown` where that is not later than the time.
 * @param {Surroundings} around
 * @param {number} time
 * @returns {LinksAt}
 */
export function linksAt({ links, learned }, time) {
  if (time === learned.time) return { ...learned.links, places: Array.from(learned.links.from, (_, at) => at) };
  const { from, until, unknown } = links;
  const places = [];
  for (let at = 0; at < from.length; at += 1) {
    if ((from[at] <= time && time < until[at]) || unknown[at] <= time) places.push(at);
  }
  return { ...links, places };
}

/**
 * From the first link of the page itself to the last change, or to the last capture of the page.
 * @param {Surroundings} around
 * @param {number[]} captures
 * @returns {[number, number]}
 */
export function extentOf({ links, centre }, captures) {
  const { source, target, from, until, unknown } = links;
  let [least, most] = [Infinity, captures.length ? captures[captures.length - 1] : -Infinity];
  for (let at = 0; at < from.length; at += 1) {
    if (source[at] === centre || target[at] === centre) least = Math.min(least, from[at]);
    for (const time of [from[at], until[at], unknown[at]]) if (time !== Infinity) most = Math.max(most, time);
  }
  if (least === Infinity) least = captures.length ? captures[0] : 0;
  return [least, Math.max(most, least + 30 * DAY)];
}

/**
 * Puts the ring of each node, by links that are there or by those of them that `has` chooses, into `rings`.
 * @param {Surroundings} around
 * @param {LinksAt} links
 * @param {Uint8Array} rings
 * @param {(at: number) => boolean} has
 */
export function putRings({ centre }, links, rings, has = () => true) {
  rings.fill(0);
  for (const at of links.places) {
    const [one, other] = [links.source[at], links.target[at]];
    if ((one === centre || other === centre) && has(at)) rings[one === centre ? other : one] = 1;
  }
  for (const at of links.places) {
    const other = links.target[at];
    if (rings[links.source[at]] === 1 && rings[other] === 0 && other !== centre && has(at)) rings[other] = 2;
  }
  rings[centre] = 0;
}

/**
 * Of how many of the nodes in `rings` it is unknown at a time whether they are there.
 * @param {Surroundings} around
 * @param {LinksAt} links
 * @param {Uint8Array} rings
 * @param {number} time
 */
export function unsureOf(around, links, rings, time) {
  const sure = new Uint8Array(around.size);
  putRings(around, links, sure, (at) => links.unknown[at] > time);
  return rings.reduce((number, ring, node) => number + (ring !== sure[node] ? 1 : 0), 0);
}

/**
 * How many links the page has after each change between two times, thinned to what is seen.
 * @param {Surroundings} around
 * @param {[number, number]} extent
 */
export function degreeOf({ links, centre }, [first, end]) {
  const { source, target, from, until } = links;
  /** @type {[number, number][]} */
  const turns = [];
  for (let at = 0; at < from.length; at += 1) {
    if (source[at] !== centre && target[at] !== centre) continue;
    turns.push([from[at], 1]);
    if (until[at] !== Infinity) turns.push([until[at], -1]);
  }
  turns.sort((one, other) => one[0] - other[0]);
  const least = (end - first) / 3000;
  const known = [{ time: first, links: 0 }];
  let number = 0;
  for (const [time, step] of turns) {
    number += step;
    const before = known[known.length - 1];
    if (time - before.time < least) before.links = number;
    else known.push({ time, links: number });
  }
  return known;
}

/**
 * When each node came and went: from the first of its links to the end of the last one, by its place.
 * @param {Surroundings} around
 * @param {(node: number) => boolean} isWanted
 * @returns {Map<number, [number, number]>}
 */
export function spansOf({ links, centre }, isWanted) {
  const { source, target, from, until } = links;
  /** @type {Map<number, [number, number]>} */
  const spans = new Map();
  for (let at = 0; at < from.length; at += 1) {
    const node = target[at] === centre ? source[at] : target[at];
    if (!isWanted(node)) continue;
    const [since, to] = spans.get(node) || [Infinity, -Infinity];
    spans.set(node, [Math.min(since, from[at]), Math.max(to, until[at])]);
  }
  return spans;
}
