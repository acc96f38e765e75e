// How URLs are shown: as text that cannot change its surroundings, without what every row has, and cut so that what
// differs stays.

// Control, bidirectional and invisible characters, which would change how the text around them is read.
const UNSAFE = new RegExp(
  "[\\u0000-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u115f\\u1160\\u180e\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f" +
    "\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff9-\\uffff]",
  "g",
);

/** Text from a store, to be shown. Long text is cut: nobody reads 60,000 characters, and layout would have to. */
export function safe(text) {
  const cut = text.length > 2000 ? `${text.slice(0, 1200)}…${text.slice(-600)}` : text;
  return cut.replace(UNSAFE, "\ufffd");
}

/** A URL without its scheme: "gcc.gnu.org/java/". */
export const bare = (url) => safe(url.replace(/^https?:\/\//, ""));

/** The host of a URL, or an empty text. */
export function hostOf(url) {
  const found = /^[a-z][a-z0-9+.-]*:\/\/([^/?#]*)/i.exec(url);
  return found ? found[1].replace(/^.*@/, "") : "";
}

/** The path of a URL with what follows it. */
const pathOf = (url) => safe(url.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i, "") || "/");

/** Names of URLs, each by `name`; of one of http and https that are both there, http says so. */
function named(urls, name) {
  const https = new Set(urls.filter((url) => url.startsWith("https:")).map((url) => url.slice(8)));
  const isTwin = (url) => url.startsWith("http:") && https.has(url.slice(7));
  return urls.map((url) => (isTwin(url) ? `${name(url)} (http)` : name(url)));
}

/** The names of rows: without the host where it is that of the page itself. */
export function namesOf(urls, page) {
  const own = hostOf(page);
  return named(urls, (url) => (own && hostOf(url) === own ? pathOf(url) : bare(url)));
}

/** The names of rows that stand below the name of their host. */
export const pathsOf = (urls) => named(urls, pathOf);

/** How many characters two texts share at their beginning. */
function shared(one, other) {
  let at = 0;
  while (at < one.length && at < other.length && one[at] === other[at]) at += 1;
  return at;
}

/** Names beside a name, in order, with which it is compared. */
const BESIDE = 200;

/**
 * For each name a function that gives the places, rising, at which names that begin alike go other ways. Few names are
 * shown and cut, so that nothing is compared before one is.
 */
export function branchesOf(names) {
  let order;
  const placeOf = new Int32Array(names.length);
  const alike = new Int32Array(names.length + 1);
  function compare() {
    order = names.map((_, at) => at).sort((one, other) => (names[one] < names[other] ? -1 : 1));
    order.forEach((at, place) => {
      placeOf[at] = place;
      alike[place] = place ? shared(names[order[place - 1]], names[at]) : 0;
    });
  }
  function placesOf(at) {
    if (!order) compare();
    const places = new Set();
    for (const step of [-1, 1]) {
      let least = Infinity;
      for (let far = 1; far <= BESIDE; far += 1) {
        const other = placeOf[at] + step * far;
        if (other < 0 || other >= order.length) break;
        const both = alike[step < 0 ? other + 1 : other];
        if (both === 0) break;
        if (both < least && names[order[other]] !== names[at]) places.add((least = both));
      }
    }
    return [...places].sort((one, other) => one - other);
  }
  return names.map((_, at) => {
    let known;
    return () => (known ??= placesOf(at));
  });
}

/**
 * A text of at most `most` characters: cut in the middle, or, where it has branches, so that what differs there stays:
 * at the last two of them, which tell it from the names that are most like it.
 */
export function cut(text, most, branches = []) {
  if (text.length <= most) return text;
  if (most < 8) return `${text.slice(0, Math.max(1, most - 1))}…`;
  const head = Math.floor(most * 0.42);
  const far = branches.filter((at) => at > head && text.length - at > 3).slice(-2);
  if (!far.length) return `${text.slice(0, head)}…${text.slice(text.length - (most - head - 1))}`;
  const begin = Math.floor(most * 0.2);
  let [shown, at] = [`${text.slice(0, begin)}…`, Math.max(begin, far[0] - 6)];
  if (far.length > 1 && far[1] - far[0] > most * 0.3) {
    const wide = Math.floor((most - begin) * 0.4);
    shown += `${text.slice(at, at + wide)}…`;
    at = Math.max(at + wide, far[1] - 6);
  }
  return shown + cut(text.slice(at), most - shown.length);
}

const widths = new Map();

/** A text that fits into a width of a canvas, measured once; `branches` gives those of a text that does not fit. */
export function fitted(context, text, width, branches = () => []) {
  const font = `${context.font}|${Math.round(width)}|${text}`;
  if (widths.size > 50000) widths.clear();
  if (!widths.has(font)) widths.set(font, text.length <= 400 && context.measureText(text).width <= width);
  if (widths.get(font)) return text;
  const places = branches();
  const key = `${font}|${places.slice(-2)}`;
  const known = widths.get(key);
  if (known !== undefined) return known;
  let [least, most] = [1, Math.min(text.length, Math.ceil(width / 3))];
  while (least < most) {
    const middle = Math.ceil((least + most) / 2);
    if (context.measureText(cut(text, middle, places)).width <= width) least = middle;
    else most = middle - 1;
  }
  const shown = cut(text, least, places);
  widths.set(key, shown);
  return shown;
}
