// What each view asks the server first, given the state of its address: the page asks for it while the code of the view
// is on its way, and the view gets the same answer.

import { barcodePath } from "../data/barcode.js";
import { path } from "../data/call.js";
import { among, choiceOf, question } from "../data/referrers.js";
import { hostIn, isName, targetIn, targetOf } from "../data/targets.js";
import { whenOf } from "../text/dates.js";

/** @import { Unit } from "../data/answers.js" */
/** @import { State } from "./state.js" */

/** The most nodes of a neighbourhood; and with more than so many, it is one of directories, hosts or domains. */
const NODES = 15000;
const FOLD = 300;

/** @type {Unit[]} */
const UNITS = ["page", "directory", "host", "domain"];

/**
 * What the nodes of a neighbourhood are, if the address says it.
 * @param {State} state
 */
const unitOf = ({ unit }) => UNITS.find((own) => own === unit);

/**
 * The question for what is around a page; `more` has what else is asked.
 * @param {State} state
 * @param {{ unit?: Unit, fold?: undefined, at?: string }} more
 */
export const aroundPath = (state, more = {}) =>
  path("v1/neighbourhood", {
    url: state.url,
    unit: unitOf(state),
    fold: unitOf(state) ? undefined : FOLD,
    limit: NODES,
    ...more,
  });

/** Dead pages of one answer. */
const DEAD = 200;

/**
 * Whose dead pages an address is about: those of the store, of a host or of a domain, and its name.
 * @param {State} state
 * @returns {{ match: "store" | "host" | "domain", name: string | undefined }}
 */
export function wholeOf(state) {
  const name = state.url && hostIn(state.url);
  const own = isName(state.url || "") ? "domain" : "host";
  const match = among(state.match, ["store", "host", "domain"], own);
  return name && match !== "store" ? { match, name } : { match: "store", name };
}

/**
 * The order of dead pages.
 * @param {State} state
 */
export const orderOf = ({ order }) => among(order, ["last", "first", "most", "key"], "last");

/**
 * The question for dead pages; `more` has what else is asked.
 * @param {State} state
 * @param {Record<string, string | number | undefined>} more
 */
export function deathsPath(state, more = {}) {
  const { match, name } = wholeOf(state);
  return path("v1/deaths", {
    url: match === "store" ? undefined : name,
    match: match === "store" ? undefined : match,
    from: state.from,
    to: state.to,
    still: state.still === "1" ? "true" : undefined,
    status: state.status,
    order: orderOf(state),
    limit: DEAD,
    ...more,
  });
}

/** @param {State} state */
const barcodeAsks = (state) => [barcodePath(state.url, state.dir === "in" ? "in" : "out")];

/** @param {State} state */
const backlinksAsks = (state) =>
  [targetIn(state), ...(state.and ? [targetOf(state.and)] : [])].map((target) =>
    question(target, choiceOf(state), whenOf(state)),
  );

/** @param {State} state */
const neighbourhoodAsks = (state) => /** @type {const} */ ([aroundPath(state), barcodePath(state.url, "out", 1)]);

/** What each view asks, by the name of the view. */
export const asks = {
  search: () => /** @type {const} */ ([path("v1/suggest", { limit: 8 }), path("v1/overview", {})]),
  barcode: barcodeAsks,
  dates: (/** @type {State} */ state) => [barcodePath(state.url, "out")],
  backlinks: backlinksAsks,
  neighbourhood: neighbourhoodAsks,
  deaths: (/** @type {State} */ state) => [deathsPath(state)],
  store: () => /** @type {const} */ ([path("v1/overview", {}), path("v1/stats", {}), path("v1/topology", {})]),
};
