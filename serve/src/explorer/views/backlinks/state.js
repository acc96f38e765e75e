// The state of the view of backlinks: the target and the one beside it, their answers, what is chosen, and which rows
// are shown.
//
// The server chooses rows: by host of the pages that link, by what happened to them, and by time. Here they are only
// filtered by a text, and of two targets by who links to which.

import { countsOf, united } from "../../data/beside.js";
import { failureOf } from "../../data/call.js";
import { extentOf, marksOf, monthsOf } from "../../data/months.js";
import { choiceOf, named, question, ROWS_MAX, rowOf } from "../../data/referrers.js";
import { nameOf, targetIn, targetOf } from "../../data/targets.js";
import { cut } from "../../text/cut.js";
import { whenOf } from "../../text/dates.js";
import { safe } from "../../text/names.js";
import { RIGHT } from "./places.js";

/** @import { Backlinks } from "../../data/answers.js" */
/** @import { Mark, Month } from "../../data/months.js" */
/** @import { Ask, Choice, NamedRow, Row } from "../../data/referrers.js" */
/** @import { Target } from "../../data/targets.js" */
/** @import { Context, State } from "../../page/state.js" */
/** @import { between } from "../../parts/between.js" */
/** @import { tableSwitch } from "../../parts/rows.js" */
/** @import { When } from "../../text/dates.js" */
/** @import { Bench } from "./bench.js" */
/** @import { Layout } from "./places.js" */

/**
 * The target beside; `missing` says why there is no answer about it.
 * @typedef {{ target: Target, missing?: string }} Other
 */

/**
 * A side: a target, what asks about it, its answer, and its months.
 * @typedef {{ target: Target, ask: Ask, answer: Backlinks, months: Month[] }} Side
 */

/**
 * The state of the view.
 * @typedef {object} Scene
 * @property {Context} context
 * @property {State} state
 * @property {Choice} choice
 * @property {When} when The chosen stretch of time.
 * @property {Target} target
 * @property {Other} [other]
 * @property {Side[]} sides The target, and the other one if the server has an answer about it.
 * @property {string} [kept] The list of targets in the address.
 * @property {Row[]} all The rows that were read: of both targets as one list if isWhole, else of the target.
 * @property {boolean} isWhole Whether all rows were read.
 * @property {number} from The first second of the axis, which is the same whichever rows are chosen.
 * @property {number} to The last second of the axis.
 * @property {NamedRow[]} rows The rows that are shown.
 * @property {Mark[]} marks
 * @property {Mark[]} [otherMarks]
 * @property {number} scroll Pixels.
 * @property {number} current The place of the row that is pointed at; -1 if there is none.
 * @property {number} pointed The place of the mark that is pointed at; -1 if there is none.
 * @property {number} asks How often rows were asked for.
 * @property {Layout} [layout]
 */

/**
 * The elements of the view.
 * @typedef {object} Elements
 * @property {HTMLElement} chartArea
 * @property {HTMLCanvasElement} chart
 * @property {HTMLElement} listArea The area of the rows.
 * @property {HTMLCanvasElement} list
 * @property {HTMLElement} readout The line below.
 * @property {ReturnType<typeof between>} dates The fields of dates.
 * @property {HTMLElement} who Chooses rows by the target that they link to.
 * @property {Bench} bench
 * @property {ReturnType<typeof tableSwitch<NamedRow>>} table
 * @property {() => void} redraw Draws both pictures in the next frame.
 */

/** @typedef {Scene & Elements} View */

/** Pixels that a mark of the chart has at least. */
const MARK = 4;

/**
 * Who is not in the store is said beside its name.
 * @type {(error: unknown) => string}
 */
function missingWords(error) {
  const { status, message } = failureOf(error);
  return status === 404 ? "is not in the store" : cut(safe(message), 120);
}

/**
 * The target beside, of which it is known whether there is an answer.
 * @type {(context: Context, choice: Choice, when: When) => Promise<Other | undefined>}
 */
async function otherOf({ state, call }, choice, when) {
  if (!state.and) return undefined;
  const target = targetOf(state.and);
  try {
    await call(question(target, choice, when));
    return { target };
  } catch (error) {
    return { target, missing: missingWords(error) };
  }
}

/**
 * The state of an address, with the answers to it. Where the target beside is missing, the target is shown alone.
 * @param {Context} context
 * @returns {Promise<Scene>}
 */
export async function sceneOf(context) {
  const { state } = context;
  const [choice, target] = [choiceOf(state), targetIn(state)];
  const when = whenOf(state);
  const other = await otherOf(context, choice, when);
  /** @type {Scene} */
  const scene = {
    ...{ context, state, choice, when, target, other, kept: state.list, sides: [] },
    ...{ all: [], isWhole: false, from: 0, to: 0, rows: [], marks: [] },
    ...{ scroll: 0, current: -1, pointed: -1, asks: 0 },
  };
  const targets = other && !other.missing ? [target, other.target] : [target];
  scene.sides = await Promise.all(targets.map((own) => sideOf(scene, own)));
  const whole = await Promise.all(scene.sides.map((side) => wholeOf(scene, side)));
  take(scene);
  const months = scene.sides.flatMap((side) => side.months);
  const first = whole.flatMap((answer) => answer.rows.map(rowOf));
  [scene.from, scene.to] = extentOf(months, first);
  return scene;
}

/** @type {(scene: Scene, target: Target) => Promise<Side>} */
async function sideOf(scene, target) {
  /** @type {Ask} */
  const ask = (more) => question(target, scene.choice, scene.when, more);
  const answer = await scene.context.call(ask());
  return { target, ask, answer, months: monthsOf(answer) };
}

/**
 * The answer about a target where nothing is chosen by what happened, or by time.
 * @type {(scene: Scene, side: Side) => Promise<Backlinks>}
 */
async function wholeOf({ choice, when, context }, { target, answer }) {
  if (choice.event === "any" && !when.span) return answer;
  return context.call(question(target, { ...choice, event: "any" }, { span: undefined }));
}

/**
 * Whether rows of two targets are shown as one list.
 * @type {(scene: Scene) => boolean}
 */
export const isUnited = ({ sides, isWhole }) => sides.length > 1 && isWhole;

/**
 * Takes the rows of the answers, or others that were read: of both targets as one list if all of them are there, else
 * those of A.
 * @type {(scene: Scene, read?: Row[][]) => void}
 */
export function take(scene, read = scene.sides.map(({ answer }) => answer.rows.map(rowOf))) {
  scene.isWhole = scene.sides.every(({ answer }, at) => answer.rows_selected === read[at].length);
  scene.all = isUnited(scene) ? united(read[0], read[1], scene.choice.order) : read[0];
}

/**
 * Asks for the rows that are chosen; for as many as the server gives at once where a text is looked for. Whether other
 * rows came, or undefined if others are wanted since.
 * @type {(scene: Scene) => Promise<boolean | undefined>}
 */
export async function askRows(scene) {
  const { sides, context, choice } = scene;
  scene.asks += 1;
  const own = scene.asks;
  const askAll = (/** @type {Parameters<Ask>[0]} */ more) =>
    Promise.all(sides.map(({ ask }) => context.call(ask(more))));
  let next = await askAll(undefined);
  const isPart = next.some((answer) => answer.rows_selected > answer.rows.length);
  if (choice.text && isPart) next = await askAll({ limit: ROWS_MAX });
  if (!context.isOpen() || own !== scene.asks) return undefined;
  if (sides.every((side, at) => side.answer === next[at])) return false;
  sides.forEach((side, at) => {
    side.answer = next[at];
  });
  take(scene);
  return true;
}

/**
 * Whether a row has the text that is looked for, and links to the targets that are chosen.
 * @type {(scene: Scene, row: Row) => boolean}
 */
export const isShown = ({ choice }, row) =>
  (!choice.text || row.url.toLowerCase().includes(choice.text.toLowerCase())) &&
  (!row.who || choice.who === "any" || row.who === choice.who);

/**
 * Shows the rows that are chosen, from the first one on.
 * @type {(scene: Scene) => void}
 */
export function filter(scene) {
  scene.rows = named(scene.all.filter((row) => isShown(scene, row)));
  scene.scroll = 0;
  scene.current = -1;
}

/**
 * Puts months together to marks, for a chart of so many pixels.
 * @type {(scene: Scene, layout: Layout) => void}
 */
export function place(scene, layout) {
  const { sides, from, to } = scene;
  scene.layout = layout;
  const [marks, otherMarks] = sides.map(({ months }) =>
    marksOf(months, [from, to], layout.width - layout.left - RIGHT, MARK),
  );
  Object.assign(scene, { marks, otherMarks });
}

/**
 * How many rows link to both targets, to A only and to B only.
 * @type {(scene: Scene) => ReturnType<typeof countsOf>}
 */
export const whoCounts = ({ all }) => countsOf(all);

/**
 * The state of the address with what was chosen since it was opened.
 * @type {(scene: Scene) => State}
 */
export function stateNow({ state, kept, choice, when }) {
  const said = (/** @type {string} */ value) => (value === "any" ? undefined : value);
  const { event, who, text } = choice;
  return { ...state, list: kept, event: said(event), who: said(who), text, from: when.from, to: when.to };
}

/**
 * The names of both targets.
 * @type {(scene: Scene) => Record<string, string | undefined>}
 */
export const sideNames = ({ target, other }) => ({ A: nameOf(target), B: other && nameOf(other.target) });
