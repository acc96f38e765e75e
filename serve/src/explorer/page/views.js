// The views, and which of them an address opens.

/** @import { asks } from "./asks.js" */
/** @import { State, View } from "./state.js" */

/**
 * A view: the word for it, how its module is loaded, and whether it is of the whole store, or of either that or a URL.
 * @typedef {object} Known
 * @property {keyof typeof asks} id
 * @property {string} word
 * @property {() => Promise<View>} load
 * @property {boolean} [isOfStore]
 * @property {boolean} [isOfEither]
 */

/**
 * The views in order of their keys 1 to 9.
 * @type {Known[]}
 */
export const VIEWS = [
  { id: "barcode", word: "Barcode", load: () => import("../views/barcode.js") },
  { id: "dates", word: "Two dates", load: () => import("../views/dates.js") },
  { id: "backlinks", word: "Backlinks", load: () => import("../views/backlinks.js") },
  { id: "neighbourhood", word: "Neighbourhood", load: () => import("../views/neighbourhood.js") },
  { id: "store", word: "The store", load: () => import("../views/store.js"), isOfStore: true },
  { id: "deaths", word: "Dead pages", load: () => import("../views/deaths.js"), isOfEither: true },
];
/** @type {Known} */
export const FIRST = { id: "search", word: "Search", load: () => import("../views/search.js") };

/**
 * The view of a state: one of a URL needs a URL.
 * @param {State} wanted
 */
export function viewOf(wanted) {
  const view = VIEWS.find((own) => own.id === wanted.v);
  if (view?.isOfStore || view?.isOfEither) return view;
  return wanted.url ? view || VIEWS[0] : FIRST;
}

/**
 * Whether a view can be opened from a state.
 * @param {Known} view
 * @param {State} state
 */
export const isOffered = (view, state) => Boolean(state.url || view.isOfStore || view.isOfEither);
