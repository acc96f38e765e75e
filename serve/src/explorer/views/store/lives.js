// The plate of lives: which share of links is there after how long, of all of them and of a few hosts.

import { text } from "../../drawing/years.js";
import { cut } from "../../text/cut.js";
import { safe } from "../../text/names.js";

/** @import { HostByYear, Lives } from "../../data/answers.js" */
/** @import { Pen, Theme } from "../../drawing/canvas.js" */
/** @import { Plate } from "./plates.js" */

/**
 * A curve with its name, its colour and how thick it is.
 * @typedef {{ life: Lives, name: string, colour: string, thickness: number }} Curve
 */

/** Where the picture is, and where an age and a share are in it. */
/**
 * @typedef {{ left: number, right: number, top: number, bottom: number, end: number, x: (age: number) => number, y:
 *   (share: number) => number }} Place
 */

/** Hosts with a curve, and links that a host's curve must stand on. */
const CURVES = 4;
const BORN = 50;
/** Ages are months of 30 days. */
const MONTHS_A_YEAR = 365.2425 / 30;
const HEIGHT = 200;

/** @type {(lives: Lives) => string} */
function saidOf({ age, surviving }) {
  if (!age.length) return "No link came after the first capture of its page.";
  const inYears = (/** @type {number} */ months) => (months / MONTHS_A_YEAR).toFixed(1);
  const half = surviving.findIndex((share) => share <= 0.5);
  const share = Math.round(100 * surviving[surviving.length - 1]);
  const said =
    half >= 0
      ? `Half of the links that a page gains are gone ${inYears(age[half])} years later`
      : `${share} % of the links that a page gains are there ${inYears(age[age.length - 1])} years later`;
  return `${said} (Kaplan–Meier; links of the first capture left out).`;
}

/** @type {(width: number, end: number) => Place} */
function placeOf(width, end) {
  const [left, right, top, bottom] = [40, width - 96, 10, HEIGHT - 24];
  const x = (/** @type {number} */ age) => left + (age / end) * (right - left);
  const y = (/** @type {number} */ share) => bottom - share * (bottom - top);
  return { left, right, top, bottom, end, x, y };
}

/** @type {(context: Pen, place: Place, theme: Theme) => void} */
function drawGrid(context, { left, right, end, x, y }, theme) {
  for (const share of [0, 0.25, 0.5, 0.75, 1]) {
    context.fillStyle = theme.faint;
    context.fillRect(left, y(share), right - left, 1);
    text(context, theme, `${100 * share}%`, left - 6, y(share) + 4, { align: "right" });
  }
  const span = end / MONTHS_A_YEAR;
  const step = [0.25, 0.5, 1, 2, 5, 10, 20].find((number) => span / number <= 6) || 50;
  for (let at = 0; at <= span; at += step) {
    const name = at === 0 ? "0 years" : String(at);
    text(context, theme, name, x(at * MONTHS_A_YEAR), HEIGHT - 6, { align: "center" });
  }
}

/** @type {(context: Pen, place: Place, curve: Curve) => void} */
function drawCurve(context, { x, y }, { life, colour, thickness }) {
  context.strokeStyle = colour;
  context.lineWidth = thickness;
  context.beginPath();
  context.moveTo(x(0), y(1));
  let share = 1;
  life.age.forEach((reached, at) => {
    context.lineTo(x(reached), y(share));
    share = life.surviving[at];
    context.lineTo(x(reached), y(share));
  });
  context.stroke();
}

/**
 * Whether a name at a place touches a curve.
 * @type {(place: Place, life: Lives, name: { x: number, base: number }) => boolean}
 */
const touches = ({ x, y }, { age, surviving }, name) =>
  age.some((reached, at) => {
    const [begin, stop] = [x(reached), x(age[at + 1] ?? reached)];
    const high = y(surviving[at]) - name.base;
    return stop > name.x && begin < name.x + 90 && high > -12 && high < 5;
  });

/**
 * Names beside the ends of their curves, where they touch neither another name nor a curve.
 * @type {(context: Pen, place: Place, curves: Curve[], theme: Theme) => void}
 */
function drawNames(context, place, curves, theme) {
  /** @type {{ x: number, base: number }[]} */
  const names = [];
  const isFree = (/** @type {{ x: number, base: number }} */ own) =>
    !names.some((other) => Math.abs(other.base - own.base) < 12 && Math.abs(other.x - own.x) < 90) &&
    !curves.some(({ life }) => touches(place, life, own));
  for (const { life, name, colour } of curves) {
    const last = life.age.length - 1;
    const [x, end] = [place.x(life.age[last]) + 4, place.y(life.surviving[last])];
    const bases = [4, -8, 16, -20, 28, -32, 40, -44].map((far) => end + far);
    const isIn = (/** @type {number} */ base) => base > place.top && base <= place.bottom;
    const base = bases.find((own) => isIn(own) && isFree({ x, base: own })) ?? bases[0];
    names.push({ x, base });
    text(context, theme, name, x, base, { colour: colour === theme.accent ? colour : theme.ink2 });
  }
}

/** @type {(lives: Lives, hosts: HostByYear[], theme: Theme) => Curve[]} */
function curvesOf(lives, hosts, theme) {
  const own = hosts.filter((host) => (host.lives.at_risk[0] || 0) >= BORN).slice(0, CURVES);
  const curves = [
    { life: lives, name: "all links", colour: theme.accent, thickness: 2 },
    ...own.map((host) => ({
      life: host.lives,
      name: cut(safe(host.host), 16),
      colour: theme.bar2,
      thickness: 1,
    })),
  ];
  return curves.filter(({ life }) => life.age.length);
}

/** @type {(lives: Lives, hosts: HostByYear[]) => Plate} */
export const livesPlate = (lives, hosts) => ({
  title: "How long links live",
  said: saidOf(lives),
  height: HEIGHT,
  draw: (context, width, theme) => {
    const place = placeOf(width, Math.max(lives.age[lives.age.length - 1] ?? 0, 1));
    const curves = curvesOf(lives, hosts, theme);
    drawGrid(context, place, theme);
    for (const curve of curves) drawCurve(context, place, curve);
    drawNames(context, place, curves, theme);
  },
});
