// Reads dates in the forms that a question takes. Times are seconds since 1970, in UTC.

import { DAY, two } from "./time.js";

const NAMES = [
  ...["january", "february", "march", "april", "may", "june", "july"],
  ...["august", "september", "october", "november", "december"],
];
/**
 * The seconds of a unit, by its first letter.
 * @type {Record<string, number>}
 */
const BACK = { s: 1, h: 3600, d: DAY, w: 7 * DAY, y: 365 * DAY };
const DAYS = new Map([
  ["today", 0],
  ["yesterday", 1],
]);
/** The first second of the year 1, and the last one of the year 9999. */
const TIMES = [-62135596800, 253402300799];
const DATE =
  /^(\d{4})([-/])(\d\d)(?:\2(\d\d)(?:[t ](\d\d)(?::(\d\d)(?::(\d\d)(?:\.\d+)?)?)?(?:z|([+-])(\d\d):?(\d\d)?)?)?)?$/;
const NO_TIME = "not a time (write 2008, 2008-06 or 2008-06-01)";

/**
 * The digits that a text in small letters names, and how many seconds they are before UTC.
 * @type {(text: string) => [digits?: string, offset?: number]}
 */
function digitsOf(text) {
  if (/^\d+$/.test(text)) return [text, 0];
  const words = /^(?:(\d\d?) )?([a-z]+) (?:(\d\d?), )?(\d{4})$/.exec(text);
  if (words) return [wordsOf(words), 0];
  const [, y, , m, d = "", hour = "", minute = "", second = "", sign, hours, minutes = "0"] = DATE.exec(text) || [];
  if (Number(hours) > 23 || Number(minutes) > 59) return [];
  const offset = sign ? Number(`${sign}1`) * (Number(hours) * 3600 + Number(minutes) * 60) : 0;
  return [y && y + m + d + hour + minute + second, offset];
}

/**
 * The digits of "1 June 2008", "June 1, 2008" and "June 2008".
 * @type {(words: RegExpExecArray) => string | undefined}
 */
function wordsOf([, before, name, after, y]) {
  const at = NAMES.findIndex((own) => name === own || name === own.slice(0, 3));
  const of = before || after;
  return at < 0 || (before && after) ? undefined : `${y}${two(at + 1)}${of ? of.padStart(2, "0") : ""}`;
}

/**
 * The seconds of "-30d", "30d ago" and "30 days ago".
 * @type {(text: string) => number | undefined}
 */
function agoOf(text) {
  const back = text.startsWith("-") ? text.slice(1) : text.endsWith(" ago") ? text.slice(0, -4) : "";
  const [, number, letter, unit] = /^(\d+)(?:([shdwy])| (second|hour|day|week|year)s?)$/.exec(back) || [];
  return Number(number) < 2 ** 32 ? Number(number) * BACK[letter || unit[0]] : undefined;
}

/**
 * The time that digits from a year to a second name; what they leave out is the first one, or with `isEnd` the last.
 * @type {(all: string, isEnd: boolean) => number | undefined}
 */
function timeOfDigits(all, isEnd) {
  if (all.length < 4 || all.length > 14 || all.length % 2) return undefined;
  /** @type {(at: number, first: number, last: number) => number} */
  const part = (at, first, last) => Number(all.slice(at, at + 2) || (isEnd ? last : first));
  const [y, m] = [Number(all.slice(0, 4)), part(4, 1, 12)];
  const at = new Date(0);
  at.setUTCFullYear(y, m, 0);
  const longest = at.getUTCDate();
  const [d, hour, minute, second] = [part(6, 1, longest), part(8, 0, 23), part(10, 0, 59), part(12, 0, 59)];
  const isDay = y > 0 && m > 0 && m < 13 && d > 0 && d <= longest;
  if (!isDay || hour > 23 || minute > 59 || second > 59) return undefined;
  at.setUTCFullYear(y, m - 1, d);
  return at.getTime() / 1000 + hour * 3600 + minute * 60 + second;
}

/**
 * A time in any form that a question takes ("2008", "2008-06", "1 June 2008", "20080601123005", "30d ago"); undefined
 * for other text. It is the first second of what the text names, or with `isEnd` the last one.
 * @param {string} [text]
 */
export function timeOf(text, isEnd = false) {
  const written = (text || "").toLowerCase();
  const now = Math.floor(Date.now() / 1000);
  const ago = written === "now" ? 0 : agoOf(written);
  if (ago !== undefined) return now - ago;
  const days = DAYS.get(written);
  if (days !== undefined) return (Math.floor(now / DAY) - days + (isEnd ? 1 : 0)) * DAY - (isEnd ? 1 : 0);
  const [all = "", offset = 0] = digitsOf(written);
  const local = timeOfDigits(all, isEnd);
  if (local === undefined) return undefined;
  const time = local - offset;
  return time >= TIMES[0] && time <= TIMES[1] ? time : undefined;
}

/**
 * The last second of what a text names, as a date in a question means it.
 * @param {string} [text]
 */
export const lastSecondOf = (text) => timeOf(text, true);

/**
 * A stretch of time as an address has it: the texts of its two sides, and `span`, its first second and the one after
 * its last, where a side that is left open has no end. `wrong` says by side what is no time: there is no span then.
 * @typedef {object} When
 * @property {string} from
 * @property {string} to
 * @property {{ from?: string, to?: string }} wrong
 * @property {[number, number]} [span]
 */

/**
 * What an address says of a stretch of time.
 * @param {{ from?: string, to?: string }} texts
 * @returns {When}
 */
export function whenOf({ from = "", to = "" }) {
  const [start, last] = [timeOf(from), timeOf(to, true)];
  /** @type {When["wrong"]} */
  const wrong = {};
  if (from && start === undefined) wrong.from = NO_TIME;
  if (to && last === undefined) wrong.to = NO_TIME;
  if (start !== undefined && last !== undefined && start > last) wrong.to = "earlier than the first date";
  const isChosen = (from || to) && !wrong.from && !wrong.to;
  return {
    from,
    to,
    wrong,
    span: isChosen ? [start ?? -Infinity, last === undefined ? Infinity : last + 1] : undefined,
  };
}
