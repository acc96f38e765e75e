// How URLs are shown: as text that cannot change its surroundings, and without what every row has.

// Control, bidirectional and invisible characters, which would change how the text around them is read.
const UNSAFE = new RegExp(
  "[\\u0000-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u115f\\u1160\\u180e\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f" +
    "\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff9-\\uffff]",
  "g",
);

/**
 * Text from a store, to be shown. Long text is cut: nobody reads 60,000 characters, and layout would have to.
 * @param {string} text
 */
export function safe(text) {
  const cut = text.length > 2000 ? `${text.slice(0, 1200)}…${text.slice(-600)}` : text;
  return cut.replace(UNSAFE, "\ufffd");
}

/**
 * A URL without its scheme: "gcc.gnu.org/java/".
 * @param {string} url
 */
export const bare = (url) => safe(url.replace(/^https?:\/\//, ""));

/**
 * The host of a URL, or an empty text.
 * @param {string} url
 */
export function hostOf(url) {
  const found = /^[a-z][a-z0-9+.-]*:\/\/([^/?#]*)/i.exec(url);
  return found ? found[1].replace(/^.*@/, "") : "";
}

/**
 * The path of a URL with what follows it.
 * @param {string} url
 */
const pathOf = (url) => safe(url.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i, "") || "/");

/**
 * Names of URLs, each by `name`; of one of http and https that are both there, http says so.
 * @param {string[]} urls
 * @param {(url: string) => string} name
 */
function named(urls, name) {
  const https = new Set(urls.filter((url) => url.startsWith("https:")).map((url) => url.slice(8)));
  const isTwin = (/** @type {string} */ url) => url.startsWith("http:") && https.has(url.slice(7));
  return urls.map((url) => (isTwin(url) ? `${name(url)} (http)` : name(url)));
}

/**
 * The names of rows: without the host where it is that of the page itself.
 * @param {string[]} urls
 * @param {string} page
 */
export function namesOf(urls, page) {
  const own = hostOf(page);
  return named(urls, (url) => (own && hostOf(url) === own ? pathOf(url) : bare(url)));
}

/**
 * The names of rows that stand below the name of their host.
 * @param {string[]} urls
 */
export const pathsOf = (urls) => named(urls, pathOf);
