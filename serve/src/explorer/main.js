// The page: which view is open, what its address says, keys, theme, and what is shown when something is not there.
//
// Every state is an address: `?v=barcode&url=...` and what the view keeps there. A view is a module that exports
// `open(context)`, which returns an object with any of
//   update(state)   the address changed while the view stays
//   key(event)      a key was pressed outside of a field; true if the view took it
//   resize()        the window or the theme changed
//   close()         the view goes
//   print()         elements for paper in the place of the page
//   picture()       what is drawn, for tests
// The context has `root` (the element to fill), `state` (the parameters of the address), `set(changes)` (changes the
// address in place), `go(state)` (opens another state), `call(path)` (asks the server; the line in the header runs
// meanwhile), `say(text)` (read out by screen readers), and `drawn()` (to be called when a picture is there).

import { forget, go, link, replaceSoon, stateOf } from "./address.js";
import { askFor } from "./ahead.js";
import { el, dialog, isDark, notice } from "./dom.js";
import { call, keepToken, lookForEpoch, Refused, path, whenEpochChanges } from "./data.js";
import { bare, safe } from "./names.js";
import { startSearch } from "./search.js";
import { isName } from "./targets.js";
import { FIRST, VIEWS, viewOf } from "./views.js";

const root = document.getElementById("view");
const live = document.getElementById("live");
const busy = document.getElementById("busy");
const field = document.getElementById("q");

let state = {};
let open;
let opened = 0;
let running = 0;
// Epochs of the answers that the open view was made of; and the line that says that a later one is there.
let epochs = new Set();
let later;

/** How often the page asks whether the store has a later epoch, in milliseconds. */
const LOOK = 60_000;

// What tests and measurements look at; `first` is the time of the first picture, in milliseconds.
window.webstrata = { ready: false, frames: 0, first: undefined, view: undefined, picture: () => open?.picture?.() };

/** The state in which a view opens from this one; the view of the store keeps the URL for the others. */
const stateIn = (view) => (isOffered(view) ? { v: view.id, url: state.url } : {});

/** Whether a view can be opened from this state. */
const isOffered = (view) => Boolean(state.url || view.isOfStore || view.isOfEither);

/** Changes the address in place, a moment after the last change. */
function set(changes) {
  state = { ...state, ...changes };
  for (const [name, value] of Object.entries(state)) if (value === undefined || value === "") delete state[name];
  replaceSoon(state);
  if ("list" in changes) nav(viewOf(state));
}

/** Asks the server; a line runs below the header when the answer takes its time. */
async function asked(where) {
  running += 1;
  const timer = setTimeout(() => (busy.hidden = false), 150);
  try {
    const answer = await call(where);
    if (answer.epoch) epochs.add(answer.epoch);
    return answer;
  } finally {
    clearTimeout(timer);
    running -= 1;
    if (running === 0) busy.hidden = true;
  }
}

/** Says that the store has a later epoch than the open view. */
function epochCame(epoch) {
  later?.remove();
  if (epochs.has(epoch)) return;
  const again = el("button", { type: "button", text: "Show it", onclick: () => show(state) });
  later = notice(`Epoch ${epoch} is here. This picture shows epoch ${Math.max(...epochs)}. `, again);
  root.before(later);
}

/** Opens the view of a state; `isAgain` where the answers of a first attempt were of different epochs. */
async function show(wanted, isAgain = false) {
  forget();
  state = wanted;
  opened += 1;
  const own = opened;
  const view = viewOf(state);
  nav(view);
  if (document.activeElement !== field) field.value = state.url ? bare(state.url) : "";
  const subject = state.url && !view.isOfStore ? `${bare(state.url).slice(0, 80)} – ` : "";
  document.title = view === FIRST ? "Webstrata" : `${subject}${view.word} – Webstrata`;
  window.webstrata.ready = false;
  epochs = new Set();
  later?.remove();
  const context = {
    root,
    state,
    go,
    set,
    call: asked,
    say: (text) => (live.textContent = text),
    drawn: () => {
      window.webstrata.ready = true;
      window.webstrata.view = view.id;
      window.webstrata.frames += 1;
      window.webstrata.first ??= performance.now();
    },
    // Whether the view is still wanted when an answer comes.
    isOpen: () => own === opened,
  };
  askFor(state);
  try {
    const module = await view.load().catch(() => {
      throw new Refused(0, "The server does not answer.");
    });
    if (!context.isOpen()) return;
    const next = await module.open(context);
    if (!context.isOpen()) {
      next?.close?.();
      return;
    }
    open?.close?.();
    open = next;
    if (epochs.size > 1 && !isAgain) show(state, true);
  } catch (error) {
    if (context.isOpen()) failed(error);
  }
}

/** What is shown instead of a picture. */
function failed(error) {
  open?.close?.();
  open = undefined;
  const parts = [];
  const both = /both (\S+) and (\S+) are in the store/.exec(error.message)?.slice(1);
  const isUrl = !/\s/.test(state.url || "");
  if (error instanceof Refused && (error.status === 404 || (error.status === 400 && !isUrl))) {
    const near = /(\S+) is not in the store, but (\S+) is/.exec(error.message)?.[2];
    parts.push(el("h1", { text: isUrl ? "Not in the store" : "Pages with these words in their address" }));
    if (isUrl) parts.push(el("p", { text: `${safe(error.message)}.` }));
    if (near) parts.push(el("p", {}, link({ ...state, url: near }, bare(near))));
    if (isUrl && isName(state.url)) {
      parts.push(el("p", {}, link({ v: "backlinks", url: state.url }, `Who links to all of ${safe(state.url)}`)));
    }
    parts.push(el("ul", { class: "list", id: "like" }));
    offer();
  } else if (error.status === 401) {
    parts.push(el("h1", { text: "A token is needed" }), tokenForm(error.message));
  } else if (both) {
    parts.push(el("h1", { text: "Two addresses" }), el("p", { text: "The store has both. Choose one of them." }));
    parts.push(el("ul", { class: "list" }, ...both.map((url) => el("li", {}, link({ ...state, url }, safe(url))))));
  } else {
    console.warn(error);
    parts.push(
      el("h1", { text: "The answer did not come" }),
      el("p", { text: safe(error.message) }),
      el("button", { type: "button", text: "Ask again", onclick: () => show(state) }),
    );
  }
  root.replaceChildren(el("div", { class: "said" }, ...parts));
  live.textContent = error.message;
  window.webstrata.ready = true;
  window.webstrata.view = "failed";
}

/** Asks for the token that the server wants from its callers. */
function tokenForm(message) {
  const given = el("input", { type: "password", class: "filter", "aria-label": "Token", autocomplete: "off" });
  const submit = (event) => {
    event.preventDefault();
    keepToken(given.value.trim());
    show(state);
  };
  return el("form", { onsubmit: submit }, el("p", { text: safe(message) }), given, el("button", { text: "Use it" }));
}

/** Pages that are like the one that is not there. */
async function offer() {
  const text = state.url.replace(/^\w+:\/\//, "");
  const fill = (lines) => document.getElementById("like")?.replaceChildren(...lines);
  const words = text.toLowerCase().split(/\s+/);
  const isLike = (page) => words.length < 2 || words.every((word) => page.url.toLowerCase().includes(word));
  for (const q of words.length > 1 ? words : [text, text.split("/")[0]]) {
    const found = await call(path("v1/suggest", { q, limit: words.length > 1 ? 100 : 6 })).catch(() => undefined);
    const pages = found?.pages.filter(isLike) || [];
    if (pages.length) {
      const lines = pages.map((page) => el("li", {}, link({ v: state.v, url: page.url }, bare(page.url))));
      fill(lines.slice(0, 20));
      return;
    }
  }
  fill([el("li", { text: "Nothing in the store has that in its address." })]);
}

function nav(view) {
  const words = VIEWS.map((own) => {
    // Without a URL there is nothing that these views could show.
    if (!isOffered(own)) {
      return el("a", { role: "link", "aria-disabled": "true", title: "Choose a URL first", text: own.word });
    }
    const made = link(stateIn(own), own.word);
    if (own === view) made.setAttribute("aria-current", "page");
    return made;
  });
  const strip = document.getElementById("views");
  strip.replaceChildren(...words);
  // On a phone the words are a strip, which shows the current one.
  const current = words[VIEWS.indexOf(view)];
  if (current) strip.scrollLeft = current.offsetLeft + current.offsetWidth - strip.offsetLeft - strip.clientWidth;
}

function keys() {
  const list = [
    ["/", "search"],
    [`1 – ${VIEWS.length}`, "views"],
    ["↑ ↓ PgUp PgDn Home End", "rows; PgUp and PgDn move a date by a year"],
    ["Enter", "go there"],
    ["+ − 0", "zoom"],
    ["← →", "move in time, or to the next change"],
    ["a b", "which date moves"],
    ["k", "keep a target of backlinks, or no longer"],
    ["Space", "play"],
    ["t", "dark or light"],
    ["?", "this list"],
  ];
  dialog(
    "Keys",
    el("dl", {}, ...list.flatMap(([key, what]) => [el("dt", {}, el("kbd", { text: key })), el("dd", { text: what })])),
  );
}

const html = document.documentElement;

function theme() {
  html.dataset.theme = isDark() ? "light" : "dark";
  try {
    localStorage.setItem("theme", html.dataset.theme);
  } catch {
    /* A browser may keep nothing: the choice holds until the page is loaded again. */
  }
  open?.resize?.();
}

function start() {
  try {
    const kept = localStorage.getItem("theme");
    if (kept === "dark" || kept === "light") html.dataset.theme = kept;
  } catch {
    /* As above. */
  }
  document.getElementById("theme").addEventListener("click", theme);
  document.querySelector(".mark").addEventListener("click", (event) => {
    event.preventDefault();
    go({});
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => open?.resize?.());
  addEventListener("popstate", () => show(stateOf(location.search)));
  addEventListener("resize", () => open?.resize?.());
  addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input, textarea, select, dialog");
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    const view = VIEWS[Number(event.key) - 1];
    if (event.key === "/") field.focus();
    else if (event.key === "?") keys();
    else if (event.key === "t") theme();
    else if (view && isOffered(view)) go(stateIn(view));
    else if (!open?.key?.(event)) return;
    event.preventDefault();
  });
  // Paper is white, whatever the theme.
  let onScreen;
  addEventListener("beforeprint", () => {
    onScreen = html.dataset.theme;
    html.dataset.theme = "light";
    html.dataset.printed = "1";
    open?.resize?.();
    const sheet = open?.print?.();
    if (sheet) document.body.append(el("div", { id: "sheet" }, ...sheet));
  });
  addEventListener("afterprint", () => {
    document.getElementById("sheet")?.remove();
    delete html.dataset.printed;
    if (onScreen) html.dataset.theme = onScreen;
    else delete html.dataset.theme;
    open?.resize?.();
  });
  whenEpochChanges(epochCame);
  const look = () => document.visibilityState === "visible" && lookForEpoch();
  setInterval(look, LOOK);
  document.addEventListener("visibilitychange", look);
  startSearch(field, (wanted) =>
    go({ v: VIEWS.some((view) => view.id === state.v && !view.isOfStore) ? state.v : undefined, ...wanted }),
  );
  show(stateOf(location.search));
}

start();
