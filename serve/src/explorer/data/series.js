// How many link to each of several targets, month by month, as lines of a file.

import { count } from "../text/numbers.js";
import { iso } from "../text/time.js";
import { Refused } from "./call.js";
import { monthsOf } from "./months.js";
import { question } from "./referrers.js";
import { targetOf } from "./targets.js";

/** @import { Line } from "../text/lines.js" */
/** @import { Call } from "./answers.js" */
/** @import { Choice } from "./referrers.js" */

/** @type {("standing" | "unknown" | "found" | "new" | "returned" | "lost")[]} */
const NUMBERS = ["standing", "unknown", "found", "new", "returned", "lost"];
export const SERIES = ["target", "match", "month", ...NUMBERS];

/**
 * The lines of targets, which are words of an address, one after another. A target that the store does not have has
 * none. Which rows are chosen changes nothing: a series counts all of them.
 * @param {Call} call
 * @param {string[]} words
 * @param {Choice} choice
 * @param {(text: string) => void} tell
 */
export async function series(call, words, choice, tell) {
  /** @type {Line[]} */
  const lines = [];
  for (const [at, word] of words.entries()) {
    tell(`${count(at)} of ${count(words.length)} targets are read.`);
    const target = targetOf(word);
    const answer = await call(question(target, { ...choice, event: "any" }, {}, { limit: 1 })).catch((error) => {
      if (!(error instanceof Refused && error.status === 404)) throw error;
    });
    for (const month of answer ? monthsOf(answer) : []) {
      const numbers = Object.fromEntries(NUMBERS.map((kind) => [kind, month[kind]]));
      lines.push({ target: target.url, match: target.match, month: iso(month.time).slice(0, 7), ...numbers });
    }
  }
  return lines;
}
