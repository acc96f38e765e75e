// Pointers and keys on a barcode: hover, click, drag, pinch, wheel, and the keys that do the same.

import { mementoOf } from "../../data/barcode.js";
import { pointIn } from "../../parts/area.js";
import { isIn } from "../../parts/dom.js";
import { digits } from "../../text/time.js";
import { hover, moveTo, scrollTo, select, zoom } from "./moves.js";
import { tell } from "./readout.js";
import { AXIS, captureNear, rowAt, rowNear, scaleOf, tickAt, unitAt } from "./scene.js";

/** @import { Row } from "../../data/order.js" */
/** @import { View } from "./state.js" */

/** @typedef {{ x: number, y: number }} Point */

/**
 * Pointers that are down, by their numbers; and where one of them began: its scroll, the begin of the axis, whether it
 * was in the map, and how far it went.
 * @typedef {object} Hands
 * @property {Map<number, Point>} fingers
 * @property {Point & { scroll: number, from: number, isMap: boolean, far: number }} [drag]
 */

/** Pixels that a click may move. */
const STILL = 4;

/** @type {(view: View, point: Point) => boolean} */
const isInMap = ({ scene: { layout } }, point) =>
  layout.map > 0 && point.x > layout.width - layout.map && point.y > AXIS;

/**
 * Scrolls to a point of the map.
 * @type {(view: View, point: Point) => void}
 */
function toMap(view, point) {
  const { chart, total } = view.scene.layout;
  scrollTo(view, ((point.y - AXIS) / chart.height) * total - chart.height / 2);
}

/**
 * How far two fingers are apart, and the middle between them.
 * @type {(hands: Hands) => { far: number, x: number }}
 */
function pinch({ fingers }) {
  const [one, other] = [...fingers.values()];
  return { far: Math.hypot(one.x - other.x, one.y - other.y), x: (one.x + other.x) / 2 };
}

/** @type {(view: View, hands: Hands, event: PointerEvent) => void} */
function down(view, hands, event) {
  const { area, scene } = view;
  const point = pointIn(event, area);
  hands.fingers.set(event.pointerId, point);
  area.setPointerCapture(event.pointerId);
  const begun = { ...point, scroll: scene.scroll, from: scene.from, isMap: isInMap(view, point), far: 0 };
  hands.drag = hands.fingers.size > 1 ? undefined : begun;
  if (hands.drag?.isMap) toMap(view, point);
}

/** @type {(view: View, hands: Hands, event: PointerEvent) => void} */
function move(view, hands, event) {
  const { area, scene } = view;
  const { fingers, drag } = hands;
  const point = pointIn(event, area);
  if (fingers.size > 1 && fingers.has(event.pointerId)) {
    const before = pinch(hands);
    fingers.set(event.pointerId, point);
    const after = pinch(hands);
    zoom(view, before.far / Math.max(1, after.far), unitAt(scene, after.x));
    return;
  }
  if (drag?.isMap) {
    toMap(view, point);
    return;
  }
  if (drag) {
    drag.far = Math.max(drag.far, Math.abs(point.x - drag.x) + Math.abs(point.y - drag.y));
    if (drag.far > STILL) {
      moveTo(view, drag.from - (point.x - drag.x) / scaleOf(scene));
      scrollTo(view, drag.scroll - (point.y - drag.y));
      return;
    }
  }
  pointAt(view, point);
}

/** @type {(view: View, point: Point) => void} */
function pointAt(view, point) {
  const { area, scene } = view;
  scene.pointer = point;
  scene.current = isInMap(view, point) ? -1 : rowAt(scene, point.y);
  area.style.cursor = scene.current >= 0 || tickAt(scene, point) ? "pointer" : "default";
  hover(view);
  tell(view);
}

/** @type {(view: View, hands: Hands, event: PointerEvent) => void} */
function up(view, hands, event) {
  const { area, scene, data } = view;
  const { drag } = hands;
  const point = pointIn(event, area);
  hands.fingers.delete(event.pointerId);
  hands.drag = undefined;
  if (!drag || drag.isMap || drag.far > STILL) return;
  const [capture, row] = [tickAt(scene, point), scene.order.rows[rowAt(scene, point.y)]];
  if (capture) window.open(mementoOf(data, capture), "_blank", "noopener");
  else if (row) clickedAt(view, point, row);
}

/**
 * A name leads to its page; a bar, to the two dates there.
 * @type {(view: View, point: Point, row: Row) => void}
 */
function clickedAt({ scene, data, context }, point, row) {
  const near = captureNear(scene, point.x);
  if (point.x < scene.layout.chart.left || near < 0) context.go({ url: row.url });
  else context.go({ v: "dates", url: data.url, b: digits(data.captures[near].time) });
}

/** @type {(view: View, event: WheelEvent) => void} */
function wheel(view, event) {
  const { area, scene } = view;
  const placeOf = () => [scene.scroll, scene.from, scene.to].join();
  const before = placeOf();
  if (event.ctrlKey || event.metaKey) {
    zoom(view, Math.exp(event.deltaY * 0.004), unitAt(scene, pointIn(event, area).x));
  } else {
    if (event.deltaX) moveTo(view, scene.from + event.deltaX / scaleOf(scene));
    scrollTo(view, scene.scroll + event.deltaY);
  }
  // At its end the picture leaves the wheel to the page.
  if (event.ctrlKey || before !== placeOf()) event.preventDefault();
}

/**
 * Lets pointers move the picture.
 * @type {(view: View) => void}
 */
export function watchPointers(view) {
  const { area, scene } = view;
  /** @type {Hands} */
  const hands = { fingers: new Map() };
  area.addEventListener("pointerdown", (event) => down(view, hands, event));
  area.addEventListener("pointermove", (event) => move(view, hands, event));
  area.addEventListener("pointerup", (event) => up(view, hands, event));
  area.addEventListener("pointercancel", (event) => {
    hands.fingers.delete(event.pointerId);
    hands.drag = undefined;
  });
  area.addEventListener("pointerleave", () => {
    scene.pointer = undefined;
    scene.current = -1;
    hover(view);
    tell(view);
  });
  area.addEventListener("wheel", (event) => wheel(view, event), { passive: false });
}

/**
 * What each key does.
 * @type {Record<string, (view: View, page: number) => void>}
 */
const KEYS = {
  ArrowDown: (view) => step(view, 1),
  ArrowUp: (view) => step(view, -1),
  PageDown: (view, page) => step(view, page),
  PageUp: (view, page) => step(view, -page),
  Home: (view) => select(view, 0),
  End: (view) => select(view, view.scene.order.rows.length - 1),
  "+": (view) => zoom(view, 0.6, middleOf(view)),
  "=": (view) => zoom(view, 0.6, middleOf(view)),
  "-": (view) => zoom(view, 1 / 0.6, middleOf(view)),
  0: (view) => zoom(view, Infinity, middleOf(view)),
  ArrowLeft: (view) => aside(view, -0.15),
  ArrowRight: (view) => aside(view, 0.15),
};

/** @type {(view: View, by: number) => void} */
function step(view, by) {
  const { scene } = view;
  select(view, scene.current < 0 ? rowNear(scene, scene.scroll) : scene.current + by);
}

/** @type {(view: View) => number} */
const middleOf = ({ scene }) => (scene.from + scene.to) / 2;

/**
 * Moves the axis by a share of what is in view.
 * @type {(view: View, share: number) => void}
 */
const aside = (view, share) => moveTo(view, view.scene.from + (view.scene.to - view.scene.from) * share);

/**
 * Whether the view takes a key, which it then has done.
 * @type {(view: View, event: KeyboardEvent) => boolean}
 */
export function key(view, event) {
  const { scene, context, table } = view;
  if (table.isShown()) return false;
  const row = scene.order.rows[scene.current];
  if (event.key === "Enter" && row && !isIn(event, "button, a")) {
    context.go({ url: row.url });
    return true;
  }
  if (!Object.hasOwn(KEYS, event.key)) return false;
  const { chart, rowHeight } = scene.layout;
  KEYS[event.key](view, Math.max(1, Math.floor(chart.height / rowHeight) - 1));
  return true;
}
