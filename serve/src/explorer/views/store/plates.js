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
  const { all, lives, hosts, domains, first_year: firstYear } = overview;
  if (!all.captures.length) return [];
  return [
    gainedAndLost(all, firstYear),
    livesPlate(lives, hosts),
    hostsPlate(overview),
    urlsPlate(all, firstYear),
    ...(sum(all.pages_died) ? [rot(all, firstYear)] : []),
    ...(domains.length ? [domainsPlate(domains)] : []),
  ];
}

/** @type {(all: NumbersByYear, first: number) => Plate} */
function gainedAndLost(all, first) {
  const height = 200;
  return {
    title: "Links gained and lost",
    said:
      "Above, links that a page had not before; pale, those of the first capture of their page. Below, links that " +
      `were lost for good. ${count(sum(all.links_gained))} were gained, ${count(sum(all.links_found))} were found, ` +
      `${count(sum(all.links_lost))} were lost.`,
    height,
    draw: (context, width, theme) =>
      yearFlows(context, theme, width, {
        first,
        up: [
          { values: all.links_gained, colour: "accent" },
          { values: all.links_found, colour: "soft" },
        ],
        down: { values: all.links_lost },
        words: ["gained", "lost"],
        height,
      }),
  };
}

/** @type {(all: NumbersByYear, first: number) => Plate} */
function rot(all, first) {
  const height = 150;
  return {
    title: "Pages that died",
    said:
      "Below, pages that a failure (404, 410 and the like) ended; above, those that were there again. " +
      `${count(sum(all.pages_died))} died, ${count(sum(all.pages_returned))} returned.`,
    more: link({ v: "deaths" }, "Which pages, and who still links to them"),
    height,
    draw: (context, width, theme) =>
      yearFlows(context, theme, width, {
        first,
        up: [{ values: all.pages_returned, colour: "accent" }],
        down: { values: all.pages_died },
        words: ["back", "died"],
        height,
      }),
  };
}
