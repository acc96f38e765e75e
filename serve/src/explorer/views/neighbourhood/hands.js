// Pointers and keys on a neighbourhood: nodes are pointed at and opened, and time is dragged and stepped through.

import { pointIn } from "../../parts/area.js";
import { isIn } from "../../parts/dom.js";
import { DAY } from "../../text/time.js";
import { endOfDay, months, moveTo, pointAt, step, toggle } from "./moves.js";
import { enter } from "./panel.js";
import { placeOf } from "./rings.js";
import { timeIn } from "./timeline.js";

/** @import { View } from "./state.js" */

/** Pixels that a pointer may be away from a node. */
const NEAR = 12;

/**
 * The node nearest to a pointer; -1 if there is none.
 * @type {(view: View, event: MouseEvent) => number}
 */
function nodeAt(view, event) {
  const { around, dated, layout } = view;
  if (!layout) return -1;
  const point = pointIn(event, view.area);
  const laid = { ...view, layout };
  let [best, nearest] = [-1, NEAR];
  for (let node = 0; node < around.size; node += 1) {
    if (!dated.ring[node]) continue;
    const [x, y] = placeOf(laid, node);
    const far = Math.hypot(x - point.x, y - point.y);
    if (far < nearest) [best, nearest] = [node, far];
  }
  return best;
}

/** @type {(view: View) => void} */
function watchRings(view) {
  const { area } = view;
  area.addEventListener("pointermove", (event) => {
    const node = nodeAt(view, event);
    if (node === view.pointed) return;
    area.style.cursor = node >= 0 ? "pointer" : "default";
    pointAt(view, node);
  });
  area.addEventListener("pointerleave", () => pointAt(view, -1));
  area.addEventListener("click", (event) => {
    const node = nodeAt(view, event);
    if (node >= 0) enter(view, view.around.nodes[node]);
  });
  area.addEventListener(
    "wheel",
    (event) => {
      // Where the page is higher than the window, the wheel moves the page.
      if (document.documentElement.scrollHeight > innerHeight + 1) return;
      event.preventDefault();
      moveTo(view, view.dated.now + Math.sign(event.deltaY) * 30 * DAY);
    },
    { passive: false },
  );
}

/** @type {(view: View) => void} */
function watchTime(view) {
  const { slider } = view;
  let isDragged = false;
  const drag = (/** @type {PointerEvent} */ event) => {
    const { layout } = view;
    if (layout) moveTo(view, endOfDay(timeIn({ ...view, layout }, pointIn(event, slider).x)), false);
  };
  slider.addEventListener("pointerdown", (event) => {
    isDragged = true;
    slider.setPointerCapture(event.pointerId);
    if (view.isPlaying) toggle(view);
    drag(event);
  });
  slider.addEventListener("pointermove", (event) => {
    if (isDragged) drag(event);
  });
  const end = () => {
    if (isDragged) moveTo(view, view.dated.now);
    isDragged = false;
  };
  slider.addEventListener("pointerup", end);
  slider.addEventListener("pointercancel", end);
}

/**
 * Lets pointers choose nodes and dates.
 * @type {(view: View) => void}
 */
export function watchPointers(view) {
  watchRings(view);
  watchTime(view);
}

/**
 * What each key does, wherever it is pressed.
 * @type {Record<string, (view: View) => void>}
 */
const KEYS = {
  ArrowLeft: (view) => months(view, -1),
  ArrowRight: (view) => months(view, 1),
  Home: (view) => moveTo(view, view.first),
  End: (view) => moveTo(view, view.end),
  ArrowDown: (view) => step(view, 1),
  ArrowUp: (view) => step(view, -1),
};

/**
 * Whether the view takes a key, which it then has done.
 * @type {(view: View, event: KeyboardEvent) => boolean}
 */
export function key(view, event) {
  if (view.table.isShown()) return false;
  const isOnButton = isIn(event, "button, a");
  if (Object.hasOwn(KEYS, event.key)) KEYS[event.key](view);
  else if (event.key === " " && !isOnButton) toggle(view);
  else if (event.key === "Enter" && view.pointed >= 0 && !isOnButton) enter(view, view.around.nodes[view.pointed]);
  else if (event.key === "Escape" && view.pointed >= 0) pointAt(view, -1);
  else return false;
  return true;
}
