// What moves the picture of a neighbourhood: another date, time that plays, another node that is pointed at.

import { learn } from "../../data/surroundings.js";
import { cleared, colours } from "../../drawing/canvas.js";
import { aroundPath } from "../../page/asks.js";
import { cut } from "../../text/cut.js";
import { lastSecondOf } from "../../text/dates.js";
import { within } from "../../text/numbers.js";
import { DAY, day, digits, YEAR } from "../../text/time.js";
import { fillDomains, fillDomainsSoon, tell } from "./panel.js";
import { drawRings } from "./rings.js";
import { find, inOrder, numbersOf, rowsOf } from "./state.js";
import { drawTime } from "./timeline.js";
import { findWays, waysText } from "./ways.js";

/** @import { Scene, View } from "./state.js" */

/** How fast time plays, in seconds of time a second. */
const SPEED = 0.9 * YEAR;
/** Milliseconds in which a node comes or goes. */
const FADE = 140;
/** Milliseconds that a date is rested on before the server is asked about it. */
const PAUSE = 120;

const isStill = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

/**
 * Asks what only an answer about this date says, after a while: what was unknown dated, and since when links of groups
 * stand that are there. About the end, the answer about all dates says it of pages. Whether there is news.
 * @param {Scene} scene
 * @param {number} wait
 */
export async function learnThen(scene, wait) {
  const { unit, end, dated, context, state } = scene;
  const time = dated.now;
  if (time === end && unit === "page") return false;
  await new Promise((done) => setTimeout(done, wait));
  if (time !== dated.now) return false;
  const question = aroundPath(state, { unit, fold: undefined, at: digits(time) });
  const answer = await context.call(question).catch(() => undefined);
  if (!answer || time !== dated.now) return false;
  learn(scene.around, time, answer);
  return true;
}

/**
 * Moves to a date; `isLast` if it rests there.
 * @type {(view: View, time: number, isLast?: boolean) => void}
 */
export function moveTo(view, time, isLast = true) {
  const { dated, context, outside } = view;
  if (time !== dated.now) outside.replaceChildren();
  dated.now = within(Math.floor(time), view.first, view.end);
  if (isLast) {
    // The picture is that of a second; a day means its last one.
    context.set({ at: dated.now === view.end ? undefined : digits(dated.now).replace(/235959$/, "") });
    if (view.state.to) showWays(view);
    view.learning = learnThen(view, PAUSE).then((isNews) => isNews && context.isOpen() && update(view, true));
  }
  update(view, isLast);
}

/**
 * Finds which nodes are there at the date, and shows it.
 * @type {(view: View, isLast: boolean) => void}
 */
function update(view, isLast) {
  const { dated, first, date, slider } = view;
  find(view);
  date.textContent = day(dated.now);
  slider.setAttribute("aria-valuenow", String(Math.round((dated.now - first) / DAY)));
  slider.setAttribute("aria-valuetext", `${day(dated.now)}: ${numbersOf(view)}`);
  if (isLast) {
    if (view.table.isShown()) view.table.update(rowsOf(view));
    fillDomains(view);
  } else fillDomainsSoon(view);
  tell(view);
  view.redraw();
}

/**
 * Looks for ways to the URL of the state, and shows them.
 * @type {(view: View) => Promise<void>}
 */
async function showWays(view) {
  if (!(await findWays(view)) || !view.context.isOpen()) return;
  fillDomains(view);
  view.redraw();
  view.context.say(waysText(view));
}

/**
 * Looks for ways to a URL; shows none without one.
 * @type {(view: View, to: string | undefined) => void}
 */
export function seek(view, to) {
  view.state.to = to;
  view.found = undefined;
  view.context.set({ to });
  view.side.text = "";
  if (to) showWays(view);
  else fillDomains(view);
  view.redraw();
}

/**
 * Plays time, or stops.
 * @type {(view: View) => void}
 */
export function toggle(view) {
  const { play, dated } = view;
  view.isPlaying = !view.isPlaying;
  play.textContent = view.isPlaying ? "❚❚" : "▶";
  play.setAttribute("aria-label", view.isPlaying ? "Pause" : "Play");
  if (view.isPlaying && dated.now >= view.end) dated.now = view.first;
  if (!view.isPlaying) moveTo(view, dated.now);
  view.lastFrame = 0;
  view.redraw();
}

/**
 * The picture is that of a second. What is chosen is a day, and means its last one, as in a question.
 * @type {(time: number) => number}
 */
export const endOfDay = (time) => lastSecondOf(digits(time).slice(0, 8)) ?? time;

/**
 * Moves to the same day some months later or earlier.
 * @type {(view: View, step: number) => void}
 */
export function months(view, step) {
  const at = new Date(view.dated.now * 1000);
  const moved = Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + step, Math.min(28, at.getUTCDate())) / 1000;
  moveTo(view, endOfDay(moved));
  view.context.say(view.slider.getAttribute("aria-valuetext") || "");
}

/**
 * Points at a node; -1 for none.
 * @type {(view: View, node: number) => void}
 */
export function pointAt(view, node) {
  view.pointed = node;
  tell(view);
  view.redraw();
}

/**
 * Points at the next node or at the one before.
 * @type {(view: View, by: number) => void}
 */
export function step(view, by) {
  const list = inOrder(view);
  if (!list.length) return;
  const here = list.indexOf(view.pointed);
  const next = here < 0 ? (by > 0 ? 0 : list.length - 1) : here + by;
  pointAt(view, list[within(next, 0, list.length - 1)]);
  const steps = view.dated.ring[view.pointed] === 1 ? "one step" : "two steps";
  view.context.say(`${cut(view.names[view.pointed], 120)}, ${steps}`);
}

/** @type {(view: View) => void} */
export function resize(view) {
  const { area, slider } = view;
  if (area.clientWidth < 10) return;
  const [width, height] = [area.clientWidth, area.clientHeight];
  const room = width < 560 ? 26 : 90;
  const round = Math.max(60, Math.min(width / 2 - room, height / 2 - 26));
  const time = { width: slider.clientWidth, height: slider.clientHeight };
  view.layout = { width, height, round, x: width / 2, y: height / 2, time };
  view.drawn.placed.fill(0);
  view.redraw();
}

/**
 * Moves each node a step on its way in or out, of which this is the part; whether some node goes on.
 * @type {(scene: Scene, part: number) => boolean}
 */
function fade({ around, dated, drawn: { shown } }, part) {
  let moves = false;
  for (let node = 0; node < around.size; node += 1) {
    const wanted = dated.ring[node] ? 1 : 0;
    if (shown[node] === wanted) continue;
    shown[node] += (wanted - shown[node]) * part;
    if (Math.abs(wanted - shown[node]) < 0.02) shown[node] = wanted;
    else moves = true;
  }
  return moves;
}

/**
 * Draws a frame; `at` is its time in milliseconds.
 * @type {(view: View, at: number) => void}
 */
export function drawFrame(view, at) {
  const { context, layout, picture, timeline } = view;
  if (!context.isOpen() || !layout) return;
  const passed = view.lastFrame ? Math.min(100, at - view.lastFrame) : 16;
  view.lastFrame = at;
  if (view.isPlaying) {
    if (view.dated.now >= view.end) toggle(view);
    else moveTo(view, view.dated.now + (SPEED * passed) / 1000, false);
  }
  const moves = fade(view, isStill() ? 1 : 1 - Math.exp(-passed / FADE));
  const theme = colours();
  const laid = { ...view, layout };
  drawRings(cleared(picture, layout.width, layout.height), laid, theme);
  drawTime(cleared(timeline, layout.time.width, layout.time.height), laid, theme);
  if (moves || view.isPlaying) view.redraw();
  else view.lastFrame = 0;
  context.drawn();
}
