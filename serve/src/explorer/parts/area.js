// The area of a picture, which pointers and keys work on; and what is drawn at most once a frame.

import { el } from "./dom.js";

/** @import { Properties } from "./dom.js" */

/** A canvas for the area of a picture, which says in words what it shows. */
export const canvas = () => el("canvas", { "aria-hidden": "true" });

/**
 * The area of a picture.
 * @param {"application" | "slider"} role
 * @param {string} label
 * @param {Properties} properties
 * @param {HTMLCanvasElement[]} canvases
 */
export const areaOf = (role, label, properties, ...canvases) =>
  el("div", { class: "picture", role, tabindex: 0, "aria-label": label, ...properties }, ...canvases);

/**
 * Where a pointer is in an element, in pixels.
 * @param {MouseEvent} event
 * @param {Element} element
 */
export function pointIn(event, element) {
  const box = element.getBoundingClientRect();
  return { x: event.clientX - box.left, y: event.clientY - box.top };
}

/**
 * What asks for the next frame, however often it is called before; `draw` gets the time of the frame in milliseconds.
 * @param {(time: number) => void} draw
 */
export function framesOf(draw) {
  let frame = 0;
  return {
    ask: () => {
      frame ||= requestAnimationFrame((time) => {
        frame = 0;
        draw(time);
      });
    },
    stop: () => cancelAnimationFrame(frame),
  };
}

/**
 * Calls `listener` when an element gets another size than it has now, until the returned function is called. A view
 * draws before it asks for this, since an observer also tells the size that an element begins with.
 * @param {Element} element
 * @param {() => void} listener
 */
export function whenResized(element, listener) {
  let { clientWidth: width, clientHeight: height } = element;
  const watch = new ResizeObserver(() => {
    const { clientWidth, clientHeight } = element;
    if (clientWidth === width && clientHeight === height) return;
    [width, height] = [clientWidth, clientHeight];
    listener();
  });
  watch.observe(element);
  return () => watch.disconnect();
}

/**
 * The line below a picture: what is pointed at, and keys with what they do.
 * @param {HTMLElement} readout
 * @param {[string, string][]} keys
 */
export const readLine = (readout, keys) =>
  el(
    "div",
    { class: "read" },
    readout,
    el("span", { class: "keys" }, ...keys.flatMap(([key, text]) => [el("kbd", { text: key }), text])),
  );
