// The text of the view of the store: its head, its figures, its servers, and what is saved.

import { shifted } from "../../drawing/bars.js";
import { colours } from "../../drawing/canvas.js";
import { framed } from "../../drawing/framed.js";
import { text } from "../../drawing/years.js";
import { asks } from "../../page/asks.js";
import { el } from "../../parts/dom.js";
import { factsIn } from "../../parts/head.js";
import { pictureActs, saveLines } from "../../parts/save.js";
import { curl, dataAct } from "../../parts/source.js";
import { cell, line, numberCell, table } from "../../parts/table.js";
import { act } from "../../parts/tools.js";
import { safe } from "../../text/names.js";
import { count, many, sum } from "../../text/numbers.js";
import { day, secondsOf } from "../../text/time.js";

/** @import { NumbersByYear, Overview, OverviewByYear, Stats, Topology } from "../../data/answers.js" */
/** @import { Pen } from "../../drawing/canvas.js" */
/** @import { Picture } from "../../drawing/framed.js" */
/** @import { Head } from "../../parts/table.js" */
/** @import { Plate } from "./plates.js" */

/** Pixels of a picture that stands by itself, and of the title of each of its plates. */
const WIDE = 640;
const HEAD = 34;
/** @type {Head[]} */
const SERVERS = [
  ["Server", ""],
  ["cells", "n"],
  ["URLs", "n"],
  ["links", "n"],
  ["bytes", "n"],
];

/** @param {number} number */
const bytes = (number) =>
  number < 1e6 ? `${Math.round(number / 1e3)} kB` : `${(number / 1e6).toFixed(number < 1e8 ? 1 : 0)} MB`;

/** @param {string | null} time */
const date = (time) => day(secondsOf(time));

/** @type {(root: HTMLElement, answer: Overview, plates: Plate[]) => HTMLElement} */
export function heading(root, { counts, epochs, epoch, overview }, plates) {
  const [last] = epochs;
  const dates = counts.first_time
    ? `; captures from ${date(counts.first_time)} to ${date(counts.last_time)}`
    : "; no captures";
  const committed = last ? `committed ${date(last.committed)}` : "";
  return el(
    "div",
    { class: "head" },
    el("h1", { text: "The store" }),
    el("p", {}, "Epoch ", el("b", { text: count(epoch) }), `, ${committed}${dates}`),
    el(
      "div",
      { class: "right" },
      ...pictureActs(() => whole(`${factsIn(root)}. ${count(counts.captures)} captures`, plates), "store"),
      overview && act("CSV", () => saveYears(overview)),
      dataAct(sourceOf, "The data of these pictures"),
    ),
  );
}

/** @type {() => [string, ...string[]][]} */
const sourceOf = () => [
  ["On the command line:", "webstrata overview STORE --format json\nwebstrata log STORE"],
  ["Over HTTP:", asks.store().map(curl).join("\n")],
];

/** @type {(counts: Overview["counts"], stats: Stats) => HTMLElement} */
export function figures(counts, stats) {
  const word = counts.exact ? "" : ", at most";
  const all = [
    [count(counts.urls), "URLs"],
    [count(counts.pages), `pages captured${word}`],
    [count(counts.captures), `captures${word}`],
    [count(counts.links), `links, page to URL${word}`],
    [count(counts.occurrences), `links in captures${word}`],
    [count(counts.unknown_captures), `captures whose links are not known${word}`],
    [bytes(stats.total.bytes), "of memory, in cells"],
  ];
  const pairs = all.map(([number, name]) => el("div", {}, el("dd", { text: number }), el("dt", { text: name })));
  return el("dl", { class: "figures" }, ...pairs);
}

/** What is said where there are no numbers by year. */
export const missing = () =>
  el(
    "p",
    { class: "missing" },
    "No overview was written for this epoch. ",
    el("code", { text: "webstrata overview STORE" }),
    " computes the numbers by year and by host, and the server shows them from then on.",
  );

/**
 * Cells and their replicas, in a sentence.
 * @type {(topology: Topology) => string}
 */
function serversText({ newest, epoch, rows, servers: all, unsettled }) {
  const lag = newest > epoch ? `, while epoch ${newest} is being loaded` : "";
  const cells = rows.flatMap((row) => row.cells);
  const replicas = cells.length ? Math.min(...cells.map((own) => own.servers.length)) : 0;
  const moving = unsettled ? `, of which ${count(unsettled)} are on their way to another.` : ".";
  return (
    `${many(all.length, "server")} of epoch ${epoch}${lag}; ${many(cells.length, "cell")}, ` +
    `each on at least ${many(replicas, "server")}${moving}`
  );
}

/** @type {(stats: Stats, topology: Topology) => HTMLElement} */
export function servers(stats, topology) {
  const lines = stats.servers.map(({ server, cells, counts }) =>
    line(
      cell(safe(server), ""),
      numberCell(cells),
      numberCell(counts.urls),
      numberCell(counts.links),
      cell(bytes(counts.bytes)),
    ),
  );
  return el(
    "section",
    {},
    el("h2", { text: "Servers" }),
    el("p", { text: serversText(topology) }),
    table(SERVERS, lines),
  );
}

/**
 * Saves the numbers of each year, of the whole store and of each host.
 * @type {(overview: OverviewByYear) => void}
 */
function saveYears({ all, hosts, first_year: firstYear }) {
  const columns = /** @type {(keyof NumbersByYear)[]} */ (Object.keys(all)).filter((name) => Array.isArray(all[name]));
  /** @type {(host: string, numbers: NumbersByYear) => Record<string, unknown>[]} */
  const linesOf = (host, numbers) =>
    numbers[columns[0]].map((_, at) => ({
      year: firstYear + at,
      host,
      ...Object.fromEntries(columns.map((name) => [name, numbers[name]?.[at]])),
    }));
  const lines = [...linesOf("", all), ...hosts.flatMap(({ host, numbers }) => linesOf(host, numbers))];
  saveLines(["year", "host", ...columns], lines, "csv", "store");
}

/**
 * All plates one below the other, as a picture that stands by itself.
 * @type {(facts: string, plates: Plate[]) => Picture}
 */
function whole(facts, plates) {
  const theme = colours();
  const draw = (/** @type {Pen} */ context) => {
    let top = 0;
    for (const plate of plates) {
      shifted(context, 0, top, () => text(context, theme, plate.title, 0, 20, { colour: theme.ink, bold: true }));
      shifted(context, 0, top + HEAD, () => plate.draw(context, WIDE, theme));
      top += plate.height + HEAD;
    }
  };
  const height = sum(plates.map((plate) => plate.height + HEAD));
  const key = plates.map((plate) => `${plate.title}: ${plate.said}`).join(" ");
  return framed({ title: "The store", facts, key }, [WIDE, height], theme, draw);
}
