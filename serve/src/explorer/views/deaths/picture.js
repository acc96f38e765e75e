// Draws the years of dead pages: how many died in each, and how many returned.

import { colours } from "../../drawing/canvas.js";
import { framed } from "../../drawing/framed.js";
import { Svg } from "../../drawing/svg.js";
import { text, YEARS_LEFT, yearFlows } from "../../drawing/years.js";
import { elementOf } from "../../parts/save.js";
import { bare } from "../../text/names.js";
import { count, many, within } from "../../text/numbers.js";
import { day, secondsOf } from "../../text/time.js";
import { chosenPlace } from "./state.js";

/** @import { DeadPage } from "../../data/answers.js" */
/** @import { Pen, Theme } from "../../drawing/canvas.js" */
/** @import { Picture } from "../../drawing/framed.js" */
/** @import { View } from "./state.js" */

const HEIGHT = 170;
/** The most pixels of a year. */
const YEAR_MAX = 120;
/** Pixels of a picture that stands by itself, and of each of its pages; and the most of these. */
const WIDE = 720;
const LINE = 16;
const LISTED = 40;
export const KEY =
  "Below the line, pages that a failure (4xx, but not 429) ended after they had been there; above it, pages that " +
  "were there again. A page is linked by pages that link to it at their latest capture.";

/**
 * The day of a time in an answer; empty for none.
 * @type {(time: string | undefined) => string}
 */
export const dateOf = (time) => (time ? day(secondsOf(time)) : "");

/**
 * The year at an x of the picture.
 * @type {(view: View, x: number) => number | undefined}
 */
export function yearAt({ years, width }, x) {
  const at = Math.floor(((x - YEARS_LEFT) / (width - YEARS_LEFT)) * years.length);
  return years[within(at, 0, years.length - 1)];
}

/** @type {(context: Pen, view: View, width: number, theme: Theme) => void} */
function drawYears(context, view, width, theme) {
  const { years, died, returned } = view;
  const step = (width - YEARS_LEFT) / years.length;
  const at = chosenPlace(view);
  if (at >= 0) {
    context.fillStyle = theme.soft;
    context.fillRect(YEARS_LEFT + at * step, 0, Math.max(2, step), HEIGHT - 16);
  }
  const flows = { up: [{ values: returned, colour: /** @type {const} */ ("accent") }], down: { values: died } };
  yearFlows(context, theme, width, { first: years[0], ...flows, words: ["back", "died"], height: HEIGHT });
}

/**
 * Draws the picture, as wide as there is room.
 * @type {(view: View) => void}
 */
export function draw(view) {
  view.width = Math.min(view.area.clientWidth, YEARS_LEFT + YEAR_MAX * view.years.length);
  if (view.width < 10) return;
  const theme = colours();
  const svg = new Svg(view.width, HEIGHT, theme.paper);
  drawYears(svg, view, view.width, theme);
  view.area.replaceChildren(elementOf(svg));
}

/**
 * A dead page in a picture that stands by itself.
 * @type {(context: Pen, row: DeadPage, y: number, theme: Theme) => void}
 */
function drawRow(context, row, y, theme) {
  const linked = `${many(row.linking, "page")} ${row.linking === 1 ? "links" : "link"}`;
  text(context, theme, dateOf(row.died), 0, y);
  text(context, theme, String(row.status), 100, y);
  text(context, theme, linked, 220, y, { align: "right" });
  text(context, theme, bare(row.page).slice(0, 76), 236, y, { colour: theme.ink });
}

/**
 * The picture as it stands by itself, with the dead pages that are shown.
 * @type {(view: View, title: string) => Picture}
 */
export function alone(view, title) {
  const { answer, rows, state } = view;
  const theme = colours();
  const shown = rows.slice(0, LISTED);
  const left = answer.rows_selected - shown.length;
  const of = left > 0 ? `; the first ${shown.length} of ${count(answer.rows_selected)} are listed` : "";
  const facts = `${state.from ? `${state.from}: ` : ""}${many(answer.rows_selected, "death")}${of}`;
  return framed({ title, facts, key: KEY }, [WIDE, HEIGHT + 32 + shown.length * LINE], theme, (context) => {
    drawYears(context, view, WIDE, theme);
    for (const [at, row] of shown.entries()) drawRow(context, row, HEIGHT + 24 + at * LINE, theme);
  });
}
