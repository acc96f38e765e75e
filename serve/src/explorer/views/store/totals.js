// Two plates: how many URLs are known by year, and the domains that are linked to most.

import { text, years } from "../../drawing/years.js";
import { cut } from "../../text/cut.js";
import { safe } from "../../text/names.js";
import { count, sum } from "../../text/numbers.js";

/** @import { NumbersByYear } from "../../data/answers.js" */
/** @import { Plate } from "./plates.js" */

/** @type {(all: NumbersByYear, first: number) => Plate} */
export function urlsPlate(all, first) {
  const values = all.urls.map((_, at) => sum(all.urls.slice(0, at + 1)));
  const urls = sum(all.urls);
  const height = 160;
  return {
    title: "URLs known",
    said: "Captured or linked to, by the year in which they were first seen.",
    height,
    draw: (context, width, theme) => {
      const [left, right, bottom] = [8, width - 64, height - 22];
      const { step, x } = years(context, theme, { first, length: values.length, left, width: right, y: height - 4 });
      context.fillStyle = theme.bar2;
      context.beginPath();
      context.moveTo(left, bottom);
      values.forEach((number, at) => {
        context.lineTo(x(at) + step, bottom - (number / (urls || 1)) * (bottom - 14));
      });
      context.lineTo(right, bottom);
      context.fill();
      text(context, theme, count(urls), right + 6, 18, { colour: theme.ink });
    },
  };
}

/** @type {(domains: { domain: string, links: number }[]) => Plate} */
export function domainsPlate(domains) {
  const half = Math.ceil(domains.length / 2);
  return {
    title: "Domains that are linked to most",
    said: "Links from pages to URLs of the domain, over all time; a root scale.",
    height: 8 + half * 18,
    draw: (context, width, theme) => {
      const room = width / 2 - 12;
      const widest = Math.sqrt(domains[0].links);
      domains.forEach(({ domain, links }, at) => {
        const left = at < half ? 0 : width / 2 + 12;
        const y = 14 + (at % half) * 18;
        const bar = Math.max(1, (Math.sqrt(links) / widest) * (room - 170));
        text(context, theme, cut(safe(domain), 17), left, y, { colour: theme.ink });
        context.fillStyle = theme.bar;
        context.fillRect(left + 112, y - 9, bar, 10);
        text(context, theme, count(links), left + 118 + bar, y);
      });
    },
  };
}
