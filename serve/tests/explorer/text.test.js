// How times, dates, names, numbers and lines of files are written and read.

import assert from "node:assert/strict";
import { test } from "node:test";
import { branchesOf, cut, fitted } from "../../src/explorer/text/cut.js";
import { lastSecondOf, timeOf, whenOf } from "../../src/explorer/text/dates.js";
import { csvOf, jsonOf, nameFor } from "../../src/explorer/text/lines.js";
import { bare, hostOf, namesOf, pathsOf, safe } from "../../src/explorer/text/names.js";
import { count, many, most, sum, within } from "../../src/explorer/text/numbers.js";
import { clock, DAY, day, digits, iso, length, month, ofYear, secondsOf, YEAR } from "../../src/explorer/text/time.js";

/**
 * The seconds of a time.
 * @param {string} text
 */
const at = (text) => Date.parse(text) / 1000;

test("a date is read in each form that a question takes, from its first second to its last", () => {
  /** @type {[string, string, string][]} */
  const forms = [
    ["2008", "2008-01-01T00:00:00Z", "2008-12-31T23:59:59Z"],
    ["2008-02", "2008-02-01T00:00:00Z", "2008-02-29T23:59:59Z"],
    ["2007-02", "2007-02-01T00:00:00Z", "2007-02-28T23:59:59Z"],
    ["2008/06/01", "2008-06-01T00:00:00Z", "2008-06-01T23:59:59Z"],
    ["20080601", "2008-06-01T00:00:00Z", "2008-06-01T23:59:59Z"],
    ["20080601123005", "2008-06-01T12:30:05Z", "2008-06-01T12:30:05Z"],
    ["2008-06-01T12", "2008-06-01T12:00:00Z", "2008-06-01T12:59:59Z"],
    ["2008-06-01 12:30", "2008-06-01T12:30:00Z", "2008-06-01T12:30:59Z"],
    ["2008-06-01T12:30:05.75Z", "2008-06-01T12:30:05Z", "2008-06-01T12:30:05Z"],
    ["2008-06-01T00:30:00+02:00", "2008-05-31T22:30:00Z", "2008-05-31T22:30:00Z"],
    ["2008-06-01T23:30:00-0230", "2008-06-02T02:00:00Z", "2008-06-02T02:00:00Z"],
    ["1 June 2008", "2008-06-01T00:00:00Z", "2008-06-01T23:59:59Z"],
    ["June 1, 2008", "2008-06-01T00:00:00Z", "2008-06-01T23:59:59Z"],
    ["jun 2008", "2008-06-01T00:00:00Z", "2008-06-30T23:59:59Z"],
    ["0001", "0001-01-01T00:00:00Z", "0001-12-31T23:59:59Z"],
  ];
  for (const [text, first, last] of forms) {
    assert.equal(timeOf(text), at(first), text);
    assert.equal(lastSecondOf(text), at(last), text);
  }
});

test("a date that is relative is so many seconds ago", () => {
  const now = Date.now() / 1000;
  for (const text of ["-30d", "30d ago", "30 days ago", "720h ago", "-720h"]) {
    assert.ok(Math.abs((timeOf(text) ?? 0) - (now - 30 * DAY)) < 5, text);
  }
  assert.equal((timeOf("today") ?? 1) % DAY, 0);
  assert.equal((lastSecondOf("today") ?? 0) - (timeOf("today") ?? 0), DAY - 1);
  assert.equal((timeOf("today") ?? 0) - (timeOf("yesterday") ?? 0), DAY);
});

test("what is no date is none", () => {
  const texts = ["", "no date", "208", "2008-13", "2008-02-30", "2007-02-29", "2008-6", "20080", "0000"];
  texts.push(
    "2008-06-01T24",
    "2008-06-01T12:60",
    "1 June 1, 2008",
    "32 June 2008",
    "june",
    "-5000000000d",
    "constructor",
  );
  texts.push("2008-06/01", "2008-06-01T12:30:05+25:00");
  for (const text of texts) assert.equal(timeOf(text), undefined, text);
});

test("a stretch of time has an open side, or says what is wrong", () => {
  assert.deepEqual(whenOf({ from: "2008", to: "2009" }).span, [at("2008-01-01T00:00:00Z"), at("2010-01-01T00:00:00Z")]);
  assert.deepEqual(whenOf({ from: "2008" }).span, [at("2008-01-01T00:00:00Z"), Infinity]);
  assert.deepEqual(whenOf({ to: "2008" }).span, [-Infinity, at("2009-01-01T00:00:00Z")]);
  assert.deepEqual(whenOf({}), { from: "", to: "", wrong: {}, span: undefined });
  assert.equal(whenOf({ from: "2009", to: "2008" }).wrong.to, "earlier than the first date");
  const wrong = whenOf({ from: "20xx", to: "2008" });
  assert.match(wrong.wrong.from ?? "", /not a time/);
  assert.equal(wrong.span, undefined);
});

test("times are written", () => {
  const time = at("2001-02-02T09:05:07Z");
  assert.deepEqual([day(time), month(time), clock(time)], ["2 Feb 2001", "Feb 2001", "09:05"]);
  assert.deepEqual([iso(time), digits(time)], ["2001-02-02T09:05:07Z", "20010202090507"]);
  assert.deepEqual([iso(0), iso(Infinity)], ["", ""]);
  assert.equal(digits(at("0033-01-01T00:00:00Z")), "00330101000000");
  assert.equal(timeOf(digits(time)), time);
  assert.equal(timeOf(iso(time)), time);
  assert.equal(secondsOf("2001-02-02T09:05:07Z"), time);
  assert.equal(secondsOf(null), 0);
  assert.equal(ofYear(at("2001-02-01T12:00:00Z")), 31.5);
});

test("a length is in the unit that fits", () => {
  assert.equal(length(1), "one capture");
  assert.equal(length(7200), "2 h");
  assert.equal(length(3 * DAY), "3 days");
  assert.equal(length(YEAR), "12 months");
  assert.equal(length(2.5 * YEAR), "2.5 years");
});

test("numbers are written and kept within bounds", () => {
  assert.deepEqual([count(999), count(1000), count(1234567)], ["999", "1,000", "1,234,567"]);
  assert.deepEqual([many(1, "link"), many(2000, "link"), many(0, "page")], ["1 link", "2,000 links", "0 pages"]);
  assert.deepEqual([sum([1, 2, 3]), most([1, 3, 2]), most([])], [6, 3, 0]);
  assert.deepEqual([within(5, 0, 3), within(-1, 0, 3), within(2, 0, 3), within(2, 0, -1)], [3, 0, 2, 0]);
});

test("text from a store cannot change its surroundings", () => {
  assert.equal(safe("a\u202eb\u0000c\u200bd"), "a\ufffdb\ufffdc\ufffdd");
  const long = safe("x".repeat(60_000));
  assert.equal(long.length, 1801);
  assert.equal(safe("<b>"), "<b>");
});

test("URLs are named without what every row has", () => {
  assert.equal(bare("https://gcc.gnu.org/java/"), "gcc.gnu.org/java/");
  assert.deepEqual(["https://u:p@a.example:80/x", "a.example/x", "mailto:a@b"].map(hostOf), ["a.example:80", "", ""]);
  const urls = ["http://a.example/x", "https://a.example/x", "https://b.example/"];
  assert.deepEqual(namesOf(urls, "https://a.example/"), ["/x (http)", "/x", "b.example/"]);
  assert.deepEqual(pathsOf(["https://a.example", "https://a.example/?q=1"]), ["/", "/?q=1"]);
});

test("a name is cut where it differs from those beside it", () => {
  const same = "a.example/a-very-long-way/that-is-the-same-in-all/";
  const names = [`${same}one/index.html`, `${same}two/index.html`, "b.example/"];
  const branches = branchesOf(names).map((of) => of());
  assert.deepEqual(branches, [[same.length], [same.length], []]);
  const [one, two] = names.map((name, at) => cut(name, 30, branches[at]));
  assert.ok(one !== two && one.length <= 30 && one.includes("one") && two.includes("two"), `${one} ${two}`);
  assert.notEqual(one, cut(names[0], 30));
  assert.equal(cut("short", 30), "short");
  for (let width = 2; width < 60; width += 1) assert.ok(cut(names[0], width, branches[0]).length <= width, `${width}`);
});

test("a name fits into its width, measured once", () => {
  let asked = 0;
  const context = {
    font: "12px test",
    measureText: (/** @type {string} */ text) => {
      asked += 1;
      return { width: text.length * 6 };
    },
  };
  assert.equal(fitted(context, "abc", 18), "abc");
  const shown = fitted(context, "a-name-that-is-too-long", 60);
  assert.ok(shown.length <= 10 && shown.includes("…"), shown);
  const before = asked;
  assert.equal(fitted(context, "a-name-that-is-too-long", 60), shown);
  assert.equal(asked, before);
});

test("lines of CSV are quoted as RFC 4180 says", () => {
  const lines = [
    { name: 'say "x"', value: "a,b", more: "no" },
    { name: "two\r\nlines", value: undefined },
    { name: 7, value: 0 },
    { name: null, value: "plain" },
  ];
  const text = 'name,value\r\n"say ""x""","a,b"\r\n"two\r\nlines",\r\n7,0\r\n,plain\r\n';
  assert.equal(csvOf(["name", "value"], lines), text);
  assert.equal(csvOf(["a,b"], []), "a,b\r\n");
  const formulas = ["=1+1", "+a", "-a.example", "@a"].map((host) => ({ host, number: -1 }));
  const shown = csvOf(["host", "number"], formulas);
  assert.equal(shown, "host,number\r\n'=1+1,-1\r\n'+a,-1\r\n'-a.example,-1\r\n'@a,-1\r\n");
});

test("lines of JSON have their columns only", () => {
  assert.deepEqual(JSON.parse(jsonOf(["a"], [{ a: [1], b: 2 }])), [{ a: [1] }]);
});

test("a file is named after a URL", () => {
  assert.equal(nameFor("https://a.example/x?y=1&z"), "a.example-x-y-1-z");
  assert.equal(nameFor(`http://a.example/${"x".repeat(90)}`).length, 60);
});
