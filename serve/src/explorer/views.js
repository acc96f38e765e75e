// The views, and which of them an address opens.

/** The views in order of their keys 1 to 9: of a URL, of the whole store, or of either; and how modules are loaded. */
export const VIEWS = [
  { id: "barcode", word: "Barcode", load: () => import("./barcode.js") },
  { id: "dates", word: "Two dates", load: () => import("./dates.js") },
  { id: "backlinks", word: "Backlinks", load: () => import("./backlinks.js") },
  { id: "neighbourhood", word: "Neighbourhood", load: () => import("./neighbourhood.js") },
  { id: "store", word: "The store", load: () => import("./store.js"), isOfStore: true },
  { id: "deaths", word: "Dead pages", load: () => import("./deaths.js"), isOfEither: true },
];
export const FIRST = { id: "search", word: "Search", load: () => import("./search.js") };

/** The view of a state: one of a URL needs a URL. */
export function viewOf(wanted) {
  const view = VIEWS.find((own) => own.id === wanted.v);
  if (view?.isOfStore || view?.isOfEither) return view;
  return wanted.url ? view || VIEWS[0] : FIRST;
}
