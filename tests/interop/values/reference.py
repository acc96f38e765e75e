"""What is true of a store, by ways that the explorer does not ask: the command line, and the model of the brute force.

A capture is (second, status, what it shows). A stay is (first, last, gone, began): seconds, and 0 where no capture
shows that the link is gone. A row of backlinks is (pages, targets, stays, unknown intervals, state).
"""
import json
import subprocess

from brute.ask_around import expect as around_of
from brute.ask_backlinks import has_event, is_tied, rows_of, state
from brute.ask_tables import expect_overview
from brute.model import FOREVER, digits, domain, host, matches
from explorer_browser import seconds


def shows(status, is_known):
    """What the book says of a capture with this status."""
    if not is_known:
        return "unknown"
    if status >= 500 or status == 429:
        return "nothing"
    return "gone" if status >= 400 else "links"


def named(target):
    """A target as a URL."""
    return target if "://" in target else f"http://{target}/"


def stayed(telling, linked):
    """The stays of a link that is in the captures `linked`, of those that tell which links a page has."""
    stays = []
    for at, time in enumerate(telling):
        if time in linked:
            if not stays or stays[-1][2]:
                stays.append([time, time, 0, "returned" if stays else "new" if at else "found"])
            stays[-1][1] = time
        elif stays and not stays[-1][2]:
            stays[-1][2] = time
    return tuple(map(tuple, stays))


class Command:
    """What the command line says of a store."""

    def __init__(self, webstrata, store):
        self.webstrata, self.store, self.known = webstrata, store, {}

    def lines(self, name, *arguments):
        """The lines of JSON of a command."""
        key = (name, *arguments)
        if key not in self.known:
            command = [self.webstrata, name, self.store, *arguments, "--format", "json"]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            self.known[key] = [json.loads(line) for line in done.stdout.splitlines()]
        return self.known[key]

    def urls(self):
        return sorted(line["url"] for line in self.lines("uids", "--all"))

    def pages(self):
        return sorted(line["url"] for line in self.lines("uids"))

    def captures(self, url):
        """The captures of a page, (second, status, what it shows)."""
        if url not in self.pages():
            return []
        (answer,) = self.lines("captures", url)
        return [(seconds(own["time"]), own["status"], shows(own["status"], own["known"]))
                for own in answer["captures"]]

    def telling(self, url):
        return [time for time, _, shown in self.captures(url) if shown in ("links", "gone")]

    def stays(self, url, direction):
        """The stays of each link of a page, or of each page that links to it."""
        (answer,) = self.lines("links", url, "--lifespans", *(["--in"] if direction == "in" else []))
        found = {}
        for line in answer["lifespans"]:
            found.setdefault(line["link"], []).append((seconds(line["first"]), seconds(line["last"])))
        return {link: self.ended(link if direction == "in" else url, runs) for link, runs in found.items()}

    def ended(self, page, runs):
        telling = self.telling(page)
        return stayed(telling, {time for time in telling for first, last in runs if first <= time <= last})

    def links_at(self, url, at):
        (answer,) = self.lines("links", url, "--at", digits(at))
        return None if "unknown" in answer else set(answer["links"])

    def rows(self, question):
        """The rows of backlinks that a question chooses."""
        names = {"match": "--match", "unit": "--unit", "source": "--source"}
        asked = [part for name, flag in names.items() if question[name] for part in (flag, question[name])]
        asked += ["--source-match", "host"] if question["source"] else []
        asked += ["--internal"] if question["internal"] else []
        asked += [] if question["event"] == "any" else ["--" + question["event"]]
        if question["span"]:
            asked += ["--from", digits(question["span"][0]), "--to", digits(question["span"][1])]
        time = lambda text: seconds(text) if text else 0
        return {
            row.get("name") or row["page"]: (
                row.get("pages", 1), row["targets"],
                tuple((time(s["first"]), time(s["last"]), time(s["gone"]), s["began"]) for s in row["stays"]),
                tuple((time(a), time(b)) for a, b in row.get("unknown", [])), row["links"])
            for row in self.lines("backlinks", question["url"], *asked)}

    def around(self, url, unit, at):
        """(source, target, from, until, state, unknown since) of the links around a page at a time, or at any."""
        asked = ["--unit", unit, "--limit", "0", *(["--at", digits(at)] if at else [])]
        return [(r["source"], r["target"], r["from"], r["until"] or "", r["links"], r.get("unknown") or "")
                for r in self.lines("neighbourhood", url, *asked)]

    def overview(self):
        return self.lines("overview")[0]

    def deaths(self, match, name):
        """(page, died, status, seen, returned, linking, unknown, linkers) of each death."""
        asked = [] if match == "store" else [f"--{match}", name]
        time = lambda text: seconds(text) if text else 0
        return [(row["page"], time(row["died"]), row["status"], time(row["seen"]), time(row["returned"]),
                 row["linking"], row.get("unknown") or 0, tuple(row["linkers"]))
                for row in self.lines("deaths", *asked, "--linkers", "100", "--limit", "0")]

    def in_links(self, url):
        return len(self.stays(url, "in"))


class Model(Command):
    """What the book says of the crawl that a store was made of; where the model has no such question, the command."""

    def __init__(self, world):
        super().__init__(world.binary, world.store)
        self.world, self.model = world, world.model

    def captures(self, url):
        return [(c.ts, c.status, shows(c.status, c.links is not None)) for c in self.model.captures(url)]

    def stays(self, url, direction):
        if direction == "out":
            pairs = [(link, url, link) for link in {u for c in self.model.captures(url) for u in c.links or ()}]
        else:
            pairs = [(page, page, url) for page in self.model.pages]
        found = {name: self.shaped(self.model.stays(page, {link})) for name, page, link in pairs}
        return {name: stays for name, stays in found.items() if stays}

    @staticmethod
    def shaped(stays):
        return tuple((stay["first"], stay["last"], stay["gone"] or 0, stay["began"]) for stay in stays)

    def links_at(self, url, at):
        return self.model.links_at(url, at)

    def rows(self, question):
        asked = {**question, "url": named(question["url"]), "source_match": "host"}
        asked["source"] = question["source"] and named(question["source"])
        if is_tied(self.world, asked):
            return super().rows(question)
        _, _, rows = rows_of(self.world, asked)
        first, last = question["span"] or (-FOREVER, FOREVER)
        return {
            row.get("name") or row["page"]: (
                row["pages"], row["targets"], self.shaped(row["stays"]),
                tuple((a, b or 0) for a, b in row["unknown"]), state(row, last))
            for row in rows if has_event(row, question["event"], first, last)}

    def around(self, url, unit, at):
        if unit != "page":
            return super().around(url, unit, at)
        found = around_of(self.world, {"url": url, "at": at and (None, at), "hops": 2, "unit": unit}, "command")
        return [tuple(value or "" for value in line) for line in found]

    def deaths(self, match, name):
        found = []
        for page in self.model.pages:
            if match != "store" and not matches(page, match, named(name)):
                continue
            yes, unknown = self.model.sources(page, {"at": FOREVER})
            links = (len(yes), len(unknown), tuple(yes))
            seen, own = 0, []
            for capture in self.model.captures(page):
                if capture.tells() is True:
                    seen = capture.ts
                    if own and not own[-1][3]:
                        own[-1][3] = seen
                elif capture.tells() is False and seen and (not own or own[-1][3]):
                    own.append([capture.ts, capture.status, seen, 0])
            found += [(page, *death, *links) for death in own]
        return found

    def overview(self):
        """That of the command, with the numbers of all years as the model has them."""
        answer = json.loads(json.dumps(super().overview()))
        expected = expect_overview(self.world, {}, "command")
        for name in answer["overview"]["all"]:
            answer["overview"]["all"][name] = expected.get(name, answer["overview"]["all"][name])
        return answer


def directory(url):
    """The host, and the first step of the path if there is another one below it."""
    name, *steps = url.split("://")[1].split("?")[0].split("/")
    return f"{name}/{steps[0]}/" if len(steps) > 1 else f"{name}/"


def own(url, unit):
    """The page, directory, host or domain that a URL belongs to."""
    of = {"page": str, "directory": directory, "host": host, "domain": lambda url: domain(host(url))}
    return of[unit](url)
