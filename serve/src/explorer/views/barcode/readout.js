// The line below a barcode: what is pointed at, or what the picture shows.

import { isFoundIn } from "../../data/barcode.js";
import { failed, saidOf, tells } from "../../data/captures.js";
import { el } from "../../parts/dom.js";
import { safe } from "../../text/names.js";
import { count, many } from "../../text/numbers.js";
import { clock, day, length } from "../../text/time.js";
import { nothingIn } from "./draw.js";
import { captureNear, tickAt, unitAt } from "./scene.js";

/** @import { Row } from "../../data/order.js" */
/** @import { Scene } from "./scene.js" */
/** @import { View } from "./state.js" */

/**
 * Whether a row was there at the time of the pointer, in words.
 * @type {(scene: Scene, row: Row) => string}
 */
function thenOf(scene, row) {
  const { pointer, layout } = scene;
  if (!pointer || pointer.x < layout.chart.left) return "";
  const near = captureNear(scene, pointer.x);
  const capture = near >= 0 ? scene.data.captures[near] : undefined;
  const time = capture ? capture.time : unitAt(scene, pointer.x);
  const why = capture && saidOf(capture) ? ` (${saidOf(capture)})` : "";
  if (capture?.cut && isFoundIn(row, near)) return `; there on ${day(time)}${why}`;
  if (capture && !tells(capture)) return `; not known on ${day(time)}${why}`;
  if (row.runs.some((run) => run.first <= time && time <= run.last)) return `; there on ${day(time)}`;
  const isBetween = row.runs.some((run) => run.last < time && (run.gone ? time < run.gone : true));
  // Nobody knows whether a link is older than the first capture of its page.
  const isBefore = time < row.first && row.runs[0].began === "found";
  return isBetween || isBefore ? `; not known on ${day(time)}` : `; not there on ${day(time)}${why}`;
}

/**
 * A row in words.
 * @type {(scene: Scene, row: Row) => Node[]}
 */
function rowWords(scene, row) {
  const last = row.runs[row.runs.length - 1];
  const gone = last.gone ? `, gone by ${day(last.gone)}` : ", still there when last known";
  const found = row.runs[0].began === "found" ? ", found in the first capture" : "";
  const stretch = `  ${day(row.first)} – ${day(row.last)}, ${length(row.life)}`;
  const runs = ` in ${many(row.runs.length, "run")}${found}${gone}${thenOf(scene, row)}`;
  return [el("b", { text: safe(row.url) }), document.createTextNode(stretch + runs)];
}

/**
 * All rows in words.
 * @type {(view: View) => string}
 */
function wholeWords({ scene, data, all }) {
  const runs = scene.order.rows.reduce((sum, own) => sum + own.runs.length, 0);
  const lacks = scene.captures.filter((capture) => capture.shows === "unknown").length;
  const fails = scene.captures.filter(failed).length;
  const words = [`${many(runs, "bar")}.`];
  if (lacks) words.push(` Hatched: ${many(lacks, "capture")} that ${lacks === 1 ? "leaves" : "leave"} links unknown.`);
  if (fails) words.push(` Dark ticks: ${many(fails, "capture")} that failed.`);
  if (data.rest) {
    words.push(
      ` These are of the ${count(all.length)} rows that lived longest; ${many(data.rest.links, "row")} that ` +
        "lived shorter are not here.",
    );
  }
  return words.join("");
}

/**
 * Says what is pointed at.
 * @type {(view: View) => void}
 */
export function tell(view) {
  const { scene, readout } = view;
  const capture = tickAt(scene, scene.pointer);
  const row = scene.order.rows[scene.current];
  if (capture) {
    readout.textContent =
      `${day(capture.time)}, ${clock(capture.time)}: ${saidOf(capture) || "links known"}. ` +
      "A click opens this capture in the archive.";
  } else if (!scene.order.rows.length) readout.textContent = nothingIn(scene);
  else if (row) readout.replaceChildren(...rowWords(scene, row));
  else readout.textContent = wholeWords(view);
}
