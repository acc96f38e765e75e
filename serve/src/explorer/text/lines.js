// Lines of a file: objects with columns, as CSV or as JSON.

/** @typedef {Record<string, unknown>} Line */

/**
 * A field of CSV: quoted where it has a comma, a quote or an end of line. A text that a spreadsheet would run as a
 * formula gets an apostrophe before it.
 * @param {unknown} value
 */
function fieldOf(value) {
  const isFormula = typeof value === "string" && /^[=+\-@\t\r]/.test(value);
  const text = `${isFormula ? "'" : ""}${value ?? ""}`;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/**
 * Lines with these columns as CSV (RFC 4180), with a head.
 * @param {string[]} columns
 * @param {Line[]} lines
 */
export function csvOf(columns, lines) {
  const fields = [columns, ...lines.map((line) => columns.map((column) => fieldOf(line[column])))];
  return `${fields.map((line) => line.join(",")).join("\r\n")}\r\n`;
}

/**
 * Lines with these columns as a list in JSON.
 * @param {string[]} columns
 * @param {Line[]} lines
 */
export function jsonOf(columns, lines) {
  const one = (/** @type {Line} */ line) => Object.fromEntries(columns.map((column) => [column, line[column]]));
  return JSON.stringify(lines.map(one), null, 1);
}

/**
 * The name of a file for a URL, without its end.
 * @param {string} url
 */
export const nameFor = (url) =>
  url
    .replace(/^\w+:\/\//, "")
    .replace(/[^\w.-]+/g, "-")
    .slice(0, 60);
