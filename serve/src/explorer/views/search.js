// The first page, which offers pages and hosts to begin with.

import { cleared, colours } from "../drawing/canvas.js";
import { link } from "../page/address.js";
import { asks } from "../page/asks.js";
import { el } from "../parts/dom.js";
import { bare, hostOf, safe } from "../text/names.js";
import { count, many, sum } from "../text/numbers.js";
import { month, secondsOf } from "../text/time.js";

/** @import { HostByYear, Overview, OverviewByYear, Suggested, SuggestedPage } from "../data/answers.js" */
/** @import { Context, Opened, State } from "../page/state.js" */

/** Hosts that are shown. */
const HOSTS = 8;

/**
 * The domain that is linked to most of those without a captured host: all its links come from elsewhere.
 * @param {OverviewByYear} overview
 * @returns {State | undefined}
 */
function linkedFromElsewhere(overview) {
  const isCaptured = (/** @type {{ domain: string }} */ { domain }) =>
    overview.hosts.some(({ host }) => `.${host}`.endsWith(`.${domain}`));
  const found = overview.domains.find((own) => own.domain && !isCaptured(own));
  return found && { url: found.domain, match: "domain" };
}

/**
 * The host of the page that is linked to most: pages of its own may be all that link there, so they count, too.
 * @param {Suggested} start
 * @returns {State}
 */
function linkedMost(start) {
  const most = start.pages.reduce((best, page) => (page.inlinks > best.inlinks ? page : best));
  return { url: hostOf(most.url), match: "host", internal: "1" };
}

/**
 * Three questions with examples out of this store.
 * @param {Suggested} start
 * @param {OverviewByYear | null | undefined} overview
 */
function questions(start, overview) {
  const page = start.pages.find((own) => own.captures > 1) || start.pages[0];
  if (!page?.captures) return [];
  const years = [...new Set([page.first, page.last].map((time) => (time || "").slice(0, 4)))];
  const between = years.length > 1 ? years.join(" and ") : "its first capture and its last";
  const target = (overview && linkedFromElsewhere(overview)) || linkedMost(start);
  /** @type {[string, State, string, string][]} */
  const asked = [
    ["Which links did ", { url: page.url }, bare(page.url), " have, and when?"],
    ["What changed on ", { v: "dates", url: page.url }, bare(page.url), ` between ${between}?`],
    ["Who links to ", { v: "backlinks", ...target }, safe(target.url || ""), ", since when, and who stopped?"],
  ];
  const lines = asked.map(([before, state, name, after]) =>
    el("li", {}, el("span", {}, before, link(state, name), after)),
  );
  return [el("h2", { text: "Ask, for example" }), el("ul", { class: "list asks" }, ...lines)];
}

/**
 * Captures by year, as small bars.
 * @param {number[]} numbers
 */
function byYear(numbers) {
  const canvas = el("canvas", { class: "middle", "aria-hidden": "true" });
  requestAnimationFrame(() => {
    const [width, height] = [160, 16];
    const context = cleared(canvas, width, height);
    const most = Math.max(1, ...numbers);
    const step = width / numbers.length;
    context.fillStyle = colours().bar;
    numbers.forEach((number, at) => {
      const tall = number ? Math.max(1, (number / most) * height) : 0;
      context.fillRect(at * step, height - tall, Math.max(1, step - 1), tall);
    });
  });
  return canvas;
}

/** @param {SuggestedPage} page */
function pageLine({ url, captures, inlinks, first, last }) {
  const span = first && last ? `${month(secondsOf(first))} – ${month(secondsOf(last))}` : "";
  return el(
    "li",
    {},
    link({ url }, bare(url)),
    el("span", { text: many(captures, "capture") }),
    el("span", { class: "middle", text: many(inlinks, "page") + (inlinks === 1 ? " links" : " link") }),
    el("span", { class: "middle long", text: span }),
  );
}

/** @param {string} host */
const linkTo = (host) => link({ v: "backlinks", url: host }, safe(host));

/** @type {(own: { host: string, urls: number }) => HTMLElement} */
const hostLine = ({ host, urls }) => el("li", {}, linkTo(host), el("span", { text: many(urls, "URL") }));

/** @type {(own: HostByYear) => HTMLElement} */
const capturedLine = ({ host, numbers: { captures } }) =>
  el("li", {}, linkTo(host), byYear(captures), el("span", { text: many(sum(captures), "capture") }));

/** @type {(start: Suggested, answer: Overview) => HTMLElement} */
function firstPage(start, { counts, overview }) {
  const word = counts.exact ? "" : "at most ";
  const hosts = overview ? overview.hosts.slice(0, HOSTS).map(capturedLine) : start.hosts.map(hostLine);
  return el(
    "div",
    { class: "first" },
    el("h1", { text: "Which page linked to which, and when" }),
    el("p", {
      text:
        `${word}${many(counts.captures, "capture")} of ${many(counts.pages, "page")}, ` +
        `and ${count(counts.urls)} URLs in all. ` +
        "Type a URL, a host, or a part of one, or begin with one of these.",
    }),
    ...questions(start, overview),
    el("h2", { text: "Pages captured most" }),
    el("ul", { class: "list" }, ...start.pages.map(pageLine)),
    el("h2", { text: overview ? "Hosts captured most, by year" : "Hosts with most URLs" }),
    el("ul", { class: "list" }, ...hosts),
  );
}

/**
 * @param {Context} context
 * @returns {Promise<Opened | undefined>}
 */
export async function open({ root, call, drawn, isOpen }) {
  const [suggest, overview] = asks.search();
  const [start, answer] = await Promise.all([call(suggest), call(overview)]);
  if (!isOpen()) return undefined;
  root.replaceChildren(firstPage(start, answer));
  drawn();
  return {
    picture: () => ({ pages: start.pages.map((own) => own.url), hosts: start.hosts.map((own) => own.host) }),
  };
}
