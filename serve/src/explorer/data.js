// Calls to the server, and what their columns mean.

import { showsOf, tells } from "./captures.js";
import { digits } from "./time.js";

// Answers of one epoch: those of an earlier one are forgotten when an answer of a later one comes.
const answers = new Map();
let epoch = 0;
// Once there were answers of two epochs, what the browser keeps of a server may be of the earlier one.
let isMixed = false;
let tellEpoch = () => {};

/** The reason why a call failed: the status of the answer (0: no answer) and the server's sentence. */
export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** Where this server is: at a host, or below a path of one. All calls go there, and no address begins with a slash. */
export const home = new URL("../", import.meta.url).href;

/** The answer to a path below v1; the same path is asked once. */
export function call(path) {
  const known = answers.get(path);
  if (known) return known;
  const asked = ask(path);
  answers.set(path, asked);
  asked.catch(() => answers.delete(path));
  if (answers.size > 60) answers.delete(answers.keys().next().value);
  return asked;
}

/** Calls `listener` with the number of a later epoch when an answer has one. */
export const whenEpochChanges = (listener) => (tellEpoch = listener);

/** Asks whether the store has a later epoch. */
export const lookForEpoch = () => ask("v1/epochs").catch(() => undefined);

function seen(answered) {
  if (!answered || answered === epoch) return;
  isMixed = epoch > 0;
  if (isMixed) answers.clear();
  if (answered < epoch) return;
  epoch = answered;
  if (!isMixed) return;
  tellEpoch(answered);
}

/** The token of the caller, which the browser forgets with the tab. */
const TOKEN = "webstrata.token";
export const keepToken = (token) => sessionStorage.setItem(TOKEN, token);

async function ask(path) {
  let response;
  const headers = { accept: "application/json" };
  const token = sessionStorage.getItem(TOKEN);
  if (token) headers.authorization = `Bearer ${token}`;
  try {
    response = await fetch(home + path, { headers, cache: isMixed ? "no-cache" : "default" });
  } catch {
    throw new Refused(0, "The server does not answer.");
  }
  const body = await response.json().catch(() => undefined);
  if (!response.ok) throw new Refused(response.status, body?.error?.message || `HTTP status ${response.status}`);
  if (!body) throw new Refused(0, "The answer is not JSON.");
  seen(body.epoch);
  return body;
}

/** A path with parameters; those without a value are left out. */
export function path(name, parameters) {
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== "");
  return `${name}?${given.map(([key, value]) => `${key}=${encodeURIComponent(value)}`).join("&")}`;
}

/** Where a capture of a page can be seen: in the archive that replays what the store was built from. */
export const mementoOf = ({ replay, url }, capture) => `${replay}${digits(capture.time)}/${url}`;

/** The TimeMap and the CDX lines of a URL. */
export const archiveOf = (url) => [
  ["TimeMap", `${home}timemap/link/${url}`],
  ["CDX", home + path("cdx", { url })],
];

/** The largest `limit` of a barcode. */
export const BARCODE_MAX = 100_000;

/** `limit`: rows in the answer; the server has a smaller one for pictures. */
export const barcodePath = (url, direction, limit) => path("v1/barcode", { url, direction, limit });

/**
 * A barcode with times instead of columns.
 *
 * `captures`: {time, status, shows}, see captures.js. `rows`: {url, runs}, each run {first, last, gone, began}: seconds
 * of the first and the last capture with the link; of the first that shows the page without it after that (0: none);
 * and how it began: "found" in the first capture of its page that tells, so that nobody knows when the link came, "new"
 * or "returned". Out-links also have `from` and `to`, the places of the first and the last capture.
 */
export function barcode(answer) {
  let time = 0;
  const captures = answer.captures.map((difference) => ({
    time: (time += difference),
    status: 200,
  }));
  for (const [status, places] of Object.entries(answer.statuses)) {
    for (const place of places) captures[place].status = Number(status);
  }
  const unknown = new Set(answer.unknown);
  captures.forEach((capture, at) => (capture.shows = showsOf(capture.status, unknown.has(at))));
  // For each capture the next one from there on that tells which links the page has.
  const next = new Int32Array(captures.length + 1).fill(-1);
  for (let at = captures.length - 1; at >= 0; at -= 1) {
    next[at] = tells(captures[at]) ? at : next[at + 1];
  }
  const firstKnown = next[0];
  const began = (isFound, run) => (isFound ? "found" : run ? "returned" : "new");
  let at = 0;
  const outward = answer.direction === "out";
  const rows = answer.links.map((url, row) => {
    const runs = [];
    let end = 0;
    for (let run = 0; run < answer.counts[row]; run += 1) {
      if (outward) {
        const from = end + answer.runs[at];
        const to = from + answer.runs[at + 1];
        at += 2;
        end = to + 1;
        const gone = next[to + 1];
        runs.push({
          from,
          to,
          first: captures[from].time,
          last: captures[to].time,
          gone: gone < 0 ? 0 : captures[gone].time,
          goneAt: gone,
          began: began(from === firstKnown, run),
        });
      } else {
        const [first, last, gone] = answer.runs.slice(at, at + 3);
        at += 3;
        runs.push({ first, last, gone, began: began(first === answer.found[row], run) });
      }
    }
    return { url, runs };
  });
  const { url, uid, epoch: answered, rest, replay } = answer;
  return { url, uid, epoch: answered, outward, captures, rows, rest, replay };
}
