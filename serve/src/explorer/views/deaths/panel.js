// What stands around the years of dead pages: the head, the toolbar, and what is saved.

import { deathsPath, orderOf } from "../../page/asks.js";
import { el } from "../../parts/dom.js";
import { said } from "../../parts/head.js";
import { pictureActs, saveLines } from "../../parts/save.js";
import { curl, dataAct } from "../../parts/source.js";
import { act, chooser, same, toolbar } from "../../parts/tools.js";
import { nameFor } from "../../text/lines.js";
import { safe } from "../../text/names.js";
import { count, sum } from "../../text/numbers.js";
import { fillFoot, LINKERS } from "./pages.js";
import { alone } from "./picture.js";

/** @import { DeadPage, Deaths } from "../../data/answers.js" */
/** @import { State } from "../../page/state.js" */
/** @import { Scene, View } from "./state.js" */

/** Dead pages of one answer for a file. */
const FILE_ROWS = 900;
const COLUMNS = ["page", "died", "status", "seen", "returned", "linking", "unknown"];

/** @type {(view: Scene) => string} */
export const titleOf = ({ whole }) => `Dead pages of ${whole.match === "store" ? "the store" : safe(whole.name || "")}`;

/** @type {(view: Scene) => string} */
const fileOf = ({ whole }) => `dead-${whole.name || "pages"}`;

/**
 * How many died, returned, and are gone.
 * @type {(view: Scene) => HTMLElement}
 */
export function facts({ answer, died, returned }) {
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

/** @type {(view: Scene) => HTMLElement} */
export function none({ whole }) {
  const of = whole.match === "store" ? "" : ` of ${safe(whole.name || "")}`;
  const text = `No page${of} was there in one capture and gone (404, 410 and the like) in a later one.`;
  return said("No page died", el("p", { text }));
}

/**
 * The statuses to choose from; none where all deaths have the same.
 * @type {(view: View, again: (changes: State) => void) => HTMLElement | undefined}
 */
function statusChooser({ answer, state }, again) {
  const codes = answer.statuses.map(({ status }) => String(status));
  if (codes.length < 2 && !state.status) return undefined;
  if (state.status && !codes.includes(state.status)) codes.push(state.status);
  return chooser("Status", [["", "any"], ...same(...codes)], state.status || "", (status) => again({ status }));
}

/** @type {(view: View) => HTMLElement} */
export function tools(view) {
  const { context, state, whole } = view;
  const again = (/** @type {State} */ changes) => context.go({ ...state, ...changes });
  /** @type {[string, string][]} */
  const wholes = [["store", "the store"], ...namedWholes(whole.name)];
  /** @type {[string, string][]} */
  const stills = [
    ["", "all"],
    ["1", "still gone"],
  ];
  /** @type {[string, string][]} */
  const orders = [
    ["last", "last"],
    ["first", "first"],
    ["most", "most linked"],
    ["key", "key"],
  ];
  return toolbar(
    [
      chooser("Of", wholes, whole.match, (match) => again({ match, from: undefined, to: undefined })),
      chooser("Show", stills, state.still === "1" ? "1" : "", (still) => again({ still })),
      statusChooser(view, again),
      chooser("Sort", orders, orderOf(state), (order) => again({ order })),
    ],
    [
      act("CSV", () => saveRows(view, "csv")),
      act("JSON", () => saveRows(view, "json")),
      ...pictureActs(() => alone(view, titleOf(view)), nameFor(fileOf(view))),
      dataAct(() => sourceOf(view)),
    ],
  );
}

/** @type {(name: string | undefined) => [string, string][]} */
const namedWholes = (name) =>
  name
    ? [
        ["domain", "the domain"],
        ["host", "the host"],
      ]
    : [];

/**
 * All deaths that are chosen, each with the pages that link.
 * @type {(view: View) => Promise<DeadPage[]>}
 */
async function readAll({ context, state, foot }) {
  /** @type {DeadPage[]} */
  const all = [];
  /** @type {string | undefined} */
  let resumeKey;
  do {
    /** @type {Deaths} */
    const found = await context.call(deathsPath(state, { limit: FILE_ROWS, linkers: LINKERS, resume_key: resumeKey }));
    all.push(...found.rows);
    resumeKey = found.resume_key;
    foot.textContent = `${count(all.length)} of ${count(found.rows_selected)} are read.`;
  } while (resumeKey && context.isOpen());
  return all;
}

/**
 * Saves all deaths that are chosen, with the pages that link; in CSV a line for each of these.
 * @type {(view: View, kind: "csv" | "json") => Promise<void>}
 */
async function saveRows(view, kind) {
  const all = await readAll(view);
  if (!view.context.isOpen()) return;
  const filled = all.map((row) => ({ ...row, unknown: row.unknown || 0 }));
  const each = filled.flatMap((row) => {
    const linkers = row.linkers?.length ? row.linkers : [""];
    return linkers.map((linker) => ({ ...row, linker }));
  });
  if (kind === "json") saveLines([...COLUMNS, "linkers"], filled, kind, fileOf(view));
  else saveLines([...COLUMNS, "linker"], each, kind, fileOf(view));
  fillFoot(view);
}

/** @type {(view: View) => [string, ...string[]][]} */
function sourceOf({ state, whole }) {
  const part = whole.match === "store" ? "" : ` --${whole.match} ${whole.name}`;
  const when = state.from ? ` --from ${state.from} --to ${state.to}` : "";
  const only = (state.still === "1" ? " --still" : "") + (state.status ? ` --status ${state.status}` : "");
  const order = ` --order ${orderOf(state)}`;
  const rows = `webstrata deaths STORE${part}${when}${only}${order} --limit 0 --linkers ${LINKERS}`;
  return [
    [
      "On the command line, the rows with the pages that link, and the chart:",
      `${rows}\nwebstrata deaths STORE${part} --period year`,
    ],
    ["Over HTTP:", curl(deathsPath(state, { linkers: LINKERS }))],
  ];
}
