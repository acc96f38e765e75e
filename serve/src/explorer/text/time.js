// Times are seconds since 1970, in UTC. This file writes them.

export const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
export const DAY = 86400;
export const YEAR = 365.2425 * DAY;

/** @param {number} seconds */
const date = (seconds) => new Date(seconds * 1000);

/**
 * A number of at least two digits: "07".
 * @param {number} number
 */
export const two = (number) => String(number).padStart(2, "0");

/**
 * The seconds of a time in an answer, which is text as in ISO 8601; 0 for none.
 * @param {string | null} [text]
 */
export const secondsOf = (text) => (text ? Date.parse(text) / 1000 : 0);

/** @param {number} seconds */
export const year = (seconds) => date(seconds).getUTCFullYear();

/**
 * "2 Feb 2001".
 * @param {number} seconds
 */
export function day(seconds) {
  const at = date(seconds);
  return `${at.getUTCDate()} ${MONTHS[at.getUTCMonth()]} ${at.getUTCFullYear()}`;
}

/**
 * "Feb 2001".
 * @param {number} seconds
 */
export function month(seconds) {
  const at = date(seconds);
  return `${MONTHS[at.getUTCMonth()]} ${at.getUTCFullYear()}`;
}

/**
 * "09:25".
 * @param {number} seconds
 */
export const clock = (seconds) => `${two(date(seconds).getUTCHours())}:${two(date(seconds).getUTCMinutes())}`;

/**
 * A time as text of files; empty for none, which is 0 or no end.
 * @param {number} seconds
 */
export const iso = (seconds) => (seconds && seconds !== Infinity ? `${date(seconds).toISOString().slice(0, 19)}Z` : "");

/**
 * The 14 digits of archives.
 * @param {number} seconds
 */
export function digits(seconds) {
  return date(seconds).toISOString().slice(0, 19).replace(/\D/g, "").padStart(14, "0");
}

/**
 * The first second of a year.
 * @param {number} y
 */
export const january = (y) => Date.UTC(y, 0, 1) / 1000;

/**
 * The days since the first of January.
 * @param {number} seconds
 */
export const ofYear = (seconds) => (seconds - january(year(seconds))) / DAY;

/**
 * "3 days", "2.5 years": how long something was there.
 * @param {number} seconds
 */
export function length(seconds) {
  if (seconds < 90) return "one capture";
  if (seconds < 2 * DAY) return `${Math.max(1, Math.round(seconds / 3600))} h`;
  if (seconds < 90 * DAY) return `${Math.round(seconds / DAY)} days`;
  if (seconds < 2 * YEAR) return `${Math.round(seconds / (YEAR / 12))} months`;
  return `${(seconds / YEAR).toFixed(1)} years`;
}
