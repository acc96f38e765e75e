// Who links to a URL, a host or a domain, and since when: how many link over time, what came and went, and below it a
// row for each page, host or domain, with its stays under the chart. Chart and rows have one axis.
//
// The server chooses rows: by host of the pages that link, by what happened to them, and by time. Here they are only
// filtered by a text. Two canvases, of the chart and of the rows; both are drawn once a change, in the next frame.

import { addressFrom } from "./address.js";
import { bench } from "./bench.js";
import { countsOf, linesOfBoth, united, whoChooser } from "./beside.js";
import { between, whenOf } from "./between.js";
import { act, chooser, colours, count, el, headOf, many, sized } from "./dom.js";
import { shifted } from "./drawing.js";
import { drawChart, drawRows, HEADS, LINE, RIGHT, timeAt } from "./flows.js";
import { hostTable } from "./hosts.js";
import { BACKLINKS, keyOf, keyText } from "./key.js";
import { bare, cut, safe } from "./names.js";
import * as referrers from "./referrers.js";
import { elementOf, fileName, framed, nameFor, saveLines, savePng, saveSvg } from "./save.js";
import { series, SERIES } from "./series.js";
import { showSource } from "./source.js";
import { table } from "./table.js";
import { isName, keptIn, nameOf, targetIn, targetOf, wordOf } from "./targets.js";
import { day } from "./time.js";
import { factsOf, shortFacts, toldMark, toldRow, toldRows } from "./told.js";

/** Pixels that a mark of the chart has at least. */
const MARK = 4;

/** The sign of one of two targets: filled or hollow, as its bars are. */
const side = (name) => el("span", { class: `side ${name.toLowerCase()}`, text: name });

export async function open({ root, state, set, go, call, say, drawn, isOpen }) {
  const choice = referrers.choiceOf(state);
  const target = targetIn(state);
  const other = state.and ? { target: targetOf(state.and) } : undefined;
  // The chosen stretch of time.
  let when = whenOf(state);
  const askedOf = (whose) => (more) => referrers.question(whose, choice, when, more);
  const asked = askedOf(target);
  /** The answers of the target and of the one beside it, if there is one and the store has it. */
  const askBoth = (more) =>
    Promise.all([target, ...(other && !other.missing ? [other.target] : [])].map((own) => call(askedOf(own)(more))));
  // Who is not in the store is said beside its name; the target is shown alone then.
  const missing = ({ status, message }) => (status === 404 ? "is not in the store" : cut(safe(message), 120));
  if (other) await call(askedOf(other.target)()).catch((error) => (other.missing = missing(error)));
  let [answer, beside] = await askBoth();
  let first = beside ? [answer, beside] : [answer];
  if (choice.event !== "any" || when.span) {
    const all = [{ ...choice, event: "any" }, { span: undefined }];
    const whose = beside ? [target, other.target] : [target];
    first = await Promise.all(whose.map((own) => call(referrers.question(own, ...all))));
  }
  if (!isOpen()) return undefined;
  const months = referrers.monthsOf(answer);
  const otherMonths = beside && referrers.monthsOf(beside);
  let [all, isWhole] = [[], false];
  take();
  // The axis is that of all rows, whichever of them are chosen.
  const [from, to] = referrers.extentOf(
    [...months, ...(otherMonths || [])],
    first.flatMap((own) => own.rows.map(referrers.rowOf)),
  );
  let [marks, otherMarks, rows, asks] = [[], undefined, [], 0];
  let [scroll, current, pointed, waiting, layout, shownTable] = [0, -1, -1, false, undefined, undefined];

  const chart = el("canvas", { "aria-hidden": "true" });
  const chartArea = el(
    "div",
    {
      class: "picture",
      role: "slider",
      tabindex: 0,
      "aria-label": "Time: left and right choose a period, Escape all",
      "aria-valuemin": 0,
      "aria-valuenow": 0,
      "aria-valuetext": "all periods",
    },
    chart,
  );
  const list = el("canvas", { "aria-hidden": "true" });
  const listArea = el(
    "div",
    {
      class: "picture",
      role: "application",
      tabindex: 0,
      "aria-label": "Rows: arrow keys move through them, Enter opens one",
    },
    list,
  );
  const readout = el("p");
  const tableSwitch = el("button", {
    class: "act",
    type: "button",
    text: "Table",
    "aria-pressed": "false",
    onclick: switchTable,
  });
  const dates = between(when, chooseDates);
  const who = el("span", { class: "who" });
  let kept = state.list;
  const keep = (list) => {
    kept = list;
    set({ list });
  };
  const line = bench({ now, target, other, call, isOpen, say, keep });
  root.replaceChildren(
    heading(),
    line.element,
    tools(),
    ...(months.length
      ? [
          el("div", { class: "over" }, hostTable(answer, beside, chooseHost), chartArea),
          listArea,
          keyOf(BACKLINKS),
          el("div", { class: "read" }, readout, el("span", { class: "keys" }, el("kbd", { text: "?" }), " keys")),
        ]
      : [empty()]),
  );

  // ---- what stands around the pictures ----

  function heading() {
    if (!months.length) return headOf(nameOf(target));
    if (!beside) return headOf(nameOf(target), el("p", {}, ...factsOf(answer, months, choice)));
    return headOf(
      nameOf(target),
      el("p", {}, side("A"), ...factsOf(answer, months, choice)),
      el(
        "p",
        {},
        side("B"),
        el("b", { text: cut(nameOf(other.target), 80) }),
        ": ",
        ...factsOf(beside, otherMonths, choice),
      ),
    );
  }

  function empty() {
    const elsewhere = choice.internal || choice.source ? "" : " from elsewhere";
    const whose = choice.source ? `No page of ${safe(choice.source)}` : "No captured page";
    const more = choice.internal
      ? []
      : [act("Count pages of its own, too", () => go({ ...now(), internal: "1", from: undefined, to: undefined }))];
    if (choice.source) more.unshift(act("Pages of all hosts", () => go({ ...now(), source: undefined })));
    return el(
      "div",
      { class: "said" },
      el("h1", { text: `Nothing links to it${elsewhere}` }),
      el("p", { text: `${whose} links to ${bare(state.url)}${elsewhere}.` }),
      ...more,
    );
  }

  function tools() {
    const again = (name, value) =>
      go({ ...now(), [name]: value, text: undefined, from: undefined, to: undefined, who: undefined });
    const filter = el("input", {
      class: "filter",
      type: "text",
      placeholder: "Only rows with…",
      "aria-label": "Only rows with",
      value: choice.text,
      oninput: () => {
        choice.text = filter.value.trim();
        set({ text: choice.text });
        load();
      },
    });
    const words = (...names) => names.map((word) => [word, word]);
    const matches = [
      ["domain", "domain"],
      ["host", "host"],
    ];
    if (!isName(state.url)) matches.push(["exact", "URL"]);
    const units = [
      ["page", "pages"],
      ["host", "hosts"],
      ["domain", "domains"],
    ];
    return el(
      "div",
      { class: "tools" },
      chooser("To its", matches, choice.match, (value) => again("match", value)),
      chooser("Count", units, choice.unit, (value) => again("unit", value)),
      choice.source
        ? act(`Of ${safe(choice.source)} ×`, () => again("source", undefined))
        : chooser("From", words("elsewhere", "everywhere"), choice.internal ? "everywhere" : "elsewhere", (value) =>
            again("internal", value === "everywhere" ? "1" : undefined),
          ),
      chooser("Show", referrers.EVENTS, choice.event, (value) => {
        choice.event = value;
        set({ event: value === "any" ? undefined : value });
        load();
      }),
      chooser("Sort", words("first", "last", "most", "key"), choice.order, (value) => go({ ...now(), order: value })),
      dates.element,
      filter,
      who,
      el(
        "div",
        { class: "right" },
        tableSwitch,
        act("CSV", () => saveRows("csv")),
        act("JSON", () => saveRows("json")),
        act("Series", saveSeries),
        act("SVG", () => saveSvg(whole(), fileName(state.url, "svg"))),
        act("PNG", () => savePng(whole(), fileName(state.url, "png"))),
        act("Data", () => showSource(state.url, choice, when, [target, ...(beside ? [other.target] : [])])),
      ),
    );
  }

  /** The state of the address with what was chosen since it was opened. */
  function now() {
    const { event, who: whose, text } = choice;
    const said = (value) => (value === "any" ? undefined : value);
    return { ...state, list: kept, event: said(event), who: said(whose), text, from: when.from, to: when.to };
  }

  function chooseHost(source) {
    go({ ...now(), source, unit: undefined, text: undefined, from: undefined, to: undefined, who: undefined });
  }

  const telling = (read, of) => (readout.textContent = `${count(read)} of ${count(of)} rows are read.`);

  /** All rows that are chosen of the target and of the one beside it. */
  async function readAll() {
    const [read, of] = [[], [answer, ...(beside ? [beside] : [])]];
    for (const [at, own] of of.entries()) {
      const isThere = own.rowsSelected === own.rows.length;
      const ask = askedOf(at ? other.target : target);
      read.push(isThere ? own.rows.map(referrers.rowOf) : await referrers.allRows(call, ask, telling));
    }
    return read;
  }

  /** Saves all rows that are chosen, also those that no picture has. */
  async function saveRows(kind) {
    const read = await readAll();
    if (!isOpen()) return;
    const name = nameFor(state.url);
    if (beside) {
      const lines = linesOfBoth(united(...read, choice.order).filter(isShown), sideNames());
      saveLines(["target", "who", ...referrers.COLUMNS], lines, kind, name);
    } else saveLines(referrers.COLUMNS, referrers.linesOf(read[0].filter(isShown)), kind, name);
    redraw();
  }

  /** Saves the months of the target, of the one beside it, and of those that are kept. */
  async function saveSeries() {
    const words = [wordOf(target), ...(beside ? [wordOf(other.target)] : []), ...keptIn({ list: kept })];
    const tell = (text) => (readout.textContent = text);
    const lines = await series(call, [...new Set(words)], choice, tell);
    if (isOpen()) saveLines(SERIES, lines, "csv", `${nameFor(state.url)}-series`);
    redraw();
  }

  const sideNames = () => ({ A: nameOf(target), B: other && nameOf(other.target) });

  // ---- which rows are shown ----

  const isShown = (row) =>
    (!choice.text || row.url.toLowerCase().includes(choice.text.toLowerCase())) &&
    (!row.who || choice.who === "any" || row.who === choice.who);

  /** Takes the rows of the answers: of both targets as one list if all of them are there, else those of A. */
  function take(read = [answer, ...(beside ? [beside] : [])].map((own) => own.rows.map(referrers.rowOf))) {
    isWhole = [answer, beside].every((own, at) => !own || own.rowsSelected === read[at].length);
    all = beside && isWhole ? united(...read, choice.order) : read[0];
  }

  /** Asks for the rows that are chosen; for as many as the server gives at once where a text is looked for. */
  async function load() {
    asks += 1;
    const own = asks;
    let next = await askBoth();
    const isPart = next.some((one) => one.rowsSelected > one.rows.length);
    if (choice.text && isPart) next = await askBoth({ limit: referrers.ROWS_MAX });
    if (!isOpen() || own !== asks) return;
    if (next[0] !== answer || next[1] !== beside) {
      [answer, beside] = next;
      take();
      tellWho();
    }
    filter();
  }

  /** Who links to both, to A only, and to B only: words to choose from, or what must be read before. */
  function tellWho() {
    if (!beside) return;
    const choose = (value) => {
      choice.who = value;
      set({ who: value === "any" ? undefined : value });
      filter();
    };
    const readThem = async () => {
      const own = (asks += 1);
      const read = await readAll();
      if (!isOpen() || own !== asks) return;
      take(read);
      tellWho();
      filter();
    };
    const selected = answer.rowsSelected + beside.rowsSelected;
    who.replaceChildren(
      isWhole
        ? whoChooser(countsOf(all), choice.who, choose)
        : act(`Read all ${count(selected)} rows to see who links to both`, readThem),
    );
  }

  function filter() {
    rows = referrers.named(all.filter(isShown));
    [scroll, current] = [0, -1];
    shownTable?.update(rows);
    redraw();
  }

  /** Keeps the rows that came or went between two dates, given as texts; all without dates. */
  async function chooseDates(texts) {
    when = whenOf(texts);
    dates.show(when);
    set({ from: when.from, to: when.to });
    line.update();
    redraw();
    await load();
  }

  /** Keeps the rows of a period; all without one, or if it was chosen. */
  async function choose(mark) {
    const isChosen = mark && when.span && when.span[0] === mark.time && when.span[1] === mark.end;
    await chooseDates(mark && !isChosen ? referrers.textsOf(mark) : {});
    if (mark) say(`${referrers.nameOf(mark)}: ${many(rows.length, "row")}`);
  }

  // ---- the pictures ----

  const view = () => ({
    ...{ ...layout, from, to, marks, otherMarks, rows, span: when.span, pointed, current, scroll },
    isUnited: Boolean(beside && isWhole),
  });

  function resize() {
    const width = listArea.clientWidth;
    if (width < 10) return;
    const left = Math.round(width < 560 ? Math.max(110, width * 0.36) : Math.min(540, Math.max(300, width * 0.43)));
    const keyLeft = width < 900 ? left : Math.round(left - 210);
    root.querySelector(".over").style.gridTemplateColumns = width < 560 ? "1fr" : `${keyLeft - 16}px 1fr`;
    layout = { width, height: listArea.clientHeight, left, keyLeft };
    layout = { ...layout, chart: chartArea.clientHeight, chartWidth: chartArea.clientWidth };
    marks = referrers.marksOf(months, [from, to], width - left - RIGHT, MARK);
    otherMarks = otherMonths && referrers.marksOf(otherMonths, [from, to], width - left - RIGHT, MARK);
    chartArea.setAttribute("aria-valuemax", Math.max(0, marks.length - 1));
    redraw();
  }

  function redraw() {
    if (waiting || !layout) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      if (!isOpen()) return;
      const theme = colours();
      const upper = sized(chart, layout.chartWidth, layout.chart);
      upper.clearRect(0, 0, layout.chartWidth, layout.chart);
      upper.save();
      upper.translate(layout.chartWidth - layout.width, 0);
      drawChart(upper, theme, view(), layout.chart);
      upper.restore();
      const lower = sized(list, layout.width, layout.height);
      lower.clearRect(0, 0, layout.width, layout.height);
      drawRows(lower, theme, view(), choice.unit);
      tell();
      drawn();
    });
  }

  /** The picture as it stands by itself. */
  function whole() {
    const theme = colours();
    const draw = (context) => {
      drawChart(context, theme, view(), layout.chart);
      shifted(context, 0, layout.chart, () => drawRows(context, theme, view(), choice.unit));
    };
    const named = [target, ...(beside ? [other.target] : [])].map((own) => cut(nameOf(own), 60));
    const title = `Links to ${beside ? `${named[0]} (A) and to ${named[1]} (B)` : named[0]}`;
    const told = beside
      ? `${shortFacts("A", answer, months)}; ${shortFacts("B", beside, otherMonths)}`
      : root.querySelector(".head p").innerText;
    const key = keyText(BACKLINKS) + (beside ? " Filled: links to A; hollow: links to B." : "");
    const frame = { title, facts: `${told}. ${numberOfRows()}`, key };
    return framed(frame, [layout.width, layout.chart + layout.height], theme, draw);
  }

  // ---- pointer and keys ----

  function tell() {
    if (rows[current]) return readout.replaceChildren(...toldRow(rows[current]));
    if (marks[pointed]) return readout.replaceChildren(...toldMark(marks[pointed], otherMarks));
    const sides = beside ? " Filled bars are links to A, hollow bars are links to B." : "";
    readout.textContent = `${numberOfRows()}.${sides}`;
    return undefined;
  }

  function numberOfRows() {
    const [selected, total] = beside && isWhole ? [all.length, all.length] : [answer.rowsSelected, answer.rowsTotal];
    return toldRows(rows.length, { read: all.length, selected, total }, choice, when.span, beside ? " of A" : "");
  }

  const rowAt = (y) => {
    const at = y < HEADS ? -1 : Math.floor((y - HEADS + scroll) / LINE);
    return at < rows.length ? at : -1;
  };
  const markAt = (x) => {
    const at = timeAt(view(), x);
    return marks.findIndex((mark) => mark.time <= at && at < mark.end);
  };

  function moved(position) {
    scroll = Math.max(0, Math.min(position, rows.length * LINE - layout.height + HEADS));
    redraw();
  }

  function enter(row) {
    if (row.isPage) go({ url: row.url });
    else if (choice.unit === "host") chooseHost(row.url);
    else go({ ...now(), unit: "host", text: row.url, who: undefined });
  }

  function pointers() {
    const at = (event, area) => {
      const box = area.getBoundingClientRect();
      return { x: event.clientX - box.left, y: event.clientY - box.top };
    };
    const onChart = (event) => markAt(at(event, chartArea).x + layout.width - layout.chartWidth);
    chartArea.addEventListener("pointermove", (event) => {
      [pointed, current] = [onChart(event), -1];
      redraw();
    });
    chartArea.addEventListener("pointerleave", () => {
      pointed = -1;
      redraw();
    });
    chartArea.addEventListener("click", (event) => choose(marks[onChart(event)]));
    let drag;
    listArea.addEventListener("pointerdown", (event) => {
      drag = { ...at(event, listArea), scroll, far: 0 };
      listArea.setPointerCapture(event.pointerId);
    });
    listArea.addEventListener("pointermove", (event) => {
      const point = at(event, listArea);
      if (drag) {
        drag.far = Math.max(drag.far, Math.abs(point.y - drag.y));
        if (drag.far > 4) return moved(drag.scroll - (point.y - drag.y));
      }
      [current, pointed] = [rowAt(point.y), point.x > layout.left ? markAt(point.x) : -1];
      listArea.style.cursor = current >= 0 ? "pointer" : "default";
      redraw();
      return undefined;
    });
    listArea.addEventListener("pointerup", (event) => {
      const row = drag && drag.far <= 4 ? rows[rowAt(at(event, listArea).y)] : undefined;
      drag = undefined;
      if (row) enter(row);
    });
    listArea.addEventListener("pointercancel", () => (drag = undefined));
    listArea.addEventListener("pointerleave", () => {
      [current, pointed] = [-1, -1];
      redraw();
    });
    listArea.addEventListener(
      "wheel",
      (event) => {
        const before = scroll;
        moved(scroll + event.deltaY);
        if (scroll !== before) event.preventDefault();
      },
      { passive: false },
    );
  }

  function select(row) {
    current = Math.max(0, Math.min(rows.length - 1, row));
    const top = current * LINE;
    if (top < scroll) moved(top);
    else if (top + LINE > scroll + layout.height - HEADS) moved(top + LINE - layout.height + HEADS);
    else redraw();
    if (rows[current]) say(`${cut(bare(rows[current].url), 120)}, since ${day(rows[current].first)}`);
  }

  function key(event) {
    if (event.key === "k") line.toggle();
    if (shownTable || !months.length || event.key === "k") return event.key === "k";
    const page = Math.max(1, Math.floor((layout.height - HEADS) / LINE) - 1);
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page }[event.key];
    const aside = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step) select(current < 0 ? Math.ceil(scroll / LINE) : current + step);
    else if (event.key === "Home") select(0);
    else if (event.key === "End") select(rows.length - 1);
    else if (event.key === "Enter" && rows[current] && !event.target.closest("button, a")) enter(rows[current]);
    else if (event.key === "Escape") choose(undefined);
    else if (aside && marks.length) {
      const { span } = when;
      const open = aside > 0 ? -1 : marks.length;
      const at = span ? marks.findIndex((mark) => mark.end > span[0]) : open;
      const next = marks[Math.max(0, Math.min(marks.length - 1, at + aside))];
      chartArea.setAttribute("aria-valuenow", marks.indexOf(next));
      chartArea.setAttribute("aria-valuetext", referrers.nameOf(next));
      if (!span || span[0] !== next.time || span[1] !== next.end) choose(next);
    } else return false;
    return true;
  }

  function switchTable() {
    if (!months.length) return;
    if (shownTable) {
      shownTable.element.remove();
      shownTable = undefined;
    } else {
      const where = (row) =>
        addressFrom(
          row.isPage
            ? { url: row.url }
            : { ...now(), unit: undefined, source: row.url, text: undefined, who: undefined },
        );
      shownTable = table(rows, Math.max(0, current), where);
      listArea.append(shownTable.element);
    }
    tableSwitch.setAttribute("aria-pressed", String(Boolean(shownTable)));
    set({ table: shownTable && "1" });
  }

  const watch = new ResizeObserver(resize);
  if (months.length) {
    pointers();
    tellWho();
    filter();
    if (choice.text) load();
    watch.observe(listArea);
    resize();
    if (state.table) switchTable();
  } else drawn();
  line.offer();
  return {
    key,
    resize,
    close: () => watch.disconnect(),
    print: () => (months.length ? [elementOf(whole())] : undefined),
    picture: () => ({
      url: state.url,
      months,
      marks: marks.map(({ time: start, end, size, ...numbers }) => ({ start, end, size, ...numbers })),
      rows: rows.map(({ url, pages, targets, runs, unknown, who: whose, parts }, at) => ({
        ...{ url, pages, targets, runs, unknown, who: whose, end: referrers.endOfRow(rows[at]) },
        parts: parts && Object.fromEntries(parts.map(([name, part]) => [name, part.runs])),
      })),
      otherMonths,
      isWhole,
      selected: answer.rowsSelected,
      total: answer.rowsTotal,
      span: when.span,
      layout: { ...layout, from, to },
    }),
  };
}
