// The state of the view of dead pages: whose they are, the answer, the rows that were read, and the year that is
// chosen.

import { wholeOf } from "../../page/asks.js";
import { bare } from "../../text/names.js";

/** @import { DeadPage, Deaths } from "../../data/answers.js" */
/** @import { Context, State } from "../../page/state.js" */

/**
 * The state of the view, and its elements.
 * @typedef {object} View
 * @property {Context} context
 * @property {State} state
 * @property {ReturnType<typeof wholeOf>} whole The store, the host or the domain.
 * @property {Deaths} answer
 * @property {DeadPage[]} rows The rows that were read.
 * @property {number[]} years
 * @property {number[]} died The pages that died in each year.
 * @property {number[]} returned The pages that returned in each year.
 * @property {number} width The width of the picture in pixels.
 * @property {number} asks How often another year was asked for.
 * @property {HTMLElement} area The area of the picture.
 * @property {HTMLElement} readout The line below.
 * @property {HTMLElement} body The lines of the table.
 * @property {HTMLElement} foot Says how many rows are shown.
 */

/** @typedef {Omit<View, "area" | "readout" | "body" | "foot">} Scene */

/** @type {(context: Context, answer: Deaths) => Scene} */
export const sceneOf = (context, answer) => ({
  ...{ context, state: context.state, whole: wholeOf(context.state), answer, rows: answer.rows },
  years: answer.periods.map((start) => Number(start.slice(0, 4))),
  ...{ died: answer.died, returned: answer.returned, width: 0, asks: 0 },
});

/**
 * The year that is chosen, if it is one.
 * @type {(view: Scene) => number | undefined}
 */
export const chosenYear = ({ state }) => (state.from && state.from === state.to ? Number(state.from) : undefined);

/**
 * The place of the year that is chosen; -1 if there is none.
 * @type {(view: Scene) => number}
 */
export const chosenPlace = (view) => view.years.indexOf(chosenYear(view) ?? NaN);

/**
 * A page of the host in question goes by its path.
 * @type {(view: Scene, url: string) => string}
 */
export function nameOf({ whole }, url) {
  const name = bare(url);
  const host = `${whole.name}/`;
  return whole.match === "host" && name.startsWith(host) ? name.slice(host.length - 1) : name;
}
