// What each view asks the server first, given the state of its address: the page asks for it while the code of the view
// is on its way, and the view gets the same answer.

import { whenOf } from "./between.js";
import { barcodePath, path } from "./data.js";
import { choiceOf, question } from "./referrers.js";
import { hostIn, isName, targetIn, targetOf } from "./targets.js";

/** The most nodes of a neighbourhood; and with more than so many, it is one of directories, hosts or domains. */
const NODES = 15000;
const FOLD = 300;

/** What the nodes of a neighbourhood are, if the address says it. */
const unitOf = ({ unit }) => (["page", "directory", "host", "domain"].includes(unit) ? unit : undefined);

/** The question for what is around a page; `more` has what else is asked. */
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

/** Whose dead pages an address is about: those of the store, of a host or of a domain, and its name. */
export function wholeOf(state) {
  const name = state.url && hostIn(state.url);
  const own = isName(state.url || "") ? "domain" : "host";
  const match = ["store", "host", "domain"].includes(state.match) ? state.match : own;
  return name && match !== "store" ? { match, name } : { match: "store", name };
}

/** The order of dead pages. */
export const orderOf = ({ order }) => (["first", "most", "key"].includes(order) ? order : "last");

/** The question for dead pages; `more` has what else is asked. */
export function deathsPath(state, more = {}) {
  const { match, name } = wholeOf(state);
  return path("v1/deaths", {
    url: match === "store" ? undefined : name,
    matchType: match === "store" ? undefined : match,
    from: state.from,
    to: state.to,
    still: state.still === "1" ? "true" : undefined,
    status: state.status,
    order: orderOf(state),
    limit: DEAD,
    ...more,
  });
}

export const asks = {
  search: () => [path("v1/suggest", { limit: 8 }), path("v1/overview", {})],
  barcode: (state) => [barcodePath(state.url, state.dir === "in" ? "in" : "out")],
  dates: (state) => [barcodePath(state.url, "out")],
  backlinks: (state) =>
    [targetIn(state), ...(state.and ? [targetOf(state.and)] : [])].map((target) =>
      question(target, choiceOf(state), whenOf(state)),
    ),
  neighbourhood: (state) => [aroundPath(state), barcodePath(state.url, "out", 1)],
  deaths: (state) => [deathsPath(state)],
  store: () => ["v1/overview", "v1/stats", "v1/topology"].map((name) => path(name, {})),
};
