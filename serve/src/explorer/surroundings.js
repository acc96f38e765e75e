// An answer about a neighbourhood as a picture needs it: the place of each node for good, and which nodes are there at a
// time.
//
// A link is there while it stands, and while it is unknown whether it stands. The answer about all dates says since when
// that is unknown to this day; what was unknown at other dates only an answer about the date itself says.

import { DAY } from "./time.js";

const TAU = 2 * Math.PI;
/** The most sectors; domains of fewer nodes are put together. */
const SECTORS = 12;

/** The fewest nodes that have a sector of their own. */
const leastOf = (size) => Math.max(3, size / 150);

/** A number from 0 to 1 that depends on a text alone. */
function hash(text) {
  let sum = 2166136261;
  for (let at = 0; at < text.length; at += 1) sum = Math.imul(sum ^ text.charCodeAt(at), 16777619);
  sum = Math.imul(sum ^ (sum >>> 15), 2246822507);
  return ((sum ^ (sum >>> 13)) >>> 0) / 4294967296;
}

export function surroundings(answer) {
  const { nodes, centre, links } = answer;
  const size = nodes.length;
  const source = Int32Array.from(links.source);
  const target = Int32Array.from(links.target);
  const from = Float64Array.from(links.from);
  const until = Float64Array.from(links.until, (time) => time ?? Infinity);
  // Since when it is unknown whether a link stands.
  const unknown = new Float64Array(links.from.length).fill(Infinity);
  (links.unknown || []).forEach((time, at) => (unknown[at] = time ?? Infinity));
  const isCaptured = new Uint8Array(size).fill(1);
  for (const place of answer.notCaptured || []) isCaptured[place] = 0;
  let known;
  const always = { source, target, from, until, unknown };
  // An answer about one time knows more of it, see `learn`.
  let then = { time: NaN, links: always };

  /**
   * Takes an answer about one time. It also has the links of which it is unknown whether they stand then where a later
   * capture tells them again; and links of hosts and domains begin with those of their pages that stand then.
   */
  function learn(time, { nodes: own, links: those }) {
    const places = new Map(nodes.map((node, at) => [node, at]));
    const place = own.map((node) => places.get(node) ?? -1);
    const kept = those.from.map((_, at) => at);
    const known = kept.filter((at) => place[those.source[at]] >= 0 && place[those.target[at]] >= 0);
    const column = (value) => Float64Array.from(known, value);
    const links = {
      source: column((at) => place[those.source[at]]),
      target: column((at) => place[those.target[at]]),
      from: column((at) => those.from[at]),
      until: column((at) => those.until[at] ?? Infinity),
      unknown: column((at) => those.unknown?.[at] ?? Infinity),
    };
    then = { time, links };
  }

  /**
   * The links that are there at a time: columns, and the `places` in these of the links that stand or of which that is
   * unknown, which it is since `unknown` where that is not later than the time.
   */
  function linksAt(time) {
    if (time === then.time) return { ...then.links, places: Array.from(then.links.from, (_, at) => at) };
    const places = [];
    for (let at = 0; at < from.length; at += 1) {
      if ((from[at] <= time && time < until[at]) || unknown[at] <= time) places.push(at);
    }
    return { ...always, places };
  }

  /** From the first link of the page itself to the last change, or to the last capture of the page. */
  function extent(captures) {
    let [least, most] = [Infinity, captures.length ? captures[captures.length - 1] : -Infinity];
    for (let at = 0; at < from.length; at += 1) {
      if (source[at] === centre || target[at] === centre) least = Math.min(least, from[at]);
      for (const time of [from[at], until[at], unknown[at]]) if (time !== Infinity) most = Math.max(most, time);
    }
    if (least === Infinity) least = captures.length ? captures[0] : 0;
    return [least, Math.max(most, least + 30 * DAY)];
  }

  /** What sectors are made of: domains, or their top-level domains where most domains have too few nodes. */
  function groups() {
    const sizes = new Array(answer.domains.length).fill(0);
    for (const domain of answer.domain) sizes[domain] += 1;
    const least = leastOf(size);
    const large = sizes.filter((number) => number >= least).sort((one, other) => other - one);
    const covered = large.slice(0, SECTORS - 2).reduce((sum, number) => sum + number, 0);
    if (covered * 2 >= size || answer.unit === "page") return { names: answer.domains, of: answer.domain };
    const tops = answer.domains.map((domain) => (domain.includes(".") ? `.${domain.split(".").pop()}` : domain));
    const names = [...new Set(tops)];
    const at = new Map(names.map((name, number) => [name, number]));
    return { names, of: answer.domain.map((domain) => at.get(tops[domain])) };
  }

  /**
   * Angles and radii. The domain of the page is at the top, the others follow by name, those of few nodes together. In
   * a sector nodes stand in the order of the store; the share of a node is its time in the graph, so that those of any
   * date are spread.
   */
  function places() {
    const { names, of } = groups();
    const [, end] = extent([]);
    const life = new Float64Array(size).fill(30 * DAY);
    for (let at = 0; at < from.length; at += 1) {
      const stood = Math.min(until[at], end) - from[at];
      const node = target[at] === centre ? source[at] : target[at];
      life[node] = Math.max(life[node], stood);
    }
    const sizes = new Array(names.length).fill(0);
    const weights = new Array(names.length).fill(0);
    of.forEach((domain, node) => {
      if (node === centre) return;
      sizes[domain] += 1;
      weights[domain] += life[node];
    });
    const home = of[centre];
    const large = sizes.map((_, domain) => domain).filter((domain) => domain !== home && sizes[domain]);
    large.sort((one, other) => sizes[other] - sizes[one]);
    const least = leastOf(size);
    const named = new Set(large.slice(0, SECTORS - 2).filter((domain) => sizes[domain] >= least));
    const list = [{ name: names[home], domains: [home] }];
    for (const domain of [...named].sort((one, other) => (names[one] < names[other] ? -1 : 1))) {
      list.push({ name: names[domain], domains: [domain] });
    }
    const others = large.filter((domain) => !named.has(domain));
    if (others.length) {
      const name = others.length === 1 ? names[others[0]] : "others, a few nodes each";
      list.push({ name, domains: others });
    }
    const all = list.filter((sector) => sector.domains.some((domain) => sizes[domain]));
    const sectorOfDomain = new Int32Array(names.length).fill(-1);
    all.forEach((sector, at) => sector.domains.forEach((domain) => (sectorOfDomain[domain] = at)));
    const total = all.reduce((sum, sector) => {
      sector.weight = sector.domains.reduce((part, domain) => part + weights[domain], 0);
      return sum + sector.weight;
    }, 0);
    // A sector has at least a share that its name can stand at.
    const floor = 0.025;
    const free = 1 - floor * all.length;
    let at = 0;
    for (const sector of all) {
      sector.share = floor + (free * sector.weight) / (total || 1);
      sector.start = at;
      at += sector.share;
    }
    // The first sector is at the top.
    const turn = all.length ? -TAU / 4 - (all[0].share * TAU) / 2 : 0;
    for (const sector of all) {
      [sector.from, sector.to] = [turn + sector.start * TAU, turn + (sector.start + sector.share) * TAU];
      sector.used = 0;
    }
    const [angles, radii] = [new Float32Array(size), new Float32Array(size)];
    const sectorOfNode = new Int32Array(size);
    for (let node = 0; node < size; node += 1) {
      const number = sectorOfDomain[of[node]];
      sectorOfNode[node] = number;
      const sector = all[number];
      if (!sector || node === centre) continue;
      const margin = Math.min(0.02, (sector.to - sector.from) / 10);
      const middle = (sector.used + life[node] / 2) / sector.weight;
      sector.used += life[node];
      angles[node] = sector.from + margin + middle * (sector.to - sector.from - 2 * margin);
      radii[node] = hash(nodes[node]);
    }
    return { angle: angles, radius: radii, sectors: all, sectorOf: sectorOfNode };
  }

  /** Puts the ring of each node, by links that are there or by those of them that `has` chooses, into `rings`. */
  function putRings(links, rings, has = () => true) {
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

  /** Of how many of the nodes in `rings` it is unknown at a time whether they are there. */
  function unsureOf(links, rings, time) {
    const sure = new Uint8Array(size);
    putRings(links, sure, (at) => links.unknown[at] > time);
    return rings.reduce((number, ring, node) => number + (ring !== sure[node] ? 1 : 0), 0);
  }

  /** Links and pages of the first ring after each change, thinned to what is seen. */
  function degree(first, end) {
    if (known) return known;
    const turns = [];
    for (let at = 0; at < from.length; at += 1) {
      if (source[at] !== centre && target[at] !== centre) continue;
      turns.push([from[at], 1]);
      if (until[at] !== Infinity) turns.push([until[at], -1]);
    }
    turns.sort((one, other) => one[0] - other[0]);
    const least = (end - first) / 3000;
    known = [{ time: first, links: 0 }];
    let number = 0;
    for (const [time, step] of turns) {
      number += step;
      const before = known[known.length - 1];
      if (time - before.time < least) before.links = number;
      else known.push({ time, links: number });
    }
    return known;
  }

  const isNear = new Uint8Array(size);
  for (let at = 0; at < from.length; at += 1) {
    if (source[at] === centre) isNear[target[at]] = 1;
    if (target[at] === centre) isNear[source[at]] = 1;
  }
  // Whether some node never was one step away.
  const isWide = isNear.some((near, node) => !near && node !== centre);
  const all = { isWide, nodes, centre, size, source, target, from, until, isCaptured };
  return { ...all, extent, learn, linksAt, putRings, unsureOf, degree, ...places() };
}
