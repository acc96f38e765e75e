// What answers say: bars, captures, rows in order, flags, targets, months, two targets beside each other.

import assert from "node:assert/strict";
import { test } from "node:test";
import { barcode, isFoundIn, mementoOf } from "../../src/explorer/data/barcode.js";
import { countsOf, hostsOfBoth, linesOfBoth, united } from "../../src/explorer/data/beside.js";
import { home, path } from "../../src/explorer/data/call.js";
import { endedOf, saidOf, showsOf, tells, withoutLinks } from "../../src/explorer/data/captures.js";
import { flagsOf } from "../../src/explorer/data/flags.js";
import { extentOf, marksOf, nameOf as nameOfMark, textsOf } from "../../src/explorer/data/months.js";
import { measured, ordered, standing } from "../../src/explorer/data/order.js";
import { choiceOf, endOfRow, question, rowOf } from "../../src/explorer/data/referrers.js";
import * as targets from "../../src/explorer/data/targets.js";
import { DAY } from "../../src/explorer/text/time.js";

/** @import { Barcode } from "../../src/explorer/data/answers.js" */
/** @import { Capture } from "../../src/explorer/data/captures.js" */

/**
 * The seconds of a time.
 * @param {string} text
 */
const at = (text) => Date.parse(`${text}T00:00:00Z`) / 1000;

/**
 * Five captures, a day apart: the second failed, and the links of the third are unknown.
 * @type {Barcode}
 */
const OUT = {
  ...{ epoch: 1, url: "http://a.example/", uid: 1, direction: "out", replay: "http://archive.example/web/" },
  captures: [100 * DAY, DAY, DAY, DAY, DAY],
  unknown: [2],
  statuses: { 503: [1] },
  links: ["http://b.example/one", "http://a.example/two"],
  counts: [2, 1],
  // From the first to the first; from the last to the last. From the fourth on, for two captures.
  runs: [0, 0, 3, 0, 3, 1],
};

test("a run goes on over a cut capture, and says whether the link was found in it", () => {
  // The second capture is cut. The first link was found in it, the second was not, and the third was found only there.
  const { rows } = barcode({
    ...OUT,
    unknown: [1, 2],
    statuses: {},
    cut: { truncated: [1] },
    links: ["http://a.example/1", "http://a.example/2", "http://a.example/3"],
    counts: [1, 2, 1],
    runs: [0, 4, 0, 0, 2, 1, 1, 0],
  });
  assert.deepEqual(
    rows.map(({ runs }) => runs.map(({ from, to, goneAt }) => [from, to, goneAt])),
    [[[0, 4, -1]], [[0, 4, -1]], [[1, 1, 3]]],
  );
  assert.deepEqual(
    rows.map((row) => isFoundIn(row, 1)),
    [true, false, true],
  );
});

test("runs of links have times, and how they began and ended", () => {
  const { captures, rows, outward } = barcode(OUT);
  assert.ok(outward);
  assert.deepEqual(
    captures.map(({ time, status, shows }) => [time / DAY, status, shows]),
    [
      [100, 200, "links"],
      [101, 503, "nothing"],
      [102, 200, "unknown"],
      [103, 200, "links"],
      [104, 200, "links"],
    ],
  );
  const runs = rows[0].runs.map(({ first, last, gone, began }) => [first / DAY, last / DAY, gone / DAY, began]);
  assert.deepEqual(runs, [
    [100, 100, 103, "found"],
    [104, 104, 0, "returned"],
  ]);
  assert.deepEqual(
    rows[1].runs.map(({ from, to, began, goneAt }) => [from, to, began, goneAt]),
    [[3, 4, "new", -1]],
  );
});

test("runs of in-links are times", () => {
  const answer = { ...OUT, direction: /** @type {const} */ ("in"), counts: [1, 2], first_known: [10, 5] };
  const { rows, outward } = barcode({ ...answer, runs: [10, 20, 30, 6, 7, 8, 9, 9, 0] });
  assert.ok(!outward);
  assert.deepEqual(
    rows.map(({ runs }) => runs.map(({ first, last, gone, began }) => [first, last, gone, began])),
    [
      [[10, 20, 30, "found"]],
      [
        [6, 7, 8, "new"],
        [9, 9, 0, "returned"],
      ],
    ],
  );
});

test("a capture shows links, that the page is gone, or nothing", () => {
  const shows = [200, 301, 404, 410, 429, 500, 0].map((status) => showsOf(status, false));
  assert.deepEqual(shows, ["links", "links", "gone", "gone", "nothing", "nothing", "nothing"]);
  assert.equal(showsOf(404, true), "unknown");
  /** @param {number} time @param {number} status @returns {Capture} */
  const capture = (time, status) => ({ time, status, shows: showsOf(status, false) });
  assert.deepEqual([capture(0, 410), capture(0, 503)].map(tells), [true, false]);
  assert.equal(saidOf(capture(0, 410)), "status 410, no links");
  const gone = [capture(at("2019-01-01"), 200), capture(at("2019-01-03"), 410), capture(at("2019-01-04"), 503)];
  assert.equal(endedOf(gone), "gone since 3 Jan 2019 (status 410)");
  assert.equal(endedOf(gone.slice(0, 1)), "");
  assert.match(withoutLinks([capture(0, 404)]), /gone in every capture/);
});

const rows = measured(
  barcode({
    ...OUT,
    links: ["http://b.example/x", "http://a.example/y", "http://c.example/z", "http://c.example/w"],
    counts: [1, 1, 1, 1],
    runs: [3, 0, 0, 4, 0, 0, 4, 0],
  }),
);

test("rows are in the order that is asked for, each once", () => {
  /** @param {import("../../src/explorer/data/order.js").Sort} sort */
  const inOrder = (sort) => ordered(rows, { sort, group: "none", text: "" }, "").rows.map((row) => row.at);
  assert.deepEqual(inOrder("name"), [0, 1, 2, 3]);
  assert.deepEqual(inOrder("birth"), [1, 2, 0, 3]);
  assert.deepEqual(inOrder("life"), [1, 2, 0, 3]);
  assert.deepEqual(inOrder("death"), [2, 0, 1, 3]);
});

test("groups hold all rows, the own host first, then the largest", () => {
  const { rows: all, groups } = ordered(rows, { sort: "name", group: "host", text: "" }, "a.example");
  assert.deepEqual(
    groups.map(({ name, start, end }) => [name, start, end]),
    [
      ["a.example", 0, 1],
      ["c.example", 1, 3],
      ["b.example", 3, 4],
    ],
  );
  for (const { name, start, end } of groups) {
    assert.ok(all.slice(start, end).every((row) => row.host === name));
  }
  const { rows: some } = ordered(rows, { sort: "name", group: "none", text: "C.EXAMPLE" }, "");
  assert.deepEqual(
    some.map((row) => row.at),
    [2, 3],
  );
});

test("how many rows stand rises with births and falls with deaths", () => {
  const steps = standing(rows);
  assert.equal(steps.length, 8);
  assert.equal(steps.at(-1)?.[1], 0);
  assert.ok(steps.every(([, number]) => number >= 0));
  assert.ok(steps.every(([time], place) => place === 0 || time >= steps[place - 1][0]));
});

/** @type {Capture[]} */
const CAPTURES = ["2019-01-01", "2019-06-01", "2020-01-01", "2020-06-01"].map((text, place) => ({
  ...{ time: at(text), status: place === 1 ? 503 : 200 },
  shows: place === 1 ? "nothing" : "links",
}));

test("flags stand where a question as of their dates has them", () => {
  const known = [0, 2, 3];
  assert.deepEqual(flagsOf(CAPTURES, known, {}), { a: 0, b: 3, said: "" });
  assert.deepEqual(flagsOf(CAPTURES, known, { b: "2020-01-01" }), { a: 0, b: 2, said: "" });
  const turned = flagsOf(CAPTURES, known, { a: "2020-06-01", b: "2019-01-01" });
  assert.deepEqual(turned, { a: 0, b: 3, said: "" });
  const failed = flagsOf(CAPTURES, known, { a: "2019-06-01", b: "2020-06-01" });
  assert.equal(failed.a, 0);
  assert.match(failed.said, /status 503.*A is now 1 Jan 2019/);
  assert.match(flagsOf(CAPTURES, known, { a: "soon" }).said, /“soon” is not a date/);
  assert.match(flagsOf(CAPTURES, known, { a: "2021", b: "2022" }).said, /choose another/);
});

test("a target is a word of an address, and back", () => {
  for (const word of ["redhat.example", "http://a.example/x?y", "host!www.a.example", "exact!a.example/x"]) {
    const target = targets.targetOf(word);
    assert.deepEqual(targets.targetOf(targets.wordOf(target)), target, word);
  }
  assert.deepEqual(targets.targetOf("redhat.example"), { url: "redhat.example", match: "domain" });
  assert.deepEqual(targets.targetOf("exact!redhat.example"), { url: "redhat.example", match: "domain" });
  assert.deepEqual(targets.targetOf("http://a.example/"), { url: "http://a.example/", match: "exact" });
  assert.equal(targets.wordOf({ url: "a b", match: "domain" }), "a%20b");
  assert.deepEqual(targets.hostAbove(targets.targetOf("http://A.example:8080/x")), { url: "a.example", match: "host" });
  assert.equal(targets.hostIn("someone@a.example"), "");
  const list = Array.from({ length: 30 }, (_, place) => `a${place}.example`).join(" ");
  assert.equal(targets.keptIn({ list }).length, targets.KEPT_MAX);
  assert.deepEqual(targets.keptIn({ list: " a a  b " }), ["a", "b"]);
  const state = targets.stateFor(
    { v: "backlinks", text: "x", from: "2008", and: "b.example" },
    targets.targetOf("b.example"),
  );
  assert.deepEqual([state.text, state.from, state.and], [undefined, "2008", undefined]);
});

test("a path has the parameters that have a value, escaped", () => {
  assert.equal(
    path("v1/barcode", { url: "http://a/?b&c", limit: undefined, direction: "" }),
    "v1/barcode?url=http%3A%2F%2Fa%2F%3Fb%26c",
  );
  assert.ok(home.endsWith("/serve/src/"));
  assert.equal(
    mementoOf(OUT, { time: at("2001-02-03") }),
    "http://archive.example/web/20010203000000/http://a.example/",
  );
});

test("what an address says of rows is a question to the server", () => {
  const choice = choiceOf({ url: "a.example", unit: "host", event: "lost", order: "nonsense", internal: "1" });
  assert.deepEqual([choice.match, choice.unit, choice.event, choice.order], ["domain", "host", "lost", "first"]);
  const asked = question(
    { url: "a.example", match: "domain" },
    choice,
    { from: "2008", to: "", span: [1, 2] },
    { limit: 7 },
  );
  const parameters = new URLSearchParams(asked.split("?")[1]);
  assert.deepEqual(Object.fromEntries(parameters), {
    ...{ from: "2008", url: "a.example", match: "domain", unit: "host", internal: "true", order: "first" },
    ...{ event: "lost", limit: "7" },
  });
  assert.ok(!question({ url: "a", match: "exact" }, choice, { from: "soon", to: "" }).includes("from"));
});

/** @param {string} page @param {[string, string, string?][]} stays */
const referrer = (page, stays) =>
  rowOf({ page, targets: 1, stays: stays.map(([first, last, until]) => ({ first, last, until, began: "new" })) });

test("rows of two targets are one list, in which each referrer stands once", () => {
  const a = [
    referrer("http://x.example/", [["2008-01-01", "2008-01-03"]]),
    referrer("http://y.example/", [["2007-01-01", "2007-01-02"]]),
  ];
  const b = [referrer("http://x.example/", [["2008-01-02", "2008-01-05", "2008-02-01"]])];
  const both = united(a, b, "first");
  assert.deepEqual(
    both.map(({ page, who }) => [page, who]),
    [
      ["http://y.example/", "a"],
      ["http://x.example/", "both"],
    ],
  );
  assert.equal(both[1].life, 4 * DAY + 1);
  assert.deepEqual(countsOf(both), { any: 2, both: 1, a: 1, b: 0 });
  assert.equal(endOfRow(b[0]), "1 Feb 2008");
  assert.equal(endOfRow(a[0]), "stands");
  const lines = linesOfBoth(both, { A: "first", B: "second" });
  assert.deepEqual(
    lines.map(({ target, end }) => [target, end]),
    [
      ["first", "stands"],
      ["first", "stands"],
      ["second", "lost"],
    ],
  );
  const hosts = hostsOfBoth([[{ host: "x", pages: 2, first: 1 }], false], [[{ host: "y", pages: 3, first: 2 }], true]);
  assert.deepEqual(
    hosts.map((host) => [host.host, host.a, host.b]),
    [
      ["y", undefined, 3],
      ["x", 2, 0],
    ],
  );
});

test("months are put together so that nothing is lost", () => {
  const months = Array.from({ length: 30 }, (_, place) => ({
    ...{ time: Date.UTC(2007, 10 + place, 1) / 1000, standing: place, unknown: 0 },
    ...{ found: 1, new: place, returned: 0, lost: 2 },
  }));
  const [from, to] = extentOf(months, []);
  for (const width of [20, 100, 3000]) {
    const marks = marksOf(months, [from, to], width, 4);
    for (const kind of /** @type {const} */ (["found", "new", "lost"])) {
      const total = (/** @type {{ [kind: string]: number }[]} */ all) => all.reduce((sum, own) => sum + own[kind], 0);
      assert.equal(total(marks), total(months), `${kind} ${width}`);
    }
    assert.equal(marks.at(-1)?.standing, 29);
    assert.ok(marks.every((mark, place) => place === 0 || mark.time === marks[place - 1].end));
  }
  const [quarter] = marksOf(months, [from, to], 100, 4);
  assert.deepEqual([nameOfMark(quarter), textsOf(quarter)], ["Q4 2007", { from: "2007-10", to: "2007-12" }]);
});
