// Calls to the server.

/** @import { Answers, Path } from "./answers.js" */

// Answers of one epoch: those of an earlier one are forgotten when an answer of a later one comes.
/** @type {Map<string, Promise<any>>} */
const answers = new Map();
/** The most answers that are kept. */
const KEPT = 60;
let epoch = 0;
// Once there were answers of two epochs, what the browser keeps of a server may be of the earlier one.
let isMixed = false;
/** @type {(epoch: number) => void} */
let tellEpoch = () => undefined;

/** The reason why a call failed: the status of the answer (0: no answer) and the server's sentence. */
export class Refused extends Error {
  /**
   * @param {number} status
   * @param {string} message
   */
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/**
 * The sentence of a call that failed; and its status, if the server has answered.
 * @param {unknown} error
 * @returns {{ status: number | undefined, message: string }}
 */
export const failureOf = (error) => ({
  status: error instanceof Refused ? error.status : undefined,
  message: error instanceof Error ? error.message : String(error),
});

/** Where this server is: at a host, or below a path of one. All calls go there, and no address begins with a slash. */
export const home = new URL("../../", import.meta.url).href;

/**
 * The answer to a path below v1; the same path is asked once.
 * @template T
 * @param {Path<T>} path
 * @returns {Promise<T>}
 */
export function call(path) {
  const known = answers.get(path);
  if (known) return known;
  const asked = ask(path);
  answers.set(path, asked);
  asked.catch(() => answers.delete(path));
  for (const first of answers.keys()) {
    if (answers.size <= KEPT) break;
    answers.delete(first);
  }
  return asked;
}

/**
 * Calls `listener` with the number of a later epoch when an answer has one.
 * @param {(epoch: number) => void} listener
 */
export function whenEpochChanges(listener) {
  tellEpoch = listener;
}

/** Asks whether the store has a later epoch. */
export const lookForEpoch = () => ask("v1/epochs").catch(() => undefined);

/** @param {number | undefined} answered */
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
/** @param {string} token */
export const keepToken = (token) => sessionStorage.setItem(TOKEN, token);

/** @param {string} path */
async function ask(path) {
  let response;
  /** @type {Record<string, string>} */
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

/**
 * A path with parameters; those without a value are left out.
 * @template {keyof Answers} N
 * @param {N} name
 * @param {Record<string, string | number | boolean | undefined>} parameters
 * @returns {Path<Answers[N]>}
 */
export function path(name, parameters) {
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== "");
  return `${name}?${given.map(([key, value]) => `${key}=${encodeURIComponent(value ?? "")}`).join("&")}`;
}
