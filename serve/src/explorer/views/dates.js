// Two dates of a page side by side: what was lost, kept and gained between two captures, beside a calendar of captures
// coloured by how many links changed.

import { BARCODE_MAX, barcode, barcodePath } from "../data/barcode.js";
import { colours, contextOf } from "../drawing/canvas.js";
import { asks } from "../page/asks.js";
import { areaOf, canvas as canvasOf, whenResized } from "../parts/area.js";
import { between } from "../parts/between.js";
import { el } from "../parts/dom.js";
import { xOf, yOf } from "./dates/calendar.js";
import { fillLists } from "./dates/lists.js";
import { choose, compare, key, resize, step, watchPointers } from "./dates/moves.js";
import { heading, legend, nothing, sheets, tools } from "./dates/panel.js";
import { placesOf, stand, subjectOf, written } from "./dates/state.js";

/** @import { Context, Opened } from "../page/state.js" */
/** @import { Change, Subject, View } from "./dates/state.js" */

const FIELDS = { before: "A", among: "B", from: "Date of A", to: "Date of B" };

/** What measures names as the lists show them. */
function ruler() {
  const context = contextOf(document.createElement("canvas"));
  context.font = `13px ${colours().sans}`;
  return context;
}

/**
 * The view with its elements, which are not in the page yet.
 * @param {Subject} subject
 * @returns {View}
 */
function viewOf(subject) {
  const { context, data, known } = subject;
  const { a, b } = placesOf(subject, context.state);
  const canvas = canvasOf();
  const range = { "aria-valuemin": 0, "aria-valuemax": known.length - 1 };
  const label = "Links lost, kept and gained";
  /** @type {View} */
  const view = {
    ...subject,
    ...{ a, b, moving: "b", isOnlyChanges: context.state.only === "changes" },
    ...{ parts: { lost: [], kept: [], gained: [] }, lines: [] },
    canvas,
    area: areaOf("slider", "The two dates", range, canvas),
    pointed: el("p", { class: "pointed" }),
    legend: legend(),
    head: el("div"),
    list: el("div", { class: "changes", tabindex: 0, role: "region", "aria-label": label }),
    moved: el("div"),
    fields: between(written({ data, a, b }), (texts) => choose(view, texts), FIELDS),
    ruler: ruler(),
  };
  stand(view, context.state);
  return view;
}

/**
 * What the picture shows, for tests.
 * @param {View} view
 */
function shown({ data, a, b, changed, parts, layout }) {
  const { captures, url } = data;
  const urls = (/** @type {Change} */ kind) => parts[kind].map((row) => row.url);
  return {
    url,
    a: captures[a].time,
    b: captures[b].time,
    captures: captures.map(({ time, status, shows }, at) => ({ time, status, shows, changed: changed[at] })),
    lost: urls("lost"),
    kept: urls("kept"),
    gained: urls("gained"),
    marks: layout
      ? captures.map(({ time, shows }) => ({
          time,
          shows,
          x: xOf(layout, time),
          y: yOf(layout, time) + layout.line / 2,
        }))
      : [],
  };
}

/**
 * @param {Context} context
 * @returns {Promise<Opened | undefined>}
 */
export async function open(context) {
  const { root, state, call, drawn, isOpen } = context;
  let answer = await call(asks.dates(state)[0]);
  // The rows that a barcode leaves out would be missing from both lists, and nothing would say so.
  if (answer.rest) answer = await call(barcodePath(state.url, "out", BARCODE_MAX));
  if (!isOpen()) return undefined;
  const subject = subjectOf(context, barcode(answer));
  if (subject.known.length < 2) {
    root.replaceChildren(heading(subject), nothing(subject));
    drawn();
    return { picture: () => ({ url: subject.data.url }) };
  }
  const view = viewOf(subject);
  const bar = tools(
    view,
    (way) => step(view, way),
    () => compare(view),
  );
  root.replaceChildren(
    heading(view),
    view.moved,
    el(
      "div",
      { class: "dates" },
      el("div", { class: "calendar" }, view.area, view.pointed, view.legend),
      el("div", { class: "sides" }, view.head, bar, view.list),
    ),
  );
  view.list.addEventListener("scroll", () => requestAnimationFrame(() => fillLists(view)));
  watchPointers(view);
  compare(view);
  return {
    key: (event) => key(view, event),
    close: whenResized(view.area, () => resize(view)),
    print: () => sheets(view),
    resize: () => {
      resize(view);
      fillLists(view);
    },
    picture: () => shown(view),
  };
}
