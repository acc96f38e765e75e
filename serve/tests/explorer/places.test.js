// Where things are in pictures: axes and their ticks, rows of a barcode, nodes of a neighbourhood, the calendar; and
// what is drawn as SVG. And the address.

import assert from "node:assert/strict";
import { test } from "node:test";
import { barcode } from "../../src/explorer/data/barcode.js";
import { measured, ordered } from "../../src/explorer/data/order.js";
import { degreeOf, learn, linksAt, putRings, surroundings, unsureOf } from "../../src/explorer/data/surroundings.js";
import { ticks, timeAt, xOf } from "../../src/explorer/drawing/axis.js";
import { clip } from "../../src/explorer/drawing/bars.js";
import { fitsOnPaper, partOf, ROWS_HEIGHT_MAX } from "../../src/explorer/drawing/framed.js";
import { Svg } from "../../src/explorer/drawing/svg.js";
import { addressOf, stateOf } from "../../src/explorer/page/address.js";
import { viewOf } from "../../src/explorer/page/views.js";
import { DAY, YEAR } from "../../src/explorer/text/time.js";
import { gridOf, leftsOf } from "../../src/explorer/views/backlinks/places.js";
import * as scenes from "../../src/explorer/views/barcode/scene.js";

/** @import { Neighbourhood } from "../../src/explorer/data/answers.js" */

test("an address keeps a state", () => {
  const state = { v: "backlinks", url: "http://a.example/?q=ä&b=c d", list: "a b", text: undefined, from: "" };
  assert.deepEqual(stateOf(addressOf(state)), { v: "backlinks", url: "http://a.example/?q=ä&b=c d", list: "a b" });
});

test("an address opens a view", () => {
  const views = [{}, { v: "dates" }, { url: "a" }, { v: "dates", url: "a" }, { v: "store", url: "a" }, { v: "deaths" }];
  assert.deepEqual(
    views.map((state) => viewOf(state).id),
    ["search", "search", "barcode", "dates", "store", "deaths"],
  );
  assert.equal(viewOf({ v: "nonsense", url: "a" }).id, "barcode");
});

test("a place on an axis is a time, and back", () => {
  const axis = { from: 1000, to: 5000, left: 30, width: 200 };
  assert.deepEqual([xOf(axis, 1000), xOf(axis, 5000)], [30, 230]);
  for (const time of [1000, 1234, 4999]) assert.ok(Math.abs(timeAt(axis, xOf(axis, time)) - time) < 1e-6);
});

test("ticks are in the stretch, rise, and are as far apart as they must", () => {
  for (const span of [3 * DAY, 40 * DAY, YEAR, 3 * YEAR, 12 * YEAR, 90 * YEAR]) {
    for (const width of [300, 1200]) {
      const from = 1_000_000_000;
      const named = ticks(from, from + span, width, 44).filter((tick) => tick.text);
      assert.ok(named.length > 0, `${span} ${width}`);
      for (const [place, tick] of named.entries()) {
        assert.ok(tick.time >= from && tick.time <= from + span);
        // Days of a month begin anew with it: that gap may be shorter.
        const gap = place ? ((tick.time - named[place - 1].time) / span) * width : Infinity;
        assert.ok(gap >= 40, `${span} ${width}: ${gap} pixels to ${tick.text}`);
      }
    }
  }
});

test("ticks are months, days or years, whichever there is room for", () => {
  const from = Date.UTC(2008, 0, 1) / 1000;
  /** @type {(span: number, width: number) => string[]} */
  const texts = (span, width) => ticks(from, from + span, width, 44).flatMap(({ text }) => (text ? [text] : []));
  assert.deepEqual(texts(0.9 * YEAR, 1200).slice(0, 3), ["2008", "Feb", "Mar"]);
  assert.deepEqual(texts(2 * YEAR, 600).slice(0, 4), ["2008", "Apr", "Jul", "Oct"]);
  assert.deepEqual(texts(12 * DAY, 600).slice(0, 2), ["2008"]);
  assert.deepEqual(texts(20 * YEAR, 600), [
    "2008",
    "2010",
    "2012",
    "2014",
    "2016",
    "2018",
    "2020",
    "2022",
    "2024",
    "2026",
  ]);
});

const LINKS = Array.from({ length: 40 }, (_, place) => `http://h${place % 4}.example/${place}`);
const DATA = barcode({
  ...{ epoch: 1, url: "http://h0.example/", uid: 1, direction: "out", replay: "", unknown: [], statuses: {} },
  ...{ captures: [0, DAY, DAY, DAY], links: LINKS, counts: LINKS.map(() => 1) },
  runs: LINKS.flatMap((_, place) => [place % 3, 1]),
});
const ALL = measured(DATA);

/** @param {Partial<import("../../src/explorer/views/barcode/scene.js").Choice>} chosen */
function sceneWith(chosen) {
  /** @type {import("../../src/explorer/views/barcode/scene.js").Choice} */
  const choice = { sort: "life", group: "none", across: "time", rows: "read", text: "", ...chosen };
  const scene = scenes.sceneOf(DATA, ALL, choice, ordered(ALL, choice, "h0.example"));
  scenes.fit(scene, 1000, 500);
  return scene;
}

test("each row of a barcode is found where it is", () => {
  for (const chosen of /** @type {const} */ ([
    {},
    { group: "host" },
    { rows: "all", group: "host" },
    { rows: "dense", group: "year" },
  ])) {
    const scene = sceneWith(chosen);
    const { tops, rowHeight, total } = scene.layout;
    for (let row = 0; row < ALL.length; row += 1) {
      assert.ok(row === 0 || tops[row] >= tops[row - 1] + rowHeight - 1e-9);
      assert.equal(scenes.rowAt(scene, scenes.AXIS + tops[row] + rowHeight / 2), row);
      assert.equal(scenes.rowNear(scene, tops[row]), row);
    }
    assert.equal(total, tops[ALL.length]);
    const isWhole = "rows" in chosen && chosen.rows === "all";
    if (isWhole) assert.ok(total < scene.layout.chart.height);
    assert.equal(scenes.rowAt(scene, scenes.AXIS - 1), -1);
    assert.equal(scenes.rowAt(scene, scenes.AXIS + total + 1), -1);
  }
});

test("a barcode that is saved has all rows, and very many are cut with a word", () => {
  for (const chosen of /** @type {const} */ ([
    {},
    { group: "host" },
    { rows: "all" },
    { rows: "dense", group: "year" },
  ])) {
    const scene = sceneWith(chosen);
    Object.assign(scene, { scroll: 90, from: DAY });
    const own = scenes.unrolled(scene);
    assert.deepEqual(own.order, scene.order);
    assert.deepEqual([own.scroll, own.from, own.to, own.layout.width], [0, DAY, scene.to, 1000]);
    assert.ok(own.layout.chart.height >= own.layout.total && scene.order.rows.length === ALL.length);
  }
  const scene = sceneWith({ group: "host" });
  const many = 3000;
  scene.order.rows = Array.from({ length: many }, (_, at) => ALL[at % ALL.length]);
  const { order, layout } = scenes.unrolled(scene);
  assert.ok(layout.total <= ROWS_HEIGHT_MAX && layout.total > ROWS_HEIGHT_MAX - 50);
  assert.ok(order.rows.length < many && order.groups.every((group) => group.start < order.rows.length));
  assert.equal(partOf(37, 82), "; the first 37 of 82 rows");
  assert.equal(partOf(82, 82), "");
});

test("a capture of a barcode is found where it is, across time and across captures", () => {
  for (const across of /** @type {const} */ (["time", "captures"])) {
    const scene = sceneWith({ across });
    for (let place = 0; place < 4; place += 1) {
      const x = scenes.placeOf(scene, place);
      assert.equal(scenes.captureNear(scene, x), place);
      assert.equal(scenes.tickAt(scene, { x, y: 10 }), DATA.captures[place]);
    }
    const [x1, x2] = scenes.endsOf(scene).x(ALL[0].runs[0]);
    assert.ok(x1 >= scene.layout.chart.left && x2 > x1);
  }
  const scene = sceneWith({ across: "captures" });
  assert.deepEqual(scenes.timesOf(scene), [0, 3 * DAY]);
  assert.deepEqual(scenes.unitsOf(scene, DAY, 3 * DAY), [1, 4]);
});

test("the chart of backlinks leaves room for its columns", () => {
  assert.deepEqual(leftsOf(400), { left: 144, keyLeft: 144 });
  assert.deepEqual(leftsOf(1280), { left: 540, keyLeft: 330 });
  assert.deepEqual([gridOf(400, leftsOf(400)), gridOf(1280, leftsOf(1280))], ["1fr", "314px 1fr"]);
});

/**
 * The page links to `a` from the first day to the third, and to `b` since the second; `b` links to `c`.
 * @type {Neighbourhood}
 */
const AROUND = {
  ...{ epoch: 1, url: "http://x.example/", unit: "page", centre: 0, left_out: 0, unread: 0, urls: [] },
  nodes: ["http://x.example/", "http://a.example/", "http://b.example/", "http://c.example/"],
  domains: ["x.example", "a.example", "b.example", "c.example"],
  domain: [0, 1, 2, 3],
  not_captured: [3],
  links: {
    ...{ source: [0, 0, 2], target: [1, 2, 3] },
    ...{ from: [DAY, 2 * DAY, 2 * DAY], until: [3 * DAY, null, null], unknown: [null, null, 4 * DAY] },
  },
};

test("nodes are in the ring of their distance while their links stand", () => {
  const around = surroundings(AROUND);
  const rings = new Uint8Array(4);
  /** @param {number} time */
  const ringsAt = (time) => {
    putRings(around, linksAt(around, time), rings);
    return [...rings];
  };
  assert.deepEqual(ringsAt(0), [0, 0, 0, 0]);
  assert.deepEqual(ringsAt(DAY), [0, 1, 0, 0]);
  assert.deepEqual(ringsAt(2 * DAY), [0, 1, 1, 2]);
  assert.deepEqual(ringsAt(3 * DAY), [0, 0, 1, 2]);
  assert.equal(unsureOf(around, linksAt(around, 3 * DAY), rings, 3 * DAY), 0);
  assert.equal(unsureOf(around, linksAt(around, 5 * DAY), rings, 5 * DAY), 1);
  assert.deepEqual([...around.isCaptured], [1, 1, 1, 0]);
  learn(around, DAY, { ...AROUND, links: { source: [0], target: [2], from: [DAY], until: [null] } });
  assert.deepEqual(ringsAt(DAY), [0, 0, 1, 0]);
  const degrees = degreeOf(around, [0, 10 * DAY]).map(({ time, links }) => [time / DAY, links]);
  assert.deepEqual(degrees, [
    [0, 0],
    [1, 1],
    [2, 2],
    [3, 1],
  ]);
});

test("sectors share the circle, and each node is in that of its domain", () => {
  const nodes = [
    "http://home.example/",
    ...Array.from({ length: 300 }, (_, place) => `http://d${(place * place) % 30}.example/${place}`),
  ];
  const domains = ["home.example", ...Array.from({ length: 30 }, (_, place) => `d${place}.example`)];
  const others = nodes.map((_, place) => place).slice(1);
  const { sectors, sectorOf, angle, radius } = surroundings({
    ...{ ...AROUND, nodes, domains, not_captured: [] },
    domain: nodes.map((_, place) => (place ? 1 + (((place - 1) * (place - 1)) % 30) : 0)),
    links: { source: others.map(() => 0), target: others, from: others.map(() => 0), until: others.map(() => null) },
  });
  assert.equal(sectors.length, 11);
  const shares = sectors.map(({ from, to }) => to - from);
  assert.ok(Math.abs(shares.reduce((all, share) => all + share, 0) - 2 * Math.PI) < 1e-6);
  sectors.forEach(({ from }, place) => {
    assert.ok(place === 0 || Math.abs(from - sectors[place - 1].to) < 1e-9);
  });
  for (const node of others) {
    const { from, to } = sectors[sectorOf[node]];
    assert.ok(angle[node] > from && angle[node] < to && radius[node] >= 0 && radius[node] <= 1);
  }
});

test("an SVG is well-formed, with text as text", () => {
  const svg = new Svg(100, 50, "#ffffff");
  clip(svg, 0, 0, 10, 10);
  svg.fillText('<b> & "c"', 1, 2);
  svg.restore();
  svg.shifted(3, 4, () => svg.strokeRect(0, 0, 1, 1));
  const text = svg.text(["10mm", "5mm"]);
  assert.match(text, /^<svg [^>]*width="10mm" height="5mm" viewBox="0 0 100 50">/);
  assert.ok(text.includes("&#60;b&#62; &#38; &#34;c&#34;") && !text.includes("<b>"));
  assert.equal(text.match(/<g /g)?.length, text.match(/<\/g>/g)?.length);
});

test("a picture fits on paper, whichever way it is larger", () => {
  for (const [width, height] of [
    [2000, 500],
    [500, 2000],
    [100, 100],
  ]) {
    const [wide, high] = fitsOnPaper({ width, height }).map(Number.parseFloat);
    assert.ok(Math.min(wide, high) <= 190.1 && Math.max(wide, high) <= 277.1);
    assert.ok(Math.abs(wide / high - width / height) < 0.02 * (width / height));
  }
});
