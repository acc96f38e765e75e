// What is around a page at a date: rings by distance, sectors by domain. A node has its place for good; time only moves
// nodes in and out, so nothing ever swaps places. One answer has all dates, so the slider asks nothing.
//
// Two canvases: of the rings, drawn while something moves, and of time.

import { addressOf, go as goTo } from "./address.js";
import { asks, unitOf } from "./asks.js";
import { home, path } from "./data.js";
import { chooser, colours, count, dialog, el, headOf, many, notice, sized } from "./dom.js";
import { bare, cut, fitted, hostOf, namesOf, safe } from "./names.js";
import { elementOf, fileName, framed, iso, nameFor, saveLines, savePicture, saveSvg } from "./save.js";
import { surroundings } from "./surroundings.js";
import { table } from "./table.js";
import { DAY, day, digits, endOf, ticks, YEAR } from "./time.js";

/** How long a node counts as new, in seconds; how fast time plays, in seconds of time a second. */
const FRESH = 183 * DAY;
const SPEED = 0.9 * YEAR;
/** Milliseconds in which a node comes or goes. */
const FADE = 140;
/** Ends of the rings, as parts of the radius of the circle; and where each node was one step away at some time. */
const WIDE = [
  [0, 0],
  [0.33, 0.56],
  [0.67, 0.97],
];
const NARROW = [
  [0, 0],
  [0.28, 0.8],
  [0.87, 0.97],
];
const BOTTOM = 18;
const TAU = 2 * Math.PI;

const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

export async function open({ root, state, set, go, call, say, drawn, isOpen }) {
  const unit = unitOf(state);
  const [answer, own] = await Promise.all(asks.neighbourhood(state).map((where) => call(where)));
  if (!isOpen()) return undefined;
  const around = surroundings(answer);
  const { nodes, centre, size, source, target, from, until, unknown } = around;
  const { isCaptured, angle, radius, sectors, sectorOf } = around;
  const rings = around.isWide ? WIDE : NARROW;
  const names = unit === "page" ? namesOf(nodes, nodes[centre]) : nodes.map(safe);
  let last = 0;
  const captures = own.captures.map((difference) => (last += difference));
  const [first, end] = around.extent(captures);
  const wanted = endOf(state.at) ?? end;
  let now = Math.min(end, Math.max(first, wanted));
  const outside = el("div", {}, ...(now === wanted ? [] : [notice(outsideText())]));
  // The ring of each node at `now` (0: not there), whether it is new, and how much of it is shown on its way in or out.
  const ring = new Uint8Array(size);
  const fresh = new Uint8Array(size);
  const shown = new Float32Array(size);
  const drawnRing = new Uint8Array(size);
  const before = new Uint8Array(size);
  let [layout, frame, playing, lastFrame] = [undefined, 0, false, 0];
  let [pointed, dimmed, found, shownTable] = [-1, -1, undefined, undefined];
  let counts = [0, 0, 0];

  const picture = el("canvas", { "aria-hidden": "true" });
  const area = el(
    "div",
    {
      class: "picture",
      role: "application",
      tabindex: 0,
      "aria-label": "Nodes: up and down move through them, Enter goes there, left and right move time",
    },
    picture,
  );
  const timeline = el("canvas", { "aria-hidden": "true" });
  const slider = el(
    "div",
    { class: "picture", role: "slider", tabindex: 0, "aria-label": "Date: left and right move a month" },
    timeline,
  );
  const date = el("span", { class: "date" });
  const play = el("button", { type: "button", class: "play", "aria-label": "Play", text: "▶", onclick: toggle });
  const side = el("div", { class: "domains", tabindex: 0, role: "region", "aria-label": "Domains" });
  const readout = el("p");
  const tableSwitch = el("button", {
    class: "act",
    type: "button",
    text: "Table",
    "aria-pressed": "false",
    onclick: switchTable,
  });
  root.replaceChildren(
    heading(),
    tools(),
    outside,
    el("div", { class: "near" }, area, side),
    el("div", { class: "play-line" }, play, date, slider),
    el(
      "div",
      { class: "read" },
      readout,
      el("span", { class: "keys" }, el("kbd", { text: "← →" }), " time ", el("kbd", { text: "Space" }), " play"),
    ),
  );

  // ---- what is there at a date ----

  function moveTo(time, isLast = true) {
    if (time !== now) outside.replaceChildren();
    now = Math.min(end, Math.max(first, time));
    around.ringsAt(now, ring);
    around.ringsAt(now - FRESH, before);
    counts = [0, 0, 0];
    for (let node = 0; node < size; node += 1) {
      counts[ring[node]] += 1;
      fresh[node] = ring[node] && !before[node] ? 1 : 0;
      if (ring[node]) drawnRing[node] = ring[node];
    }
    if (pointed >= 0 && !ring[pointed]) pointed = -1;
    date.textContent = day(now);
    slider.setAttribute("aria-valuenow", Math.round((now - first) / DAY));
    slider.setAttribute(
      "aria-valuetext",
      `${day(now)}: ${numbers()}`,
    );
    if (isLast) {
      // The picture is that of a second; a day means its last one.
      set({ at: now === end ? undefined : digits(now).replace(/235959$/, "") });
      if (state.to) askWays();
      shownTable?.update(rowsNow());
      fillSide();
    } else if (performance.now() - lastSide > 200) fillSide();
    tell();
    redraw();
  }

  /** How many nodes are there, of those that the answer has. */
  function numbers() {
    const of = answer.leftOut ? ` of the ${count(size)} nodes shown` : "";
    return `${count(counts[1])}${of} at one step, ${count(counts[2])} at two`;
  }

  let lastSide = 0;
  let lastCounts = "";
  /** Domains with the nodes that are there, by ring. */
  function fillSide() {
    lastSide = performance.now();
    const numbers = sectors.map(() => [0, 0, 0]);
    for (let node = 0; node < size; node += 1) if (ring[node]) numbers[sectorOf[node]][ring[node]] += 1;
    const text = JSON.stringify([numbers, found, dimmed]);
    if (text === lastCounts) return;
    lastCounts = text;
    const cell = (number) => el("td", { class: "n", text: number ? count(number) : "·" });
    const order = sectors.map((_, at) => at).sort((one, other) => total(other) - total(one));
    function total(at) {
      return numbers[at][1] + numbers[at][2];
    }
    const lines = order.map((at) =>
      el(
        "tr",
        { onpointerenter: () => dim(at), onpointerleave: () => dim(-1) },
        el("td", { text: safe(sectors[at].name) || "no host" }),
        cell(numbers[at][1]),
        cell(numbers[at][2]),
      ),
    );
    const titles = ["Domain", "1 step", "2 steps"].map((text, at) =>
      el("th", { scope: "col", class: at ? "n" : undefined, text }),
    );
    const head = el("thead", {}, el("tr", {}, ...titles));
    side.replaceChildren(...ways(), el("table", {}, head, el("tbody", {}, ...lines)));
  }

  function dim(sector) {
    dimmed = sector;
    redraw();
  }

  // ---- ways to another page ----

  let waysAsked = 0;
  async function askWays() {
    waysAsked += 1;
    const mine = waysAsked;
    const question = path("v1/ways", { url: state.url, target: state.to, at: digits(now), limit: 5 });
    const given = await call(question).catch((error) => ({ error: error.message }));
    if (!isOpen() || mine !== waysAsked) return;
    found = given;
    fillSide();
    redraw();
    say(waysText());
  }

  function waysText() {
    if (!found) return "";
    if (found.error) return `${safe(found.error)}.`;
    const to = cut(bare(state.to), 60);
    if (found.unknown) {
      return `Unknown whether there is a way to ${to} on ${day(now)}: it may go over ${safe(found.unknown[0])}.`;
    }
    if (found.links === null) return `No way to ${to}${found.isCut ? " of 6 links or fewer" : ""} on ${day(now)}.`;
    return `${many(found.links, "link")} to ${to} on ${day(now)}`;
  }

  function ways() {
    if (!state.to) return [];
    const steps = (way) =>
      el("li", {}, el("ol", {}, ...way.slice(1).map((url) => el("li", {}, linkTo(url, cut(bare(url), 60))))));
    const list = found?.ways?.length ? [el("ul", { class: "ways" }, ...found.ways.map(steps))] : [];
    return [el("h2", { text: waysText() }), ...list];
  }

  const linkTo = (url, text) =>
    el("a", {
      href: addressOf({ v: "neighbourhood", url, at: state.at }),
      text,
      onclick: (event) => {
        if (event.metaKey || event.ctrlKey || event.shiftKey) return;
        event.preventDefault();
        enter(url);
      },
    });

  // ---- what stands around the pictures ----

  function heading() {
    const noun = { page: "pages", host: "hosts", domain: "domains" }[unit];
    const text = size > 1 ? `What it links to and what links to it, and what those link to: ${noun}` : nothing();
    return headOf(bare(state.url), el("p", { text }));
  }

  /** Says that the date that was asked for is outside of what is known. */
  function outsideText() {
    const when = wanted < first ? "before" : "after";
    return `Nothing around it is known ${when} ${day(now)}, which is shown in the place of ${day(wanted)}.`;
  }

  function nothing() {
    return unit === "page"
      ? "Nothing links to it, and it links to nothing."
      : `It links to no other ${unit}, and no other ${unit} links to it. Count pages to see its own.`;
  }

  function tools() {
    const field = el("input", {
      class: "filter",
      type: "text",
      placeholder: "Ways to…",
      "aria-label": "Ways to this URL",
      value: state.to || "",
      onkeydown: (event) => {
        if (event.key !== "Enter") return;
        event.preventDefault();
        state.to = field.value.trim() || undefined;
        found = undefined;
        set({ to: state.to });
        lastCounts = "";
        if (state.to) askWays();
        else fillSide();
        redraw();
      },
    });
    const units = [
      ["page", "pages"],
      ["host", "hosts"],
      ["domain", "domains"],
    ];
    return el(
      "div",
      { class: "tools" },
      chooser("Show", units, unit, (value) => go({ ...state, unit: value === "page" ? undefined : value })),
      field,
      el(
        "div",
        { class: "right" },
        tableSwitch,
        el("button", { class: "act", type: "button", text: "CSV", onclick: saveLinks }),
        el("button", { class: "act", type: "button", text: "SVG", onclick: () => saveSvg(asSvg(), fileName(state.url, "svg")) }),
        el("button", {
          class: "act",
          type: "button",
          text: "PNG",
          onclick: () => savePicture(whole(), fileName(state.url, "png")),
        }),
        el("button", { class: "act", type: "button", text: "Data", onclick: showData }),
      ),
    );
  }

  function showData() {
    const own = unit === "page" ? "" : ` --unit ${unit}`;
    const at = new Date(now * 1000).toISOString().slice(0, 19);
    const parts = [
      el("p", { text: "On the command line, the links of this date:" }),
      el("pre", { text: `webstrata neighbourhood STORE '${safe(state.url)}'${own} --at ${at} --limit 0` }),
      el("p", { text: "Over HTTP, those of all dates:" }),
      el("pre", { text: `curl '${home}${asks.neighbourhood(state)[0]}'` }),
    ];
    if (state.to) {
      parts.push(el("p", { text: "Ways:" }));
      parts.push(el("pre", { text: `webstrata ways STORE '${safe(state.url)}' '${safe(state.to)}' --at ${at}` }));
    }
    dialog("The data of this picture", ...parts);
  }

  /** The links that are there at this date, as a table for other tools. */
  function saveLinks() {
    const lines = [];
    for (let at = 0; at < from.length; at += 1) {
      if (!isThere(at)) continue;
      const [since, to, doubt] = [from[at], until[at], unknown[at]].map((time) => (time === Infinity ? "" : iso(time)));
      lines.push({ from: since, until: to, source: nodes[source[at]], target: nodes[target[at]], unknown: doubt });
    }
    saveLines(["from", "until", "source", "target", "unknown"], lines, "csv", nameFor(state.url));
  }

  /** Whether a link is part of the picture at this date. */
  const isThere = (at) =>
    from[at] <= now && until[at] > now && (source[at] === centre || ring[source[at]] === 1) && isNode(target[at]);
  const isNode = (node) => node === centre || ring[node] > 0;

  // ---- the pictures ----

  function resize() {
    if (area.clientWidth < 10) return;
    const [width, height] = [area.clientWidth, area.clientHeight];
    const room = width < 560 ? 26 : 90;
    const round = Math.max(60, Math.min(width / 2 - room, height / 2 - 26));
    layout = { width, height, round, x: width / 2, y: height / 2 };
    placed.fill(0);
    layout.time = { width: slider.clientWidth, height: slider.clientHeight };
    redraw();
  }

  function redraw() {
    if (frame || !layout) return;
    frame = requestAnimationFrame(draw);
  }

  function draw(at) {
    frame = 0;
    if (!isOpen()) return;
    const passed = lastFrame ? Math.min(100, at - lastFrame) : 16;
    lastFrame = at;
    if (playing) {
      if (now >= end) toggle();
      else moveTo(now + (SPEED * passed) / 1000, false);
    }
    const part = still() ? 1 : 1 - Math.exp(-passed / FADE);
    let moves = false;
    for (let node = 0; node < size; node += 1) {
      const wanted = ring[node] ? 1 : 0;
      if (shown[node] === wanted) continue;
      shown[node] += (wanted - shown[node]) * part;
      if (Math.abs(wanted - shown[node]) < 0.02) shown[node] = wanted;
      else moves = true;
    }
    const theme = colours();
    const context = sized(picture, layout.width, layout.height);
    context.clearRect(0, 0, layout.width, layout.height);
    drawRings(context, theme);
    const lower = sized(timeline, layout.time.width, layout.time.height);
    lower.clearRect(0, 0, layout.time.width, layout.time.height);
    drawTime(lower, theme);
    if (moves || playing) redraw();
    else lastFrame = 0;
    drawn();
  }

  // Where nodes are, for the size of the window and the rings they were last in.
  const [px, py, placed] = [new Float32Array(size), new Float32Array(size), new Uint8Array(size)];
  const distance = (node) => {
    const [near, far] = rings[drawnRing[node]];
    return layout.round * (near + (far - near) * (0.06 + 0.88 * radius[node]));
  };
  const place = (node) => {
    if (node === centre) return [layout.x, layout.y];
    if (placed[node] !== drawnRing[node]) {
      const far = distance(node);
      px[node] = layout.x + Math.cos(angle[node]) * far;
      py[node] = layout.y + Math.sin(angle[node]) * far;
      placed[node] = drawnRing[node];
    }
    return [px[node], py[node]];
  };
  const dot = () => Math.max(1.5, Math.min(4.5, layout.round / 12 / Math.sqrt(1 + counts[1] / 12)));

  function circle(context, x, y, r) {
    context.moveTo(x + r, y);
    context.arc(x, y, r, 0, TAU);
  }

  function drawRings(context, theme) {
    const { x, y, round } = layout;
    for (const [ends, fill] of [
      [rings[2], theme.panel],
      [rings[1], theme.faint],
    ]) {
      context.fillStyle = fill;
      context.beginPath();
      circle(context, x, y, round * (ends[1] + 0.02));
      context.fill();
      context.fillStyle = theme.paper;
      context.beginPath();
      circle(context, x, y, round * (ends[0] - 0.02));
      context.fill();
    }
    drawSectors(context, theme);
    drawLinks(context, theme);
    drawNodes(context, theme);
    context.globalAlpha = 1;
    context.fillStyle = theme.ink;
    context.beginPath();
    circle(context, x, y, 6);
    context.fill();
    drawNames(context, theme);
  }

  /** A path for each look: captured or not, new or not, dim or not; and one for each node on its way in or out. */
  function drawNodes(context, theme) {
    const looks = Array.from({ length: 8 }, () => []);
    const moving = [];
    for (let node = 0; node < size; node += 1) {
      if (shown[node] <= 0 || node === centre) continue;
      if (shown[node] < 1) moving.push(node);
      else {
        const isDim = dimmed >= 0 && sectorOf[node] !== dimmed;
        looks[fresh[node] * 4 + isCaptured[node] * 2 + (isDim ? 1 : 0)].push(node);
      }
    }
    const small = dot();
    const add = (node, r) => {
      const [x, y] = place(node);
      // A circle of two pixels is a square, which is drawn much faster.
      if (r < 1.6) {
        context.moveTo(x - r, y - r);
        context.lineTo(x + r, y - r);
        context.lineTo(x + r, y + r);
        context.lineTo(x - r, y + r);
        context.lineTo(x - r, y - r);
      } else circle(context, x, y, r);
    };
    const finish = (isNew, captured) => {
      const colour = isNew ? theme.accent : theme.bar;
      context.lineWidth = 1;
      if (captured) {
        context.fillStyle = colour;
        context.fill();
      } else {
        context.strokeStyle = colour;
        context.stroke();
      }
    };
    looks.forEach((nodes, look) => {
      if (!nodes.length) return;
      context.globalAlpha = look % 2 ? 0.15 : 1;
      context.beginPath();
      for (const node of nodes) add(node, drawnRing[node] === 1 ? small : small * 0.8);
      finish(look >= 4, look % 4 >= 2);
    });
    // In steps of a quarter, so that many that move together are one path.
    for (let step = 1; step <= 4; step += 1) {
      const part = step / 4;
      const own = moving.filter((node) => Math.ceil(shown[node] * 4) === step);
      for (const isNew of [0, 1]) {
        for (const captured of [0, 1]) {
          context.globalAlpha = part;
          context.beginPath();
          for (const node of own) {
            if (fresh[node] === isNew && isCaptured[node] === captured) add(node, small * (0.4 + 0.6 * part));
          }
          finish(isNew, captured);
        }
      }
    }
    context.globalAlpha = 1;
  }

  /** The rim, an arc for each sector with its name. */
  function drawSectors(context, theme) {
    const { x, y, round } = layout;
    context.lineWidth = 1.5;
    context.font = `11px ${theme.sans}`;
    const taken = [];
    for (const [at, sector] of sectors.entries()) {
      const gap = Math.min(0.012, (sector.to - sector.from) / 8);
      context.strokeStyle = dimmed >= 0 && dimmed !== at ? theme.rule : theme.ink3;
      context.beginPath();
      context.moveTo(x + Math.cos(sector.from + gap) * (round + 4), y + Math.sin(sector.from + gap) * (round + 4));
      context.arc(x, y, round + 4, sector.from + gap, sector.to - gap);
      context.stroke();
      const middle = (sector.from + sector.to) / 2;
      const [cos, sin] = [Math.cos(middle), Math.sin(middle)];
      const align = cos > 0.3 ? "left" : cos < -0.3 ? "right" : "center";
      const [tx, ty] = [x + cos * (round + 11), y + sin * (round + 14) + 4];
      const room =
        align === "left" ? layout.width - tx : align === "right" ? tx : 2 * Math.min(tx, layout.width - tx);
      const text = fitted(
        context,
        sector.name.startsWith("others") ? "others" : safe(sector.name),
        Math.max(20, room),
      );
      const width = context.measureText(text).width;
      const left = align === "left" ? tx : align === "right" ? tx - width : tx - width / 2;
      if (taken.some((box) => left < box[2] && left + width > box[0] && ty - 10 < box[3] && ty + 3 > box[1]))
        continue;
      taken.push([left - 4, ty - 12, left + width + 4, ty + 4]);
      context.textAlign = align;
      context.fillStyle = dimmed >= 0 && dimmed !== at ? theme.ink3 : theme.ink2;
      context.fillText(text, tx, ty);
    }
  }

  /** Lines from the page to the first ring, paler the more there are; those of the node that is pointed at; a way. */
  function drawLinks(context, theme) {
    const { x, y } = layout;
    context.lineWidth = 1;
    context.strokeStyle = theme.bar2;
    context.globalAlpha = Math.max(0.08, Math.min(0.7, 40 / (counts[1] + 1)));
    context.beginPath();
    for (let node = 0; node < size; node += 1) {
      if (ring[node] !== 1 || (dimmed >= 0 && sectorOf[node] !== dimmed)) continue;
      const [nx, ny] = place(node);
      context.moveTo(x, y);
      context.lineTo(nx, ny);
    }
    context.stroke();
    context.globalAlpha = 1;
    if (pointed >= 0) {
      context.strokeStyle = theme.accent;
      context.beginPath();
      for (let at = 0; at < from.length; at += 1) {
        if ((source[at] !== pointed && target[at] !== pointed) || !isThere(at)) continue;
        context.moveTo(...place(source[at]));
        context.lineTo(...place(target[at]));
      }
      context.stroke();
    }
    const way = found?.ways?.[0]?.map((url) => nodes.indexOf(url));
    if (way && unit === "page") {
      context.strokeStyle = theme.accent;
      context.lineWidth = 2;
      context.beginPath();
      for (let step = 1; step < way.length; step += 1) {
        if (way[step - 1] < 0 || way[step] < 0 || !isNode(way[step])) break;
        context.moveTo(...place(way[step - 1]));
        context.lineTo(...place(way[step]));
      }
      context.stroke();
    }
  }

  /** Names of nodes where they do not touch: that of the one pointed at, then those of the first ring by their places. */
  function drawNames(context, theme) {
    const taken = [[layout.x - 12, layout.y - 12, layout.x + 12, layout.y + 12]];
    context.font = `11px ${theme.sans}`;
    const put = (node, isStrong) => {
      const [nx, ny] = place(node);
      const text = fitted(context, names[node], isStrong ? 320 : 110);
      const width = context.measureText(text).width;
      const isLeft = nx + 8 + width > layout.width || (nx < layout.x && nx - 8 - width > 0);
      const left = isLeft ? nx - 8 - width : nx + 8;
      const box = [left - 3, ny - 8, left + width + 3, ny + 8];
      if (
        !isStrong &&
        taken.some((other) => box[0] < other[2] && box[2] > other[0] && box[1] < other[3] && box[3] > other[1])
      ) {
        return;
      }
      taken.push(box);
      context.globalAlpha = 0.85;
      context.fillStyle = theme.paper;
      context.fillRect(box[0], box[1], box[2] - box[0], 16);
      context.globalAlpha = 1;
      context.fillStyle = isStrong ? theme.accent : theme.ink2;
      context.textAlign = "left";
      context.fillText(text, left, ny + 4);
    };
    if (pointed >= 0) put(pointed, true);
    for (const node of found?.ways?.[0] || []) {
      const at = nodes.indexOf(node);
      if (at >= 0 && at !== centre && ring[at]) put(at, true);
    }
    if (playing) return;
    const most = layout.width < 560 ? 5 : 14;
    const near = [];
    for (let node = 0; node < size; node += 1) if (ring[node] === 1 && shown[node] > 0.5) near.push(node);
    // The same names at every date, as far as they are there.
    near.sort((one, other) => radius[one] - radius[other]);
    for (const node of near.slice(0, 200)) {
      if (taken.length > most) break;
      if (node !== pointed) put(node, false);
    }
  }

  const timeX = (time) => 6 + ((time - first) / (end - first)) * (layout.time.width - 12);
  const timeOf = (px) => first + ((px - 6) / (layout.time.width - 12)) * (end - first);

  /** How many links the page has over time, as steps; captures as ticks; the date. */
  function drawTime(context, theme) {
    const { width, height } = layout.time;
    const floor = height - BOTTOM;
    const steps = around.degree(first, end);
    const most = Math.max(1, ...steps.map((step) => step.links));
    context.fillStyle = theme.bar2;
    steps.forEach((step, at) => {
      const [start, stop] = [timeX(step.time), timeX(at + 1 < steps.length ? steps[at + 1].time : end)];
      const tall = (step.links / most) * (floor - 10);
      context.fillRect(Math.floor(start), floor - tall, Math.max(1, Math.ceil(stop) - Math.floor(start)), tall);
    });
    context.fillStyle = theme.ink3;
    for (const time of captures) context.fillRect(Math.round(timeX(time)), floor, 1, 3);
    context.font = `11px ${theme.sans}`;
    context.textAlign = "left";
    for (const tick of ticks(first, end, width, 46)) {
      context.fillStyle = theme.rule;
      context.fillRect(Math.round(timeX(tick.time)), floor + 3, 1, 4);
      context.fillStyle = theme.ink2;
      if (timeX(tick.time) + 30 < width) context.fillText(tick.text, timeX(tick.time) + 3, height - 4);
    }
    context.fillStyle = theme.accent;
    context.fillRect(Math.round(timeX(now)) - 1, 0, 2, floor);
    context.beginPath();
    circle(context, timeX(now), floor, 4.5);
    context.fill();
  }

  function whole() {
    const made = el("canvas");
    const context = sized(made, layout.width, layout.height + layout.time.height);
    const theme = colours();
    context.fillStyle = theme.paper;
    context.fillRect(0, 0, layout.width, layout.height + layout.time.height);
    drawRings(context, theme);
    context.translate(0, layout.height);
    drawTime(context, theme);
    return made;
  }

  /** The picture as it stands by itself. */
  function asSvg() {
    const theme = colours();
    const draw = (svg) => {
      drawRings(svg, theme);
      svg.shifted(0, layout.height, () => drawTime(svg, theme));
    };
    const key = "Accent: came in the last six months; hollow: never captured; below: how many links there were.";
    const frame = { title: `Around ${bare(state.url)}`, facts: `${day(now)}: ${numbers()}`, key };
    const size = [layout.width, layout.height + layout.time.height];
    return framed(frame, size, theme, draw);
  }

  // ---- pointer and keys ----

  function tell() {
    if (pointed >= 0) {
      let [out, into, unsure] = [0, 0, 0];
      for (let at = 0; at < from.length; at += 1) {
        if (!isThere(at)) continue;
        unsure += unknown[at] <= now && (source[at] === pointed || target[at] === pointed);
        out += source[at] === pointed;
        into += target[at] === pointed;
      }
      const steps = ring[pointed] === 1 ? "one step" : "two steps";
      readout.replaceChildren(
        el("b", { text: unit === "page" ? safe(nodes[pointed]) : safe(nodes[pointed]) }),
        `  ${steps} away; here ${many(out, "link")} from it, ${count(into)} to it` +
          `${unsure ? `, ${count(unsure)} of them unknown by then` : ""}` +
          `${isCaptured[pointed] ? "" : "; never captured"}`,
      );
      return;
    }
    const rest = [
      answer.leftOut ? ` Shown: the ${count(size)} of ${count(size + answer.leftOut)} that were there longest.` : "",
      answer.unread ? ` The links of ${many(answer.unread, "page")} at one step were not read.` : "",
    ];
    const look = (kind, text) => el("span", { class: "look" }, el("i", { class: kind }), text);
    readout.replaceChildren(
      `${numbers()}. `,
      look("dot new", "came in the last six months"),
      ...(unit === "page" ? [look("dot", "captured"), look("dot hollow", "never captured")] : []),
      ...rest,
    );
  }

  function nodeAt(px, py) {
    let [best, nearest] = [-1, 12];
    for (let node = 0; node < size; node += 1) {
      if (!ring[node]) continue;
      const [x, y] = place(node);
      const far = Math.hypot(x - px, y - py);
      if (far < nearest) [best, nearest] = [node, far];
    }
    return best;
  }

  const enter = (name) => {
    const url = unit === "page" || name.includes("://") ? name : undefined;
    if (url) goTo({ v: "neighbourhood", url, at: state.at });
    else goTo({ v: "backlinks", url: name });
  };

  function pointers() {
    const at = (event, own) => {
      const box = own.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    area.addEventListener("pointermove", (event) => {
      const node = nodeAt(...at(event, area));
      if (node === pointed) return;
      pointed = node;
      area.style.cursor = pointed >= 0 ? "pointer" : "default";
      tell();
      redraw();
    });
    area.addEventListener("pointerleave", () => {
      pointed = -1;
      tell();
      redraw();
    });
    area.addEventListener("click", (event) => {
      const node = nodeAt(...at(event, area));
      if (node >= 0) enter(nodes[node]);
    });
    area.addEventListener(
      "wheel",
      (event) => {
        // Where the page is higher than the window, the wheel moves the page.
        if (document.documentElement.scrollHeight > innerHeight + 1) return;
        event.preventDefault();
        moveTo(now + Math.sign(event.deltaY) * 30 * DAY);
      },
      { passive: false },
    );
    let drags = false;
    slider.addEventListener("pointerdown", (event) => {
      drags = true;
      slider.setPointerCapture(event.pointerId);
      if (playing) toggle();
      moveTo(timeOf(at(event, slider)[0]), false);
    });
    slider.addEventListener("pointermove", (event) => {
      if (drags) moveTo(timeOf(at(event, slider)[0]), false);
    });
    for (const kind of ["pointerup", "pointercancel"]) {
      slider.addEventListener(kind, () => {
        if (drags) moveTo(now);
        drags = false;
      });
    }
  }

  function toggle() {
    playing = !playing;
    play.textContent = playing ? "❚❚" : "▶";
    play.setAttribute("aria-label", playing ? "Pause" : "Play");
    if (playing && now >= end) now = first;
    if (!playing) moveTo(now);
    lastFrame = 0;
    redraw();
  }

  /** The same day a month later or earlier. */
  function months(step) {
    const at = new Date(now * 1000);
    const moved = Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + step, Math.min(28, at.getUTCDate())) / 1000;
    moveTo(moved);
    say(slider.getAttribute("aria-valuetext"));
  }

  /** Nodes that are there, by ring and angle. */
  function inOrder() {
    const list = [];
    for (let node = 0; node < size; node += 1) if (ring[node]) list.push(node);
    return list.sort((one, other) => ring[one] - ring[other] || angle[one] - angle[other]);
  }

  function step(by) {
    const list = inOrder();
    if (!list.length) return;
    const here = list.indexOf(pointed);
    pointed = list[Math.max(0, Math.min(list.length - 1, here < 0 ? (by > 0 ? 0 : list.length - 1) : here + by))];
    tell();
    redraw();
    say(`${cut(names[pointed], 120)}, ${ring[pointed] === 1 ? "one step" : "two steps"}`);
  }

  function key(event) {
    if (shownTable) return false;
    const onButton = event.target.closest?.("button, a");
    if (event.key === "ArrowLeft") months(-1);
    else if (event.key === "ArrowRight") months(1);
    else if (event.key === "Home") moveTo(first);
    else if (event.key === "End") moveTo(end);
    else if (event.key === " " && !onButton) toggle();
    else if (event.key === "ArrowDown") step(1);
    else if (event.key === "ArrowUp") step(-1);
    else if (event.key === "Enter" && pointed >= 0 && !onButton) enter(nodes[pointed]);
    else if (event.key === "Escape" && pointed >= 0) {
      pointed = -1;
      tell();
      redraw();
    } else return false;
    return true;
  }

  /** A row for each node that is there: its stretch in the graph. */
  function rowsNow() {
    const spans = new Map();
    for (let at = 0; at < from.length; at += 1) {
      const node = target[at] === centre ? source[at] : target[at];
      if (!ring[node]) continue;
      const span = spans.get(node) || [Infinity, -Infinity];
      spans.set(node, [Math.min(span[0], from[at]), Math.max(span[1], until[at])]);
    }
    return inOrder().map((node) => {
      const [since, to] = spans.get(node);
      const until = Math.min(to, end);
      const run = { first: since, last: until, gone: to === Infinity ? 0 : to };
      return { url: nodes[node], runs: [run], first: since, last: until, life: until - since };
    });
  }

  function switchTable() {
    if (shownTable) {
      shownTable.element.remove();
      shownTable = undefined;
    } else {
      const where = (row) =>
        addressOf(hostOf(row.url) ? { v: "neighbourhood", url: row.url } : { v: "backlinks", url: row.url });
      shownTable = table(rowsNow(), 0, where);
      area.append(shownTable.element);
    }
    tableSwitch.setAttribute("aria-pressed", String(Boolean(shownTable)));
  }

  slider.setAttribute("aria-valuemin", 0);
  slider.setAttribute("aria-valuemax", Math.round((end - first) / DAY));
  pointers();
  moveTo(now);
  // The first picture does not come in slowly.
  for (let node = 0; node < size; node += 1) shown[node] = ring[node] ? 1 : 0;
  fillSide();
  const watch = new ResizeObserver(resize);
  watch.observe(area);
  resize();
  return {
    key,
    resize,
    close: () => {
      playing = false;
      cancelAnimationFrame(frame);
      watch.disconnect();
    },
    print: () => [elementOf(asSvg())],
    picture: () => ({
      url: state.url,
      unit,
      now,
      counts,
      nodes: inOrder().map((node) => ({
        name: nodes[node],
        ring: ring[node],
        fresh: fresh[node],
        place: place(node),
      })),
      ways: found,
      isPlaying: playing,
      layout: { ...layout, first, end },
    }),
  };
}
