// What moves the flags of two dates, by fields, pointers and keys; and what shows the dates anew.

import { cleared, colours } from "../../drawing/canvas.js";
import { pointIn } from "../../parts/area.js";
import { whenOf } from "../../text/dates.js";
import { day } from "../../text/time.js";
import { drawCalendar, fitted, flagsText, nearestTo } from "./calendar.js";
import { fillLists, linesOf } from "./lists.js";
import { fillHead, tell } from "./panel.js";
import { addressIn, nextChange, nextYear, partsOf, stand, written } from "./state.js";

/** @import { View } from "./state.js" */

/**
 * Compares what both flags show.
 * @type {(view: View) => void}
 */
export function compare(view) {
  const { area, context, data, known, list } = view;
  view.parts = partsOf(view);
  view.fields.show(written(view));
  fillHead(view);
  view.lines = linesOf(view);
  list.scrollTop = 0;
  fillLists(view);
  area.setAttribute("aria-valuenow", String(known.indexOf(view.moving === "a" ? view.a : view.b)));
  area.setAttribute("aria-valuetext", flagsText(view));
  const [from, to] = [view.a, view.b].map((at) => day(data.captures[at].time));
  const { lost, kept, gained } = view.parts;
  context.say(`${from} to ${to}: ${lost.length} lost, ${kept.length} kept, ${gained.length} gained`);
  resize(view);
}

/** @type {(view: View) => void} */
export function resize(view) {
  const { area, canvas, context } = view;
  if (area.clientWidth < 10) return;
  const layout = fitted(view, area.clientWidth, area.clientHeight);
  view.layout = layout;
  drawCalendar(cleared(canvas, layout.width, layout.height), { ...view, layout }, colours());
  context.drawn();
}

/**
 * Puts a flag on a capture; A stays the earlier one.
 * @type {(view: View, flag: "a" | "b", at: number) => void}
 */
function put(view, flag, at) {
  if (at < 0 || view[flag] === at) return;
  view.moving = flag;
  view.moved.replaceChildren();
  view[flag] = at;
  if (view.a > view.b) {
    [view.a, view.b] = [view.b, view.a];
    view.moving = flag === "a" ? "b" : "a";
  }
  view.context.set(addressIn(view));
  compare(view);
}

/**
 * Puts the flag whose field was changed on the date that was written; the other one stays where it is.
 * @type {(view: View, texts: { from: string, to: string }) => void}
 */
export function choose(view, { from, to }) {
  const [now, shown] = [addressIn(view), written(view)];
  const { wrong } = whenOf({ from, to });
  if (wrong.from || wrong.to) {
    view.fields.show({ from, to, wrong });
    return;
  }
  stand(view, { a: from === shown.from ? now.a : from, b: to === shown.to ? now.b : to });
  compare(view);
}

/**
 * Moves the flag to the next capture that changed something.
 * @type {(view: View, way: number) => void}
 */
export const step = (view, way) => put(view, view.moving, nextChange(view, way));

/**
 * What each key does.
 * @type {Record<string, (view: View) => void>}
 */
const KEYS = {
  ArrowLeft: (view) => step(view, -1),
  ArrowRight: (view) => step(view, 1),
  PageUp: (view) => put(view, view.moving, nextYear(view, -1)),
  PageDown: (view) => put(view, view.moving, nextYear(view, 1)),
  a: (view) => turnTo(view, "a"),
  b: (view) => turnTo(view, "b"),
};

/**
 * Keys move another flag from here on.
 * @type {(view: View, flag: "a" | "b") => void}
 */
function turnTo(view, flag) {
  view.moving = flag;
  view.context.say(`${flag.toUpperCase()} moves`);
}

/**
 * Whether the view takes a key, which it then has done.
 * @type {(view: View, event: KeyboardEvent) => boolean}
 */
export function key(view, event) {
  if (!Object.hasOwn(KEYS, event.key)) return false;
  KEYS[event.key](view);
  return true;
}

/**
 * Lets pointers drag the flags, and says which capture they are at.
 * @type {(view: View) => void}
 */
export function watchPointers(view) {
  const { area, data, known } = view;
  const places = [...data.captures.keys()];
  /** @type {"a" | "b" | undefined} */
  let dragged;
  /** @type {(event: MouseEvent, among: number[]) => number} */
  const captureAt = (event, among) => {
    const { x, y } = pointIn(event, view.canvas);
    return view.layout ? nearestTo({ ...view, layout: view.layout }, x, y, among) : -1;
  };
  area.addEventListener("pointerdown", (event) => {
    const at = captureAt(event, known);
    if (at < 0) return;
    const far = (/** @type {number} */ flag) => Math.abs(data.captures[flag].time - data.captures[at].time);
    dragged = far(view.a) < far(view.b) ? "a" : "b";
    area.setPointerCapture(event.pointerId);
    put(view, dragged, at);
  });
  area.addEventListener("pointermove", (event) => {
    if (dragged) put(view, dragged, captureAt(event, known));
    tell(view, captureAt(event, places));
  });
  area.addEventListener("pointerleave", () => tell(view, -1));
  for (const kind of ["pointerup", "pointercancel"]) {
    area.addEventListener(kind, () => {
      dragged = undefined;
    });
  }
}
