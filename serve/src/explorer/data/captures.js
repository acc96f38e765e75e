// What a capture shows of its page: decided here, for every view.
//
// A capture shows the `links` of its page, which may be none; or that the page is `gone`, which has no links; or that
// links are `unknown`: nothing is known of them, or the body was `cut`, for a reason, and has those that were found; or
// `nothing`, as an error of the server does: the page may be as it was before.

import { day } from "../text/time.js";

/** @typedef {"links" | "gone" | "unknown" | "nothing"} Shows */
/** @typedef {{ time: number, status: number, shows: Shows, cut?: string }} Capture */

/**
 * What a capture with this status shows.
 * @param {number} status
 * @param {boolean} isUnknown
 * @returns {Shows}
 */
export function showsOf(status, isUnknown) {
  if (isUnknown) return "unknown";
  if (status === 0 || status >= 500 || status === 429) return "nothing";
  return status >= 400 ? "gone" : "links";
}

/**
 * Whether a capture tells which links its page has.
 * @param {Capture} capture
 */
export const tells = (capture) => capture.shows === "links" || capture.shows === "gone";

/**
 * Whether a capture failed, whatever it shows.
 * @param {Capture} capture
 */
export const failed = (capture) => capture.shows === "gone" || capture.shows === "nothing";

/**
 * What a capture shows, in words that follow a date; empty where it shows links.
 * @param {Capture} capture
 */
export function saidOf({ shows, status, cut }) {
  return {
    links: "",
    gone: `status ${status}, no links`,
    unknown: cut ? `cut (${cut}), there may be more links` : "links not known",
    nothing: status ? `status ${status}, which says nothing of the links` : "removed",
  }[shows];
}

/**
 * Why no link is to be seen in captures, in a sentence.
 * @param {Capture[]} captures
 */
export function withoutLinks(captures) {
  if (captures.some((capture) => capture.shows === "links")) return "No capture of this page has a link.";
  const gone = captures.find((capture) => capture.shows === "gone");
  if (gone) {
    const all = captures.every((capture) => capture.shows === "gone");
    return all
      ? `The page was gone in every capture (status ${gone.status}), so it has no links.`
      : "Some captures show that the page was gone, and no capture shows links.";
  }
  return "The links of no capture are known.";
}

/**
 * How a page ended, for its head: "gone since 3 Jan 2019 (status 410)"; empty where it did not.
 * @param {Capture[]} captures
 */
export function endedOf(captures) {
  const telling = captures.filter((capture) => capture.shows !== "nothing");
  let first;
  for (let at = telling.length - 1; at >= 0 && telling[at].shows === "gone"; at -= 1) first = telling[at];
  return first ? `gone since ${day(first.time)} (status ${first.status})` : "";
}
