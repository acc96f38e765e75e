// The plates of the store that numbers by year give: each a title, a sentence, a height, and what draws it.

import { yearFlows } from "../../drawing/years.js";
import { link } from "../../page/address.js";
import { count, sum } from "../../text/numbers.js";
import { hostsPlate } from "./hosts.js";
import { livesPlate } from "./lives.js";
import { domainsPlate, urlsPlate } from "./totals.js";

/** @import { NumbersByYear, OverviewByYear } from "../../data/answers.js" */
/** @import { Pen, Theme } from "../../drawing/canvas.js" */

/**
 * `draw` draws it so many pixels wide; below it may stand a table, and a link to more.
 * @typedef {object} Plate
 * @property {string} title
 * @property {string} said
 * @property {number} height
 * @property {(context: Pen, width: number, theme: Theme) => void} draw
 * @property {Node} [table]
 * @property {Node} [more]
 */

/**
 * @param {OverviewByYear} overview
 * @returns {Plate[]}
 */
export function platesOf(overview) {
  const { all, lives, hosts, domains, firstYear } = overview;
  if (!all.captures.length) return [];
  return [
    cameAndWent(all, firstYear),
    livesPlate(lives, hosts),
    hostsPlate(overview),
    urlsPlate(all, firstYear),
    ...(sum(all.lost) ? [rot(all, firstYear)] : []),
    ...(domains.length ? [domainsPlate(domains)] : []),
  ];
}

/** @type {(all: NumbersByYear, first: number) => Plate} */
function cameAndWent(all, first) {
  const height = 200;
  return {
    title: "Links that came and went",
    said:
      "Above, links that a page had not before; pale, those of the first capture of their page. Below, links that " +
      `went for good. ${count(sum(all.came))} came, ${count(sum(all.found))} were found, ${count(sum(all.went))} went.`,
    height,
    draw: (context, width, theme) =>
      yearFlows(context, theme, width, {
        first,
        up: [
          { values: all.came, colour: "accent" },
          { values: all.found, colour: "soft" },
        ],
        down: { values: all.went },
        words: ["came", "went"],
        height,
      }),
  };
}

/** @type {(all: NumbersByYear, first: number) => Plate} */
function rot(all, first) {
  const height = 150;
  return {
    title: "Pages that were lost",
    said:
      "Below, pages that a failure (404, 410 and the like) ended; above, those that were there again. " +
      `${count(sum(all.lost))} were lost, ${count(sum(all.returned))} returned.`,
    more: link({ v: "deaths" }, "Which pages, and who still links to them"),
    height,
    draw: (context, width, theme) =>
      yearFlows(context, theme, width, {
        first,
        up: [{ values: all.returned, colour: "accent" }],
        down: { values: all.lost },
        words: ["back", "lost"],
        height,
      }),
  };
}
