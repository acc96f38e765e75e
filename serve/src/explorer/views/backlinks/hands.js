// Pointers and keys on backlinks: rows and periods are pointed at and chosen, and the list is dragged and scrolled.

import { pointIn } from "../../parts/area.js";
import { isIn } from "../../parts/dom.js";
import { toggleKept } from "./bench.js";
import { choosePeriod, enter, scrollTo, select, stepPeriod } from "./moves.js";
import { HEADS, LINE, markAt, rowAt } from "./places.js";

/** @import { View } from "./state.js" */

/** Pixels that a click may move. */
const STILL = 4;

/**
 * The mark at an x of the list; -1 if there is none.
 * @type {(view: View, x: number) => number}
 */
const markIn = (view, x) => (view.layout ? markAt({ ...view, layout: view.layout }, x) : -1);

/** @type {(view: View) => void} */
function watchChart(view) {
  const { chartArea } = view;
  const markOf = (/** @type {MouseEvent} */ event) => {
    const { width = 0, chartWidth = 0 } = view.layout || {};
    return markIn(view, pointIn(event, chartArea).x + width - chartWidth);
  };
  chartArea.addEventListener("pointermove", (event) => {
    view.pointed = markOf(event);
    view.current = -1;
    view.redraw();
  });
  chartArea.addEventListener("pointerleave", () => {
    view.pointed = -1;
    view.redraw();
  });
  chartArea.addEventListener("click", (event) => choosePeriod(view, view.marks[markOf(event)]));
}

/** @type {(view: View) => void} */
function watchList(view) {
  const { listArea } = view;
  /** @type {{ y: number, scroll: number, far: number } | undefined} */
  let drag;
  listArea.addEventListener("pointerdown", (event) => {
    drag = { y: pointIn(event, listArea).y, scroll: view.scroll, far: 0 };
    listArea.setPointerCapture(event.pointerId);
  });
  listArea.addEventListener("pointermove", (event) => {
    const point = pointIn(event, listArea);
    if (drag) {
      drag.far = Math.max(drag.far, Math.abs(point.y - drag.y));
      if (drag.far > STILL) {
        scrollTo(view, drag.scroll - (point.y - drag.y));
        return;
      }
    }
    view.current = rowAt(view, point.y);
    view.pointed = point.x > (view.layout?.left ?? 0) ? markIn(view, point.x) : -1;
    listArea.style.cursor = view.current >= 0 ? "pointer" : "default";
    view.redraw();
  });
  listArea.addEventListener("pointerup", (event) => {
    const row = drag && drag.far <= STILL ? view.rows[rowAt(view, pointIn(event, listArea).y)] : undefined;
    drag = undefined;
    if (row) enter(view, row);
  });
  listArea.addEventListener("pointercancel", () => {
    drag = undefined;
  });
  listArea.addEventListener("pointerleave", () => {
    view.current = -1;
    view.pointed = -1;
    view.redraw();
  });
  listArea.addEventListener(
    "wheel",
    (event) => {
      const before = view.scroll;
      scrollTo(view, view.scroll + event.deltaY);
      if (view.scroll !== before) event.preventDefault();
    },
    { passive: false },
  );
}

/**
 * Lets pointers choose rows and periods.
 * @type {(view: View) => void}
 */
export function watchPointers(view) {
  watchChart(view);
  watchList(view);
}

/**
 * Chooses a row that is so far from the one that is chosen.
 * @type {(view: View, by: number) => void}
 */
const step = (view, by) => select(view, view.current < 0 ? Math.ceil(view.scroll / LINE) : view.current + by);

/**
 * What each key does.
 * @type {Record<string, (view: View, page: number) => unknown>}
 */
const KEYS = {
  ArrowDown: (view) => step(view, 1),
  ArrowUp: (view) => step(view, -1),
  PageDown: (view, page) => step(view, page),
  PageUp: (view, page) => step(view, -page),
  Home: (view) => select(view, 0),
  End: (view) => select(view, view.rows.length - 1),
  Escape: (view) => choosePeriod(view, undefined),
};
/** @type {Record<string, number>} */
const ASIDE = { ArrowLeft: -1, ArrowRight: 1 };

/**
 * Whether the view takes a key, which it then has done.
 * @type {(view: View, event: KeyboardEvent) => boolean}
 */
export function key(view, event) {
  if (event.key === "k") {
    toggleKept(view.bench);
    return true;
  }
  if (view.table.isShown() || !view.sides[0].months.length) return false;
  const row = view.rows[view.current];
  const page = Math.max(1, Math.floor(((view.layout?.height ?? 0) - HEADS) / LINE) - 1);
  if (Object.hasOwn(KEYS, event.key)) KEYS[event.key](view, page);
  else if (event.key === "Enter" && row && !isIn(event, "button, a")) enter(view, row);
  else if (ASIDE[event.key] && view.marks.length) stepPeriod(view, ASIDE[event.key]);
  else return false;
  return true;
}
