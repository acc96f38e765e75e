"""What all kinds of questions share: times as people write them, windows, URLs to ask about, and lists in order."""

import calendar
from dataclasses import dataclass

import grpc

from brute.model import FOREVER, digits, iso, moment, second

AGES = {"12h": 12 * 3600, "30d": 30 * 86400, "4w": 28 * 86400, "1y": 365 * 86400}
NOT_IN_STORE = "not in the store"
COMMANDS = ["command", "server"]


@dataclass
class Kind:
    weight: int
    make: object  # (rng, world) -> question, or None if there is nothing to ask
    expect: object  # (world, question, face) -> answer
    faces: dict  # face -> (world, question) -> answer
    rare: tuple = ("command", "server", "text")  # faces that start a process

    def choose(self, rng):
        """All quick faces, and now and then one that starts a process."""
        quick = [face for face in self.faces if face not in self.rare]
        slow = [face for face in self.faces if face in self.rare]
        return quick + ([rng.choice(slow)] if slow and (not quick or rng.random() < 0.35) else [])


def a_time(rng, world, is_end):
    """(text, second): a time near a capture, in one of the forms of the book."""
    captures = list(world.model.all())
    near = rng.choice(captures).ts + rng.choice([0, 0, -1, 1, 86400, -40]) if captures else second("20060615120000")
    text = rng.choice(["year", "month", "day", "digits", "iso"])
    when = moment(near)
    if text == "year":
        parts = (when.year, 12, 31) if is_end else (when.year, 1, 1)
        return f"{when.year:04}", whole(*parts, is_end)
    if text == "month":
        last = calendar.monthrange(when.year, when.month)[1]
        return when.strftime(rng.choice(["%Y-%m", "%Y%m"])), whole(when.year, when.month, last if is_end else 1, is_end)
    if text == "day":
        return when.strftime(rng.choice(["%Y-%m-%d", "%Y%m%d"])), whole(when.year, when.month, when.day, is_end)
    return (digits(near), near) if text == "digits" else (iso(near), near)


def whole(year, month, day, is_end):
    start = second(f"{year:04}{month:02}{day:02}000000")
    return start + 86399 if is_end else start


def a_window(rng, world, kinds=("all", "at", "at", "at", "seen")):
    """{"at": (text, second), ...}: all time, as of a time, or seen in a window."""
    kind = rng.choice(kinds)
    if kind == "at":
        window = {"at": a_time(rng, world, True)}
        if rng.random() < 0.25:
            window["age"] = rng.choice(list(AGES.items()))
        if rng.random() < 0.3:
            window["failures"] = (rng.choice(["end", "ignore", "all"]),) * 2
        return window
    window = {}
    if kind == "seen":
        if rng.random() < 0.8:
            window["from"] = a_time(rng, world, False)
        if rng.random() < 0.8:
            window["to"] = a_time(rng, world, True)
        if "from" in window and "to" in window and window["from"][1] > window["to"][1]:
            del window["to"]
    return window


def seconds(window):
    return {name: value for name, (_, value) in window.items()}


def options(window):
    names = {"age": "--max-age"}
    return [part for name, (text, _) in window.items() for part in (names.get(name, "--" + name), text)]


def fields(window):
    return {"max_age" if name == "age" else name: text for name, (text, _) in window.items()}


def rpc_window(world, window):
    pb, values = world.pb, seconds(window)
    if "at" in values:
        made = pb.Window(as_of=values["at"], failures=["end", "ignore", "all"].index(values.get("failures", "end")))
        if "age" in values:
            made.since = values["at"] - values["age"]
        return made
    if not values:
        return pb.Window()
    return pb.Window(seen=pb.Window.Seen(**{name: value for name, value in values.items()}))


def a_url(rng, world, is_page=False):
    """A URL of the store; now and then one that the store does not have."""
    if rng.random() < 0.02:
        return "http://nowhere.example/"
    urls = sorted(world.model.pages if is_page and world.model.pages and rng.random() < 0.9 else world.model.urls())
    return rng.choice(urls) if urls else None


def in_order(world, urls):
    """The URLs, which must be in the order of UIDs and each once."""
    uids = [world.uids[url] for url in urls]
    assert all(a < b for a, b in zip(uids, uids[1:])), f"not in the order of UIDs: {urls}"
    return sorted(urls)


def once(urls):
    assert len(set(urls)) == len(urls), f"twice: {urls}"
    return sorted(urls)


def is_there(world, *urls):
    return all(url in world.model.urls() for url in urls)


def refused(done):
    """What a command says of a URL that is not in the store."""
    code, out, err = done
    if code == 1 and ("in the store" in err or "the store has" in err) and not out:
        return NOT_IN_STORE
    assert code in (0, 1), f"exit code {code}: {err}"
    return None


def json_of(answer):
    return NOT_IN_STORE if answer.get("failed") == "NOT_IN_STORE" else None


def forever(value):
    return FOREVER if value is None else value


def rpc(call, request):
    """The answer of a gRPC call, or that the store has no such URL."""
    try:
        return call(request)
    except grpc.RpcError as error:
        if error.code() == grpc.StatusCode.NOT_FOUND:
            return NOT_IN_STORE
        raise ValueError(str(error)) from error
