// Runs before the rest of the page is there: asks for the answers and for the code of the view that the address names.

import { stateOf } from "./address.js";
import { asks } from "./asks.js";
import { call } from "./data.js";
import { viewOf } from "./views.js";

/** Asks for what a state needs. Who fails is told by the view, which asks again and gets the same answer. */
export function askFor(state) {
  const view = viewOf(state);
  for (const wanted of [...asks[view.id](state).map(call), view.load()]) wanted.catch(() => undefined);
}

askFor(stateOf(location.search));
