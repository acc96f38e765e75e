#!/usr/bin/env python3
"""How fast the explorer draws large pages: 10,000 links in 1,000 captures, and 100,000 pages that link to one URL.

  explorer_speed.py [--webstrata BINARY] [--chromium BINARY] [--links N] [--captures N] [--sources N]
                    [--first MS] [--frames N] [--repeat N] [--store STORE --url URL ...]

Builds a store of two pages that are larger than most: links of the first come and go several times, and the second has
very many in-links. Opens both in headless Chromium with an empty cache, and prints the time to the first picture,
frames a second and the longest frame while rows are scrolled, time is zoomed and the pointer moves, with rows of each
height, and the bytes of the page and of its data. The browser must draw as many rows as the answer has.

With --store it opens each view of the URLs in a store that is there, and prints the times to the first picture.

Exit code 1 if a first picture takes longer than --first, if there are fewer frames a second than --frames, or if the
files of the page are larger than 120 kB in gzip. Chromium draws in software here: with a graphics card it is faster.
Needs playwright; Chromium is installed by the system.
"""
import argparse
import gzip
import json
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse
from datetime import datetime, timezone
from pathlib import Path

from explorer_browser import served
from playwright.sync_api import sync_playwright

FIRST = 883_612_800
STEP = 700_000
WIDE, HUB = "https://wide.example/", "https://hub.example/"
FILES_BYTES_MAX = 120_000

# Sends one event a frame for two seconds; gives frames a second, the longest time between two frames, and how many
# times the picture was drawn in a second.
MOVE = """(kind) => new Promise((done) => {
  const area = document.querySelector("[role=application]");
  const box = area.getBoundingClientRect();
  const times = [];
  const drawn = window.webstrata.frames;
  const turn = (now) => {
    times.push(now);
    const passed = now - times[0];
    if (passed > 2000) {
      const gaps = times.slice(1).map((time, at) => time - times[at]);
      const perSecond = (number) => (number * 1000) / passed;
      return done([perSecond(times.length - 1), Math.max(...gaps), perSecond(window.webstrata.frames - drawn)]);
    }
    const back = Math.floor(passed / 500) % 2;
    const place = { clientX: box.x + box.width * (0.4 + 0.2 * Math.sin(passed / 200)),
                    clientY: box.y + box.height * (0.5 + 0.3 * Math.cos(passed / 300)) };
    const event = { ...place, bubbles: true, cancelable: true, pointerId: 1, isPrimary: true };
    if (kind === "hover") area.dispatchEvent(new PointerEvent("pointermove", event));
    else area.dispatchEvent(new WheelEvent("wheel",
      { ...event, deltaY: (back ? -1 : 1) * (kind === "zoom" ? 20 : 40), ctrlKey: kind === "zoom" }));
    requestAnimationFrame(turn);
  };
  requestAnimationFrame(turn);
})"""


def fail(text):
    sys.exit(f"explorer_speed.py: {text}")


def digits(seconds):
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y%m%d%H%M%S")


def wide(links, captures, chance):
    """The captures of a page: each link has four runs."""
    holds = [[] for _ in range(captures)]
    for link in range(links):
        url = f"https://host-{link % 97}.example/section-{link % 13}/page-{link}.html"
        for begin in chance.sample(range(captures), 4):
            for at in range(begin, min(captures, begin + chance.randrange(1, 25))):
                holds[at].append(url)
    for at, held in enumerate(holds):
        yield {"url": WIDE, "ts": digits(FIRST + at * STEP), "links": held}


def hub(sources):
    """Pages that link to one URL, each captured two times; every third has lost the link by then."""
    for number in range(sources):
        url = f"https://s{number % 4999}.example/{number}.html"
        for again in (False, True):
            time_of = FIRST + (number % 900 + 90 * again) * STEP + number % 1000
            yield {"url": url, "ts": digits(time_of), "links": [] if again and number % 3 == 0 else [HUB]}


def opened(chromium, address):
    """A new browser context with the page at an address, drawn; the responses that it had."""
    context = chromium.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    responses = []
    page.on("response", lambda response: responses.append(response))
    page.on("pageerror", lambda error: fail(f"{address}: {error}"))
    page.goto(address)
    until = time.monotonic() + 60
    while not page.evaluate("Boolean(window.webstrata?.ready)"):
        if time.monotonic() > until:
            fail(f"{address}: nothing is drawn after a minute")
        page.wait_for_timeout(20)
    return context, page, responses


def measure(chromium, base, name, state, args):
    """Prints the figures of one page; gives what is too slow."""
    address = f"{base}/?{urllib.parse.urlencode(state)}"
    firsts = []
    for _ in range(args.repeat):
        context, page, responses = opened(chromium, address)
        firsts.append(page.evaluate("window.webstrata.first"))
        if len(firsts) < args.repeat:
            context.close()
    first = statistics.median(firsts)
    shown = page.evaluate("window.webstrata.picture()")
    [data] = [response for response in responses if "/v1/barcode" in response.url]
    answer = data.json()
    drawn = sum(len(row["runs"]) for row in shown["rows"])
    if len(shown["rows"]) != len(answer["links"]) or drawn != sum(answer["counts"]):
        fail(f"{name}: {len(shown['rows'])} rows with {drawn} bars; the answer has {len(answer['links'])} rows")
    files = {response.url: response.body() for response in responses if "/v1/" not in response.url}
    packed = sum(len(gzip.compress(body)) for body in files.values())
    print(f"{name}: {len(shown['rows'])} rows, {drawn} bars; first picture {first:.0f} ms (median of {args.repeat}); "
          f"data {data.request.sizes()['responseBodySize'] / 1000:.0f} kB; {len(files)} files, "
          f"{packed / 1000:.1f} kB in gzip")
    slow = [f"{name}: first picture after {first:.0f} ms"] if first > args.first else []
    slow += [f"{name}: files of {packed} bytes in gzip"] if packed > FILES_BYTES_MAX else []
    for rows in ("read", "dense", "all"):
        page.get_by_role("radio", name=rows, exact=True).click()
        page.wait_for_timeout(300)
        figures = []
        for kind in ("scroll", "zoom", "hover"):
            rate, longest, redrawn = page.evaluate(MOVE, kind)
            if redrawn == 0 and (kind == "zoom" or (kind == "scroll" and rows != "all")):
                fail(f"{name}, rows {rows}: the picture is not drawn at {kind}")
            figures.append(f"{kind} {rate:.0f} (longest {longest:.0f} ms, drawn {redrawn:.0f})")
            if rate < args.frames:
                slow.append(f"{name}, rows {rows}: {rate:.0f} frames a second: {kind}")
            page.keyboard.press("0")
        print(f"{name}, rows {rows}: frames a second: {', '.join(figures)}")
    context.close()
    return slow


# Plays time for two seconds; gives the pictures drawn in a second.
PLAY = """() => new Promise((done) => {
  const press = () => document.body.dispatchEvent(new KeyboardEvent("keydown", { key: " ", bubbles: true }));
  press();
  const [begin, drawn] = [performance.now(), window.webstrata.frames];
  setTimeout(() => {
    const rate = ((window.webstrata.frames - drawn) * 1000) / (performance.now() - begin);
    press();
    done(rate);
  }, 2000);
})"""


def measure_view(chromium, base, name, state, args):
    """Prints the time to the first picture of another view, and the frames while time is played in it."""
    address = f"{base}/?{urllib.parse.urlencode(state)}"
    firsts = []
    for _ in range(args.repeat):
        context, page, responses = opened(chromium, address)
        firsts.append(page.evaluate("window.webstrata.first"))
        if len(firsts) < args.repeat:
            context.close()
    first = statistics.median(firsts)
    sizes = [response.request.sizes()["responseBodySize"] for response in responses if "/v1/" in response.url]
    shown = page.evaluate("window.webstrata.picture()")
    slow = [f"{name}: first picture after {first:.0f} ms"] if first > args.first else []
    text = f"first picture {first:.0f} ms (the first one {firsts[0]:.0f}), data {sum(sizes) / 1000:.0f} kB"
    if state["v"] == "neighbourhood":
        page.keyboard.press("Home")
        rate = page.evaluate(PLAY)
        text += f"; {len(shown['nodes'])} nodes; played at {rate:.0f} frames a second"
        slow += [f"{name}: {rate:.0f} frames a second"] if rate < args.frames else []
    elif "rows" in shown:
        text += f"; {len(shown['rows'])} rows"
    print(f"{name}: {text}")
    context.close()
    return slow


def of_store(chromium, base, args):
    """Measures the views of URLs of a store."""
    slow = measure_view(chromium, base, "the store", {"v": "store"}, args)
    for url in args.url:
        for view in ({"v": "barcode"}, {"v": "barcode", "dir": "in"}, {"v": "dates"}, {"v": "neighbourhood"},
                     {"v": "neighbourhood", "unit": "host"}, {"v": "backlinks", "match": "exact"},
                     {"v": "backlinks", "match": "domain"}):
            name = " ".join([url, *view.values()])
            slow += measure_view(chromium, base, name, {**view, "url": url}, args)
    return slow


def make(crawl, store, binary, args):
    """A store of the two pages that are larger than most."""
    with open(crawl, "w", encoding="utf-8") as out:
        for line in wide(args.links, args.captures, random.Random(7)):
            out.write(json.dumps(line) + "\n")
        for line in hub(args.sources):
            out.write(json.dumps(line) + "\n")
    for command in (["build", "--out", store, crawl], ["cells", store]):
        subprocess.run([binary, *command], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--webstrata", type=Path, default="target/release/webstrata")
    parser.add_argument("--chromium", default=shutil.which("chromium") or shutil.which("chromium-browser"))
    parser.add_argument("--links", type=int, default=10_000)
    parser.add_argument("--captures", type=int, default=1000)
    parser.add_argument("--sources", type=int, default=100_000)
    parser.add_argument("--first", type=float, default=2000)
    parser.add_argument("--frames", type=float, default=30)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--store", type=Path, help="measure the views of --url in this store instead")
    parser.add_argument("--url", action="append", default=[])
    args = parser.parse_args()
    if not args.chromium:
        fail("chromium is not installed (on Debian: apt-get install chromium), or name it with --chromium")
    binary = args.webstrata.resolve()
    with tempfile.TemporaryDirectory() as directory:
        directory = Path(directory)
        crawl, store = directory / "crawl.jsonl", args.store or directory / "store"
        if not args.store:
            make(crawl, store, binary, args)
        with served(binary, store, directory / "data") as base:
            with sync_playwright() as playwright:
                chromium = playwright.chromium.launch(executable_path=args.chromium, args=["--no-sandbox"])
                if args.store:
                    slow = of_store(chromium, base, args)
                    chromium.close()
                    return fail("; ".join(slow)) if slow else None
                slow = measure(chromium, base, "links", {"url": WIDE}, args)
                slow += measure(chromium, base, "in-links", {"url": HUB, "dir": "in"}, args)
                for name, state in (("backlinks", {"v": "backlinks", "url": HUB, "match": "host"}),
                                    ("neighbourhood of the hub", {"v": "neighbourhood", "url": HUB}),
                                    ("neighbourhood of the links", {"v": "neighbourhood", "url": WIDE})):
                    slow += measure_view(chromium, base, name, state, args)
                chromium.close()
    if slow:
        fail("; ".join(slow))


if __name__ == "__main__":
    main()
