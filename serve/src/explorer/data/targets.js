// Targets of backlinks: a URL, a host or a domain, as one word of an address, and lists of them.

import { bare, hostOf, safe } from "../text/names.js";
import { path } from "./call.js";

/** @import { State } from "../page/state.js" */
/** @import { Call } from "./answers.js" */

/**
 * A URL, or a name and which URLs of it: `match` is "exact", "host" or "domain".
 * @typedef {{ url: string, match: string }} Target
 */

/** The most targets that a list keeps: an address with more is no longer sent whole. */
export const KEPT_MAX = 20;
/** @type {(string | undefined)[]} */
const MATCHES = ["exact", "host", "domain"];

/**
 * Whether a text names a host and nothing of it, as the server sees it: the whole domain is meant then.
 * @param {string} text
 */
export const isName = (text) => /^[^/?#]+\/*$/.test(text.trim());

/**
 * The host of a target, also of one without a scheme; empty where there is none.
 * @param {string} url
 */
export function hostIn(url) {
  const host = hostOf(url) || url.trim().split(/[/?#]/)[0];
  return /[@\s]/.test(host) ? "" : host.replace(/:\d+$/, "").toLowerCase();
}

/**
 * What is meant by who names a target and does not say.
 * @param {string} url
 */
const unsaid = (url) => (isName(url) ? "domain" : "exact");

/**
 * A target; a name is no single URL.
 * @param {string} url
 * @param {string} [match]
 * @returns {Target}
 */
function made(url, match) {
  const isSaid = match && MATCHES.includes(match) && !(match === "exact" && isName(url));
  return { url, match: isSaid ? match : unsaid(url) };
}

/**
 * The target that a word of an address names: "redhat.com", "http://a.example/", "host!www.a.example".
 * @param {string} word
 */
export function targetOf(word) {
  const [, match, url] = /^(exact|host|domain)!(.+)$/.exec(word) || [];
  return url ? made(url, match) : made(word);
}

/**
 * A target as a word of an address, in which no space is.
 * @param {Target} target
 */
export const wordOf = ({ url, match }) =>
  (match === unsaid(url) ? url : `${match}!${url}`).replace(/\s/g, encodeURIComponent);

/**
 * The target of an address.
 * @param {State} state
 */
export const targetIn = (state) => made(state.url || "", state.match);

/**
 * The state with another target; what was chosen of the rows of the one before is not.
 * @param {State} state
 * @param {Target} target
 * @returns {State}
 */
export function stateFor(state, { url, match }) {
  const { v, unit, internal, order, list, and, from, to } = state;
  const other = and && wordOf({ url, match }) === and ? undefined : and;
  const said = match === unsaid(url) ? undefined : match;
  return { v, url, match: said, unit, internal, order, from, to, and: other, list };
}

/**
 * How a target is called: "redhat.com", "host www.redhat.com".
 * @param {Target} target
 */
export function nameOf({ url, match }) {
  if (match === "exact" || (match === "domain" && isName(url))) return bare(url);
  return `${match} ${safe(hostIn(url) || url)}`;
}

/**
 * The targets that an address keeps, as words.
 * @param {State} state
 */
export const keptIn = (state) => [...new Set((state.list || "").split(/\s+/).filter(Boolean))].slice(0, KEPT_MAX);

/**
 * A list of words as an address keeps it.
 * @param {string[]} words
 */
export const listOf = (words) => words.join(" ") || undefined;

/**
 * The host that a target lies in, if it is narrower than all URLs of this host.
 * @param {Target} target
 * @returns {Target | undefined}
 */
export function hostAbove({ url, match }) {
  const host = hostIn(url);
  return match === "exact" && host ? { url: host, match: "host" } : undefined;
}

/**
 * The registrable domain that a target lies in, if it is narrower than all hosts of this domain. The server knows which
 * names are public suffixes and says the domain of each page; it is asked about the page of the host to which the
 * fewest link, because its surroundings are read.
 * @param {Target} target
 * @param {Call} call
 * @returns {Promise<Target | undefined>}
 */
export async function domainAbove({ url, match }, call) {
  const host = hostIn(url);
  if (!host) return undefined;
  const { pages } = await call(path("v1/suggest", { q: host, limit: 9 }));
  const own = pages.filter((page) => hostIn(page.url) === host);
  const least = own.sort((one, other) => one.inlinks - other.inlinks)[0]?.url || (isName(url) ? undefined : url);
  if (!least) return undefined;
  const { domains, domain, centre } = await call(path("v1/neighbourhood", { url: least, hops: 1, limit: 1 }));
  const name = domains[domain[centre]];
  return name && !(match === "domain" && name === host) ? { url: name, match: "domain" } : undefined;
}
