// What gives the data of a picture: the commands and the calls that answer the same.

import { home } from "../data/call.js";
import { safe } from "../text/names.js";
import { dialog, el } from "./dom.js";
import { act } from "./tools.js";

/**
 * A text between quotes, as a command line takes it.
 * @param {string | undefined} text
 */
export const quoted = (text) => `'${safe(text || "")}'`;

/**
 * The command that makes a call of this path.
 * @param {string} path
 */
export const curl = (path) => `curl '${home}${path}'`;

/**
 * The word that shows what gives the data. `partsOf` gives sentences, each with the commands that it is about.
 * @param {() => [string, ...string[]][]} partsOf
 */
export const dataAct = (partsOf, title = "The data of this picture") =>
  act("Data", () => {
    const parts = partsOf().flatMap(([sentence, ...commands]) => [
      el("p", { text: sentence }),
      ...commands.map((command) => el("pre", { text: command })),
    ]);
    dialog(title, ...parts);
  });
