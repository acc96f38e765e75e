#!/usr/bin/env python3
"""Every value that the explorer shows or saves, compared with the command line and with the model of the brute force.

  explorer_values.py [--webstrata BINARY] [--chromium BINARY] [--values N] [--seed N] [CAPTURES ...]

Each made-up crawl has failures (404, 410, 503, 429), revisits without their original, captures that say nothing of
links, removals, and several rows of updates; see `brute_force.py`. What is right comes from the model of that script,
or from the command line; real CAPTURES, each file an update, are compared with the command line alone. For pages and
dates of each store, Chromium opens all views, and the script reads what they draw (`window.webstrata`), their heads,
tables and files (CSV, JSON). A value is one bar, one row with its stays, one number of a period, one capture, one node,
one line of a file, or one written fact. Prints how many values each view has and how many are wrong, and the first
that are; exit code 1 if one is wrong. The same seed compares the same.
"""
import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.parse
from pathlib import Path

from brute.crawl import make
from brute.faces import Failed, World, stubs
from brute.model import digits
from explorer_browser import Browser, served
from playwright.sync_api import Error, sync_playwright
from values.around import check_neighbourhood
from values.dead import check_deaths
from values.linkers import check_backlinks, check_beside, questions
from values.page import check_barcode, check_dates
from values.reference import Command, Model
from values.tally import Tally
from values.whole import check_search, check_store
from values.words import KEEP

HERE = Path(__file__).parent
# How much larger made-up crawls are than those of the brute force, and pages that are opened of each.
SCALE = 4
PAGES = 8


class Tab(Browser):
    """A tab in which addresses follow each other without loading the page again, as where links are clicked."""

    def __init__(self, chromium, base):
        super().__init__(chromium, base)
        self.page.add_init_script(KEEP)

    def open(self, **state):
        if self.page.url == "about:blank":
            return super().open(**state)
        self.page.evaluate("""(search) => {
            history.pushState(null, "", search || location.pathname);
            dispatchEvent(new PopStateEvent("popstate"));
        }""", f"?{urllib.parse.urlencode(state)}" if state else "")
        return self.ready(state.get("v", "barcode") if state else "search")


def check_page(browser, tally, reference, url, chance, times):
    """All views of one URL."""
    for direction in ("out", "in"):
        check_barcode(browser, tally, reference, url, direction)
    captures = [capture[0] for capture in reference.captures(url)]
    pairs = [(None, None)]
    if captures:
        pair = lambda among: tuple(digits(time) for time in sorted(chance.choices(among, k=2)))
        pairs += [pair(captures), tuple(text[:8] for text in pair(times)), (None, digits(chance.choice(captures)))]
        check_dates(browser, tally, reference, url, pairs)
    asked = list(questions(chance, reference, url, times))
    for question in asked:
        check_backlinks(browser, tally, reference, question)
    check_beside(browser, tally, reference, *asked[:2])
    check_deaths(browser, tally, reference, url, chance)
    for unit in ("page", "page", "page", "directory", "host", "domain"):
        check_neighbourhood(browser, tally, reference, url, unit, chance.choice(times))
    check_neighbourhood(browser, tally, reference, url, chance.choice(["page", "host"]), None)


def check_world(browser, tally, reference, chance, pages, until):
    """Views of some URLs of a store, until so many values were compared."""
    captured, urls = reference.pages(), reference.urls()
    times = sorted({capture[0] for page in captured for capture in reference.captures(page)})
    others = sorted(set(urls) - set(captured))
    # Half of the pages are of those with the most captures.
    most = sorted(captured, key=lambda url: -len(reference.captures(url)))[:2 * pages]
    chosen = chance.sample(most, min(pages // 2, len(most))) + chance.sample(captured, min(pages // 2, len(captured)))
    chosen = list(dict.fromkeys(chosen)) + chance.sample(others, min(pages // 3, len(others)))
    check_store(browser, tally, reference)
    check_search(browser, tally, reference, [url.split("://")[1][:chance.randrange(3, 12)] for url in chosen[:4]])
    for url in chosen:
        if sum(tally.values.values()) >= until:
            return
        try:
            check_page(browser, tally, reference, url, chance, times)
        except Error as error:
            sys.exit(f"{tally.store}: {url}: {browser.page.url}: {browser.problems}: {error}")
        tally.rows("messages of the browser", url, browser.problems, [])
        browser.problems.clear()


def made_up(chromium, webstrata, folder, tally, seed, pages, until):
    """Crawls from this seed on, until so many values were compared. Returns how many there were."""
    proto = HERE / "../../serve/proto/webstrata.proto"
    modules, crawls = stubs(str(proto), tempfile.mkdtemp(dir=folder)), 0
    while sum(tally.values.values()) < until:
        crawl = make(seed + crawls, SCALE)
        crawls += 1
        try:
            world = World(webstrata, modules, crawl, tempfile.mkdtemp(dir=folder))
        except Failed:
            # Nothing of the crawl is a capture.
            continue
        try:
            if not world.model.pages:
                continue
            browser = Tab(chromium, f"http://{world.address}")
            tally.store = f"seed {crawl.seed}"
            check_world(browser, tally, Model(world), random.Random(crawl.seed), pages, until)
            browser.context.close()
        finally:
            world.close()
    return crawls


def real(chromium, webstrata, folder, tally, files, seed, until):
    """A store of these captures, a row for each file."""
    store = Path(folder) / "real"
    for at, file in enumerate(files):
        job = ["update", "--no-merge", store] if at else ["build", "--out", store]
        subprocess.run([webstrata, *job, file], check=True, capture_output=True)
    subprocess.run([webstrata, "overview", store], check=True, capture_output=True)
    with served(webstrata, store, Path(folder) / "data") as base:
        browser = Tab(chromium, base)
        tally.store = "real captures"
        check_world(browser, tally, Command(webstrata, store), random.Random(seed), 3 * PAGES, until)
        browser.context.close()


def check_values(chromium, webstrata, files, seed, number, pages=PAGES, show=3, is_long=False):
    """Compares at least so many values, at most half of them of real captures. True: none is wrong."""
    tally, started = Tally(show), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="explorer-values-") as folder:
        if files:
            real(chromium, webstrata, folder, tally, files, seed, number // 2)
        crawls = made_up(chromium, webstrata, folder, tally, seed, pages, number)
    if is_long or any(tally.wrong.values()):
        tally.print()
    stores = f"{crawls} made-up crawls{f' and {len(files)} files of real captures' if files else ''}"
    print(f"values: {sum(tally.values.values()):,} of {stores}, {sum(tally.wrong.values())} wrong, "
          f"{time.monotonic() - started:.0f} s", flush=True)
    return not any(tally.wrong.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--webstrata", default="target/debug/webstrata")
    parser.add_argument("--chromium", default=shutil.which("chromium") or shutil.which("chromium-browser"))
    parser.add_argument("--values", type=int, default=40_000, help="how many are compared at least")
    parser.add_argument("--seed", type=int, default=1, help="of the first crawl; the next one has the next seed")
    parser.add_argument("--show", type=int, default=3, help="differences of each view that are printed")
    parser.add_argument("captures", nargs="*", help="files of real captures")
    args = parser.parse_args()
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=args.chromium, args=["--no-sandbox"])
        webstrata = os.path.abspath(args.webstrata)
        how = {"show": args.show, "is_long": True}
        is_right = check_values(chromium, webstrata, args.captures, args.seed, args.values, **how)
        chromium.close()
    sys.exit(0 if is_right else 1)


if __name__ == "__main__":
    main()
