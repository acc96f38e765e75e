// Two dates of a page side by side: what was lost, kept and gained between two captures, beside a calendar of captures
// coloured by how many links changed.

import { link } from "./address.js";
import { asks } from "./asks.js";
import { between, whenOf } from "./between.js";
import { endedOf, saidOf, tells, withoutLinks } from "./captures.js";
import { archiveOf, BARCODE_MAX, barcode as decoded, barcodePath, home, mementoOf, path } from "./data.js";
import { act, chooser, colours, count, dialog, el, headOf, many, notice, outLinks, sized } from "./dom.js";
import { hatch } from "./drawing.js";
import { addressOf, flagsOf } from "./flags.js";
import { branchesOf, bare, fitted, hostOf, pathsOf, safe } from "./names.js";
import { measured } from "./order.js";
import { elementOf, fileName, framed, nameFor, saveLines, savePng, saveSvg } from "./save.js";
import { clock, day, iso, MONTHS, ofYear, YEAR, year } from "./time.js";

const FIELDS = { before: "A", among: "B", from: "Date of A", to: "Date of B" };
const LINE = 22;
/** Pixels of the calendar above its years, for the months, and below, for a flag of the last one. */
const [ABOVE, BELOW] = [22, 16];
/** Up to how many changed links a mark of the calendar has each of the five steps of ink. */
const STEPS = [0, 2, 7, 19, Infinity];

export async function open({ root, state, set, call, say, drawn, isOpen }) {
  let answer = await call(asks.dates(state)[0]);
  // The rows that a barcode leaves out would be missing from both lists, and nothing would say so.
  if (answer.rest) answer = await call(barcodePath(state.url, "out", BARCODE_MAX));
  const data = decoded(answer);
  if (!isOpen()) return undefined;
  const rows = measured(data);
  const { captures } = data;
  const changed = changesOf();
  // A capture that does not tell which links the page has cannot be compared.
  const known = captures.map((capture, at) => at).filter((at) => tells(captures[at]));
  const moved = el("div");
  let [a, b] = [undefined, undefined];
  let moving = "b";
  let only = state.only === "changes";
  let lines = [];
  let shown;

  if (known.length < 2) {
    const why = known.length
      ? "The links of one capture of this page are known, so there is nothing to compare."
      : withoutLinks(captures);
    root.replaceChildren(
      heading(),
      el(
        "div",
        { class: "said" },
        el("h1", { text: "Nothing to compare" }),
        el("p", { text: why }),
        el("p", {}, link({ url: data.url, dir: "in" }, "See the pages that link to it")),
      ),
    );
    drawn();
    return { picture: () => ({ url: data.url }) };
  }
  stand(state);

  const canvas = el("canvas", { "aria-hidden": "true" });
  const area = el(
    "div",
    {
      class: "picture",
      role: "slider",
      tabindex: 0,
      "aria-label": "The two dates",
      "aria-valuemin": 0,
      "aria-valuemax": known.length - 1,
    },
    canvas,
  );
  const legend = el(
    "div",
    { class: "legend" },
    "links changed",
    ...["0", "1–2", "3–7", "8–19", "20+"].map((text, at) => el("span", {}, el("i", { class: `i${at}` }), text)),
    el("span", {}, el("i", { class: "iu" }), "hatched: unknown"),
    el("span", {}, el("i", { class: "if" }), "hollow: failed, says nothing"),
    el("span", {}, el("i", { class: "lost" }), "struck through: lost"),
    el("span", {}, el("i", { class: "gained" }), "gained"),
    el("span", {}, el("i", { class: "kept" }), "kept"),
  );
  // The capture below the pointer.
  const pointed = el("p", { class: "pointed" });
  const head = el("div");
  const list = el("div", {
    class: "changes",
    tabindex: 0,
    role: "region",
    "aria-label": "Links lost, kept and gained",
  });
  const fields = between(written(), choose, FIELDS);
  const tools = el(
    "div",
    { class: "tools" },
    fields.element,
    chooser(
      "Show",
      [
        ["all", "all"],
        ["changes", "only changes"],
      ],
      only ? "changes" : "all",
      (value) => {
        only = value === "changes";
        set({ only: only ? value : undefined });
        compare();
      },
    ),
    el(
      "div",
      { class: "right" },
      act("← change", () => step(-1)),
      act("change →", () => step(1)),
      act("CSV", saveLists),
      act("SVG", () => saveSvg(whole(), fileName(data.url, "svg"))),
      act("PNG", () => savePng(whole(), fileName(data.url, "png"))),
      act("Data", showData),
    ),
  );
  root.replaceChildren(
    heading(),
    moved,
    el(
      "div",
      { class: "dates" },
      el("div", { class: "calendar" }, area, pointed, legend),
      el("div", { class: "sides" }, head, tools, list),
    ),
  );
  list.addEventListener("scroll", () => requestAnimationFrame(fill));

  function heading() {
    const changing = changed.filter((number) => number > 0).length;
    const end = endedOf(captures);
    return headOf(
      bare(data.url),
      el(
        "p",
        {},
        el("b", { text: count(captures.length) }),
        ` capture${captures.length === 1 ? "" : "s"}, of which `,
        el("b", { text: count(changing) }),
        " changed the links",
        end && "; ",
        end && el("b", { text: end }),
      ),
      outLinks(archiveOf(data.url)),
    );
  }

  /** Puts both flags where a question as of their dates has them, and the address on what is shown. */
  function stand(asked) {
    const flags = flagsOf(captures, known, asked);
    [a, b] = [flags.a, flags.b];
    moved.replaceChildren(...(flags.said ? [notice(flags.said)] : []));
    if (asked.a || asked.b) set(addressOf(captures, a, b));
  }

  /** For each capture how many links came or went since the one before; nothing for the first and for unknown ones. */
  function changesOf() {
    const numbers = new Array(captures.length).fill(0);
    for (const row of rows) {
      for (const run of row.runs) {
        if (run.began !== "found") numbers[run.from] += 1;
        if (run.gone) numbers[run.goneAt] += 1;
      }
    }
    return numbers;
  }

  /** The place of the known capture nearest to a time. */
  function nearest(time, otherwise) {
    if (time === undefined) return otherwise;
    return known.reduce(
      (best, at) => (Math.abs(captures[at].time - time) < Math.abs(captures[best].time - time) ? at : best),
      known[0],
    );
  }

  function there(row, at) {
    return row.runs.some((run) => run.from <= at && at <= run.to);
  }

  // ---- the two sides ----

  function compare() {
    const parts = { lost: [], kept: [], gained: [] };
    for (const row of rows) {
      const [before, after] = [there(row, a), there(row, b)];
      if (before || after) parts[before && after ? "kept" : before ? "lost" : "gained"].push(row);
    }
    shown = parts;
    fields.show(written());
    const links = { a: parts.lost.length + parts.kept.length, b: parts.gained.length + parts.kept.length };
    const facts = (name, at) => saidOf(captures[at]) || many(links[name], "link");
    const side = (name, at) =>
      el(
        "div",
        {},
        el("b", { class: `flag ${name}`, text: name.toUpperCase() }),
        el("h2", { text: day(captures[at].time) }),
        el("span", { text: `${clock(captures[at].time)} · ${facts(name, at)}` }),
        outLinks([["open", mementoOf(data, captures[at])]]),
      );
    const share = el(
      "div",
      { class: "share" },
      ...["lost", "kept", "gained"]
        .filter((kind) => parts[kind].length)
        .map((kind) => {
          const part = el("div", { class: kind, text: `${count(parts[kind].length)} ${kind}` });
          part.style.flex = `${parts[kind].length} 1 ${parts[kind].length < 3 ? "52px" : "64px"}`;
          return part;
        }),
    );
    head.replaceChildren(el("div", { class: "pair" }, side("a", a), side("b", b)), share);
    lines = linesOf(parts);
    list.scrollTop = 0;
    fill();
    area.setAttribute("aria-valuenow", known.indexOf(moving === "a" ? a : b));
    area.setAttribute("aria-valuetext", `A ${day(captures[a].time)}, B ${day(captures[b].time)}`);
    say(
      `${day(captures[a].time)} to ${day(captures[b].time)}: ${parts.lost.length} lost, ${parts.kept.length} kept, ` +
        `${parts.gained.length} gained`,
    );
    resize();
  }

  /**
   * Lines by host, the page's own first, then by change. Lost and gained links between two kept ones stand beside each
   * other.
   */
  function linesOf(parts) {
    const hosts = new Map();
    for (const kind of ["lost", "kept", "gained"]) {
      for (const row of parts[kind]) {
        if (!hosts.has(row.host)) hosts.set(row.host, []);
        hosts.get(row.host).push({ kind, row });
      }
    }
    const own = hostOf(data.url);
    const changes = (list) => list.filter((line) => line.kind !== "kept").length;
    const inOrder = [...hosts].sort(
      ([one, first], [other, second]) =>
        Number(other === own) - Number(one === own) || changes(second) - changes(first) || (one < other ? -1 : 1),
    );
    const found = [];
    for (const [host, list] of inOrder) {
      const number = (kind) => list.filter((line) => line.kind === kind).length;
      if (only && !changes(list)) continue;
      found.push({ host, lost: number("lost"), gained: number("gained"), kept: number("kept") });
      list.sort((one, other) => one.row.at - other.row.at);
      const paths = pathsOf(list.map((line) => line.row.url));
      const branches = branchesOf(paths);
      list.forEach((line, at) => (line.row.shown = { text: paths[at], branches: branches[at] }));
      let [left, right] = [[], []];
      const flush = () => {
        for (let at = 0; at < Math.max(left.length, right.length); at += 1)
          found.push({ left: left[at], right: right[at] });
        [left, right] = [[], []];
      };
      for (const line of list) {
        if (line.kind === "kept") {
          flush();
          if (!only) found.push({ kept: line.row });
        } else (line.kind === "lost" ? left : right).push(line.row);
      }
      flush();
    }
    return found;
  }

  const ruler = document.createElement("canvas").getContext("2d");
  ruler.font = `13px ${colours().sans}`;

  /** Only the lines in sight, and a few beside them, are elements. */
  function fill() {
    const first = Math.max(0, Math.floor(list.scrollTop / LINE) - 8);
    const end = Math.min(lines.length, first + Math.ceil(list.clientHeight / LINE) + 16);
    const spacer = el("div");
    spacer.style.height = `${lines.length * LINE}px`;
    const width = (list.clientWidth - 28) / 2 - 30;
    const cell = (kind, sign, row) => {
      if (!row) return el("div");
      const made = link({ url: row.url }, "");
      made.className = kind;
      made.title = safe(row.url);
      const name = fitted(ruler, row.shown.text, width, row.shown.branches);
      made.append(...(sign ? [el("span", { class: "sign", text: sign })] : []), name);
      return made;
    };
    const made = lines.slice(first, end).map((line, at) => {
      const box = el("div", { class: line.host === undefined ? "line" : "line host" });
      if (line.host !== undefined) {
        box.append(
          el("div", {}, safe(line.host), el("span", { text: `  −${line.lost} +${line.gained} ${line.kept} kept` })),
        );
      } else if (line.kept) box.append(cell("kept", "", line.kept), cell("kept", "", line.kept));
      else box.append(cell("lost", "−", line.left), cell("gained", "+", line.right));
      box.style.top = `${(first + at) * LINE}px`;
      return box;
    });
    if (!lines.length)
      made.push(el("p", { text: only ? "Nothing changed between these dates." : "Neither capture has a link." }));
    list.replaceChildren(spacer, ...made);
  }

  // ---- the calendar ----

  let layout;
  function resize() {
    const years = year(captures[captures.length - 1].time) - year(captures[0].time) + 1;
    const width = area.clientWidth;
    if (width < 10) return;
    const line = Math.max(4, Math.min(24, (area.clientHeight - ABOVE - BELOW) / years));
    layout = {
      width,
      left: 36,
      top: ABOVE,
      line,
      first: year(captures[0].time),
      years,
      height: ABOVE + years * line + BELOW,
    };
    draw();
  }

  const xOf = (time) => layout.left + (ofYear(time) / 366) * (layout.width - layout.left - 4);
  const yOf = (time) => layout.top + (year(time) - layout.first) * layout.line;

  function draw(context = sized(canvas, layout.width, layout.height)) {
    const theme = colours();
    const inks = [theme.rule, theme.bar2, theme.ink3, theme.bar, theme.ink];
    if (context.canvas === canvas) context.clearRect(0, 0, layout.width, layout.height);
    context.font = `11px ${theme.sans}`;
    context.fillStyle = theme.ink2;
    const every = layout.width < 330 ? 3 : 1;
    MONTHS.forEach((name, month) => {
      const x = layout.left + (month / 12) * (layout.width - layout.left - 4);
      if (month % every === 0) context.fillText(name, x, 12);
      context.fillStyle = theme.faint;
      context.fillRect(x, layout.top, 1, layout.years * layout.line);
      context.fillStyle = theme.ink2;
    });
    for (let at = 0; at < layout.years; at += 1) {
      const y = layout.top + at * layout.line;
      const rare = Math.ceil(11 / layout.line);
      context.fillStyle = theme.ink2;
      if (at % rare === 0) context.fillText(String(layout.first + at), 0, y + layout.line / 2 + 4);
      context.fillStyle = theme.faint;
      context.fillRect(layout.left, y + layout.line - 0.5, layout.width - layout.left, 1);
    }
    captures.forEach((capture, at) => {
      const [x, y] = [xOf(capture.time), yOf(capture.time) + 1];
      const high = Math.max(3, layout.line - (layout.line < 9 ? 2 : 4));
      if (capture.shows === "unknown") return hatch(context, x - 2, y, 5, high, theme.hatch);
      if (capture.shows === "nothing") {
        context.strokeStyle = theme.ink3;
        context.lineWidth = 1;
        return context.strokeRect(x - 1.5, y + 0.5, 3, high - 1);
      }
      context.fillStyle = inks[STEPS.findIndex((most) => changed[at] <= most)];
      context.fillRect(x - 1, y, 2, high);
      return undefined;
    });
    for (const [name, at, fill, ink] of [
      ["A", a, theme.ink, theme.paper],
      ["B", b, theme.accent, theme.paper],
    ]) {
      const [x, y] = [xOf(captures[at].time), yOf(captures[at].time)];
      const left = x + 16 > layout.width ? x - 16 : x + 1;
      context.fillStyle = fill;
      context.fillRect(x - 1.5, y - 1, 3, layout.line);
      context.fillRect(left, y, 14, 14);
      context.fillStyle = ink;
      context.font = `600 10px ${theme.sans}`;
      context.textAlign = "center";
      context.fillText(name, left + 7, y + 10.5);
      context.textAlign = "left";
    }
    drawn();
  }

  /** Says which capture is meant by the pointer. */
  function tell(at) {
    const capture = captures[at];
    const shows = capture && (saidOf(capture) || `${many(changed[at], "link")} changed`);
    pointed.textContent = capture ? `${day(capture.time)}, ${clock(capture.time)}: ${shows}` : "";
  }

  /** The calendar with all its years, as a picture that stands by itself. */
  function whole() {
    const [width, line] = [700, 14];
    const height = ABOVE + layout.years * line + BELOW;
    const draws = (context) => {
      const kept = layout;
      layout = { ...layout, width, line, height };
      draw(context);
      layout = kept;
    };
    const parts = ["lost", "kept", "gained"].map((kind) => `${count(shown[kind].length)} ${kind}`).join(", ");
    const facts = `A ${day(captures[a].time)}, B ${day(captures[b].time)}: ${parts}`;
    const marks = [...legend.querySelectorAll("span")].map((own) => own.innerText).slice(5, 7);
    const key = `A mark a capture, darker the more links changed: 0, 1–2, 3–7, 8–19, 20 or more; ${marks.join("; ")}.`;
    return framed({ title: bare(data.url), facts, key }, [width, height], colours(), draws);
  }

  /** The calendar and both lists, for paper. */
  function sheets() {
    const list = (kind) =>
      el(
        "section",
        {},
        el("h2", { text: `${many(shown[kind].length, "link")} ${kind}` }),
        el("ul", {}, ...shown[kind].map(({ url }) => el("li", { text: safe(url) }))),
      );
    const title = `${bare(data.url)}, ${day(captures[a].time)} and ${day(captures[b].time)}`;
    return [el("h1", { text: title }), elementOf(whole()), ...["lost", "gained", "kept"].map(list)];
  }

  function pointers() {
    let dragged;
    const places = captures.map((_, at) => at);
    const captureAt = (event, among = known) => {
      const box = canvas.getBoundingClientRect();
      const [x, y] = [event.clientX - box.left, event.clientY - box.top];
      const wanted = layout.first + Math.floor((y - layout.top) / layout.line);
      let best = -1;
      let near = Infinity;
      for (const at of among) {
        const far = Math.abs(xOf(captures[at].time) - x) + 60 * Math.abs(year(captures[at].time) - wanted);
        if (far < near) [best, near] = [at, far];
      }
      return best;
    };
    area.addEventListener("pointerdown", (event) => {
      const at = captureAt(event);
      const distance = (flag) => Math.abs(captures[flag].time - captures[at].time);
      dragged = distance(a) < distance(b) ? "a" : "b";
      area.setPointerCapture(event.pointerId);
      put(dragged, at);
    });
    area.addEventListener("pointermove", (event) => {
      if (dragged) put(dragged, captureAt(event));
      tell(captureAt(event, places));
    });
    area.addEventListener("pointerleave", () => tell(-1));
    area.addEventListener("pointerup", () => (dragged = undefined));
    area.addEventListener("pointercancel", () => (dragged = undefined));
  }

  /** Puts a flag on a capture; A stays the earlier one. */
  function put(flag, at) {
    if (at < 0 || (flag === "a" ? a : b) === at) return;
    moving = flag;
    moved.replaceChildren();
    if (flag === "a") a = at;
    else b = at;
    if (a > b) {
      [a, b] = [b, a];
      moving = moving === "a" ? "b" : "a";
    }
    set(addressOf(captures, a, b));
    compare();
  }

  /** The days of both flags, as their fields have them. */
  function written() {
    const [from, to] = [a, b].map((at) => iso(captures[at].time).slice(0, 10));
    return { from, to, wrong: {} };
  }

  /** Puts the flag whose field was changed on the date that was written; the other one stays where it is. */
  function choose({ from, to }) {
    const [now, shown] = [addressOf(captures, a, b), written()];
    const wrong = whenOf({ from, to }).wrong;
    if (wrong.from || wrong.to) return fields.show({ from, to, wrong });
    stand({ a: from === shown.from ? now.a : from, b: to === shown.to ? now.b : to });
    return compare();
  }

  /** Moves the flag to the next capture that changed something. */
  function step(way) {
    let at = known.indexOf(moving === "a" ? a : b) + way;
    while (at > 0 && at < known.length - 1 && !changed[known[at]]) at += way;
    if (at >= 0 && at < known.length) put(moving, known[at]);
  }

  /** Moves the flag a year, or to the next capture where there is none for longer. */
  function leap(way) {
    const here = moving === "a" ? a : b;
    const at = nearest(captures[here].time + way * YEAR);
    put(moving, at === here ? (known[known.indexOf(here) + way] ?? here) : at);
  }

  /** Saves both lists: each link, and what became of it. */
  function saveLists() {
    const lines = ["lost", "kept", "gained"].flatMap((change) => shown[change].map(({ url }) => ({ change, url })));
    const { a: from, b: to } = addressOf(captures, a, b);
    saveLines(["change", "url"], lines, "csv", `${nameFor(data.url)}-${from}-${to}`);
  }

  function showData() {
    const { a: from, b: to } = addressOf(captures, a, b);
    const where = path("v1/changed", { url: data.url, fromDate: from, toDate: to });
    dialog(
      "The data of this picture",
      el("p", { text: "On the command line:" }),
      el("pre", { text: `webstrata links STORE '${safe(data.url)}' --changed ${from} ${to}` }),
      el("p", { text: "Over HTTP:" }),
      el("pre", { text: `curl '${home}${where}'` }),
    );
  }

  function key(event) {
    if (event.key === "ArrowLeft") step(-1);
    else if (event.key === "ArrowRight") step(1);
    else if (event.key === "PageUp") leap(-1);
    else if (event.key === "PageDown") leap(1);
    else if (event.key === "a" || event.key === "b") {
      moving = event.key;
      say(`${moving.toUpperCase()} moves`);
    } else return false;
    return true;
  }

  pointers();
  compare();
  const watch = new ResizeObserver(resize);
  watch.observe(area);
  const urls = (kind) => shown[kind].map((row) => row.url);
  return {
    key,
    close: () => watch.disconnect(),
    print: sheets,
    resize: () => {
      resize();
      fill();
    },
    picture: () => ({
      url: data.url,
      a: captures[a].time,
      b: captures[b].time,
      captures: captures.map(({ time, status, shows }, at) => ({ time, status, shows, changed: changed[at] })),
      lost: urls("lost"),
      kept: urls("kept"),
      gained: urls("gained"),
      marks: captures.map(({ time, shows }) => ({ time, shows, x: xOf(time), y: yOf(time) + layout.line / 2 })),
    }),
  };
}
