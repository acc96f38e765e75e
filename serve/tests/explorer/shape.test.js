// The modules of the page as a whole: which may import which, without circles; and what the first page preloads.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { test } from "node:test";

const ROOT = new URL("../../src/explorer/", import.meta.url);
/** Folders from below. A module imports from its own folder and from those below; files without a folder from all. */
const FOLDERS = ["text", "data", "drawing", "parts", "page", "views"];

const modules = readdirSync(ROOT, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".js"));
/** @param {string} name */
const textOf = (name) => readFileSync(new URL(name, ROOT), "utf8");
/**
 * The folder of a module at the root of the page; empty for a file without one.
 * @param {string} name
 */
const folderOf = (name) => (name.includes("/") ? name.split("/")[0] : "");

/**
 * The modules that a module imports before it runs.
 * @param {string} name
 */
const importsOf = (name) =>
  [...textOf(name).matchAll(/^(?:import|export)\s(?:[^;"]*?from )?"(\.[^"]+)";/gm)].map(([, from]) =>
    normalize(join(dirname(name), from)),
  );

/**
 * A module with all that it needs, in the order in which they run.
 * @param {string} name
 * @param {Set<string>} found
 * @param {string[]} path
 * @returns {Set<string>}
 */
function closure(name, found = new Set(), path = []) {
  assert.ok(!path.includes(name), `a circle: ${[...path, name].join(" > ")}`);
  if (found.has(name)) return found;
  for (const needed of importsOf(name)) closure(needed, found, [...path, name]);
  return found.add(name);
}

test("modules import downwards only, and in no circle", () => {
  for (const name of modules) {
    closure(name);
    const own = FOLDERS.indexOf(folderOf(name));
    if (own < 0) continue;
    for (const needed of importsOf(name)) {
      const below = FOLDERS.indexOf(folderOf(needed));
      assert.ok(below >= 0 && below <= own, `${name} may not import ${needed}`);
    }
  }
});

test("views do not import each other", () => {
  for (const name of modules.filter((own) => own.startsWith("views/"))) {
    const view = name.split("/")[1].replace(/\.js$/, "");
    const others = importsOf(name).filter((own) => own.startsWith("views/") && !own.startsWith(`views/${view}/`));
    assert.deepEqual(others, [], name);
  }
});

test("the first page preloads the page and its first view", () => {
  const page = textOf("index.html");
  const preloaded = [...page.matchAll(/rel="modulepreload" href="explorer\/([^"]+)"/g)].map(([, name]) => name);
  const scripts = ["ahead.js", "main.js"];
  const needed = new Set([...scripts, "views/barcode.js"].flatMap((name) => [...closure(name)]));
  assert.deepEqual(preloaded.toSorted(), [...needed].filter((name) => !scripts.includes(name)).toSorted());
});

test("every module says what it is, and is of one purpose", () => {
  for (const name of modules) {
    const text = textOf(name);
    assert.match(text, /^\/\/ \S/, `${name}: its first line is no comment`);
    assert.ok(text.split("\n").length <= 301, `${name} has more than 300 lines`);
  }
});
