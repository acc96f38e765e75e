// What gives the data of the picture of backlinks: the commands and the calls that answer the same.

import { home, path } from "./data.js";
import { dialog, el } from "./dom.js";
import { safe } from "./names.js";
import { question } from "./referrers.js";

const quoted = (text) => `'${safe(text)}'`;

/** The dialog for the targets that are shown. */
export function showSource(url, choice, when, targets) {
  const options = ({ match }) =>
    [
      match === "exact" ? "" : ` --match ${match}`,
      choice.unit === "page" ? "" : ` --unit ${choice.unit}`,
      choice.internal ? " --internal" : "",
      choice.source ? ` --source ${quoted(choice.source)} --source-match host` : "",
    ].join("");
  const side = (name) => (when.span && when[name] ? ` --${name} ${quoted(when[name])}` : "");
  const selected = (choice.event === "any" ? "" : ` --${choice.event}`) + side("from") + side("to");
  const command = (target) => `webstrata backlinks STORE ${quoted(target.url)}${options(target)}`;
  const lines = targets.flatMap((target) => [
    el("pre", { text: `${command(target)}${selected} --limit 0` }),
    el("pre", { text: `${command(target)} --by month` }),
  ]);
  dialog(
    "The data of this picture",
    el("p", { text: "On the command line, the rows and the chart:" }),
    ...lines,
    el("p", { text: "Over HTTP:" }),
    ...targets.map((target) => el("pre", { text: `curl '${home}${question(target, choice, when)}'` })),
    el("p", { text: "The other way round, what the URL links to:" }),
    el("pre", { text: `curl '${home}${path("v1/lifespans", { url })}'` }),
  );
}
