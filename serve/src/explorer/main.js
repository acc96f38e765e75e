// The page: which view is open, what its address says, keys, and what is shown when something is not there.
//
// Every state is an address: `?v=barcode&url=...` and what the view keeps there. A view is a module that exports
// `open(context)`; `page/state.d.ts` says what the context has, and what `open` returns.

import { askFor } from "./ahead.js";
import { call, failureOf, lookForEpoch, Refused, whenEpochChanges } from "./data/call.js";
import { forget, go, replaceSoon, stateOf } from "./page/address.js";
import { failed } from "./page/failed.js";
import { startSearch } from "./page/field.js";
import { fillStrip, showKeys, stateIn } from "./page/strip.js";
import { restoreTheme, turnTheme, watchPaper } from "./page/theme.js";
import { FIRST, isOffered, VIEWS, viewOf } from "./page/views.js";
import { byId, el, isIn } from "./parts/dom.js";
import { notice } from "./parts/head.js";
import { bare } from "./text/names.js";

/** @import { Context, Opened, State } from "./page/state.js" */
/** @import { Known } from "./page/views.js" */

const root = byId("view");
const live = byId("live");
const busy = byId("busy");
const field = /** @type {HTMLInputElement} */ (byId("q"));

/** How often the page asks whether the store has a later epoch, in milliseconds. */
const LOOK = 60_000;
/** Milliseconds that an answer may take until the line in the header runs. */
const SOON = 150;

/**
 * What is open: its state and its view, how many views were opened, how many answers are awaited, and the epochs of the
 * answers that the view was made of. `later` is the line that says that the store has a later epoch.
 * @type {{ state: State, view: Opened | undefined, opened: number, running: number, epochs: Set<number>, later:
 *   HTMLElement | undefined }}
 */
const page = { state: {}, view: undefined, opened: 0, running: 0, epochs: new Set(), later: undefined };

// What tests and measurements look at; `first` is the time of the first picture, in milliseconds.
/**
 * @type {{ ready: boolean, frames: number, first: number | undefined, view: string | undefined, picture: () => unknown
 *   }}
 */
const shown = { ready: false, frames: 0, first: undefined, view: undefined, picture: () => page.view?.picture?.() };
Object.assign(window, { webstrata: shown });

/**
 * Changes the address in place, a moment after the last change.
 * @param {State} changes
 */
function set(changes) {
  const given = Object.entries({ ...page.state, ...changes }).filter(
    ([, value]) => value !== undefined && value !== "",
  );
  page.state = Object.fromEntries(given);
  replaceSoon(page.state);
  if ("list" in changes) fillStrip(viewOf(page.state), page.state);
}

/**
 * Asks the server; a line runs below the header when the answer takes its time.
 * @type {Context["call"]}
 */
async function asked(where) {
  page.running += 1;
  const timer = setTimeout(() => {
    busy.hidden = false;
  }, SOON);
  try {
    const answer = await call(where);
    const epoch = /** @type {{ epoch?: number }} */ (answer).epoch;
    if (epoch) page.epochs.add(epoch);
    return answer;
  } finally {
    clearTimeout(timer);
    page.running -= 1;
    if (page.running === 0) busy.hidden = true;
  }
}

/**
 * Says that the store has a later epoch than the open view.
 * @param {number} epoch
 */
function epochCame(epoch) {
  page.later?.remove();
  if (page.epochs.has(epoch)) return;
  const again = el("button", { type: "button", text: "Show it", onclick: () => show(page.state) });
  page.later = notice(`Epoch ${epoch} is here. This picture shows epoch ${Math.max(...page.epochs)}. `, again);
  root.before(page.later);
}

/**
 * The header and the title of a view.
 * @type {(view: Known, state: State) => void}
 */
function nameView(view, state) {
  fillStrip(view, state);
  if (document.activeElement !== field) field.value = state.url ? bare(state.url) : "";
  const subject = state.url && !view.isOfStore ? `${bare(state.url).slice(0, 80)} – ` : "";
  document.title = view === FIRST ? "Webstrata" : `${subject}${view.word} – Webstrata`;
}

/**
 * What a view is given.
 * @type {(view: Known, own: number) => Context}
 */
const contextOf = (view, own) => ({
  root,
  state: page.state,
  go,
  set,
  call: asked,
  say: (text) => {
    live.textContent = text;
  },
  drawn: () => {
    shown.ready = true;
    shown.view = view.id;
    shown.frames += 1;
    shown.first ??= performance.now();
  },
  isOpen: () => own === page.opened,
});

/**
 * Opens the view of a state; `isAgain` where the answers of a first attempt were of different epochs.
 * @param {State} wanted
 */
async function show(wanted, isAgain = false) {
  forget();
  page.state = wanted;
  page.opened += 1;
  const view = viewOf(wanted);
  nameView(view, wanted);
  shown.ready = false;
  page.epochs = new Set();
  page.later?.remove();
  const context = contextOf(view, page.opened);
  askFor(wanted);
  try {
    await open(view, context, isAgain);
  } catch (error) {
    if (context.isOpen()) fail(error);
  }
}

/** @type {(view: Known, context: Context, isAgain: boolean) => Promise<void>} */
async function open(view, context, isAgain) {
  const module = await view.load().catch(() => {
    throw new Refused(0, "The server does not answer.");
  });
  if (!context.isOpen()) return;
  const next = await module.open(context);
  if (!context.isOpen()) {
    next?.close?.();
    return;
  }
  page.view?.close?.();
  page.view = next;
  if (page.epochs.size > 1 && !isAgain) show(page.state, true);
}

/**
 * Shows why there is no picture.
 * @param {unknown} error
 */
function fail(error) {
  page.view?.close?.();
  page.view = undefined;
  root.replaceChildren(failed(error, { state: page.state, again: () => show(page.state) }));
  live.textContent = failureOf(error).message;
  shown.ready = true;
  shown.view = "failed";
}

/** @param {KeyboardEvent} event */
function pressed(event) {
  const isTyping = isIn(event, "input, textarea, select, dialog");
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  const view = VIEWS[Number(event.key) - 1];
  if (event.key === "/") field.focus();
  else if (event.key === "?") showKeys();
  else if (event.key === "t") theme();
  else if (view && isOffered(view, page.state)) go(stateIn(view, page.state));
  else if (!page.view?.key?.(event)) return;
  event.preventDefault();
}

const resize = () => page.view?.resize?.();

function theme() {
  turnTheme();
  resize();
}

function start() {
  restoreTheme();
  byId("theme").addEventListener("click", theme);
  document.querySelector(".mark")?.addEventListener("click", (event) => {
    event.preventDefault();
    go({});
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", resize);
  addEventListener("popstate", () => show(stateOf(location.search)));
  addEventListener("resize", resize);
  addEventListener("keydown", pressed);
  watchPaper(resize, () => page.view?.print?.());
  whenEpochChanges(epochCame);
  const look = () => document.visibilityState === "visible" && lookForEpoch();
  setInterval(look, LOOK);
  document.addEventListener("visibilitychange", look);
  startSearch(field, (wanted) =>
    go({ v: VIEWS.some((view) => view.id === page.state.v && !view.isOfStore) ? page.state.v : undefined, ...wanted }),
  );
  show(stateOf(location.search));
}

start();
