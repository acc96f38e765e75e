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

/** The names of rows: without the host of the page itself; where http and https are both there, http says so. */
export function namesOf(urls, page) {
  const own = hostOf(page);
  const https = new Set(urls.filter((url) => url.startsWith("https:")).map((url) => url.slice(8)));
  return urls.map((url) => {
    const name = own && hostOf(url) === own ? pathOf(url) : bare(url);
    return url.startsWith("http:") && https.has(url.slice(7)) ? `${name} (http)` : name;
  });
}

/** How many characters two texts share at their beginning. */
function shared(one, other) {
  let at = 0;
  while (at < one.length && at < other.length && one[at] === other[at]) at += 1;
  return at;
}

/** A text of at most `most` characters: cut in the middle, or where it begins to differ from texts beside it. */
export function cut(text, most, beside = []) {
  if (text.length <= most) return text;
  if (most < 8) return `${text.slice(0, Math.max(1, most - 1))}…`;
  const alike = Math.max(0, ...beside.filter(Boolean).map((other) => shared(text, other)));
  const head = Math.floor(most * 0.42);
  if (alike > head && text.length - alike > 3) {
    const begin = Math.floor(most * 0.25);
    return `${text.slice(0, begin)}…${cut(text.slice(Math.max(begin, alike - 2)), most - begin - 1)}`;
  }
  return `${text.slice(0, head)}…${text.slice(text.length - (most - head - 1))}`;
}

const widths = new Map();

/** A text that fits into a width of a canvas, measured once. */
export function fitted(context, text, width, beside) {
  const key = `${context.font}|${Math.round(width)}|${text}|${(beside || []).join("|").slice(0, 400)}`;
  const known = widths.get(key);
  if (known !== undefined) return known;
  let shown = text;
  if (text.length > 400 || context.measureText(text).width > width) {
    let [least, most] = [1, Math.min(text.length, Math.ceil(width / 3))];
    while (least < most) {
      const middle = Math.ceil((least + most) / 2);
      if (context.measureText(cut(text, middle, beside)).width <= width) least = middle;
      else most = middle - 1;
    }
    shown = cut(text, least, beside);
  }
  if (widths.size > 50000) widths.clear();
  widths.set(key, shown);
  return shown;
}
