// Runs before the rest of the page is there: asks for the answers and for the code of the view that the address names.

import { call } from "./data/call.js";
import { stateOf } from "./page/address.js";
import { asks } from "./page/asks.js";
import { viewOf } from "./page/views.js";

/** @import { Path } from "./data/answers.js" */
/** @import { State } from "./page/state.js" */

/**
 * Asks for what a state needs. Who fails is told by the view, which asks again and gets the same answer.
 * @param {State} state
 */
export function askFor(state) {
  const view = viewOf(state);
  /** @type {Promise<unknown>[]} */
  const asked = [...asks[view.id](state).map((path) => call(/** @type {Path<unknown>} */ (path))), view.load()];
  for (const wanted of asked) wanted.catch(() => undefined);
}

askFor(stateOf(location.search));
