// What the view of backlinks says in words: how many link, what a row and a period are, and which rows are shown.

import { count, el, many } from "./dom.js";
import { safe } from "./names.js";
import { endOfRow, nameOf } from "./referrers.js";
import { day, length, month } from "./time.js";

/** How many link to a target at the latest capture, and how many did before. */
export function factsOf({ rowsTotal }, months, { unit, source }) {
  const last = months[months.length - 1];
  const whose = source ? ` of ${safe(source)}` : "";
  if (!last) return [`no ${unit}${whose} links`];
  const { standing, unknown } = last;
  // The first months may be those of captures of which it is unknown.
  const since = months.find((own) => own.found + own.new + own.returned);
  return [
    el("b", { text: count(standing) }),
    ` ${unit}${standing === 1 ? "" : "s"}${whose} link${standing === 1 ? "s" : ""} at the latest capture, `,
    el("b", { text: count(rowsTotal - standing - unknown) }),
    ` did before${unknown ? `, of ${count(unknown)} it is unknown` : ""}; since ${month(since.time)}`,
  ];
}

/** The same in a few words: "A: 18 of 74 link at the latest capture". */
export function shortFacts(side, { rowsTotal }, months) {
  const { standing = 0 } = months[months.length - 1] || {};
  return `${side}: ${count(standing)} of ${count(rowsTotal)} link at the latest capture`;
}

function staysOf(row) {
  const last = row.runs[row.runs.length - 1];
  return (
    `${day(row.first)} – ${day(row.last)}, ${length(row.life)} in ${many(row.runs.length, "stay")}` +
    `${last.gone ? `, lost by ${day(last.gone)}` : `, ${endOfRow(row)}`}` +
    `${row.isPage ? `, to ${many(row.targets, "URL")}` : `, ${many(row.pages, "page")}`}`
  );
}

/** In a few words, where two stand side by side. */
function briefly(row) {
  const { gone } = row.runs[row.runs.length - 1];
  const stays = row.runs.length > 1 ? ` in ${many(row.runs.length, "stay")}` : "";
  return `${day(row.first)} – ${day(row.last)}${stays}, ${gone ? `lost by ${day(gone)}` : endOfRow(row)}`;
}

/** A row: when it linked, to each target if there are two. */
export function toldRow(row) {
  const stays = row.parts ? row.parts.map(([side, part]) => `${side}: ${briefly(part)}`).join("; ") : staysOf(row);
  return [el("b", { text: safe(row.url) }), `  ${stays}`];
}

/** A period: what is so at its end, and what happened in it. */
function numbersOf(mark) {
  if (!mark) return "no links yet";
  const unknown = mark.unknown ? `, ${count(mark.unknown)} unknown` : "";
  const kinds = ["found", "new", "returned", "lost"].filter((kind) => mark[kind]);
  return `${many(mark.standing, "link")}${unknown}${kinds.map((kind) => `, ${count(mark[kind])} ${kind}`).join("")}`;
}

/** A period; with that of B if there is a B. */
export function toldMark(mark, others) {
  const other = others?.find((own) => own.time === mark.time);
  const text = others ? `A: ${numbersOf(mark)}; B: ${numbersOf(other)}` : numbersOf(mark);
  return [el("b", { text: nameOf(mark) }), `  ${text}`];
}

/** How many rows are shown, and of how many they are chosen; `whose` is " of A" where B's are not among them. */
export function toldRows(shown, { read, selected, total }, { event, text }, span, whose) {
  const kind = event === "any" ? (span ? " that came or went" : "") : ` ${event}`;
  const since = span && span[0] > -Infinity ? ` from ${day(span[0])}` : "";
  const dated = since + (span && span[1] < Infinity ? ` to ${day(span[1] - 1)}` : "");
  const having = text ? ` with “${safe(text)}”` : "";
  if (selected > read) {
    const first = `the first ${count(read)} of ${count(selected)} rows${whose}${kind}${dated}`;
    return text ? `${count(shown)}${having} of ${first}` : `T${first.slice(1)}`;
  }
  const of = shown < total ? ` of ${count(total)}` : "";
  return `${count(shown)}${of} row${(of ? total : shown) === 1 ? "" : "s"}${having}${kind}${dated}`;
}
