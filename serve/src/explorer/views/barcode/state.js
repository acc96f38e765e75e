// The state of the view of a barcode: the answer, what is chosen, the picture, and the elements around it.

import { BARCODE_MAX, barcode, barcodePath } from "../../data/barcode.js";
import { measured, ordered } from "../../data/order.js";
import { among } from "../../data/referrers.js";
import { hostOf } from "../../text/names.js";
import { sceneOf } from "./scene.js";

/** @import { Barcode } from "../../data/answers.js" */
/** @import { Bars } from "../../data/barcode.js" */
/** @import { Row } from "../../data/order.js" */
/** @import { Context, State } from "../../page/state.js" */
/** @import { tableSwitch } from "../../parts/rows.js" */
/** @import { Choice, Scene } from "./scene.js" */

/** @typedef {"out" | "in"} Direction */

/** @typedef {ReturnType<typeof tableSwitch<Row>>} Table */

/**
 * The state of the view, and its elements.
 * @typedef {object} View
 * @property {Context} context
 * @property {State} state
 * @property {Direction} direction
 * @property {Bars} data
 * @property {Row[]} all
 * @property {Choice} choice
 * @property {Scene} scene
 * @property {HTMLElement} area The area of the picture.
 * @property {HTMLCanvasElement} picture
 * @property {HTMLCanvasElement} over The canvas over the picture.
 * @property {HTMLElement} readout The line below.
 * @property {Table} table
 * @property {() => void} redraw Draws the picture in the next frame.
 */

/**
 * What a view is before it has elements.
 * @typedef {Pick<View, "context" | "state" | "direction" | "data" | "all" | "choice">} Subject
 */

/** @type {(state: State, data: Bars) => Choice} */
const choiceOf = (state, data) => ({
  sort: among(state.sort, ["birth", "death", "life", "name"], "life"),
  group: among(state.group, ["none", "host", "year"], "none"),
  across: state.across === "captures" && data.outward ? "captures" : "time",
  rows: among(state.rows, ["read", "dense", "all"], "read"),
  text: state.text || "",
});

/** @type {(context: Context, state: State, direction: Direction, answer: Barcode) => Subject} */
export function subjectOf(context, state, direction, answer) {
  const data = barcode(answer);
  return { context, state, direction, data, all: measured(data), choice: choiceOf(state, data) };
}

/**
 * The rows that are chosen, in order.
 * @type {(view: Subject) => Scene["order"]}
 */
export const orderOf = ({ all, choice, data }) => ordered(all, choice, hostOf(data.url));

/** @type {(view: Subject) => Scene} */
export const pictureOf = (view) => sceneOf(view.data, view.all, view.choice, orderOf(view));

/**
 * Whether all rows are needed: a first answer has those that lived longest, not the first or those with a text.
 * @type {(view: Subject) => boolean}
 */
export const isWhole = ({ choice }) => choice.text !== "" || choice.sort !== "life";

/**
 * Asks for the rows that a first answer leaves out.
 * @type {(view: Subject) => Promise<void>}
 */
export async function load(view) {
  if (!view.data.rest || view.all.length >= BARCODE_MAX) return;
  view.data = barcode(await view.context.call(barcodePath(view.state.url, view.direction, BARCODE_MAX)));
  view.all = measured(view.data);
}
