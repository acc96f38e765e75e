// What moves the pictures of backlinks: other rows, another stretch of time, another place in the list.

import { nameOf, textsOf } from "../../data/months.js";
import { allRows, rowOf } from "../../data/referrers.js";
import { cleared, colours } from "../../drawing/canvas.js";
import { act, chooser } from "../../parts/tools.js";
import { cut } from "../../text/cut.js";
import { whenOf } from "../../text/dates.js";
import { bare } from "../../text/names.js";
import { count, many, within } from "../../text/numbers.js";
import { day } from "../../text/time.js";
import { updateBench } from "./bench.js";
import { drawChart } from "./chart.js";
import { gridOf, HEADS, LINE, leftsOf } from "./places.js";
import { drawRows } from "./rows.js";
import { askRows, filter, place, stateNow, take, whoCounts } from "./state.js";
import { toldMark, toldRow, toldRows } from "./told.js";

/** @import { Mark } from "../../data/months.js" */
/** @import { Choice, NamedRow, Row } from "../../data/referrers.js" */
/** @import { View } from "./state.js" */

/**
 * The words for which rows of two targets are shown; `any` is all of them.
 * @type {[Choice["who"], string][]}
 */
const WHO = [
  ["any", "either"],
  ["both", "both"],
  ["a", "only A"],
  ["b", "only B"],
];

/**
 * Says something in the line below.
 * @type {(view: View, text: string) => void}
 */
export function say({ readout }, text) {
  readout.textContent = text;
}

/**
 * All rows that are chosen of the target and of the one beside it.
 * @type {(view: View) => Promise<Row[][]>}
 */
export async function readAll(view) {
  const read = [];
  for (const { answer, ask } of view.sides) {
    const isHere = answer.rows_selected === answer.rows.length;
    const tell = (/** @type {number} */ rows, /** @type {number} */ of) =>
      say(view, `${count(rows)} of ${count(of)} rows are read.`);
    read.push(isHere ? answer.rows.map(rowOf) : await allRows(view.context.call, ask, tell));
  }
  return read;
}

/**
 * Asks for the rows that are chosen, and shows them.
 * @type {(view: View) => Promise<void>}
 */
export async function load(view) {
  const isNews = await askRows(view);
  if (isNews === undefined) return;
  if (isNews) tellWho(view);
  showRows(view);
}

/**
 * Shows the rows that are chosen of those that are there.
 * @type {(view: View) => void}
 */
export function showRows(view) {
  filter(view);
  view.table.update(view.rows);
  view.redraw();
}

/**
 * Reads all rows, to see who links to both.
 * @type {(view: View) => Promise<void>}
 */
async function readThem(view) {
  view.asks += 1;
  const own = view.asks;
  const read = await readAll(view);
  if (!view.context.isOpen() || own !== view.asks) return;
  take(view, read);
  tellWho(view);
  showRows(view);
}

/**
 * Who links to both, to A only, and to B only: words to choose from, or what must be read before.
 * @type {(view: View) => void}
 */
export function tellWho(view) {
  const { sides, choice, context, who, isWhole } = view;
  if (sides.length < 2) return;
  const counts = whoCounts(view);
  /** @type {[Choice["who"], string][]} */
  const words = WHO.map(([value, word]) => [value, `${word} ${count(counts[value])}`]);
  const choose = (/** @type {Choice["who"]} */ value) => {
    choice.who = value;
    context.set({ who: value === "any" ? undefined : value });
    showRows(view);
  };
  const selected = sides.reduce((sum, { answer }) => sum + answer.rows_selected, 0);
  const read = `Read all ${count(selected)} rows to see who links to both`;
  who.replaceChildren(isWhole ? chooser("Link to", words, choice.who, choose) : act(read, () => readThem(view)));
}

/**
 * Keeps the rows that came or went between two dates, given as texts; all without dates.
 * @type {(view: View, texts: { from?: string, to?: string }) => Promise<void>}
 */
export async function chooseDates(view, texts) {
  view.when = whenOf(texts);
  const { from, to } = view.when;
  view.dates.show(view.when);
  view.context.set({ from, to });
  updateBench(view.bench);
  view.redraw();
  await load(view);
}

/**
 * Keeps the rows of a period; all without one, or if it was chosen.
 * @type {(view: View, mark: Mark | undefined) => Promise<void>}
 */
export async function choosePeriod(view, mark) {
  const { span } = view.when;
  const isChosen = mark && span && span[0] === mark.time && span[1] === mark.end;
  await chooseDates(view, mark && !isChosen ? textsOf(mark) : {});
  if (mark) view.context.say(`${nameOf(mark)}: ${many(view.rows.length, "row")}`);
}

/**
 * Chooses the period after the one that is chosen, or before it.
 * @type {(view: View, by: number) => void}
 */
export function stepPeriod(view, by) {
  const { marks, when, chartArea } = view;
  const { span } = when;
  const open = by > 0 ? -1 : marks.length;
  const at = span ? marks.findIndex((mark) => mark.end > span[0]) : open;
  const place = within(at + by, 0, marks.length - 1);
  const next = marks[place];
  chartArea.setAttribute("aria-valuenow", String(place));
  chartArea.setAttribute("aria-valuetext", nameOf(next));
  if (!span || span[0] !== next.time || span[1] !== next.end) choosePeriod(view, next);
}

/**
 * Opens the rows of a host.
 * @type {(view: View, source: string) => void}
 */
export function chooseHost(view, source) {
  const none = { unit: undefined, text: undefined, from: undefined, to: undefined, who: undefined };
  view.context.go({ ...stateNow(view), ...none, source });
}

/**
 * Opens what a row is.
 * @type {(view: View, row: NamedRow) => void}
 */
export function enter(view, row) {
  if (row.isPage) view.context.go({ url: row.url });
  else if (view.choice.unit === "host") chooseHost(view, row.url);
  else view.context.go({ ...stateNow(view), unit: "host", text: row.url, who: undefined });
}

/** @type {(view: View) => void} */
export function resize(view) {
  const { listArea, chartArea, context } = view;
  const width = listArea.clientWidth;
  if (width < 10) return;
  const lefts = leftsOf(width);
  const over = context.root.querySelector(".over");
  if (over instanceof HTMLElement) over.style.gridTemplateColumns = gridOf(width, lefts);
  // The chart is as wide and as high as the columns leave it.
  const height = listArea.clientHeight;
  place(view, { width, height, ...lefts, chart: chartArea.clientHeight, chartWidth: chartArea.clientWidth });
  chartArea.setAttribute("aria-valuemax", String(Math.max(0, view.marks.length - 1)));
  view.redraw();
}

/**
 * Scrolls to a position.
 * @type {(view: View, position: number) => void}
 */
export function scrollTo(view, position) {
  if (!view.layout) return;
  view.scroll = within(position, 0, view.rows.length * LINE - view.layout.height + HEADS);
  view.redraw();
}

/**
 * Chooses a row, and brings it into view.
 * @type {(view: View, row: number) => void}
 */
export function select(view, row) {
  const { rows, layout } = view;
  if (!layout) return;
  view.current = within(row, 0, rows.length - 1);
  const top = view.current * LINE;
  if (top < view.scroll) scrollTo(view, top);
  else if (top + LINE > view.scroll + layout.height - HEADS) scrollTo(view, top + LINE - layout.height + HEADS);
  else view.redraw();
  const own = rows[view.current];
  if (own) view.context.say(`${cut(bare(own.url), 120)}, since ${day(own.first)}`);
}

/**
 * Says what is pointed at.
 * @type {(view: View) => void}
 */
function tell(view) {
  const { rows, current, marks, pointed, otherMarks, readout, sides } = view;
  if (rows[current]) readout.replaceChildren(...toldRow(rows[current]));
  else if (marks[pointed]) readout.replaceChildren(...toldMark(marks[pointed], otherMarks));
  else {
    const both = sides.length > 1 ? " Filled bars are links to A, hollow bars are links to B." : "";
    readout.textContent = `${toldRows(view)}.${both}`;
  }
}

/**
 * Draws both pictures.
 * @type {(view: View) => void}
 */
export function drawView(view) {
  const { context, layout, chart, list } = view;
  if (!context.isOpen() || !layout) return;
  const theme = colours();
  const laid = { ...view, layout };
  const upper = cleared(chart, layout.chartWidth, layout.chart);
  upper.save();
  upper.translate(layout.chartWidth - layout.width, 0);
  drawChart(upper, laid, theme);
  upper.restore();
  drawRows(cleared(list, layout.width, layout.height), laid, theme);
  tell(view);
  context.drawn();
}
