// What is around a page at a date: rings by distance, sectors by domain. A node has its place for good; time only moves
// nodes in and out, so nothing ever swaps places. One answer has all dates; a date that rests is asked for by itself.
//
// Two canvases: of the rings, drawn while something moves, and of time; `rings` draws both.

import { addressFrom, go as goTo } from "./address.js";
import { aroundPath, asks } from "./asks.js";
import { home } from "./data.js";
import { act, chooser, colours, count, dialog, el, headOf, many, notice, sized } from "./dom.js";
import { shifted } from "./drawing.js";
import { keyOf, keyText, nearKey } from "./key.js";
import { bare, cut, hostOf, namesOf, safe } from "./names.js";
import { elementOf, fileName, framed, nameFor, saveLines, savePng, saveSvg } from "./save.js";
import { ringsOf } from "./rings.js";
import { surroundings } from "./surroundings.js";
import { table } from "./table.js";
import { DAY, YEAR, day, digits, iso, lastSecondOf } from "./time.js";
import { waysOf } from "./ways.js";

const NOUNS = { page: "pages", directory: "directories", host: "hosts", domain: "domains" };
const sum = (numbers) => numbers.reduce((all, number) => all + number, 0);

/** How long a node counts as new, in seconds; how fast time plays, in seconds of time a second. */
const FRESH = 183 * DAY;
const SPEED = 0.9 * YEAR;
/** Milliseconds in which a node comes or goes. */
const FADE = 140;
/** Milliseconds that a date is rested on before the server is asked about it. */
const PAUSE = 120;
const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

export async function open({ root, state, set, go, call, say, drawn, isOpen }) {
  const [answer, own] = await Promise.all(asks.neighbourhood(state).map((where) => call(where)));
  if (!isOpen()) return undefined;
  // The server chooses what a node is where the address does not say it.
  const { unit } = answer;
  const around = surroundings(answer);
  const { nodes, centre, size, source, target, from, until } = around;
  const { isCaptured, angle, sectors, sectorOf } = around;
  const names = unit === "page" ? namesOf(nodes, nodes[centre]) : nodes.map(safe);
  let last = 0;
  const captures = own.captures.map((difference) => (last += difference));
  const [first, end] = around.extent(captures);
  const wanted = lastSecondOf(state.at) ?? end;
  const view = { now: Math.min(end, Math.max(first, wanted)), pointed: -1, dimmed: -1, counts: [0, 0, 0], unsure: 0 };
  const outside = el("div", {}, ...(view.now === wanted ? [] : [notice(outsideText())]));
  // The ring of each node at `now` (0: not there), whether it is new, and how much of it is shown on its way in or out.
  const ring = new Uint8Array(size);
  const fresh = new Uint8Array(size);
  const shown = new Float32Array(size);
  const drawnRing = new Uint8Array(size);
  const before = new Uint8Array(size);
  Object.assign(view, { ring, fresh, shown, drawnRing, isThere, isNode, unit, first, end, captures });
  const rings = ringsOf(around, names, view);
  const { place } = rings;
  let [frame, lastFrame, shownTable, learning] = [0, 0, undefined, undefined];

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
  // What is there at the end is what the answer about all dates says to this day.
  if (view.now !== end) await learnThen(0);
  if (!isOpen()) return undefined;
  root.replaceChildren(
    heading(),
    tools(),
    outside,
    el("div", { class: "near" }, area, side),
    keyOf(nearKey(unit)),
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
    if (time !== view.now) outside.replaceChildren();
    view.now = Math.min(end, Math.max(first, Math.floor(time)));
    if (isLast) {
      // The picture is that of a second; a day means its last one.
      set({ at: view.now === end ? undefined : digits(view.now).replace(/235959$/, "") });
      if (state.to) askWays();
      learning = learnThen(PAUSE).then((isNews) => isNews && isOpen() && update(true));
    }
    update(isLast);
  }

  /**
   * Asks what only an answer about this date says: what was unknown then, and since when links of groups stand that are
   * there. About the end, the answer about all dates says it of pages.
   */
  async function learnThen(wait) {
    const time = view.now;
    if (time === end && unit === "page") return false;
    await new Promise((done) => setTimeout(done, wait));
    if (time !== view.now) return false;
    const then = await call(aroundPath(state, { unit, fold: undefined, at: digits(time) })).catch(() => undefined);
    if (!then || time !== view.now) return false;
    around.learn(time, then);
    return true;
  }

  /** Finds which nodes are there now, and shows it. */
  function update(isLast) {
    view.links = around.linksAt(view.now);
    around.putRings(view.links, ring);
    around.putRings(around.linksAt(view.now - FRESH), before);
    view.unsure = around.unsureOf(view.links, ring, view.now);
    view.counts = [0, 0, 0];
    for (let node = 0; node < size; node += 1) {
      view.counts[ring[node]] += 1;
      fresh[node] = ring[node] && !before[node] ? 1 : 0;
      if (ring[node]) drawnRing[node] = ring[node];
    }
    if (view.pointed >= 0 && !ring[view.pointed]) view.pointed = -1;
    date.textContent = day(view.now);
    slider.setAttribute("aria-valuenow", Math.round((view.now - first) / DAY));
    slider.setAttribute("aria-valuetext", `${day(view.now)}: ${numbers()}`);
    if (isLast) {
      shownTable?.update(rowsNow());
      fillSide();
    } else if (performance.now() - lastSide > 200) fillSide();
    tell();
    redraw();
  }

  /** How many nodes are there, of those that the answer has. */
  function numbers() {
    const of = answer.leftOut ? ` of the ${count(size)} nodes shown` : "";
    const unsure = view.unsure ? `, of ${count(view.unsure)} it is unknown` : "";
    return `${count(view.counts[1])}${of} at one step, ${count(view.counts[2])} at two${unsure}`;
  }

  let lastSide = 0;
  let lastCounts = "";
  /** Domains with the nodes that are there, by ring. */
  function fillSide() {
    lastSide = performance.now();
    const numbers = sectors.map(() => [0, 0, 0]);
    for (let node = 0; node < size; node += 1) if (ring[node]) numbers[sectorOf[node]][ring[node]] += 1;
    const text = JSON.stringify([numbers, view.found, view.dimmed]);
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
    side.replaceChildren(...ways.elements(), el("table", {}, head, el("tbody", {}, ...lines)));
  }

  function dim(sector) {
    view.dimmed = sector;
    redraw();
  }

  // ---- ways to another page ----

  const ways = waysOf(state, view, { call, enter: (url) => enter(url) });
  async function askWays() {
    if (!(await ways.ask()) || !isOpen()) return;
    fillSide();
    redraw();
    say(ways.text());
  }

  // ---- what stands around the pictures ----

  function heading() {
    const why = state.unit || unit === "page" ? "" : ` of ${count(sum(answer.urls))} URLs`;
    const text =
      size > 1 ? `What it links to and what links to it, and what those link to: ${NOUNS[unit]}${why}` : nothing();
    return headOf(bare(state.url), el("p", { text }));
  }

  /** Says that the date that was asked for is outside of what is known. */
  function outsideText() {
    const when = wanted < first ? "before" : "after";
    return `Nothing around it is known ${when} ${day(view.now)}, which is shown in the place of ${day(wanted)}.`;
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
        view.found = undefined;
        set({ to: state.to });
        lastCounts = "";
        if (state.to) askWays();
        else fillSide();
        redraw();
      },
    });
    return el(
      "div",
      { class: "tools" },
      chooser("Show", Object.entries(NOUNS), unit, (value) => go({ ...state, unit: value })),
      field,
      el(
        "div",
        { class: "right" },
        tableSwitch,
        act("CSV", saveLinks),
        act("SVG", () => saveSvg(whole(), fileName(state.url, "svg"))),
        act("PNG", () => savePng(whole(), fileName(state.url, "png"))),
        act("Data", showData),
      ),
    );
  }

  function showData() {
    const own = unit === "page" ? "" : ` --unit ${unit}`;
    const at = new Date(view.now * 1000).toISOString().slice(0, 19);
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
  async function saveLinks() {
    await learning;
    const { links } = view;
    const lines = links.places.filter(isThere).map((at) => ({
      from: iso(links.from[at]),
      until: iso(links.until[at]),
      source: nodes[links.source[at]],
      target: nodes[links.target[at]],
      unknown: links.unknown[at] <= view.now ? iso(links.unknown[at]) : "",
    }));
    saveLines(["from", "until", "source", "target", "unknown"], lines, "csv", nameFor(state.url));
  }

  /** Whether a link of this date is part of the picture. */
  function isThere(at) {
    const [one, other] = [view.links.source[at], view.links.target[at]];
    return (one === centre || ring[one] === 1) && isNode(other);
  }

  function isNode(node) {
    return node === centre || ring[node] > 0;
  }

  // ---- the pictures ----

  function resize() {
    if (area.clientWidth < 10) return;
    const [width, height] = [area.clientWidth, area.clientHeight];
    const room = width < 560 ? 26 : 90;
    const round = Math.max(60, Math.min(width / 2 - room, height / 2 - 26));
    view.layout = { width, height, round, x: width / 2, y: height / 2 };
    rings.resized();
    view.layout.time = { width: slider.clientWidth, height: slider.clientHeight };
    redraw();
  }

  function redraw() {
    if (frame || !view.layout) return;
    frame = requestAnimationFrame(draw);
  }

  function draw(at) {
    frame = 0;
    if (!isOpen()) return;
    const passed = lastFrame ? Math.min(100, at - lastFrame) : 16;
    lastFrame = at;
    if (view.playing) {
      if (view.now >= end) toggle();
      else moveTo(view.now + (SPEED * passed) / 1000, false);
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
    const context = sized(picture, view.layout.width, view.layout.height);
    context.clearRect(0, 0, view.layout.width, view.layout.height);
    rings.draw(context, theme);
    const lower = sized(timeline, view.layout.time.width, view.layout.time.height);
    lower.clearRect(0, 0, view.layout.time.width, view.layout.time.height);
    rings.drawTime(lower, theme);
    if (moves || view.playing) redraw();
    else lastFrame = 0;
    drawn();
  }

  /** The picture as it stands by itself. */
  function whole() {
    const theme = colours();
    const draw = (context) => {
      rings.draw(context, theme);
      shifted(context, 0, view.layout.height, () => rings.drawTime(context, theme));
    };
    const facts = `${day(view.now)}: ${numbers()}`;
    const frame = { title: `Around ${bare(state.url)}`, facts, key: keyText(nearKey(unit)) };
    const size = [view.layout.width, view.layout.height + view.layout.time.height];
    return framed(frame, size, theme, draw);
  }

  // ---- pointer and keys ----

  function tell() {
    if (view.pointed >= 0) {
      let [out, into, unsure] = [0, 0, 0];
      for (const at of view.links.places) {
        if (!isThere(at)) continue;
        const [isOut, isIn] = [view.links.source[at] === view.pointed, view.links.target[at] === view.pointed];
        unsure += (isOut || isIn) && view.links.unknown[at] <= view.now;
        out += isOut;
        into += isIn;
      }
      const steps = ring[view.pointed] === 1 ? "one step" : "two steps";
      readout.replaceChildren(
        el("b", { text: safe(nodes[view.pointed]) }),
        `  ${steps} away; here ${many(out, "link")} from it, ${count(into)} to it` +
          `${unsure ? `, ${count(unsure)} of them unknown by then` : ""}` +
          `${isCaptured[view.pointed] ? "" : "; never captured"}`,
      );
      return;
    }
    const rest = [
      answer.leftOut ? ` Shown: the ${count(size)} of ${count(size + answer.leftOut)} that were there longest.` : "",
      answer.unread ? ` The links of ${many(answer.unread, "page")} at one step were not read.` : "",
    ];
    readout.textContent = `${numbers()}.${rest.join("")}`;
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
    // A directory begins with its host.
    else goTo({ v: "backlinks", url: name.split("/")[0] });
  };

  function pointers() {
    const at = (event, own) => {
      const box = own.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    area.addEventListener("pointermove", (event) => {
      const node = nodeAt(...at(event, area));
      if (node === view.pointed) return;
      view.pointed = node;
      area.style.cursor = view.pointed >= 0 ? "pointer" : "default";
      tell();
      redraw();
    });
    area.addEventListener("pointerleave", () => {
      view.pointed = -1;
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
        moveTo(view.now + Math.sign(event.deltaY) * 30 * DAY);
      },
      { passive: false },
    );
    let drags = false;
    slider.addEventListener("pointerdown", (event) => {
      drags = true;
      slider.setPointerCapture(event.pointerId);
      if (view.playing) toggle();
      moveTo(endOfDay(rings.timeOf(at(event, slider)[0])), false);
    });
    slider.addEventListener("pointermove", (event) => {
      if (drags) moveTo(endOfDay(rings.timeOf(at(event, slider)[0])), false);
    });
    for (const kind of ["pointerup", "pointercancel"]) {
      slider.addEventListener(kind, () => {
        if (drags) moveTo(view.now);
        drags = false;
      });
    }
  }

  function toggle() {
    view.playing = !view.playing;
    play.textContent = view.playing ? "❚❚" : "▶";
    play.setAttribute("aria-label", view.playing ? "Pause" : "Play");
    if (view.playing && view.now >= end) view.now = first;
    if (!view.playing) moveTo(view.now);
    lastFrame = 0;
    redraw();
  }

  /** The picture is that of a second. What is chosen is a day, and means its last one, as in a question. */
  function endOfDay(time) {
    return lastSecondOf(digits(time).slice(0, 8));
  }

  /** The same day a month later or earlier. */
  function months(step) {
    const at = new Date(view.now * 1000);
    const moved = Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + step, Math.min(28, at.getUTCDate())) / 1000;
    moveTo(endOfDay(moved));
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
    const here = list.indexOf(view.pointed);
    const next = here < 0 ? (by > 0 ? 0 : list.length - 1) : here + by;
    view.pointed = list[Math.max(0, Math.min(list.length - 1, next))];
    tell();
    redraw();
    say(`${cut(names[view.pointed], 120)}, ${ring[view.pointed] === 1 ? "one step" : "two steps"}`);
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
    else if (event.key === "Enter" && view.pointed >= 0 && !onButton) enter(nodes[view.pointed]);
    else if (event.key === "Escape" && view.pointed >= 0) {
      view.pointed = -1;
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
        addressFrom(hostOf(row.url) ? { v: "neighbourhood", url: row.url } : { v: "backlinks", url: row.url });
      shownTable = table(rowsNow(), 0, where);
      area.append(shownTable.element);
    }
    tableSwitch.setAttribute("aria-pressed", String(Boolean(shownTable)));
    set({ table: shownTable && "1" });
  }

  slider.setAttribute("aria-valuemin", 0);
  slider.setAttribute("aria-valuemax", Math.round((end - first) / DAY));
  pointers();
  moveTo(view.now);
  // The first picture does not come in slowly.
  for (let node = 0; node < size; node += 1) shown[node] = ring[node] ? 1 : 0;
  fillSide();
  const watch = new ResizeObserver(resize);
  watch.observe(area);
  resize();
  if (state.table) switchTable();
  return {
    key,
    resize,
    close: () => {
      view.playing = false;
      cancelAnimationFrame(frame);
      watch.disconnect();
    },
    print: () => [elementOf(whole())],
    picture: () => ({
      url: state.url,
      unit,
      now: view.now,
      counts: view.counts,
      nodes: inOrder().map((node) => ({
        name: nodes[node],
        ring: ring[node],
        fresh: fresh[node],
        place: place(node),
      })),
      ways: view.found,
      isPlaying: view.playing,
      layout: { ...view.layout, first, end },
    }),
  };
}
