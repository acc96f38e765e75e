// The place of each node of a neighbourhood, for good: an angle in the sector of its domain, and a distance from its
// ring.
//
// The domain of the page is at the top, the others follow by name, those of few nodes together. In a sector nodes stand
// in the order of the store; the share of a node is its time in the graph, so that those of any date are spread.

import { sum } from "../text/numbers.js";
import { DAY } from "../text/time.js";

/** @import { Neighbourhood } from "./answers.js" */
/** @import { Links } from "./surroundings.js" */

/**
 * A sector of the circle.
 * @typedef {object} Sector
 * @property {string} name
 * @property {number[]} domains The places of its domains.
 * @property {number} weight The seconds that its nodes are in the graph.
 * @property {number} from The angle at which it begins, in radians.
 * @property {number} to The angle at which it ends, in radians.
 */

/**
 * Where nodes are.
 * @typedef {object} Places
 * @property {Float32Array} angle The angle of each node, in radians.
 * @property {Float32Array} radius The place of each node between the edges of its ring, from 0 to 1.
 * @property {Sector[]} sectors
 * @property {Int32Array} sectorOf The place of the sector of each node.
 */

/**
 * Names of domains, and the place of that of each node.
 * @typedef {{ names: string[], of: number[] }} Groups
 */

const TAU = 2 * Math.PI;
/** The most sectors; domains of fewer nodes are put together. */
const SECTORS = 12;
/** The least share of a sector, at which its name can stand. */
const FLOOR = 0.025;

/**
 * The fewest nodes that have a sector of their own.
 * @param {number} size
 */
const leastOf = (size) => Math.max(3, size / 150);

/**
 * A number from 0 to 1 that depends on a text alone.
 * @param {string} text
 */
function hash(text) {
  let number = 2166136261;
  for (let at = 0; at < text.length; at += 1) number = Math.imul(number ^ text.charCodeAt(at), 16777619);
  number = Math.imul(number ^ (number >>> 15), 2246822507);
  return ((number ^ (number >>> 13)) >>> 0) / 4294967296;
}

/**
 * What sectors are made of: domains, or their top-level domains where most domains have too few nodes.
 * @param {Neighbourhood} answer
 * @returns {Groups}
 */
function groupsOf({ unit, nodes, domains, domain }) {
  const sizes = new Array(domains.length).fill(0);
  for (const own of domain) sizes[own] += 1;
  const large = sizes.filter((number) => number >= leastOf(nodes.length)).sort((one, other) => other - one);
  const covered = sum(large.slice(0, SECTORS - 2));
  if (covered * 2 >= nodes.length || unit === "page") return { names: domains, of: domain };
  const tops = domains.map((name) => (name.includes(".") ? `.${name.split(".").pop()}` : name));
  const names = [...new Set(tops)];
  const places = new Map(names.map((name, at) => [name, at]));
  const placeOf = tops.map((top) => places.get(top) ?? -1);
  return { names, of: domain.map((own) => placeOf[own]) };
}

/**
 * The seconds of each node in the graph, at least 30 days.
 * @param {Neighbourhood} answer
 * @param {Links} links
 * @param {number} end
 */
function livesOf({ nodes, centre }, { source, target, from, until }, end) {
  const life = new Float64Array(nodes.length).fill(30 * DAY);
  for (let at = 0; at < from.length; at += 1) {
    const node = target[at] === centre ? source[at] : target[at];
    life[node] = Math.max(life[node], Math.min(until[at], end) - from[at]);
  }
  return life;
}

/**
 * The domains of each sector, the domain of the page first. `sizes` are the nodes of each domain.
 * @param {Groups} groups
 * @param {number[]} sizes
 * @param {number} home
 * @param {number} size
 */
function domainsOfSectors({ names }, sizes, home, size) {
  const large = sizes.map((_, domain) => domain).filter((domain) => domain !== home && sizes[domain]);
  large.sort((one, other) => sizes[other] - sizes[one]);
  const named = new Set(large.slice(0, SECTORS - 2).filter((domain) => sizes[domain] >= leastOf(size)));
  const list = [{ name: names[home], domains: [home] }];
  for (const domain of [...named].sort((one, other) => (names[one] < names[other] ? -1 : 1))) {
    list.push({ name: names[domain], domains: [domain] });
  }
  const others = large.filter((domain) => !named.has(domain));
  if (others.length) {
    const name = others.length === 1 ? names[others[0]] : "others, a few nodes each";
    list.push({ name, domains: others });
  }
  return list.filter((sector) => sector.domains.some((domain) => sizes[domain]));
}

/**
 * Sectors with their angles, by the weights of their domains. The first one is at the top.
 * @param {{ name: string, domains: number[] }[]} list
 * @param {number[]} weights
 * @returns {Sector[]}
 */
function sectorsOf(list, weights) {
  const weighed = list.map((sector) => ({ ...sector, weight: sum(sector.domains.map((domain) => weights[domain])) }));
  const total = sum(weighed.map((sector) => sector.weight)) || 1;
  const free = 1 - FLOOR * list.length;
  const shares = weighed.map(({ weight }) => FLOOR + (free * weight) / total);
  const turn = list.length ? -TAU / 4 - (shares[0] * TAU) / 2 : 0;
  let start = 0;
  return weighed.map((sector, at) => {
    const from = turn + start * TAU;
    const to = turn + (start + shares[at]) * TAU;
    start += shares[at];
    return { ...sector, from, to };
  });
}

/**
 * Places of all nodes; `end` is the last time that is known.
 * @param {Neighbourhood} answer
 * @param {Links} links
 * @param {number} end
 * @returns {Places}
 */
export function placesOf(answer, links, end) {
  const { nodes, centre } = answer;
  const groups = groupsOf(answer);
  const life = livesOf(answer, links, end);
  const [sizes, weights] = [new Array(groups.names.length).fill(0), new Array(groups.names.length).fill(0)];
  groups.of.forEach((domain, node) => {
    if (node === centre) return;
    sizes[domain] += 1;
    weights[domain] += life[node];
  });
  const sectors = sectorsOf(domainsOfSectors(groups, sizes, groups.of[centre], nodes.length), weights);
  const sectorOfDomain = new Int32Array(groups.names.length).fill(-1);
  for (const [at, { domains }] of sectors.entries()) for (const domain of domains) sectorOfDomain[domain] = at;
  const [angle, radius] = [new Float32Array(nodes.length), new Float32Array(nodes.length)];
  const sectorOf = Int32Array.from(groups.of, (domain) => sectorOfDomain[domain]);
  const used = sectors.map(() => 0);
  nodes.forEach((name, node) => {
    const number = sectorOf[node];
    const sector = sectors[number];
    if (!sector || node === centre) return;
    const margin = Math.min(0.02, (sector.to - sector.from) / 10);
    const middle = (used[number] + life[node] / 2) / sector.weight;
    used[number] += life[node];
    angle[node] = sector.from + margin + middle * (sector.to - sector.from - 2 * margin);
    radius[node] = hash(name);
  });
  return { angle, radius, sectors, sectorOf };
}
