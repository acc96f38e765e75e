// Times are seconds since 1970, in UTC. This file writes and reads them, and finds the ticks of an axis.

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

/** The 14 digits of archives. */
export function digits(seconds) {
  return new Date(seconds * 1000).toISOString().slice(0, 19).replace(/\D/g, "").padStart(14, "0");
}

/** Seconds of 4 to 14 digits, or undefined. */
export function seconds(text) {
  if (!/^\d{4,14}$/.test(text || "")) return undefined;
  const part = (from, to, least) => Number(text.slice(from, to) || least);
  const time = Date.UTC(
    part(0, 4, 1),
    part(4, 6, 1) - 1,
    part(6, 8, 1),
    part(8, 10, 0),
    part(10, 12, 0),
    part(12, 14, 0),
  );
  return Number.isFinite(time) ? time / 1000 : undefined;
}

/** The last second of the year, month, day or second that 4 to 14 digits name, as a date in a question means it. */
export function lastSecondOf(text) {
  const start = seconds(text);
  if (start === undefined || text.length >= 14) return start;
  const at = date(start);
  const next = [
    () => at.setUTCFullYear(at.getUTCFullYear() + 1),
    () => at.setUTCMonth(at.getUTCMonth() + 1),
    () => at.setUTCDate(at.getUTCDate() + 1),
    () => at.setUTCHours(at.getUTCHours() + 1),
    () => at.setUTCMinutes(at.getUTCMinutes() + 1),
  ];
  next[Math.max(0, Math.min(4, Math.floor(text.length / 2) - 2))]();
  return at / 1000 - 1;
}

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
