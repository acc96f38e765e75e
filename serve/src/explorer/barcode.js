// The barcode of a page: a row a link, filled while the link was there. With in-links, a row a page that links.
//
// Two canvases: the lower has the picture and is drawn once a change; the upper has the pointer's row and line, so that
// hovering never draws the picture again. This file has what stands around the picture, pointers and keys; the picture
// itself is a scene.

import { addressFrom } from "./address.js";
import { asks } from "./asks.js";
import { endedOf, failed, saidOf, tells } from "./captures.js";
import { archiveOf, BARCODE_MAX, barcode as decoded, barcodePath, home, mementoOf } from "./data.js";
import { act, chooser, colours, count, dialog, el, headOf, many, notice, outLinks, sized } from "./dom.js";
import { barsKey, keyOf, keyText } from "./key.js";
import { bare, hostOf, safe } from "./names.js";
import { measured, ordered } from "./order.js";
import { elementOf, fileName, framed, nameFor, saveLines, savePng, saveSvg } from "./save.js";
import { AXIS, Scene } from "./scene.js";
import { table } from "./table.js";
import { DAY, clock, day, digits, iso, length, seconds } from "./time.js";

/** Rows on a sheet of paper, and the most sheets. */
const SHEET = 28;
const SHEETS = 40;

export async function open({ root, state, set, go, call, say, drawn, isOpen }) {
  const direction = state.dir === "in" ? "in" : "out";
  const answer = await call(asks.barcode(state)[0]);
  if (!isOpen()) return undefined;
  if (!state.dir && !answer.captures.length) {
    // A URL that was never captured has in-links only.
    set({ dir: "in" });
    return open({ root, state: { ...state, dir: "in" }, set, go, call, say, drawn, isOpen });
  }
  let data = decoded(answer);
  let all = measured(data);
  const choice = {
    sort: ["birth", "death", "life", "name"].includes(state.sort) ? state.sort : "life",
    group: ["host", "year"].includes(state.group) ? state.group : "none",
    across: state.across === "captures" && data.outward ? "captures" : "time",
    rows: ["dense", "all"].includes(state.rows) ? state.rows : "read",
    text: state.text || "",
  };
  if (isWhole()) await load();
  if (!isOpen()) return undefined;
  const scene = new Scene(data, all, choice, ordered(all, choice, hostOf(data.url)));
  scene.scroll = Number(state.scroll) || 0;
  const outside = openAt(seconds(state.from), seconds(state.to));
  let waiting = false;
  let shownTable;

  const picture = el("canvas", { "aria-hidden": "true" });
  const over = el("canvas", { "aria-hidden": "true" });
  const area = el(
    "div",
    {
      class: "picture",
      role: "application",
      tabindex: 0,
      "aria-label": `Bars of ${bare(data.url)}: arrow keys move through the rows, Enter opens one`,
    },
    picture,
    over,
  );
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
    ...outside,
    area,
    keyOf(barsKey(data.outward)),
    el(
      "div",
      { class: "read" },
      readout,
      el(
        "span",
        { class: "keys" },
        el("kbd", { text: "↑↓" }),
        " row ",
        el("kbd", { text: "Enter" }),
        " go there ",
        el("kbd", { text: "+ −" }),
        " zoom ",
        el("kbd", { text: "?" }),
        " keys",
      ),
    ),
  );

  // ---- what stands above the picture ----

  function heading() {
    const { captures } = data;
    const end = endedOf(captures);
    const hosts = new Set(all.map((row) => row.host)).size;
    const rows = all.length + (data.rest?.links || 0);
    const least = data.rest ? "at least " : "";
    const span = captures.length ? `${day(captures[0].time)} – ${day(captures[captures.length - 1].time)}` : "";
    const facts = el(
      "p",
      {},
      captures.length ? el("b", { text: count(captures.length) }) : "never captured",
      captures.length ? ` capture${captures.length === 1 ? "" : "s"}, ${span}` : "",
      data.outward ? ", with " : ", linked from ",
      el("b", { text: count(rows) }),
      data.outward
        ? ` link${rows === 1 ? "" : "s"} to ${least}${many(hosts, "host")}`
        : ` page${rows === 1 ? "" : "s"} of ${least}${many(hosts, "host")}`,
      end && "; ",
      end && el("b", { text: end }),
    );
    return headOf(bare(data.url), facts, captures.length ? outLinks(archiveOf(data.url)) : undefined);
  }

  function tools() {
    const choose = (name, again) => (value) => {
      choice[name] = value;
      set({ [name]: value });
      again();
    };
    const filter = el("input", {
      class: "filter",
      type: "text",
      placeholder: "Only rows with…",
      "aria-label": "Only rows with",
      value: choice.text,
      oninput: () => choose("text", chosen)(filter.value.trim()),
    });
    const ways = [
      ["out", "Links"],
      ["in", "In-links"],
    ];
    return el(
      "div",
      { class: "tools" },
      chooser(
        "",
        ways,
        direction,
        (value) => value !== direction && go({ ...state, dir: value, across: undefined, scroll: undefined }),
      ),
      chooser(
        "Sort",
        ["birth", "death", "life", "name"].map((word) => [word, word]),
        choice.sort,
        choose("sort", chosen),
      ),
      chooser(
        "Group",
        ["none", "host", "year"].map((word) => [word, word]),
        choice.group,
        choose("group", reorder),
      ),
      data.outward
        ? chooser(
            "Across",
            ["time", "captures"].map((word) => [word, word]),
            choice.across,
            (value) => {
              choice.across = value;
              [scene.from, scene.to] = scene.extent[value];
              set({ across: value, from: undefined, to: undefined });
              resize();
            },
          )
        : undefined,
      chooser(
        "Rows",
        ["read", "dense", "all"].map((word) => [word, word]),
        choice.rows,
        choose("rows", reorder),
      ),
      filter,
      el(
        "div",
        { class: "right" },
        tableSwitch,
        act("CSV", saveRows),
        act("SVG", () => saveSvg(whole(), fileName(data.url, "svg"))),
        act("PNG", () => savePng(whole(), fileName(data.url, "png"))),
        act("Data", showData),
      ),
    );
  }

  function showData() {
    const command = `webstrata links STORE '${safe(data.url)}'${data.outward ? "" : " --in"} --lifespans`;
    const call = home + barcodePath(data.url, direction);
    dialog(
      "The data of this picture",
      el("p", { text: "On the command line:" }),
      el("pre", { text: command }),
      el("p", { text: "Over HTTP, in columns:" }),
      el("pre", { text: `curl '${call}'` }),
      el("p", { text: "Over HTTP, a line a run:" }),
      el("pre", { text: `curl '${call.replace("/v1/barcode", "/v1/lifespans")}'` }),
    );
  }

  // ---- what moves the picture ----

  /** Opens the axis at two times; where nothing is known of these, it shows all and says so. */
  function openAt(begin, stop) {
    if (!(begin < stop)) return [];
    const [first, last] = scene.extent[choice.across];
    const [from, to] = unitsOf(begin, stop);
    if (from < last && to > first) {
      [scene.from, scene.to] = [Math.max(first, from), Math.min(last, to)];
      return [];
    }
    set({ from: undefined, to: undefined });
    return [notice(`Nothing is known from ${day(begin)} to ${day(stop)}. Here is all that is known.`)];
  }

  /** Whether all rows are needed: a first answer has those that lived longest, not the first or those with a text. */
  function isWhole() {
    return choice.text !== "" || choice.sort !== "life";
  }

  async function chosen() {
    if (isWhole()) await load();
    if (isOpen()) reorder();
  }

  /** Asks for the rows that a first answer leaves out. */
  async function load() {
    if (!data.rest || all.length >= BARCODE_MAX) return;
    data = decoded(await call(barcodePath(state.url, direction, BARCODE_MAX)));
    all = measured(data);
  }

  function reorder() {
    Object.assign(scene, { data, all });
    scene.order = ordered(all, choice, hostOf(data.url));
    scene.scroll = 0;
    scene.current = -1;
    resize();
    shownTable?.update(scene.order.rows);
  }

  function resize() {
    if (area.clientWidth < 10) return;
    scene.fit(area.clientWidth, area.clientHeight);
    moved(scene.scroll);
  }

  /** Scrolls to a position; the picture is drawn in the next frame. */
  function moved(position) {
    scene.scroll = Math.max(0, Math.min(Math.round(position), scene.layout.total - scene.layout.chart.height));
    set({ scroll: scene.scroll || undefined });
    redraw();
  }

  function redraw() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      if (!isOpen() || !scene.layout) return;
      const context = sized(picture, scene.layout.width, scene.layout.height);
      context.clearRect(0, 0, scene.layout.width, scene.layout.height);
      scene.draw(context, colours(), false);
      hover();
      tell();
      drawn();
    });
  }

  function hover() {
    const context = sized(over, scene.layout.width, scene.layout.height);
    context.clearRect(0, 0, scene.layout.width, scene.layout.height);
    scene.drawOver(context, colours());
  }

  function zoom(factor, middle) {
    const [first, last] = scene.extent[choice.across];
    const least = scene.isTime() ? 2 * DAY : 4;
    const size = Math.min(last - first, Math.max(least, (scene.to - scene.from) * factor));
    const share = (middle - scene.from) / (scene.to - scene.from);
    move(middle - share * size, size);
  }

  /** The ends of the axis as times, which the address keeps: across captures those of the first and the last one. */
  function timesOf(from, to) {
    if (scene.isTime()) return [Math.round(from), Math.round(to)];
    const last = data.captures.length - 1;
    return [Math.min(last, Math.round(from)), Math.min(last, Math.round(to))].map((at) => data.captures[at].time);
  }

  /** The units of the axis at two times. */
  function unitsOf(begin, end) {
    if (choice.across === "time") return [begin, end];
    const place = (time) => data.captures.findIndex((capture) => capture.time >= time);
    const [from, to] = [place(begin), place(end)];
    const size = data.captures.length;
    return [Math.max(0, from), to < 0 || to === size - 1 ? size : to];
  }

  function move(start, size = scene.to - scene.from) {
    const [first, last] = scene.extent[choice.across];
    scene.from = Math.max(first, Math.min(start, last - size));
    scene.to = scene.from + size;
    const whole = size >= last - first;
    if (whole) [scene.from, scene.to] = [first, last];
    // The address has whole seconds, and another window shall show the same.
    else if (scene.isTime()) [scene.from, scene.to] = [Math.round(scene.from), Math.round(scene.to)];
    const [begin, end] = timesOf(scene.from, scene.to);
    set({ from: whole ? undefined : digits(begin), to: whole ? undefined : digits(end) });
    scene.thinImage = undefined;
    redraw();
  }

  // ---- the pointer's row ----

  /** Whether a row was there at a time, in words. */
  function thenOf(row) {
    if (!scene.pointer || scene.pointer.x < scene.layout.chart.left) return "";
    const near = scene.captureNear(scene.pointer.x);
    const time = near >= 0 ? data.captures[near].time : scene.unitAt(scene.pointer.x);
    const capture = data.captures[near];
    const why = capture && saidOf(capture) ? ` (${saidOf(capture)})` : "";
    if (capture && !tells(capture)) return `; not known on ${day(time)}${why}`;
    if (row.runs.some((run) => run.first <= time && time <= run.last)) return `; there on ${day(time)}`;
    const between = row.runs.some((run) => run.last < time && (run.gone ? time < run.gone : true));
    // Nobody knows whether a link is older than the first capture of its page.
    const before = time < row.first && row.runs[0].began === "found";
    return between || before ? `; not known on ${day(time)}` : `; not there on ${day(time)}${why}`;
  }

  /** The capture whose tick in the axis is pointed at. */
  function tickAt(point) {
    if (!point || point.y >= AXIS || point.x < scene.layout.chart.left) return undefined;
    const near = scene.captureNear(point.x);
    return near >= 0 && Math.abs(scene.place(near) - point.x) < 5 ? data.captures[near] : undefined;
  }

  function tell() {
    const capture = tickAt(scene.pointer);
    if (capture) {
      readout.textContent =
        `${day(capture.time)}, ${clock(capture.time)}: ${saidOf(capture) || "links known"}. ` +
        "A click opens this capture in the archive.";
      return;
    }
    const row = scene.order.rows[scene.current];
    if (!scene.order.rows.length) {
      readout.textContent = scene.nothing();
      return;
    }
    if (!row) {
      const runs = scene.order.rows.reduce((sum, own) => sum + own.runs.length, 0);
      const lacks = scene.captures.filter((capture) => capture.shows === "unknown").length;
      const fails = scene.captures.filter(failed).length;
      readout.textContent =
        `${many(runs, "bar")}.` +
        (lacks ? ` Hatched: ${many(lacks, "capture")} whose links are not known.` : "") +
        (fails ? ` Dark ticks: ${many(fails, "capture")} that failed.` : "") +
        (data.rest
          ? ` These are of the ${count(all.length)} rows that lived longest; ${many(data.rest.links, "row")} that ` +
            "lived shorter are not here."
          : "");
      return;
    }
    const last = row.runs[row.runs.length - 1];
    const gone = last.gone ? `, gone by ${day(last.gone)}` : ", still there when last known";
    const found = row.runs[0].began === "found" ? ", found in the first capture" : "";
    readout.replaceChildren(
      el("b", { text: safe(row.url) }),
      `  ${day(row.first)} – ${day(row.last)}, ${length(row.life)}` +
        ` in ${many(row.runs.length, "run")}${found}${gone}${thenOf(row)}`,
    );
  }

  function choose(row) {
    scene.current = Math.max(0, Math.min(scene.order.rows.length - 1, row));
    const top = scene.layout.tops[scene.current];
    if (top < scene.scroll) moved(top - 2);
    else if (top + scene.layout.rowHeight > scene.scroll + scene.layout.chart.height)
      moved(top + scene.layout.rowHeight - scene.layout.chart.height + 2);
    else redraw();
    const own = scene.order.rows[scene.current];
    if (own) say(`${bare(own.url)}, ${day(own.first)} to ${day(own.last)}, ${many(own.runs.length, "run")}`);
  }

  // ---- pointer and keys ----

  function pointers() {
    let drag;
    const fingers = new Map();
    /** How far two fingers are apart, and the middle between them. */
    const pinch = () => {
      const [one, other] = [...fingers.values()];
      return { far: Math.hypot(one.x - other.x, one.y - other.y), x: (one.x + other.x) / 2 };
    };
    const at = (event) => {
      const box = area.getBoundingClientRect();
      return { x: event.clientX - box.left, y: event.clientY - box.top };
    };
    const inMap = (point) => scene.layout.map && point.x > scene.layout.width - scene.layout.map && point.y > AXIS;
    const toMap = (point) =>
      moved(((point.y - AXIS) / scene.layout.chart.height) * scene.layout.total - scene.layout.chart.height / 2);
    area.addEventListener("pointerdown", (event) => {
      const point = at(event);
      fingers.set(event.pointerId, point);
      area.setPointerCapture(event.pointerId);
      const begun = { ...point, scroll: scene.scroll, from: scene.from, map: inMap(point), far: 0 };
      drag = fingers.size > 1 ? undefined : begun;
      if (drag?.map) toMap(point);
    });
    area.addEventListener("pointermove", (event) => {
      const point = at(event);
      if (fingers.size > 1 && fingers.has(event.pointerId)) {
        const before = pinch();
        fingers.set(event.pointerId, point);
        return zoom(before.far / Math.max(1, pinch().far), scene.unitAt(pinch().x));
      }
      if (drag?.map) return toMap(point);
      if (drag) {
        drag.far = Math.max(drag.far, Math.abs(point.x - drag.x) + Math.abs(point.y - drag.y));
        if (drag.far > 4) {
          move(drag.from - (point.x - drag.x) / scene.scale());
          return moved(drag.scroll - (point.y - drag.y));
        }
      }
      scene.pointer = point;
      scene.current = inMap(point) ? -1 : scene.rowAt(point.y);
      area.style.cursor = scene.current >= 0 || tickAt(point) ? "pointer" : "default";
      hover();
      tell();
      return undefined;
    });
    area.addEventListener("pointerup", (event) => {
      const point = at(event);
      const clicked = drag && !drag.map && drag.far <= 4;
      fingers.delete(event.pointerId);
      drag = undefined;
      const [capture, row] = [tickAt(point), scene.order.rows[scene.rowAt(point.y)]];
      if (clicked && capture) window.open(mementoOf(data, capture), "_blank", "noopener");
      else if (clicked && row) clickedAt(point, row);
    });
    area.addEventListener("pointercancel", (event) => {
      fingers.delete(event.pointerId);
      drag = undefined;
    });
    area.addEventListener("pointerleave", () => {
      scene.pointer = undefined;
      scene.current = -1;
      hover();
      tell();
    });
    area.addEventListener(
      "wheel",
      (event) => {
        const before = [scene.scroll, scene.from, scene.to].join();
        if (event.ctrlKey || event.metaKey) zoom(Math.exp(event.deltaY * 0.004), scene.unitAt(at(event).x));
        else {
          if (event.deltaX) move(scene.from + event.deltaX / scene.scale());
          moved(scene.scroll + event.deltaY);
        }
        // At its end the picture leaves the wheel to the page.
        if (event.ctrlKey || before !== [scene.scroll, scene.from, scene.to].join()) event.preventDefault();
      },
      { passive: false },
    );
  }

  /** A name leads to its page; a bar, to the two dates there. */
  function clickedAt(point, row) {
    const near = scene.captureNear(point.x);
    if (point.x < scene.layout.chart.left || near < 0) go({ url: row.url });
    else go({ v: "dates", url: data.url, b: digits(data.captures[near].time) });
  }

  function key(event) {
    const page = Math.max(1, Math.floor(scene.layout.chart.height / scene.layout.rowHeight) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page };
    const middle = (scene.from + scene.to) / 2;
    if (shownTable) return false;
    if (steps[event.key]) choose(scene.current < 0 ? scene.rowNear(scene.scroll) : scene.current + steps[event.key]);
    else if (event.key === "Home") choose(0);
    else if (event.key === "End") choose(scene.order.rows.length - 1);
    else if (event.key === "Enter" && scene.order.rows[scene.current] && !event.target.closest("button, a"))
      go({ url: scene.order.rows[scene.current].url });
    else if (event.key === "+" || event.key === "=") zoom(0.6, middle);
    else if (event.key === "-") zoom(1 / 0.6, middle);
    else if (event.key === "0") zoom(Infinity, middle);
    else if (event.key === "ArrowLeft") move(scene.from - (scene.to - scene.from) * 0.15);
    else if (event.key === "ArrowRight") move(scene.from + (scene.to - scene.from) * 0.15);
    else return false;
    return true;
  }

  function switchTable() {
    const wanted = !shownTable;
    tableSwitch.setAttribute("aria-pressed", String(wanted));
    set({ table: wanted ? "1" : undefined });
    shownTable?.element.remove();
    shownTable = wanted
      ? table(scene.order.rows, Math.max(0, scene.current), (row) => addressFrom({ url: row.url }), scene.captures)
      : undefined;
    if (shownTable) area.append(shownTable.element);
  }

  /** Saves all rows with the text that is looked for, a line for each run; also rows that a first answer leaves out. */
  async function saveRows() {
    await load();
    if (!isOpen()) return;
    const lines = ordered(all, choice, hostOf(data.url)).rows.flatMap((row) =>
      row.runs.map((run) => ({
        url: row.url,
        first: iso(run.first),
        last: iso(run.last),
        gone: iso(run.gone),
        began: run.began,
      })),
    );
    saveLines(["url", "first", "last", "gone", "began"], lines, "csv", nameFor(data.url));
  }

  /** The rows in view as a picture that stands by itself. */
  function whole(own = scene) {
    const { width, height } = own.layout;
    const key = keyText(barsKey(data.outward));
    const [from, to] = timesOf(scene.from, scene.to).map(day);
    const facts = `${root.querySelector(".head p").innerText}; shown from ${from} to ${to}`;
    const draw = (context) => own.draw(context, colours(), true);
    return framed({ title: bare(data.url), facts, key }, [width, height], colours(), draw);
  }

  /** All rows for paper, so many on a sheet; of very many the first ones. */
  function sheets() {
    const { rows } = scene.order;
    const found = [];
    for (let at = 0; at < Math.min(rows.length, SHEETS * SHEET); at += SHEET) {
      const order = { rows: rows.slice(at, at + SHEET), groups: [] };
      const own = new Scene(data, all, { ...choice, rows: "read" }, order);
      [own.from, own.to] = [scene.from, scene.to];
      own.fit(900, AXIS + order.rows.length * 15 + 2);
      found.push(elementOf(whole(own)));
    }
    const rest = rows.length - SHEETS * SHEET;
    return rest > 0 ? [...found, el("p", { text: `${many(rest, "more row")} on the screen` })] : found;
  }

  pointers();
  resize();
  if (state.table) switchTable();
  const watch = new ResizeObserver(resize);
  watch.observe(area);
  const runOf = (run) => [run.first, run.last, run.gone];
  return {
    key,
    resize,
    close: () => watch.disconnect(),
    print: sheets,
    picture: () => ({
      url: data.url,
      direction,
      scroll: scene.scroll,
      from: scene.from,
      to: scene.to,
      captures: scene.captures.map(({ time, status, shows }) => ({ time, status, shows })),
      rows: scene.order.rows.map((row) => ({ url: row.url, runs: row.runs.map(runOf) })),
    }),
  };
}
