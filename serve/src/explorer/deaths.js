// Dead pages of the store, of a host or of a domain: how many died and returned by year, with which status, and who
// still links to them. The server counts and chooses; a year, a status and an order are asked for.

import { deathsPath, orderOf, wholeOf } from "./asks.js";
import { link } from "./address.js";
import { home, mementoOf } from "./data.js";
import { act, chooser, colours, count, dialog, el, headOf, many, outLinks } from "./dom.js";
import { bare, safe } from "./names.js";
import { elementOf, fileName, framed, saveLines, savePng, saveSvg, Svg } from "./save.js";
import { day } from "./time.js";
import { sum, text, yearFlows, YEARS_LEFT } from "./years.js";

const HEIGHT = 170;
/** The most pixels of a year. */
const YEAR_MAX = 120;
/** Dead pages of one answer for a file, and the most pages that link that the server names of each. */
const FILE_ROWS = 900;
const LINKERS = 100;
const KEY =
  "Below the line, pages that a failure (4xx, but not 429) ended after they had been there; above it, pages that " +
  "were there again. A page is linked by pages that link to it at their latest capture.";

const time = (text) => Date.parse(text) / 1000;
const date = (text) => (text ? day(time(text)) : "");

export async function open({ root, state, set, go, call, say, drawn, isOpen }) {
  const whole = wholeOf(state);
  const fileWord = `dead-${whole.name || "pages"}`;
  const title = `Dead pages of ${whole.match === "store" ? "the store" : safe(whole.name)}`;
  let answer = await call(deathsPath(state));
  if (!isOpen()) return undefined;
  const years = answer.periods.map((start) => Number(start.slice(0, 4)));
  const [died, returned] = [answer.died, answer.returned];
  let rows = answer.rows;
  let width = 0;
  let asks = 0;

  const pictureArea = el("div", {
    class: "drawn",
    role: "slider",
    tabindex: 0,
    "aria-label": "Year: left and right choose one, Escape all",
    "aria-valuemin": 0,
    "aria-valuemax": Math.max(0, years.length - 1),
    "aria-valuenow": 0,
    onclick: (event) => choose(yearAt(event.offsetX)),
    onpointermove: (event) => tell(years.indexOf(yearAt(event.offsetX))),
    onpointerleave: () => tell(years.indexOf(chosen())),
  });
  const readout = el("p", { class: "pointed" });
  const body = el("tbody");
  const foot = el("p", { class: "foot" });
  root.replaceChildren(
    el(
      "div",
      { class: "store deaths", tabindex: 0, role: "region", "aria-label": title },
      headOf(title, facts()),
      tools(),
      ...(years.length ? [pictureArea, readout, el("p", { class: "caption", text: KEY }), table(), foot] : [none()]),
    ),
  );
  fill();
  drawn();

  // ---- what is said ----

  function facts() {
    const gone = answer.gone[answer.gone.length - 1] || 0;
    return el(
      "p",
      {},
      el("b", { text: count(sum(died)) }),
      ` ${sum(died) === 1 ? "death" : "deaths"}, `,
      el("b", { text: count(sum(returned)) }),
      ` ${sum(returned) === 1 ? "return" : "returns"}, `,
      el("b", { text: count(gone) }),
      gone === 1 ? " page is gone at its latest capture" : " pages are gone at their latest captures",
    );
  }

  function none() {
    const of = whole.match === "store" ? "" : ` of ${safe(whole.name)}`;
    return el(
      "div",
      { class: "said" },
      el("h1", { text: "No page died" }),
      el("p", { text: `No page${of} was there in one capture and gone (404, 410 and the like) in a later one.` }),
    );
  }

  function tools() {
    const again = (changes) => go({ ...state, ...changes });
    const wholes = [["store", "the store"]];
    if (whole.name) wholes.push(["domain", "the domain"], ["host", "the host"]);
    const statuses = answer.statuses.map(({ status }) => [String(status), String(status)]);
    if (state.status && !statuses.some(([code]) => code === state.status)) statuses.push([state.status, state.status]);
    const orders = [
      ["last", "last"],
      ["first", "first"],
      ["most", "most linked"],
      ["key", "key"],
    ];
    return el(
      "div",
      { class: "tools" },
      chooser("Of", wholes, whole.match, (match) => again({ match, from: undefined, to: undefined })),
      chooser(
        "Show",
        [
          ["", "all"],
          ["1", "still gone"],
        ],
        state.still === "1" ? "1" : "",
        (still) => again({ still }),
      ),
      statuses.length > 1 || state.status
        ? chooser("Status", [["", "any"], ...statuses], state.status || "", (status) => again({ status }))
        : undefined,
      chooser("Sort", orders, orderOf(state), (order) => again({ order })),
      el(
        "div",
        { class: "right" },
        act("CSV", () => saveRows("csv")),
        act("JSON", () => saveRows("json")),
        act("SVG", () => saveSvg(alone(), fileName(fileWord, "svg"))),
        act("PNG", () => savePng(alone(), fileName(fileWord, "png"))),
        act("Data", showData),
      ),
    );
  }

  // ---- the years ----

  /** The year that is chosen, if it is one. */
  const chosen = () => (state.from && state.from === state.to ? Number(state.from) : undefined);

  const yearAt = (x) => {
    const at = Math.floor(((x - YEARS_LEFT) / (width - YEARS_LEFT)) * years.length);
    return years[Math.max(0, Math.min(years.length - 1, at))];
  };

  async function choose(year) {
    const next = year === chosen() ? undefined : year && String(year).padStart(4, "0");
    state = { ...state, from: next, to: next };
    set({ from: next, to: next });
    asks += 1;
    const own = asks;
    draw();
    const found = await call(deathsPath(state));
    if (!isOpen() || own !== asks) return;
    answer = found;
    rows = answer.rows;
    fill();
    tell(years.indexOf(chosen()));
    say(`${next || "all years"}: ${many(answer.rowsSelected, "death")}`);
    drawn();
  }

  function tell(at) {
    pictureArea.setAttribute("aria-valuenow", Math.max(0, at));
    const said = years[at] === undefined ? "all years" : String(years[at]);
    pictureArea.setAttribute("aria-valuetext", said);
    readout.textContent =
      years[at] === undefined
        ? "Choose a year to see who died in it."
        : `${years[at]}: ${count(died[at])} died, ${count(returned[at])} returned, ` +
          `${count(answer.gone[at])} gone at its end`;
  }

  function picture(context, wide, theme) {
    const [first, height] = [years[0], HEIGHT];
    const step = (wide - YEARS_LEFT) / years.length;
    const at = years.indexOf(chosen());
    if (at >= 0) {
      context.fillStyle = theme.soft;
      context.fillRect(YEARS_LEFT + at * step, 0, Math.max(2, step), height - 16);
    }
    const up = [{ values: returned, colour: "accent" }];
    yearFlows(context, theme, wide, { first, up, down: { values: died }, words: ["back", "died"], height });
  }

  function draw() {
    width = Math.min(pictureArea.clientWidth, YEARS_LEFT + YEAR_MAX * years.length);
    if (width < 10) return;
    const theme = colours();
    const svg = new Svg(width, HEIGHT, theme.paper);
    picture(svg, width, theme);
    pictureArea.replaceChildren(elementOf(svg));
  }

  /** The picture as it stands by itself, with the dead pages that are shown. */
  function alone() {
    const theme = colours();
    const shown = rows.slice(0, 40);
    const wide = 720;
    const draw = (svg) => {
      picture(svg, wide, theme);
      shown.forEach((row, at) => {
        const y = HEIGHT + 24 + at * 16;
        text(svg, theme, date(row.died), 0, y);
        text(svg, theme, String(row.status), 100, y);
        text(svg, theme, `${many(row.linking, "page")} ${row.linking === 1 ? "links" : "link"}`, 220, y, {
          align: "right",
        });
        text(svg, theme, bare(row.page).slice(0, 76), 236, y, { colour: theme.ink });
      });
    };
    const left = answer.rowsSelected - shown.length;
    const of = left > 0 ? `; the first ${shown.length} of ${count(answer.rowsSelected)} are listed` : "";
    const facts = `${state.from ? `${state.from}: ` : ""}${many(answer.rowsSelected, "death")}${of}`;
    return framed({ title, facts, key: KEY }, [wide, HEIGHT + 32 + shown.length * 16], theme, draw);
  }

  // ---- the pages ----

  function table() {
    const heads = [
      ["Died", ""],
      ["status", "n"],
      ["last seen", "middle"],
      ["returned", "middle"],
      ["Linked by", ""],
      ["Page", ""],
    ];
    const head = heads.map(([text, kind]) => el("th", { scope: "col", class: kind, text }));
    return el("table", { class: "dead" }, el("thead", {}, el("tr", {}, ...head)), body);
  }

  function fill() {
    body.replaceChildren(...rows.map(line));
    more();
  }

  /** A page of the host in question goes by its path. */
  function nameOf(url) {
    const name = bare(url);
    const host = `${whole.name}/`;
    return whole.match === "host" && name.startsWith(host) ? name.slice(host.length - 1) : name;
  }

  /** The day of a capture of a dead page, which opens it in the archive. */
  function seen(row, at) {
    const memento = mementoOf({ replay: answer.replay, url: row.page }, { time: time(at) });
    return outLinks([[date(at), memento]]);
  }

  function line(row) {
    const made = el("tr", {});
    const unknown = row.unknown ? `${row.linking ? ", " : ""}${count(row.unknown)} unknown` : "";
    const said = row.linking || !row.unknown ? `${many(row.linking, "page")}` : "";
    const linkers = act(said + unknown, () => toggle(made, row, linkers));
    linkers.setAttribute("aria-expanded", "false");
    const isLinked = row.linking + (row.unknown || 0) > 0;
    made.append(
      el("td", {}, seen(row, row.died)),
      el("td", { class: "n", text: String(row.status) }),
      el("td", { class: "middle" }, seen(row, row.seen)),
      el("td", { class: "middle" }, row.returned ? seen(row, row.returned) : ""),
      el("td", {}, isLinked ? linkers : "none"),
      el("td", { class: "name", title: safe(row.page) }, link({ v: "barcode", url: row.page }, nameOf(row.page))),
    );
    return made;
  }

  /** Shows who links to a page below its line, or no longer. */
  async function toggle(line, row, button) {
    if (line.nextSibling?.classList.contains("linkers")) {
      line.nextSibling.remove();
      button.setAttribute("aria-expanded", "false");
      return;
    }
    const where = deathsPath({ url: row.page }, { url: row.page, matchType: "exact", limit: 1, linkers: LINKERS });
    const found = await call(where);
    if (!isOpen() || line.nextSibling?.classList.contains("linkers")) return;
    const linkers = found.rows[0]?.linkers || [];
    const all = { v: "backlinks", url: row.page, match: "exact", event: "standing", internal: "1" };
    line.after(
      el(
        "tr",
        { class: "linkers" },
        el(
          "td",
          { colspan: 6 },
          el("ul", {}, ...linkers.map((url) => el("li", {}, link({ v: "barcode", url }, bare(url))))),
          link(all, linkers.length < row.linking ? `all ${count(row.linking)}, since when` : "since when"),
        ),
      ),
    );
    button.setAttribute("aria-expanded", "true");
    drawn();
  }

  /** How many of the deaths are shown, and the next ones. */
  function more() {
    const left = answer.resumeKey !== undefined;
    foot.replaceChildren(
      rows.length ? `${left ? `${count(rows.length)} of ` : ""}${many(answer.rowsSelected, "death")}` : "No death",
      answer.statuses.length > 1
        ? `: ${answer.statuses.map(({ status, died }) => `${count(died)} with status ${status}`).join(", ")}. `
        : ". ",
      left ? act("Show more", next) : "",
    );
  }

  async function next() {
    const own = asks;
    const found = await call(deathsPath(state, { resumeKey: answer.resumeKey }));
    if (!isOpen() || own !== asks) return;
    answer = { ...answer, resumeKey: found.resumeKey };
    rows = [...rows, ...found.rows];
    body.append(...found.rows.map(line));
    more();
    drawn();
  }

  /** Saves all deaths that are chosen, with the pages that link; in CSV a line for each of these. */
  async function saveRows(kind) {
    const all = [];
    let resumeKey;
    do {
      const found = await call(deathsPath(state, { limit: FILE_ROWS, linkers: LINKERS, resumeKey }));
      all.push(...found.rows);
      resumeKey = found.resumeKey;
      foot.textContent = `${count(all.length)} of ${count(found.rowsSelected)} are read.`;
    } while (resumeKey && isOpen());
    if (!isOpen()) return;
    const columns = ["page", "died", "status", "seen", "returned", "linking", "unknown"];
    const filled = all.map((row) => ({ ...row, unknown: row.unknown || 0 }));
    const each = (row) => (row.linkers.length ? row.linkers : [""]).map((linker) => ({ ...row, linker }));
    if (kind === "json") saveLines([...columns, "linkers"], filled, kind, fileWord);
    else saveLines([...columns, "linker"], filled.flatMap(each), kind, fileWord);
    more();
  }

  function showData() {
    const part = whole.match === "store" ? "" : ` --${whole.match} ${whole.name}`;
    const when = state.from ? ` --from ${state.from} --to ${state.to}` : "";
    const only = (state.still === "1" ? " --still" : "") + (state.status ? ` --status ${state.status}` : "");
    const order = ` --order ${orderOf(state)}`;
    dialog(
      "The data of this picture",
      el("p", { text: "On the command line, the rows with the pages that link, and the chart:" }),
      el("pre", {
        text:
          `webstrata deaths STORE${part}${when}${only}${order} --limit 0 --linkers ${LINKERS}\n` +
          `webstrata deaths STORE${part} --by year`,
      }),
      el("p", { text: "Over HTTP:" }),
      el("pre", { text: `curl '${home}${deathsPath(state, { linkers: LINKERS })}'` }),
    );
  }

  function key(event) {
    const isArrow = ["ArrowLeft", "ArrowRight"].includes(event.key) && document.activeElement === pictureArea;
    if (event.key === "Escape" && chosen()) choose(undefined);
    else if (isArrow && years.length) {
      const at = years.indexOf(chosen());
      const step = event.key === "ArrowLeft" ? -1 : 1;
      const from = at < 0 ? (step > 0 ? -1 : years.length) : at;
      const to = Math.max(0, Math.min(years.length - 1, from + step));
      if (to !== at) choose(years[to]);
    } else return false;
    return true;
  }

  const watch = new ResizeObserver(draw);
  if (years.length) {
    tell(years.indexOf(chosen()));
    watch.observe(pictureArea);
  }
  return {
    key,
    resize: draw,
    close: () => watch.disconnect(),
    print: () => [elementOf(alone()), root.querySelector("table.dead")?.cloneNode(true)],
    picture: () => ({ answer, rows, years, chosen: chosen() }),
  };
}
