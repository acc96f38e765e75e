// Times are seconds since 1970, in UTC. This file writes and reads them, in the forms that a question takes, and
// finds the ticks of an axis.

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
export const DAY = 86400;
export const YEAR = 365.2425 * DAY;

const date = (seconds) => new Date(seconds * 1000);
const two = (number) => String(number).padStart(2, "0");

export const year = (seconds) => date(seconds).getUTCFullYear();

/** "2 Feb 2001". */
export function day(seconds) {
  const at = date(seconds);
  return `${at.getUTCDate()} ${MONTHS[at.getUTCMonth()]} ${at.getUTCFullYear()}`;
}

/** "Feb 2001". */
export function month(seconds) {
  const at = date(seconds);
  return `${MONTHS[at.getUTCMonth()]} ${at.getUTCFullYear()}`;
}

/** "09:25". */
export const clock = (seconds) => `${two(date(seconds).getUTCHours())}:${two(date(seconds).getUTCMinutes())}`;

/** A time in seconds as text of files; empty for none, which is 0 or no end. */
export const iso = (at) => (at && at !== Infinity ? `${new Date(at * 1000).toISOString().slice(0, 19)}Z` : "");

/** The 14 digits of archives. */
export function digits(seconds) {
  return new Date(seconds * 1000).toISOString().slice(0, 19).replace(/\D/g, "").padStart(14, "0");
}

const NAMES = [
  ...["january", "february", "march", "april", "may", "june", "july"],
  ...["august", "september", "october", "november", "december"],
];
const BACK = { s: 1, h: 3600, d: DAY, w: 7 * DAY, y: 365 * DAY };
/** The first second of the year 1, and the last one of the year 9999. */
const TIMES = [-62135596800, 253402300799];
const DATE =
  /^(\d{4})([-/])(\d\d)(?:\2(\d\d)(?:[t ](\d\d)(?::(\d\d)(?::(\d\d)(?:\.\d+)?)?)?(?:z|([+-])(\d\d):?(\d\d)?)?)?)?$/;

/** The digits that a text in small letters names, and how many seconds they are before UTC. */
function digitsOf(text) {
  if (/^\d+$/.test(text)) return [text, 0];
  const words = /^(?:(\d\d?) )?([a-z]+) (?:(\d\d?), )?(\d{4})$/.exec(text);
  if (words) {
    const [, before, name, after, y] = words;
    const at = NAMES.findIndex((own) => name === own || name === own.slice(0, 3));
    const of = before || after;
    return at < 0 || (before && after) ? [] : [`${y}${two(at + 1)}${of ? two(of) : ""}`, 0];
  }
  const [, y, , m, d = "", hour = "", minute = "", second = "", sign, hours, minutes = 0] = DATE.exec(text) || [];
  if (hours > 23 || minutes > 59) return [];
  const offset = sign ? Number(`${sign}1`) * (hours * 3600 + minutes * 60) : 0;
  return [y && y + m + d + hour + minute + second, offset];
}

/** The seconds of "-30d", "30d ago" and "30 days ago". */
function agoOf(text) {
  const back = text.startsWith("-") ? text.slice(1) : text.endsWith(" ago") ? text.slice(0, -4) : "";
  const [, number, letter, unit] = /^(\d+)(?:([shdwy])| (second|hour|day|week|year)s?)$/.exec(back) || [];
  return number < 2 ** 32 ? number * BACK[letter || unit[0]] : undefined;
}

/**
 * A time in any form that a question takes ("2008", "2008-06", "1 June 2008", "20080601123005", "30d ago"); undefined
 * for other text. It is the first second of what the text names, or with `isEnd` the last one.
 */
export function timeOf(text, isEnd = false) {
  const written = (text || "").toLowerCase();
  const now = Math.floor(Date.now() / 1000);
  const ago = written === "now" ? 0 : agoOf(written);
  if (ago !== undefined) return now - ago;
  const days = { today: 0, yesterday: 1 }[written];
  if (days !== undefined) return (Math.floor(now / DAY) - days + (isEnd ? 1 : 0)) * DAY - (isEnd ? 1 : 0);
  const [all = "", offset] = digitsOf(written);
  if (all.length < 4 || all.length > 14 || all.length % 2) return undefined;
  const part = (at, first, last) => Number(all.slice(at, at + 2) || (isEnd ? last : first));
  const [y, m] = [Number(all.slice(0, 4)), part(4, 1, 12)];
  const at = new Date(0);
  at.setUTCFullYear(y, m, 0);
  const longest = at.getUTCDate();
  const [d, hour, minute, second] = [part(6, 1, longest), part(8, 0, 23), part(10, 0, 59), part(12, 0, 59)];
  const isReal = y > 0 && m > 0 && m < 13 && d > 0 && d <= longest && hour < 24 && minute < 60 && second < 60;
  if (!isReal) return undefined;
  at.setUTCFullYear(y, m - 1, d);
  const time = at / 1000 + hour * 3600 + minute * 60 + second - offset;
  return time >= TIMES[0] && time <= TIMES[1] ? time : undefined;
}

/** The first second of the year, month, day or second that a text names. */
export const seconds = (text) => timeOf(text);

/** The last second of what a text names, as a date in a question means it. */
export const lastSecondOf = (text) => timeOf(text, true);

export const january = (y) => Date.UTC(y, 0, 1) / 1000;
export const ofYear = (seconds) => (seconds - january(year(seconds))) / DAY;
export { MONTHS };

/** "3 days", "2.5 years": how long something was there. */
export function length(seconds) {
  if (seconds < 90) return "one capture";
  if (seconds < 2 * DAY) return `${Math.max(1, Math.round(seconds / 3600))} h`;
  if (seconds < 90 * DAY) return `${Math.round(seconds / DAY)} days`;
  if (seconds < 2 * YEAR) return `${Math.round(seconds / (YEAR / 12))} months`;
  return `${(seconds / YEAR).toFixed(1)} years`;
}

/** Ticks between two times that lie at least `pixels` apart: time and text, the text empty where it would touch. */
export function ticks(from, to, width, pixels) {
  const found = [];
  const scale = width / (to - from);
  const yearWidth = YEAR * scale;
  if (yearWidth >= pixels * 6) {
    const step = [1, 3, 6].find((months) => (yearWidth / 12) * months >= pixels) || 6;
    const first = date(from);
    for (
      let at = new Date(Date.UTC(first.getUTCFullYear(), 0, 1));
      at / 1000 <= to;
      at = new Date(Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + step, 1))
    ) {
      if (at / 1000 >= from) {
        const name = at.getUTCMonth() === 0 ? String(at.getUTCFullYear()) : MONTHS[at.getUTCMonth()];
        found.push({ time: at / 1000, text: name, strong: at.getUTCMonth() === 0 });
      }
    }
    if (found.length > 0 && found.length < 400) return found;
    found.length = 0;
  }
  if (yearWidth >= pixels * 6) {
    const step = [1, 2, 5, 10, 15].find((days) => days * DAY * scale >= pixels) || 15;
    for (let at = Math.ceil(from / (step * DAY)) * step * DAY; at <= to && found.length < 400; at += step * DAY) {
      found.push({ time: at, text: day(at).replace(/ \d+$/, ""), strong: false });
    }
    return found;
  }
  const step = [1, 2, 5, 10, 20, 50, 100].find((years) => years * yearWidth >= pixels) || 200;
  for (let y = year(from); january(y) <= to; y += 1) {
    if (january(y) >= from) found.push({ time: january(y), text: y % step === 0 ? String(y) : "", strong: true });
  }
  return found;
}
