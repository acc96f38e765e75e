// The plate of hosts: the captures of each by year, to its own scale.

import { text, years } from "../../drawing/years.js";
import { link } from "../../page/address.js";
import { el } from "../../parts/dom.js";
import { line, numberCell, table } from "../../parts/table.js";
import { cut } from "../../text/cut.js";
import { safe } from "../../text/names.js";
import { count, most, sum } from "../../text/numbers.js";

/** @import { HostByYear, OverviewByYear } from "../../data/answers.js" */
/** @import { Pen, Theme } from "../../drawing/canvas.js" */
/** @import { Head } from "../../parts/table.js" */
/** @import { Plate } from "./plates.js" */

/** Hosts with a row of their own, and pixels of a row. */
const HOSTS = 12;
const LINE = 26;
/** @type {Head[]} */
const HEADS = [
  ["Host", ""],
  ["captures", "n"],
  ["pages", "n"],
  ["URLs", "n"],
  ["links", "n"],
];

/**
 * A row, with its ground at the height `bottom`.
 * @type {(context: Pen, host: HostByYear, place: { left: number, right: number, width: number, bottom: number }, theme:
 *   Theme) => void}
 */
function drawHost(context, { host, numbers: { captures } }, { left, right, width, bottom }, theme) {
  const step = (right - left) / captures.length;
  const highest = most(captures) || 1;
  text(context, theme, cut(safe(host), Math.floor(left / 6.4)), 0, bottom, { colour: theme.ink });
  context.fillStyle = theme.rule;
  context.fillRect(left, bottom, right - left, 0.7);
  context.fillStyle = theme.bar;
  captures.forEach((number, at) => {
    const tall = Math.max(1, (number / highest) * 20);
    if (number) context.fillRect(left + at * step, bottom - tall, Math.max(1, step - 1), tall);
  });
  text(context, theme, count(sum(captures)), width, bottom, { align: "right" });
}

/** @type {(host: HostByYear) => HTMLElement} */
const lineOf = ({ host, numbers, pages, links }) =>
  line(
    el("td", {}, link({ v: "backlinks", url: host }, safe(host))),
    ...[sum(numbers.captures), pages, sum(numbers.urls), links].map(numberCell),
  );

/** @type {(overview: OverviewByYear) => Plate} */
export function hostsPlate({ hosts, hosts_captured: hostsCaptured, first_year: firstYear }) {
  const shown = hosts.slice(0, HOSTS);
  const height = 24 + shown.length * LINE;
  const some = ` The ${shown.length} of ${count(hostsCaptured)} with the most captures.`;
  const length = shown[0]?.numbers.captures.length;
  return {
    title: "Captures by host and year",
    said: `Each host to its own scale; at the right, how many in all.${hostsCaptured > shown.length ? some : ""}`,
    height,
    draw: (context, width, theme) => {
      const [left, right] = [Math.min(130, width * 0.3), width - 64];
      shown.forEach((host, row) => {
        drawHost(context, host, { left, right, width, bottom: 22 + row * LINE }, theme);
      });
      if (length) years(context, theme, { first: firstYear, length, left, width: right, y: height - 4 });
    },
    table: table(HEADS, shown.map(lineOf)),
  };
}
