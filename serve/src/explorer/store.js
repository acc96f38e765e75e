// The whole store: what it holds, links that came and went, how long they live, hosts by year, domains, epochs, servers.
//
// Each plate draws itself with the calls of a canvas, into SVG: what is shown is what is saved. Numbers are text.

import { asks } from "./asks.js";
import { home } from "./data.js";
import { act, colours, count, dialog, el, many } from "./dom.js";
import { shifted } from "./drawing.js";
import { cut, safe } from "./names.js";
import { link } from "./address.js";
import { elementOf, framed, saveLines, savePng, saveSvg, Svg } from "./save.js";
import { day } from "./time.js";
import { most, sum, text, yearFlows, years } from "./years.js";

/** Hosts with a row of their own, and with a curve. */
const HOSTS = 12;
const CURVES = 4;
/** Links that a host's curve must stand on. */
const BORN = 50;
const MONTHS_A_YEAR = 365.2425 / 30;
const HEAD = 34;

const bytes = (number) =>
  number < 1e6 ? `${Math.round(number / 1e3)} kB` : `${(number / 1e6).toFixed(number < 1e8 ? 1 : 0)} MB`;
const date = (text) => day(Date.parse(text) / 1000);

export async function open({ root, call, drawn, isOpen }) {
  const [answer, stats, topology] = await Promise.all(asks.store().map((where) => call(where)));
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
      heading(),
      figures(),
      overview ? undefined : missing(),
      el(
        "div",
        { class: "plates" },
        ...areas.map(({ plate, area }) =>
          el(
            "section",
            {},
            el("h2", { text: plate.title }),
            el("p", { text: plate.said }),
            area,
            plate.table ? plate.table() : undefined,
            plate.more,
          ),
        ),
        servers(),
      ),
    ),
  );

  // ---- text ----

  function heading() {
    const [last] = epochs;
    const dates = counts.from ? `; captures from ${date(counts.from)} to ${date(counts.to)}` : "; no captures";
    return el(
      "div",
      { class: "head" },
      el("h1", { text: "The store" }),
      el(
        "p",
        {},
        "Epoch ",
        el("b", { text: count(answer.epoch) }),
        `, ${last ? `committed ${date(last.committed)}` : ""}${dates}`,
      ),
      el(
        "div",
        { class: "right" },
        act("SVG", () => saveSvg(whole(), "store.svg")),
        act("PNG", () => savePng(whole(), "store.png")),
        overview && act("CSV", saveYears),
        act("Data", showData),
      ),
    );
  }

  function figures() {
    const word = counts.exact ? "" : ", at most";
    const all = [
      [count(counts.urls), "URLs"],
      [count(counts.pages), `pages captured${word}`],
      [count(counts.captures), `captures${word}`],
      [count(counts.links), `links, page to URL${word}`],
      [count(counts.occurrences), `links in captures${word}`],
      [count(counts.unknownCaptures), `captures whose links are not known${word}`],
      [bytes(stats.total.bytes), "of memory, in cells"],
    ];
    const pair = ([number, word]) => el("div", {}, el("dd", { text: number }), el("dt", { text: word }));
    return el("dl", { class: "figures" }, ...all.map(pair));
  }

  function missing() {
    return el(
      "p",
      { class: "missing" },
      "No overview was written for this epoch. ",
      el("code", { text: "webstrata overview STORE" }),
      " computes the numbers by year and by host, and the server shows them from then on.",
    );
  }

  function servers() {
    const lag = topology.newest > topology.epoch ? `, while epoch ${topology.newest} is being loaded` : "";
    const cells = topology.rows.flatMap((row) => row.cells);
    const replicas = cells.length ? Math.min(...cells.map((cell) => cell.servers.length)) : 0;
    const rows = stats.servers.map((server) => [
      safe(server.server),
      server.cells,
      server.counts.urls,
      server.counts.links,
      bytes(server.counts.bytes),
    ]);
    return el(
      "section",
      {},
      el("h2", { text: "Servers" }),
      el("p", {
        text:
          `${many(topology.servers.length, "server")} of epoch ${topology.epoch}${lag}; ${many(cells.length, "cell")}, ` +
          `each on at least ${many(replicas, "server")}` +
          (topology.unsettled ? `, of which ${count(topology.unsettled)} are on their way to another.` : "."),
      }),
      table(["Server", "cells", "URLs", "links", "bytes"], rows),
    );
  }

  /** Saves the numbers of each year, of the whole store and of each host. */
  function saveYears() {
    const columns = Object.keys(overview.all).filter((name) => Array.isArray(overview.all[name]));
    const years = (host, numbers) =>
      numbers[columns[0]].map((_, at) => ({
        year: overview.firstYear + at,
        host,
        ...Object.fromEntries(columns.map((name) => [name, numbers[name]?.[at]])),
      }));
    const lines = [...years("", overview.all), ...overview.hosts.flatMap((host) => years(host.host, host.numbers))];
    saveLines(["year", "host", ...columns], lines, "csv", "store");
  }

  function showData() {
    dialog(
      "The data of these pictures",
      el("p", { text: "On the command line:" }),
      el("pre", { text: "webstrata overview STORE --format json\nwebstrata log STORE" }),
      el("p", { text: "Over HTTP:" }),
      el("pre", {
        text: asks
          .store()
          .map((where) => `curl '${home}${where}'`)
          .join("\n"),
      }),
    );
  }

  // ---- pictures ----

  /** All plates one below the other, as a picture that stands by itself. */
  function whole() {
    const theme = colours();
    const width = 640;
    const draw = (context) => {
      let top = 0;
      for (const plate of plates) {
        shifted(context, 0, top, () => {
          text(context, theme, plate.title, 0, 20, { colour: theme.ink, bold: true });
        });
        shifted(context, 0, top + HEAD, () => plate.draw(context, width, theme));
        top += plate.height + HEAD;
      }
    };
    const height = sum(plates.map((plate) => plate.height + HEAD));
    const facts = `${root.querySelector(".head p").innerText}. ${count(counts.captures)} captures`;
    const key = plates.map((plate) => `${plate.title}: ${plate.said}`).join(" ");
    return framed({ title: "The store", facts, key }, [width, height], theme, draw);
  }

  function resize() {
    const theme = colours();
    for (const { plate, area } of areas) {
      const width = area.clientWidth;
      if (width < 10) continue;
      const svg = new Svg(width, plate.height, theme.paper);
      plate.draw(svg, width, theme);
      area.replaceChildren(elementOf(svg));
    }
    drawn();
  }

  const watch = new ResizeObserver(resize);
  watch.observe(root);
  return {
    resize,
    close: () => watch.disconnect(),
    picture: () => ({ counts, overview, epochs, plates: plates.map((plate) => plate.title) }),
  };
}

// ---- plates: a title, a sentence, a height, and what draws ----

function platesOf(overview) {
  const { all, lives, hosts, domains, firstYear } = overview;
  if (!all.captures.length) return [];
  const found = [cameAndWent(all, firstYear), longevity(lives, hosts), byHost(overview), known(all, firstYear)];
  if (sum(all.lost)) found.push(rot(all, firstYear));
  if (domains.length) found.push(linked(domains));
  return found;
}

function cameAndWent(all, first) {
  const up = [
    { values: all.came, colour: "accent" },
    { values: all.found, colour: "soft" },
  ];
  return {
    title: "Links that came and went",
    said:
      "Above, links that a page had not before; pale, those of the first capture of their page. Below, links that " +
      `went for good. ${count(sum(all.came))} came, ${count(sum(all.found))} were found, ${count(sum(all.went))} went.`,
    height: 200,
    draw: (context, width, theme) =>
      yearFlows(context, theme, width, { first, up, down: { values: all.went }, words: ["came", "went"], height: 200 }),
  };
}

function rot(all, first) {
  return {
    title: "Pages that were lost",
    said:
      "Below, pages that a failure (404, 410 and the like) ended; above, those that were there again. " +
      `${count(sum(all.lost))} were lost, ${count(sum(all.returned))} returned.`,
    more: link({ v: "deaths" }, "Which pages, and who still links to them"),
    height: 150,
    draw: (context, width, theme) =>
      yearFlows(context, theme, width, {
        first,
        up: [{ values: all.returned, colour: "accent" }],
        down: { values: all.lost },
        words: ["back", "lost"],
        height: 150,
      }),
  };
}

function longevity(lives, hosts) {
  const own = hosts.filter((host) => (host.lives.atRisk[0] || 0) >= BORN).slice(0, CURVES);
  const half = lives.surviving.findIndex((share) => share <= 0.5);
  const last = lives.age.length ? lives.age[lives.age.length - 1] : 0;
  const inYears = (age) => (age / MONTHS_A_YEAR).toFixed(1);
  let said = "No link came after the first capture of its page.";
  if (half >= 0) said = `Half of the links that a page gains are gone ${inYears(lives.age[half])} years later`;
  else if (lives.age.length) {
    const share = lives.surviving[lives.surviving.length - 1];
    said = `${Math.round(100 * share)} % of the links that a page gains are there ${inYears(last)} years later`;
  }
  if (lives.age.length) said += " (Kaplan–Meier; links of the first capture left out).";
  const height = 200;
  const draw = (context, width, theme) => {
    const [left, right, top, bottom] = [40, width - 96, 10, height - 24];
    const end = Math.max(last, 1);
    const x = (age) => left + (age / end) * (right - left);
    const y = (share) => bottom - share * (bottom - top);
    for (const share of [0, 0.25, 0.5, 0.75, 1]) {
      context.fillStyle = theme.faint;
      context.fillRect(left, y(share), right - left, 1);
      text(context, theme, `${100 * share}%`, left - 6, y(share) + 4, { align: "right" });
    }
    const span = end / MONTHS_A_YEAR;
    const step = [0.25, 0.5, 1, 2, 5, 10, 20].find((number) => span / number <= 6) || 50;
    for (let at = 0; at <= span; at += step) {
      text(context, theme, at === 0 ? "0 years" : String(at), x(at * MONTHS_A_YEAR), height - 6, {
        align: "center",
      });
    }
    const curves = [{ life: lives, name: "all links", colour: theme.accent, thickness: 2 }];
    for (const host of own) {
      curves.push({ life: host.lives, name: cut(safe(host.host), 16), colour: theme.bar2, thickness: 1 });
    }
    const drawn = curves.filter(({ life }) => life.age.length);
    for (const { life, colour, thickness } of drawn) {
      context.strokeStyle = colour;
      context.lineWidth = thickness;
      context.beginPath();
      context.moveTo(x(0), y(1));
      let share = 1;
      life.age.forEach((reached, at) => {
        context.lineTo(x(reached), y(share));
        share = life.surviving[at];
        context.lineTo(x(reached), y(share));
      });
      context.stroke();
    }
    // Names stand beside the ends of their curves, where they touch neither another name nor a curve.
    const names = [];
    const isFree = (box) =>
      !names.some((other) => Math.abs(other.base - box.base) < 12 && Math.abs(other.x - box.x) < 90) &&
      !drawn.some(({ life }) =>
        life.age.some((reached, at) => {
          const [begin, stop] = [x(reached), x(life.age[at + 1] ?? reached)];
          const high = y(life.surviving[at]) - box.base;
          return stop > box.x && begin < box.x + 90 && high > -12 && high < 5;
        }),
      );
    for (const { life, name, colour } of drawn) {
      const last = life.age.length - 1;
      const [left, end] = [x(life.age[last]) + 4, y(life.surviving[last])];
      const places = [4, -8, 16, -20, 28, -32, 40, -44].map((far) => ({ x: left, base: end + far }));
      const place = places.find(({ base }, at) => base > top && base <= bottom && isFree(places[at])) || places[0];
      names.push(place);
      text(context, theme, name, left, place.base, { colour: colour === theme.accent ? colour : theme.ink2 });
    }
  };
  return { title: "How long links live", said, height, draw };
}

function byHost({ hosts, hostsCaptured, firstYear }) {
  const shown = hosts.slice(0, HOSTS);
  const height = 24 + shown.length * 26;
  const draw = (context, width, theme) => {
    const left = Math.min(130, width * 0.3);
    const right = width - 64;
    shown.forEach((host, row) => {
      const bottom = 22 + row * 26;
      const { captures } = host.numbers;
      const step = (right - left) / captures.length;
      const highest = most(captures) || 1;
      text(context, theme, cut(safe(host.host), Math.floor(left / 6.4)), 0, bottom, { colour: theme.ink });
      context.fillStyle = theme.rule;
      context.fillRect(left, bottom, right - left, 0.7);
      context.fillStyle = theme.bar;
      captures.forEach((number, at) => {
        const tall = (number / highest) * 20;
        if (number)
          context.fillRect(left + at * step, bottom - Math.max(1, tall), Math.max(1, step - 1), Math.max(1, tall));
      });
      text(context, theme, count(sum(captures)), width, bottom, { align: "right" });
    });
    const { length } = shown[0]?.numbers.captures || [];
    if (length) years(context, theme, { first: firstYear, length, left, width: right, y: height - 4 });
  };
  const rows = () =>
    shown.map((host) => [
      link({ v: "backlinks", url: host.host }, safe(host.host)),
      sum(host.numbers.captures),
      host.pages,
      sum(host.numbers.urls),
      host.links,
    ]);
  const heads = ["Host", "captures", "pages", "URLs", "links"];
  const more =
    hostsCaptured > shown.length ? ` The ${shown.length} of ${count(hostsCaptured)} with the most captures.` : "";
  return {
    title: "Captures by host and year",
    said: `Each host to its own scale; at the right, how many in all.${more}`,
    height,
    draw,
    table: () => table(heads, rows()),
  };
}

/** A table; the first column is of words or links, the others of numbers. */
function table(heads, rows) {
  const cell = (value, at) =>
    at ? el("td", { class: "n", text: typeof value === "number" ? count(value) : value }) : el("td", {}, value);
  const head = (words, at) => el("th", { scope: "col", class: at ? "n" : "", text: words });
  return el(
    "table",
    {},
    el("thead", {}, el("tr", {}, ...heads.map(head))),
    el("tbody", {}, ...rows.map((row) => el("tr", {}, ...row.map(cell)))),
  );
}

function known(all, first) {
  let urls = 0;
  const values = all.urls.map((number) => (urls += number));
  const height = 160;
  const draw = (context, width, theme) => {
    const [left, right, bottom] = [8, width - 64, height - 22];
    const { step, x } = years(context, theme, { first, length: values.length, left, width: right, y: height - 4 });
    const y = (number) => bottom - (number / (urls || 1)) * (bottom - 14);
    context.fillStyle = theme.bar2;
    context.beginPath();
    context.moveTo(left, bottom);
    values.forEach((number, at) => context.lineTo(x(at) + step, y(number)));
    context.lineTo(right, bottom);
    context.fill();
    text(context, theme, count(urls), right + 6, 18, { colour: theme.ink });
  };
  return {
    title: "URLs known",
    said: "Captured or linked to, by the year in which they were first seen.",
    height,
    draw,
  };
}

function linked(domains) {
  const height = 8 + Math.ceil(domains.length / 2) * 18;
  const draw = (context, width, theme) => {
    const half = Math.ceil(domains.length / 2);
    const room = width / 2 - 12;
    const widest = Math.sqrt(domains[0].links);
    domains.forEach(({ domain, links }, at) => {
      const left = at < half ? 0 : width / 2 + 12;
      const y = 14 + (at % half) * 18;
      const bar = (Math.sqrt(links) / widest) * (room - 170);
      text(context, theme, cut(safe(domain), 17), left, y, { colour: theme.ink });
      context.fillStyle = theme.bar;
      context.fillRect(left + 112, y - 9, Math.max(1, bar), 10);
      text(context, theme, count(links), left + 118 + Math.max(1, bar), y);
    });
  };
  const said = "Links from pages to URLs of the domain, over all time; a root scale.";
  return { title: "Domains that are linked to most", said, height, draw };
}

function epochsPlate(epochs) {
  const shown = [...epochs].reverse();
  const rows = [...new Set(shown.flatMap((epoch) => epoch.rows.map((row) => row.row)))].sort(
    (one, other) => one - other,
  );
  const height = 62 + rows.length * 18;
  const draw = (context, width, theme) => {
    const left = 60;
    const step = Math.min(110, (width - left) / shown.length);
    const isNarrow = step < 64;
    shown.forEach((epoch, at) => {
      const merged = epoch.origin === "merged";
      const x = left + at * step;
      text(context, theme, isNarrow ? String(epoch.epoch) : `epoch ${epoch.epoch}`, x, 12, { colour: theme.ink });
      if (!isNarrow) text(context, theme, epoch.origin, x, 26, { colour: merged ? theme.accent : theme.ink2 });
      for (const { row } of epoch.rows) {
        const isNew = !shown[at - 1]?.rows.some((other) => other.row === row) && (at > 0 || epoch.origin === "built");
        context.fillStyle = isNew ? (merged ? theme.accent : theme.bar) : theme.bar2;
        context.fillRect(x, 34 + rows.indexOf(row) * 18, step - 1, 11);
      }
      if (!isNarrow) text(context, theme, count(epoch.captures), x, height - 8);
    });
    rows.forEach((row, at) => text(context, theme, `row ${row}`, 0, 44 + at * 18));
    if (!isNarrow) text(context, theme, "captures", 0, height - 8);
  };
  return {
    title: "Epochs and rows",
    said: "Dark: a row that the epoch wrote. Accent: one merged of those before. Pale: one that it kept.",
    height,
    draw,
  };
}
