// Dead pages of the store, of a host or of a domain: how many died and returned by year, with which status, and who
// still links to them. The server counts and chooses; a year, a status and an order are asked for.

import { asks, deathsPath } from "../page/asks.js";
import { whenResized } from "../parts/area.js";
import { el } from "../parts/dom.js";
import { headOf } from "../parts/head.js";
import { paperOf } from "../parts/save.js";
import { count, many, within } from "../text/numbers.js";
import { fill, table } from "./deaths/pages.js";
import { facts, none, titleOf, tools } from "./deaths/panel.js";
import { alone, draw, KEY, yearAt } from "./deaths/picture.js";
import { chosenPlace, chosenYear, sceneOf } from "./deaths/state.js";

/** @import { Context, Opened } from "../page/state.js" */
/** @import { Scene, View } from "./deaths/state.js" */

/**
 * Says what happened in a year, by its place.
 * @type {(view: View, at: number) => void}
 */
function tell({ years, died, returned, answer, area, readout }, at) {
  const year = years[at];
  area.setAttribute("aria-valuenow", String(Math.max(0, at)));
  area.setAttribute("aria-valuetext", year === undefined ? "all years" : String(year));
  readout.textContent =
    year === undefined
      ? "Choose a year to see who died in it."
      : `${year}: ${count(died[at])} died, ${count(returned[at])} returned, ${count(answer.gone[at])} gone at its end`;
}

/**
 * Shows the deaths of a year; of all years without one, or if it was chosen.
 * @type {(view: View, year: number | undefined) => Promise<void>}
 */
async function choose(view, year) {
  const { context } = view;
  const next = year === undefined || year === chosenYear(view) ? undefined : String(year).padStart(4, "0");
  view.state = { ...view.state, from: next, to: next };
  context.set({ from: next, to: next });
  view.asks += 1;
  const own = view.asks;
  draw(view);
  const found = await context.call(deathsPath(view.state));
  if (!context.isOpen() || own !== view.asks) return;
  view.answer = found;
  view.rows = found.rows;
  fill(view);
  tell(view, chosenPlace(view));
  context.say(`${next || "all years"}: ${many(found.rows_selected, "death")}`);
  context.drawn();
}

/**
 * Whether the view takes a key, which it then has done.
 * @type {(view: View, event: KeyboardEvent) => boolean}
 */
function key(view, event) {
  const { years, area } = view;
  if (event.key === "Escape" && chosenYear(view)) {
    choose(view, undefined);
    return true;
  }
  const step = event.key === "ArrowLeft" ? -1 : event.key === "ArrowRight" ? 1 : 0;
  if (!step || !years.length || document.activeElement !== area) return false;
  const at = chosenPlace(view);
  const from = at < 0 && step < 0 ? years.length : at;
  const to = within(from + step, 0, years.length - 1);
  if (to !== at) choose(view, years[to]);
  return true;
}

/**
 * The view with its elements, which are not in the page yet.
 * @param {Scene} scene
 * @returns {View}
 */
function viewOf(scene) {
  const { years } = scene;
  const area = el("div", {
    class: "drawn",
    role: "slider",
    tabindex: 0,
    "aria-label": "Year: left and right choose one, Escape all",
    "aria-valuemin": 0,
    "aria-valuemax": Math.max(0, years.length - 1),
    "aria-valuenow": 0,
    onclick: (event) => choose(view, yearAt(view, event.offsetX)),
    onpointermove: (event) => tell(view, years.indexOf(yearAt(view, event.offsetX) ?? NaN)),
    onpointerleave: () => tell(view, chosenPlace(view)),
  });
  const readout = el("p", { class: "pointed" });
  /** @type {View} */
  const view = Object.assign(scene, { area, readout, body: el("tbody"), foot: el("p", { class: "foot" }) });
  return view;
}

/**
 * @param {Context} context
 * @returns {Promise<Opened | undefined>}
 */
export async function open(context) {
  const { root, state, call, drawn, isOpen } = context;
  const answer = await call(asks.deaths(state)[0]);
  if (!isOpen()) return undefined;
  const view = viewOf(sceneOf(context, answer));
  const title = titleOf(view);
  const pictures = [view.area, view.readout, el("p", { class: "caption", text: KEY }), table(view), view.foot];
  root.replaceChildren(
    el(
      "div",
      { class: "store deaths", tabindex: 0, role: "region", "aria-label": title },
      headOf(title, facts(view)),
      tools(view),
      ...(view.years.length ? pictures : [none(view)]),
    ),
  );
  fill(view);
  const redraw = () => draw(view);
  redraw();
  if (view.years.length) tell(view, chosenPlace(view));
  drawn();
  return {
    key: (event) => key(view, event),
    resize: redraw,
    close: view.years.length ? whenResized(view.area, redraw) : () => undefined,
    print: () => {
      const listed = root.querySelector("table.dead");
      return [paperOf(alone(view, title)), ...(listed ? [listed.cloneNode(true)] : [])];
    },
    picture: () => ({ answer: view.answer, rows: view.rows, years: view.years, chosen: chosenYear(view) }),
  };
}
