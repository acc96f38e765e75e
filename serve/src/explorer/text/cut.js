// Cuts names so that what differs between them stays.

/**
 * How many characters two texts share at their beginning.
 * @param {string} one
 * @param {string} other
 */
function shared(one, other) {
  let at = 0;
  while (at < one.length && at < other.length && one[at] === other[at]) at += 1;
  return at;
}

/** Names beside a name, in order, with which it is compared. */
const BESIDE = 200;

/**
 * Names in order: the places in the list of names by rank, the rank of each name, and how many characters each shares
 * with the name before it, by rank.
 * @typedef {{ names: string[], order: number[], rankOf: Int32Array, alike: Int32Array }} Sorted
 */

/** @type {(names: string[]) => Sorted} */
function sorted(names) {
  const order = names.map((_, at) => at).sort((one, other) => (names[one] < names[other] ? -1 : 1));
  const rankOf = new Int32Array(names.length);
  const alike = new Int32Array(names.length + 1);
  order.forEach((at, rank) => {
    rankOf[at] = rank;
    alike[rank] = rank ? shared(names[order[rank - 1]], names[at]) : 0;
  });
  return { names, order, rankOf, alike };
}

/**
 * The places at which names before a name, or with `step` 1 after it, go other ways.
 * @type {(sorted: Sorted, at: number, step: number) => number[]}
 */
function branchesBeside({ names, order, rankOf, alike }, at, step) {
  const places = [];
  let least = Infinity;
  for (let far = 1; far <= BESIDE; far += 1) {
    const other = rankOf[at] + step * far;
    if (other < 0 || other >= order.length) break;
    const both = alike[step < 0 ? other + 1 : other];
    if (both === 0) break;
    if (both >= least || names[order[other]] === names[at]) continue;
    least = both;
    places.push(both);
  }
  return places;
}

/**
 * For each name a function that gives the places, rising, at which names that begin alike go other ways. Few names are
 * shown and cut, so that nothing is compared before one is.
 * @param {string[]} names
 * @returns {(() => number[])[]}
 */
export function branchesOf(names) {
  /** @type {Sorted | undefined} */
  let known;
  return names.map((_, at) => {
    /** @type {number[] | undefined} */
    let places;
    return () => {
      known ??= sorted(names);
      places ??= [...new Set([...branchesBeside(known, at, -1), ...branchesBeside(known, at, 1)])].sort(
        (one, other) => one - other,
      );
      return places;
    };
  });
}

/**
 * A text of at most `most` characters: cut in the middle, or, where it has branches, so that what differs there stays:
 * at the last two of them, which tell it from the names that are most like it.
 * @param {string} text
 * @param {number} most
 * @param {number[]} branches
 * @returns {string}
 */
export function cut(text, most, branches = []) {
  if (text.length <= most) return text;
  if (most < 8) return `${text.slice(0, Math.max(1, most - 1))}…`;
  const head = Math.floor(most * 0.42);
  const far = branches.filter((at) => at > head && text.length - at > 3).slice(-2);
  if (!far.length) return `${text.slice(0, head)}…${text.slice(text.length - (most - head - 1))}`;
  const begin = Math.floor(most * 0.2);
  let [part, at] = [`${text.slice(0, begin)}…`, Math.max(begin, far[0] - 6)];
  if (far.length > 1 && far[1] - far[0] > most * 0.3) {
    const wide = Math.floor((most - begin) * 0.4);
    part += `${text.slice(at, at + wide)}…`;
    at = Math.max(at + wide, far[1] - 6);
  }
  return part + cut(text.slice(at), most - part.length);
}

/**
 * Whether a text fits, by font, width and text; and what is shown of one that does not.
 * @type {Map<string, boolean>}
 */
const fits = new Map();
/** @type {Map<string, string>} */
const shown = new Map();

/**
 * A text that fits into a width of a canvas, measured once; `branches` gives those of a text that does not fit.
 * @param {{ font: string, measureText: (text: string) => { width: number } }} context
 * @param {string} text
 * @param {number} width
 * @param {() => number[]} branches
 * @returns {string}
 */
export function fitted(context, text, width, branches = () => []) {
  const font = `${context.font}|${Math.round(width)}|${text}`;
  for (const known of [fits, shown]) if (known.size > 50000) known.clear();
  if (!fits.has(font)) fits.set(font, text.length <= 400 && context.measureText(text).width <= width);
  if (fits.get(font)) return text;
  const places = branches();
  const key = `${font}|${places.slice(-2)}`;
  const known = shown.get(key);
  if (known !== undefined) return known;
  let [least, most] = [1, Math.min(text.length, Math.ceil(width / 3))];
  while (least < most) {
    const middle = Math.ceil((least + most) / 2);
    if (context.measureText(cut(text, middle, places)).width <= width) least = middle;
    else most = middle - 1;
  }
  const short = cut(text, least, places);
  shown.set(key, short);
  return short;
}
