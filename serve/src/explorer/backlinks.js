// Who links to a URL, a host or a domain, and since when: how many link over time, what came and went, and below it a
// row for each page, host or domain, with its stays under the chart. Chart and rows have one axis.
//
// Two canvases, of the chart and of the rows; both are drawn once a change, in the next frame.

import { addressOf } from "./address.js";
import { home, path } from "./data.js";
import { chooser, colours, count, dialog, el, many, sized } from "./dom.js";
import { bars, clip, hatch } from "./drawing.js";
import { bare, cut, fitted, safe } from "./names.js";
import { fileName, savePicture, saveText, Svg } from "./save.js";
import { table } from "./table.js";
import { DAY, day, digits, length, MONTHS, seconds, ticks, year } from "./time.js";

const ROWS = 5000;
const LINE = 22;
/** Pixels that a mark of the chart has at least. */
const MARK = 4;
const RIGHT = 12;

const time = (text) => (text ? Date.parse(text) / 1000 : 0);
/** Whether a text is a name without a path: a domain. */
const isName = (text) => !/^\w+:\/\//.test(text) && !/\/./.test(text);

export async function open({ root, state, set, go, call, say, drawn, isOpen }) {
  const choice = {
    match: ["exact", "host", "domain"].includes(state.match) ? state.match : isName(state.url) ? "domain" : "exact",
    unit: ["host", "domain"].includes(state.unit) ? state.unit : "page",
    internal: state.internal === "1",
    order: ["last", "most", "key"].includes(state.order) ? state.order : "first",
    text: state.text || "",
  };
  const asked = (more) =>
    path("v1/backlinks", {
      url: state.url,
      matchType: choice.match,
      unit: choice.unit,
      internal: choice.internal ? "true" : undefined,
      order: choice.order,
      limit: ROWS,
      ...more,
    });
  const answer = await call(asked());
  if (!isOpen()) return undefined;
  const isWhole = answer.rows.length === answer.rowsTotal;
  const months = monthsOf(answer);
  let all = answer.rows.map(rowOf);
  const [from, to] = extent();
  let rows = [];
  // The chosen stretch of time, as seconds.
  let span = seconds(state.from) < seconds(state.to) ? [seconds(state.from), seconds(state.to)] : undefined;
  let [marks, scroll, current, pointed, waiting, layout, shownTable] = [[], 0, -1, -1, false, undefined, undefined];

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
    el("div", { class: "over" }, hosts(), chartArea),
    listArea,
    el("div", { class: "read" }, readout, el("span", { class: "keys" }, el("kbd", { text: "?" }), " keys")),
  );

  // ---- what the answer says ----

  function monthsOf({ periods, standing, unknown, found, new: fresh, returned, lost }) {
    return periods.map((start, at) => ({
      time: time(`${start}T00:00:00Z`),
      standing: standing[at],
      unknown: unknown[at],
      found: found[at],
      new: fresh[at],
      returned: returned[at],
      lost: lost[at],
    }));
  }

  function rowOf(row) {
    const runs = row.stays.map((stay) => ({
      first: time(stay.first),
      last: time(stay.last),
      gone: time(stay.gone),
      found: stay.began === "found",
      began: stay.began,
    }));
    const url = row.name || row.page;
    return {
      url,
      page: row.page,
      isPage: !row.name,
      pages: row.pages || 1,
      targets: row.targets,
      runs,
      unknown: (row.unknown || []).map(([first, last]) => [time(first), last ? time(last) : undefined]),
      first: runs[0].first,
      last: runs[runs.length - 1].last,
      life: runs.reduce((sum, run) => sum + run.last - run.first + 1, 0),
    };
  }

  function extent() {
    const ends = all.flatMap((row) => row.runs.map((run) => Math.max(run.last, run.gone)));
    const first = months.length ? months[0].time : 0;
    const last = ends.reduce(
      (most, end) => Math.max(most, end),
      months.length ? months[months.length - 1].time : 0,
    );
    return [first, Math.max(last, first + 30 * DAY)];
  }

  /** Months, quarters or years, whichever are wide enough; what happened in each, and what is so at its end. */
  function marksOf(width) {
    const size = [1, 3, 12].find((step) => (width / (to - from)) * step * 30.4 * DAY >= MARK) || 12;
    const found = [];
    for (const month of months) {
      const at = new Date(month.time * 1000);
      const start = Date.UTC(at.getUTCFullYear(), Math.floor(at.getUTCMonth() / size) * size, 1) / 1000;
      let last = found[found.length - 1];
      if (!last || last.time !== start) {
        const end = Date.UTC(at.getUTCFullYear(), Math.floor(at.getUTCMonth() / size) * size + size, 1) / 1000;
        last = { time: start, end, size, found: 0, new: 0, returned: 0, lost: 0 };
        found.push(last);
      }
      for (const kind of ["found", "new", "returned", "lost"]) last[kind] += month[kind];
      last.standing = month.standing;
      last.unknown = month.unknown;
    }
    return found;
  }

  /** "Mar 2004", "Q2 2004" or "2004". */
  function nameOf(mark) {
    const at = new Date(mark.time * 1000);
    if (mark.size === 12) return String(year(mark.time));
    if (mark.size === 3) return `Q${at.getUTCMonth() / 3 + 1} ${year(mark.time)}`;
    return `${MONTHS[at.getUTCMonth()]} ${year(mark.time)}`;
  }

  // ---- what stands around the pictures ----

  function heading() {
    const last = months[months.length - 1];
    const noun = { page: "page", host: "host", domain: "domain" }[choice.unit];
    const facts = answer.rowsTotal
      ? el(
          "p",
          {},
          el("b", { text: count(answer.rowsTotal) }),
          ` ${noun}${answer.rowsTotal === 1 ? "" : "s"} of ${many(answer.hosts.length, "host")}` +
            `${answer.hosts.length === 50 ? " or more" : ""} linked to it since ${day(from).replace(/^\d+ /, "")}; `,
          el("b", { text: count(last.standing) }),
          ` still do${last.unknown ? `, and of ${count(last.unknown)} that is unknown` : ""}`,
        )
      : el("p", { text: nothing() });
    return el("div", { class: "head" }, el("h1", { text: bare(state.url) }), facts);
  }

  function nothing() {
    if (choice.internal) return "Nothing in the store links to it.";
    return "Nothing links to it from elsewhere. Choose “everywhere” to see pages of its own.";
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
        reorder();
      },
    });
    const words = (...list) => list.map((word) => [word, word]);
    const matches = [
      ["domain", "domain"],
      ["host", "host"],
    ];
    if (!isName(state.url)) matches.push(["exact", "URL"]);
    return el(
      "div",
      { class: "tools" },
      chooser("To its", matches, choice.match, (value) => again("match", value)),
      chooser(
        "Count",
        [
          ["page", "pages"],
          ["host", "hosts"],
          ["domain", "domains"],
        ],
        choice.unit,
        (value) => again("unit", value),
      ),
      chooser("From", words("elsewhere", "everywhere"), choice.internal ? "everywhere" : "elsewhere", (value) =>
        again("internal", value === "everywhere" ? "1" : undefined),
      ),
      chooser("Sort", words("first", "last", "most", "key"), choice.order, (value) =>
        go({ ...state, order: value }),
      ),
      filter,
      el(
        "div",
        { class: "right" },
        tableSwitch,
        el("button", { class: "act", type: "button", text: "CSV", onclick: () => saveRows("csv") }),
        el("button", { class: "act", type: "button", text: "JSON", onclick: () => saveRows("json") }),
        el("button", { class: "act", type: "button", text: "SVG", onclick: saveSvg }),
        el("button", {
          class: "act",
          type: "button",
          text: "PNG",
          onclick: () => savePicture(together(), fileName(state.url, "png")),
        }),
        el("button", { class: "act", type: "button", text: "Data", onclick: showData }),
      ),
    );
  }

  /** Hosts with the most pages; a click keeps their rows. */
  function hosts() {
    const line = (host) =>
      el(
        "li",
        {},
        el("button", {
          type: "button",
          text: safe(host.host) || "no host",
          onclick: () => {
            const field = root.querySelector(".filter");
            field.value = choice.text === host.host ? "" : host.host;
            field.dispatchEvent(new Event("input"));
          },
        }),
        el("span", { text: many(host.pages, "page") }),
        el("span", { class: "middle", text: `since ${year(time(host.first))}` }),
      );
    return el(
      "div",
      { class: "hosts" },
      el("h2", { text: "Hosts that link" }),
      el("ul", { class: "list" }, ...answer.hosts.map(line)),
    );
  }

  function showData() {
    const match = choice.match === "exact" ? "" : ` --match ${choice.match}`;
    const options =
      `${match}${choice.unit === "page" ? "" : ` --unit ${choice.unit}`}` + (choice.internal ? " --internal" : "");
    dialog(
      "The data of this picture",
      el("p", { text: "On the command line, the rows and the chart:" }),
      el("pre", { text: `webstrata backlinks STORE '${safe(state.url)}'${options} --limit 0` }),
      el("pre", { text: `webstrata backlinks STORE '${safe(state.url)}'${options} --by month` }),
      el("p", { text: "Over HTTP:" }),
      el("pre", { text: `curl '${home}${asked()}'` }),
    );
  }

  function saveRows(kind) {
    const iso = (at) => (at ? new Date(at * 1000).toISOString().slice(0, 19) + "Z" : "");
    const lines = rows.flatMap((row) =>
      row.runs.map((run) => ({
        referrer: row.url,
        page: row.page,
        pages: row.pages,
        targets: row.targets,
        began: run.began,
        first: iso(run.first),
        last: iso(run.last),
        gone: iso(run.gone),
      })),
    );
    if (kind === "json")
      return saveText(JSON.stringify(lines, null, 1), "application/json", fileName(state.url, "json"));
    const quoted = (value) => (/[",\r\n]/.test(value) ? `"${String(value).replaceAll('"', '""')}"` : value);
    const head = ["referrer", "page", "pages", "targets", "began", "first", "last", "gone"];
    const text = [head, ...lines.map((line) => head.map((name) => quoted(line[name])))];
    return saveText(
      text.map((line) => line.join(",")).join("\r\n") + "\r\n",
      "text/csv",
      fileName(state.url, "csv"),
    );
  }

  // ---- which rows are shown ----

  function reorder() {
    const text = choice.text.toLowerCase();
    const within = (at) => at >= span[0] && at < span[1];
    const happened = (row) => row.runs.some((run) => within(run.first) || (run.gone && within(run.gone)));
    rows = all.filter((row) => (!text || row.url.toLowerCase().includes(text)) && (!span || happened(row)));
    [scroll, current] = [0, -1];
    shownTable?.update(rows);
    redraw();
  }

  /** Keeps the rows that came or went in a period; all without one. */
  async function choose(mark) {
    span = mark && !(span && span[0] === mark.time && span[1] === mark.end) ? [mark.time, mark.end] : undefined;
    set({ from: span && digits(span[0]), to: span && digits(span[1]) });
    if (!isWhole) {
      const more = span ? { from: digits(span[0]), to: digits(span[1] - 1) } : {};
      const part = await call(asked(more));
      if (!isOpen()) return;
      all = part.rows.map(rowOf);
    }
    reorder();
    if (mark) say(`${nameOf(mark)}: ${many(rows.length, "row")}`);
  }

  // ---- the pictures ----

  const x = (at) => layout.left + ((at - from) / (to - from)) * (layout.width - layout.left - RIGHT);
  const timeAt = (px) => from + ((px - layout.left) / (layout.width - layout.left - RIGHT)) * (to - from);

  function resize() {
    const width = listArea.clientWidth;
    if (width < 10) return;
    const left = Math.round(Math.min(420, Math.max(110, width * 0.36)));
    root.querySelector(".over").style.gridTemplateColumns = width < 560 ? "1fr" : `${left - 16}px 1fr`;
    const height = listArea.clientHeight;
    layout = { width, height, left, chart: chartArea.clientHeight, chartWidth: chartArea.clientWidth };
    marks = marksOf(width - left - RIGHT);
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
      const shift = layout.width - layout.chartWidth;
      const upper = sized(chart, layout.chartWidth, layout.chart);
      upper.clearRect(0, 0, layout.chartWidth, layout.chart);
      upper.save();
      upper.translate(-shift, 0);
      drawChart(upper, theme);
      upper.restore();
      const lower = sized(list, layout.width, layout.height);
      lower.clearRect(0, 0, layout.width, layout.height);
      drawRows(lower, theme);
      tell();
      drawn();
    });
  }

  function drawChart(context, theme) {
    const { width, chart: height } = layout;
    const middle = Math.round((height - 18) * 0.55);
    const bottom = height - 20;
    const zero = Math.round(middle + (bottom - middle) * 0.6);
    const most = Math.max(1, ...marks.map((mark) => mark.standing + mark.unknown));
    const flow = Math.max(1, ...marks.map((mark) => Math.max(mark.found + mark.new + mark.returned, mark.lost)));
    context.font = `11px ${theme.sans}`;
    for (const tick of ticks(from, to, width - layout.left - RIGHT, 46)) {
      context.fillStyle = theme.faint;
      context.fillRect(Math.round(x(tick.time)), 0, 1, height - 14);
      context.fillStyle = theme.ink2;
      context.textAlign = "left";
      context.fillText(tick.text, x(tick.time) + 3, height - 4);
    }
    // How many link, as steps.
    const tall = (number) => (number / most) * (middle - 16);
    for (const [at, mark] of marks.entries()) {
      const [start, end] = [x(mark.time), at + 1 < marks.length ? x(marks[at + 1].time) : x(to)];
      const top = tall(mark.standing);
      context.fillStyle = theme.bar2;
      context.fillRect(start, middle - top, end - start + 0.5, top);
      context.fillStyle = theme.bar;
      context.fillRect(start, middle - top - 1, end - start + 0.5, 1.5);
      const more = tall(mark.unknown);
      if (more > 0) hatch(context, start, middle - top - more, end - start + 0.5, more, theme.hatch);
    }
    context.fillStyle = theme.ink2;
    context.textAlign = "left";
    context.fillText(count(most), layout.left + 4, 10);
    // What came, upward, and what went, downward; a root scale, or one crawl would flatten all else.
    const scale = (number, room) => Math.sqrt(number / flow) * room;
    for (const mark of marks) {
      const [start, wide] = [x(mark.time) + 0.5, Math.max(1, x(Math.min(mark.end, to)) - x(mark.time) - 1)];
      const came = mark.found + mark.new + mark.returned;
      const room = zero - middle - 8;
      const full = scale(came, room);
      let base = zero;
      for (const [kind, fill] of [
        ["found", theme.soft],
        ["new", theme.accent],
        ["returned", undefined],
      ]) {
        const part = came ? (full * mark[kind]) / came : 0;
        if (!part) continue;
        if (fill) {
          context.fillStyle = fill;
          context.fillRect(start, base - part, wide, part);
        } else hatch(context, start, base - part, wide, part, theme.accent);
        base -= part;
      }
      const down = scale(mark.lost, bottom - zero - 2);
      if (down > 0) {
        context.strokeStyle = theme.ink2;
        context.lineWidth = 1;
        context.strokeRect(start + 0.5, zero + 1.5, Math.max(1, wide - 1), down);
      }
    }
    context.fillStyle = theme.rule;
    context.fillRect(layout.left, zero, width - layout.left - RIGHT, 1);
    context.fillStyle = theme.ink3;
    context.textAlign = "left";
    const key = [
      ["found", theme.soft],
      ["new", theme.accent],
      ["returned", "hatch"],
      ["lost", "line"],
      ["root scale", ""],
    ];
    let at = layout.left + 4;
    for (const [word, look] of key) {
      if (at + context.measureText(word).width + 12 > width) break;
      if (look === "hatch") hatch(context, at, middle + 4, 8, 8, theme.accent);
      else if (look === "line") {
        context.strokeStyle = theme.ink2;
        context.strokeRect(at + 0.5, middle + 4.5, 7, 7);
      } else if (look) {
        context.fillStyle = look;
        context.fillRect(at, middle + 4, 8, 8);
      }
      context.fillStyle = theme.ink3;
      context.fillText(word, at + (look ? 11 : 0), middle + 12);
      at += context.measureText(word).width + (look ? 24 : 0);
    }
    if (span) {
      context.fillStyle = theme.accent;
      const [start, end] = [x(Math.max(from, span[0])), x(Math.min(to, span[1]))];
      context.fillRect(start, height - 17, Math.max(2, end - start), 2);
      context.fillRect(start, 0, 1, height - 17);
      context.fillRect(Math.max(start + 1, end), 0, 1, height - 17);
    } else if (pointed >= 0 && marks[pointed]) {
      context.fillStyle = theme.accent;
      context.fillRect(
        x(marks[pointed].time),
        height - 17,
        Math.max(2, x(marks[pointed].end) - x(marks[pointed].time)),
        2,
      );
    }
  }

  function drawRows(context, theme) {
    const { width, height, left } = layout;
    for (const tick of ticks(from, to, width - left - RIGHT, 46)) {
      context.fillStyle = theme.faint;
      context.fillRect(Math.round(x(tick.time)), 0, 1, height);
    }
    if (span) {
      context.fillStyle = theme.panel;
      context.fillRect(
        x(Math.max(from, span[0])),
        0,
        Math.max(1, x(Math.min(to, span[1])) - x(Math.max(from, span[0]))),
        height,
      );
    }
    const place = (run) => [x(run.first), Math.max(x(run.last), x(run.first) + 1)];
    place.gone = (run) => (run.gone ? x(run.gone) : x(run.last));
    const first = Math.floor(scroll / LINE);
    for (let at = first; at < Math.min(rows.length, first + Math.ceil(height / LINE) + 1); at += 1) {
      const [row, y] = [rows[at], at * LINE - scroll];
      const chosen = at === current;
      context.fillStyle = theme.faint;
      context.fillRect(0, y + LINE - 1, width, 1);
      context.textAlign = "left";
      context.font = `${chosen ? "600 " : ""}12px ${theme.sans}`;
      context.fillStyle = chosen ? theme.accent : theme.ink;
      const number = row.isPage ? (row.targets > 1 ? count(row.targets) : "") : count(row.pages);
      const room = left - 16 - (width < 560 ? 0 : 46);
      context.fillText(fitted(context, bare(row.url), room), 0, y + 15);
      if (width >= 560) {
        context.textAlign = "right";
        context.font = `11px ${theme.sans}`;
        context.fillStyle = theme.ink2;
        context.fillText(number, left - 14, y + 15);
      }
      clip(context, left, y, width - left, LINE);
      bars(
        context,
        row,
        y,
        LINE,
        { x: place, left, right: width - RIGHT, thickness: 7 },
        chosen ? theme.accent : theme.bar,
        theme.bar2,
      );
      for (const [since, until] of row.unknown) {
        const [start, end] = [x(since), until ? x(until) : x(to)];
        hatch(context, start, y + 6, Math.max(3, end - start), 10, theme.hatch);
      }
      context.restore();
    }
    if (!rows.length && all.length) {
      context.fillStyle = theme.ink2;
      context.font = `13px ${theme.sans}`;
      context.textAlign = "left";
      context.fillText("No row has that. Escape shows all.", 0, 20);
    }
  }

  /** Both pictures in one canvas. */
  function together() {
    const whole = el("canvas");
    const context = sized(whole, layout.width, layout.chart + layout.height);
    drawBoth(context);
    return whole;
  }

  function drawBoth(context) {
    const theme = colours();
    context.fillStyle = theme.paper;
    context.fillRect(0, 0, layout.width, layout.chart + layout.height);
    drawChart(context, theme);
    if (context.translate) {
      context.translate(0, layout.chart);
      drawRows(context, theme);
    }
  }

  function saveSvg() {
    const svg = new Svg(layout.width, layout.chart + layout.height, colours().paper);
    drawChart(svg, colours());
    svg.shifted(layout.chart, () => drawRows(svg, colours()));
    saveText(svg.text(), "image/svg+xml", fileName(state.url, "svg"));
  }

  // ---- pointer and keys ----

  function tell() {
    const row = rows[current];
    if (row) {
      const last = row.runs[row.runs.length - 1];
      readout.replaceChildren(
        el("b", { text: safe(row.url) }),
        `  ${day(row.first)} – ${day(row.last)}, ${length(row.life)} in ${many(row.runs.length, "stay")}` +
          `${last.gone ? `, gone by ${day(last.gone)}` : ""}` +
          `${row.isPage ? `, to ${many(row.targets, "URL")}` : `, ${many(row.pages, "page")}`}`,
      );
      return;
    }
    const mark = marks[pointed];
    if (mark) {
      const parts = ["found", "new", "returned", "lost"].filter((kind) => mark[kind]);
      readout.replaceChildren(
        el("b", { text: nameOf(mark) }),
        `  ${count(mark.standing)} link${mark.unknown ? `, ${count(mark.unknown)} unknown` : ""}` +
          `${parts.map((kind) => `, ${count(mark[kind])} ${kind}`).join("")}`,
      );
      return;
    }
    const shown = isWhole ? "" : ` The first ${count(answer.rows.length)} of ${count(answer.rowsTotal)} are here.`;
    readout.textContent =
      `${many(rows.length, "row")}${span ? ` with a change from ${day(span[0])} to ${day(span[1] - 1)}` : ""}. ` +
      `A thin line runs from the last capture with the link to the first without.${shown}`;
  }

  const rowAt = (y) => {
    const at = Math.floor((y + scroll) / LINE);
    return at < rows.length ? at : -1;
  };
  const markAt = (px) => {
    const at = timeAt(px);
    return marks.findIndex((mark) => mark.time <= at && at < mark.end);
  };

  function moved(position) {
    scroll = Math.max(0, Math.min(position, rows.length * LINE - layout.height));
    redraw();
  }

  function enter(row) {
    if (row.isPage) go({ url: row.url });
    else go({ ...state, unit: undefined, text: row.url });
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
        event.preventDefault();
        moved(scroll + event.deltaY);
      },
      { passive: false },
    );
  }

  function select(row) {
    current = Math.max(0, Math.min(rows.length - 1, row));
    const top = current * LINE;
    if (top < scroll) moved(top);
    else if (top + LINE > scroll + layout.height) moved(top + LINE - layout.height);
    else redraw();
    if (rows[current]) say(`${cut(bare(rows[current].url), 120)}, since ${day(rows[current].first)}`);
  }

  function key(event) {
    if (shownTable) return false;
    const page = Math.max(1, Math.floor(layout.height / LINE) - 1);
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
      chartArea.setAttribute("aria-valuetext", nameOf(next));
      if (!span || span[0] !== next.time) choose(next);
    } else return false;
    return true;
  }

  function switchTable() {
    if (shownTable) {
      shownTable.element.remove();
      shownTable = undefined;
    } else {
      const where = (row) =>
        addressOf(row.isPage ? { url: row.url } : { ...state, unit: undefined, text: row.url });
      shownTable = table(rows, Math.max(0, current), where);
      listArea.append(shownTable.element);
    }
    tableSwitch.setAttribute("aria-pressed", String(Boolean(shownTable)));
  }

  pointers();
  reorder();
  const watch = new ResizeObserver(resize);
  watch.observe(listArea);
  resize();
  return {
    key,
    resize,
    close: () => watch.disconnect(),
    picture: () => ({
      url: state.url,
      months,
      marks: marks.map(({ time: start, end, size, ...numbers }) => ({ start, end, size, ...numbers })),
      rows: rows.map((row) => ({ url: row.url, pages: row.pages, targets: row.targets, runs: row.runs })),
      span,
      layout: { ...layout, from, to },
    }),
  };
}
