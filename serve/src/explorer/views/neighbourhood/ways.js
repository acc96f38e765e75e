// The shortest ways from the page in the middle of a neighbourhood to another page, as words and a list.

import { failureOf, path } from "../../data/call.js";
import { link } from "../../page/address.js";
import { el } from "../../parts/dom.js";
import { cut } from "../../text/cut.js";
import { bare, safe } from "../../text/names.js";
import { many } from "../../text/numbers.js";
import { day, digits } from "../../text/time.js";

/** @import { Found, Scene } from "./state.js" */

/** The most ways of an answer, and the most characters of a name. */
const WAYS = 5;
const NAME = 60;

/**
 * Asks for the ways at the date; whether the answer is to the last question.
 * @type {(scene: Scene) => Promise<boolean>}
 */
export async function findWays(scene) {
  scene.asks += 1;
  const own = scene.asks;
  const { url, to } = scene.state;
  const question = path("v1/ways", { url, target: to, at: digits(scene.dated.now), limit: WAYS });
  /** @type {Found} */
  const given = await scene.context.call(question).catch((error) => ({ error: failureOf(error).message }));
  if (own !== scene.asks) return false;
  scene.found = given;
  return true;
}

/**
 * What was found, in a sentence.
 * @type {(scene: Scene) => string}
 */
export function waysText({ found, state, dated }) {
  if (!found) return "";
  if (found.error) return `${safe(found.error)}.`;
  const [to, on] = [cut(bare(state.to || ""), NAME), day(dated.now)];
  if (found.unknown) {
    return `Unknown whether there is a way to ${to} on ${on}: it may go over ${safe(found.unknown[0])}.`;
  }
  const most = found.is_cut ? " of 6 links or fewer" : "";
  if (found.links === null || found.links === undefined) return `No way to ${to}${most} on ${on}.`;
  return `${many(found.links, "link")} to ${to} on ${on}`;
}

/**
 * The sentence and the ways; nothing where none are asked for. `enter` opens the neighbourhood of a URL.
 * @type {(scene: Scene, enter: (url: string) => void) => Node[]}
 */
export function waysList(scene, enter) {
  const { state, found } = scene;
  if (!state.to) return [];
  const step = (/** @type {string} */ url) => {
    const where = { v: "neighbourhood", url, at: state.at };
    return el(
      "li",
      {},
      link(where, cut(bare(url), NAME), () => enter(url)),
    );
  };
  const steps = (/** @type {string[]} */ way) => el("li", {}, el("ol", {}, ...way.slice(1).map(step)));
  const ways = found?.ways || [];
  const list = ways.length ? [el("ul", { class: "ways" }, ...ways.map(steps))] : [];
  return [el("h2", { text: waysText(scene) }), ...list];
}
