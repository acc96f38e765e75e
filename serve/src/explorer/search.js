// The search field with its suggestions, and the first page, which offers pages and hosts to begin with.

import { link } from "./address.js";
import { asks } from "./asks.js";
import { colours, count, el, many, sized } from "./dom.js";
import { call, path } from "./data.js";
import { bare, hostOf, safe } from "./names.js";
import { month } from "./time.js";

const seconds = (text) => Date.parse(text) / 1000;

/** "3 captures, 2008 – 2010", or how many pages link to a URL that was never captured. */
function facts(page) {
  if (!page.captures) return `${many(page.inlinks, "page")} link${page.inlinks === 1 ? "s" : ""} · not captured`;
  const [first, last] = [page.first.slice(0, 4), page.last.slice(0, 4)];
  return `${many(page.captures, "capture")} · ${first === last ? first : `${first} – ${last}`}`;
}

/** A name with the part that was typed marked. */
function marked(name, typed) {
  const at = typed ? name.toLowerCase().indexOf(typed.toLowerCase()) : -1;
  if (at < 0) return el("span", { class: "name", text: name });
  return el(
    "span",
    { class: "name" },
    name.slice(0, at),
    el("b", { text: name.slice(at, at + typed.length) }),
    name.slice(at + typed.length),
  );
}

/** The domain that was typed, if hosts of the store lie below it and it is none itself. */
function domainOf(typed, hosts) {
  const name = typed.toLowerCase().replace(/\/.*$/, "");
  const isAbove = name.includes(".") && hosts.some(({ host }) => host.endsWith(`.${name}`));
  return isAbove && !hosts.some(({ host }) => host === name) ? name : undefined;
}

/** Makes the field suggest; `choose` opens what was chosen. */
export function startSearch(field, choose) {
  const list = document.getElementById("suggestions");
  let options = [];
  let selected = -1;
  let asked = 0;
  let timer;

  const close = () => {
    list.hidden = true;
    selected = -1;
    field.setAttribute("aria-expanded", "false");
    field.removeAttribute("aria-activedescendant");
  };
  const take = (wanted) => {
    close();
    field.blur();
    choose(wanted);
  };
  const select = (at) => {
    selected = at;
    options.forEach((option, own) => option.element.setAttribute("aria-selected", String(own === at)));
    const chosen = options[at]?.element;
    if (!chosen) return;
    field.setAttribute("aria-activedescendant", chosen.id);
    chosen.scrollIntoView({ block: "nearest" });
  };
  const option = (wanted, kind, ...children) => {
    const element = el(
      "div",
      {
        class: `option ${kind}`,
        role: "option",
        id: `option-${options.length}`,
        "aria-selected": "false",
        onpointerdown: (event) => {
          event.preventDefault();
          take(wanted);
        },
      },
      ...children,
    );
    options.push({ wanted, element });
    return element;
  };
  const suggest = async () => {
    const typed = field.value.trim();
    asked += 1;
    const own = asked;
    const answer = await call(path("v1/suggest", { q: typed || undefined, limit: 9 })).catch(() => undefined);
    if (own !== asked || document.activeElement !== field || !answer) return;
    options = [];
    const part = typed.replace(/^\w+:\/\//, "");
    const made = answer.pages.map((page) =>
      option({ url: page.url }, "page", marked(bare(page.url), part), el("span", { class: "fact", text: facts(page) })),
    );
    const domain = domainOf(part, answer.hosts);
    if (domain) {
      // Who types a whole name means it rather than one of its pages.
      made.unshift(
        option(
          { v: "backlinks", url: domain, match: "domain" },
          "host",
          marked(domain, part),
          el("span", { class: "fact", text: "domain, all its hosts" }),
        ),
      );
    }
    made.push(
      ...answer.hosts
        .slice(0, 5)
        .map(({ host, urls }) =>
          option(
            { v: "backlinks", url: host },
            "host",
            marked(safe(host), part.split("/")[0]),
            el("span", { class: "fact", text: many(urls, "URL") }),
          ),
        ),
    );
    if (!made.length) {
      made.push(el("div", { class: "option" }, `Nothing in the store has “${safe(typed)}” in its address.`));
    }
    list.replaceChildren(...made);
    list.hidden = false;
    selected = -1;
    field.setAttribute("aria-expanded", "true");
  };

  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(suggest, 60);
  });
  field.addEventListener("focus", () => {
    field.select();
    suggest();
  });
  field.addEventListener("blur", close);
  field.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && options.length) {
      select((selected + step + options.length + (selected < 0 && step < 0 ? 1 : 0)) % options.length);
      event.preventDefault();
    } else if (event.key === "Escape") {
      close();
      field.blur();
    }
  });
  document.getElementById("search").addEventListener("submit", (event) => {
    event.preventDefault();
    const typed = field.value.trim();
    const own = options.find(({ wanted }) => wanted.v === "backlinks" && wanted.url === typed.toLowerCase());
    const wanted = options[selected]?.wanted || own?.wanted || (typed && { url: typed });
    if (wanted) take(wanted);
  });
}

/** The domain that is linked to most of those without a captured host: all its links come from elsewhere. */
function linkedFromElsewhere(overview) {
  const isCaptured = ({ domain }) => overview.hosts.some(({ host }) => `.${host}`.endsWith(`.${domain}`));
  const found = overview?.domains.find((own) => own.domain && !isCaptured(own));
  return found && { url: found.domain, match: "domain" };
}

/** The host of the page that is linked to most: pages of its own may be all that link there, so they count, too. */
function linkedMost(start) {
  const most = start.pages.reduce((best, page) => (page.inlinks > best.inlinks ? page : best));
  return { url: hostOf(most.url), match: "host", internal: "1" };
}

/** Three questions with examples out of this store. */
function questions(start, overview) {
  const page = start.pages.find((own) => own.captures > 1) || start.pages[0];
  if (!page?.captures) return [];
  const years = [...new Set([page.first, page.last].map((time) => time.slice(0, 4)))];
  const between = years.length > 1 ? years.join(" and ") : "its first capture and its last";
  const target = linkedFromElsewhere(overview) || linkedMost(start);
  const asked = [
    ["Which links did ", { url: page.url }, bare(page.url), " have, and when?"],
    ["What changed on ", { v: "dates", url: page.url }, bare(page.url), ` between ${between}?`],
    ["Who links to ", { v: "backlinks", ...target }, safe(target.url), ", since when, and who stopped?"],
  ];
  const line = ([before, state, name, after]) => el("li", {}, el("span", {}, before, link(state, name), after));
  return [el("h2", { text: "Ask, for example" }), el("ul", { class: "list asks" }, ...asked.map(line))];
}

/** Captures by year, as small bars. */
function byYear(numbers) {
  const canvas = el("canvas", { class: "middle", "aria-hidden": "true" });
  requestAnimationFrame(() => {
    const [width, height] = [160, 16];
    const context = sized(canvas, width, height);
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

/** The first page. */
export async function open({ root, call: ask, drawn, isOpen }) {
  const [start, answer] = await Promise.all(asks.search().map((where) => ask(where)));
  if (!isOpen()) return undefined;
  const { counts, overview } = answer;
  const word = counts.exact ? "" : "at most ";
  const { captures, pages, urls } = counts;
  const page = (own) =>
    el(
      "li",
      {},
      link({ url: own.url }, bare(own.url)),
      el("span", { text: many(own.captures, "capture") }),
      el("span", { class: "middle", text: many(own.inlinks, "page") + (own.inlinks === 1 ? " links" : " link") }),
      el("span", { class: "middle long", text: `${month(seconds(own.first))} – ${month(seconds(own.last))}` }),
    );
  const host = (own) =>
    el("li", {}, link({ v: "backlinks", url: own.host }, safe(own.host)), el("span", { text: many(own.urls, "URL") }));
  const captured = (own) =>
    el(
      "li",
      {},
      link({ v: "backlinks", url: own.host }, safe(own.host)),
      byYear(own.numbers.captures),
      el("span", {
        text: many(
          own.numbers.captures.reduce((sum, number) => sum + number, 0),
          "capture",
        ),
      }),
    );
  const hosts = overview ? overview.hosts.slice(0, 8).map(captured) : start.hosts.map(host);
  root.replaceChildren(
    el(
      "div",
      { class: "first" },
      el("h1", { text: "Which page linked to which, and when" }),
      el("p", {
        text:
          `${word}${many(captures, "capture")} of ${many(pages, "page")}, and ${count(urls)} URLs in all. ` +
          "Type a URL, a host, or a part of one, or begin with one of these.",
      }),
      ...questions(start, overview),
      el("h2", { text: "Pages captured most" }),
      el("ul", { class: "list" }, ...start.pages.map(page)),
      el("h2", { text: overview ? "Hosts captured most, by year" : "Hosts with most URLs" }),
      el("ul", { class: "list" }, ...hosts),
    ),
  );
  drawn();
  return {
    picture: () => ({ pages: start.pages.map((own) => own.url), hosts: start.hosts.map((own) => own.host) }),
  };
}
