// The whole store: what it holds, links gained and lost, how long they live, hosts by year, domains, epochs and
// servers.
//
// Each plate draws itself with the calls of a canvas, into SVG: what is shown is what is saved. Numbers are text.

import { colours } from "../drawing/canvas.js";
import { Svg } from "../drawing/svg.js";
import { asks } from "../page/asks.js";
import { whenResized } from "../parts/area.js";
import { el } from "../parts/dom.js";
import { elementOf } from "../parts/save.js";
import { epochsPlate } from "./store/epochs.js";
import { figures, heading, missing, servers } from "./store/panel.js";
import { platesOf } from "./store/plates.js";

/** @import { Context, Opened } from "../page/state.js" */
/** @import { Plate } from "./store/plates.js" */

/**
 * A plate and the element that it is drawn in.
 * @typedef {{ plate: Plate, area: HTMLElement }} Drawn
 */

/** @type {(drawn: Drawn) => HTMLElement} */
const section = ({ plate, area }) =>
  el("section", {}, el("h2", { text: plate.title }), el("p", { text: plate.said }), area, plate.table, plate.more);

/**
 * Draws a plate, as wide as there is room.
 * @type {(drawn: Drawn) => void}
 */
function draw({ plate, area }) {
  const width = area.clientWidth;
  if (width < 10) return;
  const theme = colours();
  const svg = new Svg(width, plate.height, theme.paper);
  plate.draw(svg, width, theme);
  area.replaceChildren(elementOf(svg));
}

/**
 * @param {Context} context
 * @returns {Promise<Opened | undefined>}
 */
export async function open({ root, call, drawn, isOpen }) {
  const [overviewAsk, statsAsk, topologyAsk] = asks.store();
  const [answer, stats, topology] = await Promise.all([call(overviewAsk), call(statsAsk), call(topologyAsk)]);
  if (!isOpen()) return undefined;
  const { counts, epochs, overview } = answer;
  const plates = [...(overview ? platesOf(overview) : []), epochsPlate(epochs)];
  const areas = plates.map((plate) => {
    const area = el("div", { class: "drawn", role: "img", "aria-label": `${plate.title}. ${plate.said}` });
    return { plate, area };
  });
  root.replaceChildren(
    el(
      "div",
      { class: "store", tabindex: 0, role: "region", "aria-label": "The store" },
      heading(root, answer, plates),
      figures(counts, stats),
      overview ? undefined : missing(),
      el("div", { class: "plates" }, ...areas.map(section), servers(stats, topology)),
    ),
  );
  const resize = () => {
    areas.forEach(draw);
    drawn();
  };
  resize();
  return {
    resize,
    close: whenResized(root, resize),
    picture: () => ({ counts, overview, epochs, plates: plates.map((plate) => plate.title) }),
  };
}
