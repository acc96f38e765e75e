// Who links to a URL, a host or a domain, and since when: how many link over time, what came and went, and below it a
// row for each page, host or domain, with its stays under the chart. Chart and rows have one axis.
//
// The server chooses rows: by host of the pages that link, by what happened to them, and by time. Here they are only
// filtered by a text. Two canvases, of the chart and of the rows; both are drawn once a change, in the next frame.

import { addressOf } from "./address.js";
import { home, path } from "./data.js";
import { act, chooser, colours, count, dialog, el, headOf, many, sized } from "./dom.js";
import { drawChart, drawRows, HEADS, LINE, RIGHT, timeAt } from "./flows.js";
import { barsKey, keyText } from "./key.js";
import { bare, cut, safe } from "./names.js";
import * as referrers from "./referrers.js";
import { elementOf, fileName, framed, nameFor, saveLines, savePicture, saveSvg } from "./save.js";
import { table } from "./table.js";
import { day, digits, length, month } from "./time.js";

/** Pixels that a mark of the chart has at least. */
const MARK = 4;

export async function open({ root, state, set, go, call, say, drawn, isOpen }) {
  const choice = referrers.choiceOf(state);
  // The chosen stretch of time.
  let span = referrers.spanOf(state);
  const asked = (more) => referrers.question(state.url, choice, span, more);
  let answer = await call(asked());
  if (!isOpen()) return undefined;
  const months = referrers.monthsOf(answer);
  let all = answer.rows.map(referrers.rowOf);
  // The axis is that of all rows, whichever of them are chosen.
  const [from, to] = referrers.extentOf(months, all);
  let [marks, rows, asks] = [[], [], 0];
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
  root.replaceChildren(
    heading(),
    tools(),
    ...(months.length
      ? [
          el("div", { class: "over" }, hosts(), chartArea),
          listArea,
          el("div", { class: "read" }, readout, el("span", { class: "keys" }, el("kbd", { text: "?" }), " keys")),
        ]
      : [empty()]),
  );

  // ---- what stands around the pictures ----

  function heading() {
    const last = months[months.length - 1];
    const whose = choice.source ? ` of ${safe(choice.source)}` : "";
    const facts = last
      ? el(
          "p",
          {},
          el("b", { text: count(last.standing) }),
          ` ${choice.unit}${last.standing === 1 ? "" : "s"}${whose} link${last.standing === 1 ? "s" : ""} ` +
            "at the latest capture, ",
          el("b", { text: count(answer.rowsTotal - last.standing - last.unknown) }),
          ` did before${last.unknown ? `, of ${count(last.unknown)} it is unknown` : ""}; since ${month(from)}`,
        )
      : undefined;
    return headOf(bare(state.url), facts);
  }

  function empty() {
    const elsewhere = choice.internal || choice.source ? "" : " from elsewhere";
    const whose = choice.source ? `No page of ${safe(choice.source)}` : "No captured page";
    const more = choice.internal
      ? []
      : [act("Count pages of its own, too", () => go({ ...state, internal: "1", from: undefined, to: undefined }))];
    if (choice.source) more.unshift(act("Pages of all hosts", () => go({ ...state, source: undefined })));
    return el(
      "div",
      { class: "said" },
      el("h1", { text: "Nothing links to it" }),
      el("p", { text: `${whose} links to ${bare(state.url)}${elsewhere}.` }),
      ...more,
    );
  }

  function tools() {
    const again = (name, value) => go({ ...state, [name]: value, text: undefined, from: undefined, to: undefined });
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
    if (!referrers.isName(state.url)) matches.push(["exact", "URL"]);
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
      chooser("Sort", words("first", "last", "most", "key"), choice.order, (value) =>
        go({ ...state, order: value }),
      ),
      filter,
      el(
        "div",
        { class: "right" },
        tableSwitch,
        act("CSV", () => saveRows("csv")),
        act("JSON", () => saveRows("json")),
        act("SVG", () => saveSvg(whole(), fileName(state.url, "svg"))),
        act("PNG", () => savePicture(together(), fileName(state.url, "png"))),
        act("Data", showData),
      ),
    );
  }

  /** Hosts with the most pages that link; a click asks for the pages of one. */
  function hosts() {
    const line = (host) =>
      el(
        "tr",
        {},
        el("td", {}, act(safe(host.host) || "no host", () => host.host && chooseHost(host.host))),
        el("td", { class: "n", text: count(host.pages) }),
        el("td", { class: "n", text: count(host.standing) }),
        el("td", { class: "n middle", text: month(host.first) }),
      );
    const heads = [
      ["From host", ""],
      ["pages", "n"],
      ["now", "n"],
      ["since", "n middle"],
    ];
    return el(
      "div",
      { class: "hosts", tabindex: 0, role: "region", "aria-label": "Hosts that link" },
      el(
        "table",
        {},
        el(
          "thead",
          {},
          el("tr", {}, ...heads.map(([text, kind]) => el("th", { scope: "col", class: kind, text }))),
        ),
        el("tbody", {}, ...referrers.hostsOf(answer).map(line)),
      ),
    );
  }

  const chooseHost = (source) =>
    go({ ...state, source, unit: undefined, text: undefined, from: undefined, to: undefined });

  function showData() {
    const quoted = (text) => `'${safe(text)}'`;
    const options = [
      choice.match === "exact" ? "" : ` --match ${choice.match}`,
      choice.unit === "page" ? "" : ` --unit ${choice.unit}`,
      choice.internal ? " --internal" : "",
      choice.source ? ` --source ${quoted(choice.source)} --source-match host` : "",
    ].join("");
    const iso = (at) => new Date(at * 1000).toISOString().slice(0, 19);
    const selected =
      (choice.event === "any" ? "" : ` --${choice.event}`) +
      (span ? ` --from ${iso(span[0])} --to ${iso(span[1] - 1)}` : "");
    dialog(
      "The data of this picture",
      el("p", { text: "On the command line, the rows and the chart:" }),
      el("pre", { text: `webstrata backlinks STORE ${quoted(state.url)}${options}${selected} --limit 0` }),
      el("pre", { text: `webstrata backlinks STORE ${quoted(state.url)}${options} --by month` }),
      el("p", { text: "Over HTTP:" }),
      el("pre", { text: `curl '${home}${asked()}'` }),
      el("p", { text: "The other way round, what the URL links to:" }),
      el("pre", { text: `curl '${home}${path("v1/lifespans", { url: state.url })}'` }),
    );
  }

  /** Saves all rows that are chosen, also those that no picture has. */
  async function saveRows(kind) {
    const tell = (read, of) => (readout.textContent = `${count(read)} of ${count(of)} rows are read.`);
    const every = answer.rowsSelected > all.length ? await referrers.allRows(call, asked, tell) : all;
    if (!isOpen()) return;
    saveLines(referrers.COLUMNS, referrers.linesOf(every.filter(hasText)), kind, nameFor(state.url));
    redraw();
  }

  // ---- which rows are shown ----

  const hasText = (row) => !choice.text || row.url.toLowerCase().includes(choice.text.toLowerCase());

  /** Asks for the rows that are chosen; for as many as the server gives at once where a text is looked for. */
  async function load() {
    asks += 1;
    const own = asks;
    let next = await call(asked());
    if (choice.text && next.rowsSelected > next.rows.length) next = await call(asked({ limit: referrers.ROWS_MAX }));
    if (!isOpen() || own !== asks) return;
    if (next !== answer) {
      answer = next;
      all = answer.rows.map(referrers.rowOf);
    }
    filter();
  }

  function filter() {
    rows = referrers.named(all.filter(hasText));
    [scroll, current] = [0, -1];
    shownTable?.update(rows);
    redraw();
  }

  /** Keeps the rows that came or went in a period; all without one, or if it was chosen. */
  async function choose(mark) {
    span = mark && !(span && span[0] === mark.time && span[1] === mark.end) ? [mark.time, mark.end] : undefined;
    set({ from: span && digits(span[0]), to: span && digits(span[1]) });
    redraw();
    await load();
    if (mark) say(`${referrers.nameOf(mark)}: ${many(rows.length, "row")}`);
  }

  // ---- the pictures ----

  const view = () => ({ ...layout, from, to, marks, rows, span, pointed, current, scroll });

  function resize() {
    const width = listArea.clientWidth;
    if (width < 10) return;
    const left = Math.round(width < 560 ? Math.max(110, width * 0.36) : Math.min(540, Math.max(300, width * 0.43)));
    const keyLeft = width < 900 ? left : Math.round(left - 210);
    root.querySelector(".over").style.gridTemplateColumns = width < 560 ? "1fr" : `${keyLeft - 16}px 1fr`;
    layout = { width, height: listArea.clientHeight, left, keyLeft };
    layout = { ...layout, chart: chartArea.clientHeight, chartWidth: chartArea.clientWidth };
    marks = referrers.marksOf(months, [from, to], width - left - RIGHT, MARK);
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

  /** Both pictures in one canvas. */
  function together() {
    const both = el("canvas");
    const context = sized(both, layout.width, layout.chart + layout.height);
    const theme = colours();
    context.fillStyle = theme.paper;
    context.fillRect(0, 0, layout.width, layout.chart + layout.height);
    drawChart(context, theme, view(), layout.chart);
    context.translate(0, layout.chart);
    drawRows(context, theme, view(), choice.unit);
    return both;
  }

  /** The picture as it stands by itself. */
  function whole() {
    const theme = colours();
    const draw = (svg) => {
      drawChart(svg, theme, view(), layout.chart);
      svg.shifted(0, layout.chart, () => drawRows(svg, theme, view(), choice.unit));
    };
    const facts = `${root.querySelector(".head p").innerText}. ${numberOfRows()}`;
    const frame = { title: `Links to ${bare(state.url)}`, facts, key: keyText(barsKey(false)) };
    return framed(frame, [layout.width, layout.chart + layout.height], theme, draw);
  }

  // ---- pointer and keys ----

  function tell() {
    const row = rows[current];
    if (row) {
      const last = row.runs[row.runs.length - 1];
      readout.replaceChildren(
        el("b", { text: safe(row.url) }),
        `  ${day(row.first)} – ${day(row.last)}, ${length(row.life)} in ${many(row.runs.length, "stay")}` +
          `${last.gone ? `, lost by ${day(last.gone)}` : `, ${referrers.endOfRow(row)}`}` +
          `${row.isPage ? `, to ${many(row.targets, "URL")}` : `, ${many(row.pages, "page")}`}`,
      );
      return;
    }
    const mark = marks[pointed];
    if (mark) {
      const parts = ["found", "new", "returned", "lost"].filter((kind) => mark[kind]);
      readout.replaceChildren(
        el("b", { text: referrers.nameOf(mark) }),
        `  ${count(mark.standing)} link${mark.standing === 1 ? "s" : ""}` +
          `${mark.unknown ? `, ${count(mark.unknown)} unknown` : ""}` +
          `${parts.map((kind) => `, ${count(mark[kind])} ${kind}`).join("")}`,
      );
      return;
    }
    readout.textContent =
      `${numberOfRows()}. A bar ends at the last capture that has a link; the thin line after it, at the first ` +
      "that has none.";
  }

  /** How many rows there are, and of how many they are chosen. */
  function numberOfRows() {
    const { rowsSelected, rowsTotal } = answer;
    const event = choice.event === "any" ? (span ? " that came or went" : "") : ` ${choice.event}`;
    const when = span ? ` from ${day(span[0])} to ${day(span[1] - 1)}` : "";
    const text = choice.text ? ` with “${safe(choice.text)}”` : "";
    if (rowsSelected > all.length) {
      const first = `the first ${count(all.length)} of ${count(rowsSelected)} rows${event}${when}`;
      return choice.text ? `${count(rows.length)}${text} of ${first}` : `T${first.slice(1)}`;
    }
    const of = rows.length < rowsTotal ? ` of ${count(rowsTotal)}` : "";
    return `${count(rows.length)}${of} row${(of ? rowsTotal : rows.length) === 1 ? "" : "s"}${text}${event}${when}`;
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
    else go({ ...state, unit: "host", text: row.url });
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
    if (shownTable || !months.length) return false;
    const page = Math.max(1, Math.floor((layout.height - HEADS) / LINE) - 1);
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page }[event.key];
    const aside = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step) select(current < 0 ? Math.ceil(scroll / LINE) : current + step);
    else if (event.key === "Home") select(0);
    else if (event.key === "End") select(rows.length - 1);
    else if (event.key === "Enter" && rows[current] && !event.target.closest("button, a")) enter(rows[current]);
    else if (event.key === "Escape") choose(undefined);
    else if (aside && marks.length) {
      const now = span ? marks.findIndex((mark) => mark.time === span[0]) : aside > 0 ? -1 : marks.length;
      const next = marks[Math.max(0, Math.min(marks.length - 1, now + aside))];
      chartArea.setAttribute("aria-valuenow", marks.indexOf(next));
      chartArea.setAttribute("aria-valuetext", referrers.nameOf(next));
      if (!span || span[0] !== next.time) choose(next);
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
        addressOf(row.isPage ? { url: row.url } : { ...state, unit: undefined, source: row.url, text: undefined });
      shownTable = table(rows, Math.max(0, current), where);
      listArea.append(shownTable.element);
    }
    tableSwitch.setAttribute("aria-pressed", String(Boolean(shownTable)));
  }

  const watch = new ResizeObserver(resize);
  if (months.length) {
    pointers();
    filter();
    if (choice.text) load();
    watch.observe(listArea);
    resize();
  } else drawn();
  return {
    key,
    resize,
    close: () => watch.disconnect(),
    print: () => (months.length ? [elementOf(whole())] : undefined),
    picture: () => ({
      url: state.url,
      months,
      marks: marks.map(({ time: start, end, size, ...numbers }) => ({ start, end, size, ...numbers })),
      rows: rows.map((row) => ({ url: row.url, pages: row.pages, targets: row.targets, runs: row.runs })),
      selected: answer.rowsSelected,
      total: answer.rowsTotal,
      span,
      layout: { ...layout, from, to },
    }),
  };
}
