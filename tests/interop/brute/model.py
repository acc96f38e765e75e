"""What a store holds after builds, updates and removals, in plain dictionaries, written from the book alone.

Nothing here is fast, and nothing is shared with Webstrata: each rule is the sentence of the book that it quotes.
"""

import datetime
import re
from dataclasses import dataclass, field
from urllib.parse import quote, unquote, urljoin, urlsplit

GOOD, END, SERVER = 200, "end", "server"
FOREVER = 253402300799


def second(text):
    """Seconds since 1970 of 14 digits."""
    when = datetime.datetime.strptime(text, "%Y%m%d%H%M%S").replace(tzinfo=datetime.timezone.utc)
    return int(when.timestamp())


def moment(seconds):
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)


def iso(seconds):
    return moment(seconds).strftime("%Y-%m-%dT%H:%M:%SZ")


def digits(seconds):
    return moment(seconds).strftime("%Y%m%d%H%M%S")


def canonical(url, base=None):
    """The WHATWG form without a fragment, as far as the made-up URLs need it."""
    parts = urlsplit(urljoin(base, url) if base else url)
    host = parts.hostname.encode("idna").decode() if not parts.hostname.isascii() else parts.hostname
    port = parts.port
    if port and port != {"http": 80, "https": 443}[parts.scheme]:
        host += f":{port}"
    path = quote(parts.path or "/", safe="%/:@!$&'()*+,;=~-._|[]")
    query = "?" + quote(parts.query, safe="%/:@!$&()*+,;=~-._?|[]^") if "?" in url.split("#")[0] else ""
    return f"{parts.scheme}://{host}{path}{query}"


def host(url):
    return urlsplit(url).hostname


SUFFIXES = {"co.uk", "org", "example"}


def domain(name):
    """The registrable domain, for the suffixes of the made-up hosts."""
    labels = name.split(".")
    for at in range(1, len(labels)):
        if ".".join(labels[at:]) in SUFFIXES:
            return ".".join(labels[at - 1 :])
    return name


def after_host(url):
    parts = urlsplit(url)
    return parts.path + ("?" + parts.query if parts.query or url.endswith("?") else "")


def below(name, top):
    return name == top or name.endswith("." + top)


def matches(url, how, pattern):
    """Whether a URL is one of those that a URL, a host, a domain or a prefix means."""
    if how in ("exact", "url"):
        return url == pattern
    if how == "host":
        return host(url) == host(pattern)
    if how == "domain":
        return below(host(url), host(pattern))
    if how == "prefix":
        return host(url) == host(pattern) and after_host(url).startswith(after_host(pattern))
    return urlkey(url) == urlkey(pattern)


def urlkey(url):
    """The urlkey: without the scheme, www., letter case, a slash at the end, and the order of arguments."""
    parts = urlsplit(re.sub(r"%[2-7][0-9a-fA-F]", lambda match: unquote(match[0]), url).lower())
    name = re.sub(r"^www\d*\.", "", parts.hostname)
    port = f":{parts.port}" if parts.port else ""
    path = parts.path.rstrip("/") or "/"
    query = "?" + "&".join(sorted(parts.query.split("&"))) if parts.query else ""
    return ",".join(reversed(name.split("."))) + port + ")" + path + query


@dataclass
class Input:
    """A capture as a crawl file has it. `links` are spelled as in the page; None: nothing is said of them."""

    url: str
    ts: int
    status: int | None = None
    links: list | None = None
    digest: str | None = None
    refers_to: tuple | None = None  # (URL or None, second or None); a revisit
    is_unmodified: bool = False  # a revisit with the profile server-not-modified
    redirect: str | None = None
    cut: str | None = None  # why the body was not read whole


@dataclass
class Capture:
    """A capture in the store. `links` None: unknown. A cut one has the links that were found."""

    url: str
    ts: int
    status: int
    links: frozenset | None
    payloads: dict = field(default_factory=dict)  # of each digest the links, and their spellings for other URLs
    revisits: list = field(default_factory=list)
    is_fixed: bool = False  # a revisit that keeps what it took from a removed capture
    is_silent: bool = False  # a revisit without a status: beside a status it does not count
    own: frozenset = frozenset()  # links of other records of its second, of a revisit
    cut: str | None = None  # why it is cut

    def tells(self, failures="end"):
        """What the capture says of its page: None nothing, False that the page is gone, True that it is there."""
        if self.status < 400:
            return True
        counts = {"ignore": False, "all": True, "end": self.status < 500 and self.status != 429}[failures]
        return False if counts else None

    @property
    def is_whole(self):
        """Whether it tells of every link whether the page had it."""
        return self.links is not None and not self.cut

    def has(self, targets):
        """Whether the page had one of some links; None: unknown."""
        return True if self.links and self.links & set(targets) else False if self.is_whole else None


class Store:
    def __init__(self, redirects=False):
        self.redirects = redirects
        self.pages = {}
        self.rules = []
        self.is_whole = True  # nothing was ever removed
        self.leftover = set()  # URLs that a removal without a merge leaves in the list

    # Builds, updates and removals.

    def add(self, inputs):
        for one in inputs:
            self.put(one)
        self.resolve()

    def put(self, one):
        """Statuses: "A status means the same in every format"."""
        status = one.status or GOOD
        if not 200 <= status < 1000:
            return
        if any(rule.takes_page(one.url, one.ts) for rule in self.rules):
            return
        is_revisit = status == 304 or (one.refers_to is not None and status == GOOD)
        new = Capture(one.url, one.ts, GOOD if is_revisit else status, None)
        new.is_silent = is_revisit and one.status is None and not one.is_unmodified
        if is_revisit:
            new.revisits.append(one)
        elif status >= 400:
            new.links = frozenset()
        elif 300 <= status < 400:
            target = one.redirect or (one.links[0] if one.links and len(one.links) == 1 else None)
            new.links = self.allowed(one, [target] if self.redirects and target else [])
        elif status not in (200, 203, 206):
            new.links = frozenset()
        elif one.links is not None:
            new.cut = one.cut or ("partial" if status == 206 else None)
            links = one.links + ([one.redirect] if one.redirect and self.redirects else [])
            new.links = self.allowed(one, links)
            if one.digest is not None:
                new.payloads = {one.digest: (new.links, list(links))}
        captures = self.pages.setdefault(one.url, {})
        old = captures.get(one.ts)
        captures[one.ts] = new if old is None else together(old, new)

    def allowed(self, one, links):
        urls = {canonical(link, one.url) for link in links}
        return frozenset(u for u in urls if not any(rule.takes_link(u, one.ts) for rule in self.rules))

    def resolve(self):
        for page in self.pages:
            for capture in self.captures(page):
                if capture.revisits and not capture.is_fixed:
                    capture.status, capture.links, capture.cut = GOOD, None, None
                    for one in capture.revisits:
                        capture.status, capture.links, capture.cut = self.revisited(one)
                    if capture.links is not None:
                        capture.links |= capture.own

    def originals(self, one):
        """The captures that a revisit refers to. One that has a status refers to captures with the status 200."""
        page, at = (None, None) if one.is_unmodified else one.refers_to or (None, None)
        own = self.pages.get(one.url, {})
        known = [c for c in own.values() if (c.status == GOOD or c.cut) and c.links is not None]
        if page and page != one.url:
            others = [c for captures in self.pages.values() for c in captures.values()]
            lends = lambda c: (c.status == GOOD or c.cut) and not c.revisits and c.links is not None
            return sorted((c for c in others if lends(c) and has(c, one)), key=wholeness)
        if at is None:
            return sorted((c for c in known if c.ts < one.ts), key=lambda c: c.ts)[-1:]
        same = sorted((c for c in known if not c.revisits and has(c, one)), key=lambda c: c.ts)
        if same:
            return [c for c in same if c.ts < one.ts][-1:] or same[:1]
        if at in own:
            fits = own[at].status == GOOD or own[at].cut or one.status is None
            return [own[at]] if fits and (not own[at].revisits or is_copy(own[at])) else []
        return []

    def revisited(self, one):
        """The status and the links of a revisit, and why what it refers to is cut."""
        status, known, cut = GOOD, None, None
        # Those that were read whole come first.
        for original in self.originals(one):
            if original.links is None:
                continue
            if known is None:
                status, cut = original.status, original.cut
            # A revisit that finds its capture by the digest has the links of the responses with this digest. A link
            # that was taken out of the original is out under its URL there.
            by_digest = has(original, one) and not one.is_unmodified
            found, raw = original.payloads[one.digest] if by_digest else (original.links, [])
            if original.url == one.url:
                links = found & original.links
            else:
                kept = [link for link in raw if canonical(link, original.url) in original.links]
                links = frozenset(canonical(link, one.url) for link in kept)
            links = frozenset(u for u in links if not any(r.takes_link(u, one.ts) for r in self.rules))
            known = links if known is None else known | links
        return status, known, cut

    def remove(self, rule, merges=True):
        self.is_whole = False
        before = set(self.urls())
        touched = {
            (c.url, c.ts)
            for captures in self.pages.values()
            for c in captures.values()
            if rule.takes_page(c.url, c.ts) or (c.links and any(rule.takes_link(u, c.ts) for u in c.links))
        }
        for captures in self.pages.values():
            for capture in captures.values():
                sources = [o for one in capture.revisits for o in self.originals(one)]
                if capture.links is not None and any((o.url, o.ts) in touched for o in sources):
                    capture.is_fixed = True
        self.rules.append(rule)
        for url in list(self.pages):
            kept = {t: c for t, c in self.pages[url].items() if not rule.takes_page(url, t)}
            for capture in kept.values():
                capture.own = frozenset(u for u in capture.own if not rule.takes_link(u, capture.ts))
                if capture.links:
                    capture.links = frozenset(u for u in capture.links if not rule.takes_link(u, capture.ts))
            if kept:
                self.pages[url] = kept
            else:
                del self.pages[url]
        self.leftover |= before
        if merges:
            self.merged()

    def merged(self):
        self.leftover = set()

    # What it holds.

    def used(self):
        return set(self.pages) | {u for c in self.all() for u in c.links or ()}

    def urls(self):
        return self.used() | self.leftover

    def all(self):
        return (c for captures in self.pages.values() for c in captures.values())

    def captures(self, url):
        return [c for _, c in sorted(self.pages.get(url, {}).items())]

    def deciding(self, captures, at, failures="end", age=None):
        """As of a time, the latest capture that counts decides."""
        counting = [c for c in captures if c.ts <= at and c.tells(failures) is not None]
        latest = max(counting, key=lambda c: c.ts, default=None)
        return None if latest and age is not None and latest.ts < at - age else latest

    def links_at(self, url, at, failures="end", age=None):
        """The links of a page as of a time; None: unknown."""
        latest = self.deciding(self.captures(url), at, failures, age)
        return frozenset() if latest is None else latest.links

    def links(self, url, window):
        """Links in a window, and whether there may be more."""
        if "at" in window:
            rules = window.get("failures", "end"), window.get("age")
            latest = self.deciding(self.captures(url), window["at"], *rules)
            captures = [latest] if latest else []
        else:
            first, last = window.get("from", -FOREVER), window.get("to", FOREVER)
            captures = [c for c in self.captures(url) if first <= c.ts <= last]
        return {u for c in captures for u in c.links or ()}, any(not c.is_whole for c in captures)

    def last_known(self, url, window):
        """As of a time, the links that a page had when they were last known, if they are unknown."""
        failures, age = window.get("failures", "end"), window.get("age")
        latest = self.deciding(self.captures(url), window["at"], failures, age)
        found = set()
        for link in {u for c in self.captures(url) for u in c.links or ()} if latest else ():
            before = [c for c in self.captures(url) if c.ts <= latest.ts and c.tells(failures) is not None]
            telling = [c for c in before if c.has([link]) is not None]
            if latest.has([link]) is None and telling and telling[-1].has([link]):
                if age is None or telling[-1].ts >= window["at"] - age:
                    found.add(link)
        return found

    def sources(self, target, window):
        """Pages that link to a URL in a window, and those of which that is unknown."""
        yes, unknown = set(), set()
        for page in self.pages:
            links, is_unknown = self.links(page, window)
            if target in links:
                yes.add(page)
            elif is_unknown and any(target in (c.links or ()) for c in self.captures(page)):
                unknown.add(page)
        return yes, unknown

    def spellings(self, url):
        return {u for u in self.urls() if urlkey(u) == urlkey(url)}

    def lifespans(self, page, link):
        """Runs of captures that have a link. They pass over unknown links and failures of the server."""
        return [(stay["first"], stay["last"]) for stay in self.stays(page, {link})]

    def runs(self, page, link):
        """As lifespans, but they also end before a cut capture in which the link was not found."""
        runs, is_open = [], False
        for capture in self.captures(page):
            if capture.tells() is None or capture.has({link}) is None and not capture.cut:
                continue
            if capture.has({link}):
                runs = runs if is_open else runs + [(capture.ts, capture.ts)]
                runs[-1] = (runs[-1][0], capture.ts)
            is_open = bool(capture.has({link}))
        return runs

    def telling(self, page):
        """Whole captures, and failures that end the page."""
        return [c for c in self.captures(page) if c.tells() is not None and c.is_whole]

    def stays(self, page, targets):
        stays, is_first = [], True
        for capture in self.captures(page):
            if capture.tells() is None or capture.has(targets) is None:
                continue
            if capture.has(targets):
                if not stays or stays[-1]["gone"] is not None:
                    began = "returned" if stays else "found" if is_first else "new"
                    stays.append({"first": capture.ts, "last": capture.ts, "gone": None, "began": began})
                stays[-1]["last"] = capture.ts
            elif stays and stays[-1]["gone"] is None:
                stays[-1]["gone"] = capture.ts
            is_first = False
        return stays

    def unknown_intervals(self, page, targets):
        """From a capture that leaves the links unknown up to the next one that tells."""
        intervals, since = [], None
        for capture in self.captures(page):
            if capture.has(targets) is None:
                since = capture.ts if since is None else since
            elif capture.tells() is not None and since is not None:
                intervals.append((since, capture.ts - 1))
                since = None
        return intervals + ([(since, None)] if since is not None else [])


def has(capture, revisit):
    """Whether a capture has the digest of a revisit."""
    return revisit.digest in capture.payloads


def wholeness(capture):
    """What was read whole is less than what is cut, for the reasons in their order."""
    reasons = ["truncated", "short", "damaged", "encoding", "segments", "partial"]
    return (1 + reasons.index(capture.cut) if capture.cut else 0, capture.status)


def is_copy(capture):
    """Whether it is a revisit of another URL."""
    return any((one.refers_to or (None,))[0] not in (None, one.url) for one in capture.revisits)


def is_open(capture):
    """Whether it is a revisit, or a capture of which nothing but its status is known."""
    return bool(capture.revisits) or capture.links is None


def rank(capture):
    """Whole pages come before cut ones, and these before all else. A revisit counts as 200."""
    if is_open(capture):
        return (3, 0) if capture.is_silent else (0, GOOD)
    return (0 if capture.status in (200, 203) and not capture.cut else 1 if capture.cut else 2, capture.status)


def together(old, new):
    """Two captures of a URL in one second are one capture. It has the lower status, and the links of both; a failure
    adds nothing to what is no failure, a revisit nothing to a response, and silence about the status nothing to a
    status. If only revisits have the lowest status, it is a revisit."""
    if old.is_silent != new.is_silent:
        return old if new.is_silent else new
    if old.status >= 400 or new.status >= 400:
        return min(old, new, key=lambda c: c.status)
    lowest = [c for c in (old, new) if rank(c) == min(rank(old), rank(new))]
    responses = [c for c in (old, new) if not is_open(c)]
    links = frozenset().union(old.own, new.own, *(c.links for c in responses))
    # Of several with one status, a response says more than a revisit.
    least = min(lowest, key=is_open)
    payloads = {}
    for capture in [] if is_open(least) else [c for c in lowest if not is_open(c)]:
        for digest, (found, raw) in capture.payloads.items():
            before = payloads.get(digest, (frozenset(), []))
            payloads[digest] = before[0] | found, before[1] + raw
    return Capture(
        old.url,
        old.ts,
        least.status,
        None if is_open(least) else links,
        payloads,
        old.revisits + new.revisits if is_open(least) else [],
        is_silent=old.is_silent and new.is_silent,
        own=links if is_open(least) else frozenset(),
        cut=least.cut,
    )


@dataclass
class Rule:
    how: str  # url, host, domain or prefix
    what: str  # a URL
    of: str = "both"  # page, target or both
    first: int = -FOREVER
    last: int = FOREVER

    def takes(self, url, ts):
        return self.first <= ts <= self.last and matches(url, self.how, self.what)

    def takes_page(self, url, ts):
        return self.of != "target" and self.takes(url, ts)

    def takes_link(self, url, ts):
        return self.of != "page" and self.takes(url, ts)
