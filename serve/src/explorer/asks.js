// What each view asks the server first, given the state of its address: the page asks for it while the code of the view
// is on its way, and the view gets the same answer.

import { barcodePath, path } from "./data.js";
import { choiceOf, question, spanOf } from "./referrers.js";

/** The most nodes of a neighbourhood. */
const NODES = 15000;

export const unitOf = (state) => (["host", "domain"].includes(state.unit) ? state.unit : "page");

export const asks = {
  search: () => [path("v1/suggest", { limit: 8 }), path("v1/overview", {})],
  barcode: (state) => [barcodePath(state.url, state.dir === "in" ? "in" : "out")],
  dates: (state) => [barcodePath(state.url, "out")],
  backlinks: (state) => [question(state.url, choiceOf(state), spanOf(state))],
  neighbourhood: (state) => [
    path("v1/neighbourhood", { url: state.url, unit: unitOf(state), limit: NODES }),
    barcodePath(state.url, "out", 1),
  ],
  store: () => ["v1/overview", "v1/stats", "v1/topology"].map((name) => path(name, {})),
};
