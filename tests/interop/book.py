#!/usr/bin/env python3
"""The built book: every link leads somewhere, and its search finds what newcomers look for.

  book.py [--mdbook PROGRAM] [--chromium PROGRAM]

Builds docs/ with mdBook into a temporary directory. Every address in every page must resolve inside the book, fragments
too. Then a browser opens the first page and types questions into the search box, as a person who has not read the book
would put them. The page that answers must be among the first three. Prints each question with its page and rank.
Exit code 1 if a link is broken or a page is not found. Needs Chromium and the packages of requirements.txt.
"""
import argparse
import http.server
import subprocess
import sys
import tempfile
import threading
import urllib.parse
from functools import partial
from html.parser import HTMLParser
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[2]
# What a newcomer types, and the pages of which one must come up.
QUESTIONS = [
    ("how much disk do I need", ["archivist/first-store", "archivist/memory-and-disk", "inside/size"]),
    ("how much memory does a build take", ["archivist/memory-and-disk"]),
    ("read only CDX files", ["archivist/cdx-only"]),
    ("WACZ file", ["archivist/formats"]),
    ("common crawl WAT", ["archivist/common-crawl"]),
    ("web graph releases of Common Crawl", ["web-graphs/releases"]),
    ("delete a page on request", ["archivist/removal"]),
    ("add a new crawl", ["archivist/updates"]),
    ("broken WARC file", ["archivist/damage"]),
    ("who linked to my site", ["researcher/backlinks"]),
    ("plot backlinks per year", ["researcher/by-year"]),
    ("link rot study", ["researcher/link-rot"]),
    ("http and https as one page", ["researcher/urls"]),
    ("PageRank formula", ["researcher/analyses"]),
    ("graph of domains", ["researcher/host-graphs"]),
    ("open in a browser without terminal", ["researcher/explorer"]),
    ("python pandas", ["programs/python"]),
    ("gephi export", ["programs/exports", "programs/export-files"]),
    ("query from R or JavaScript", ["programs/http"]),
    ("renew certificates", ["operator/security"]),
    ("start at boot with systemd", ["operator/service"]),
    ("what if a server fails", ["operator/cluster"]),
    ("on call, a server died", ["operator/runbook"]),
    ("restore from a backup", ["operator/runbook"]),
    ("nginx reverse proxy", ["operator/proxy"]),
    ("compare with SolrWayback", ["inside/comparison"]),
    ("cost of a national archive", ["inside/size"]),
    ("how fast is it", ["inside/comparison", "inside/size", "inside/measure"]),
    ("disk is full", ["inside/limits", "archivist/damage"]),
    ("too many requests 429", ["operator/limits"]),
    ("find out when a link disappeared", ["researcher/links"]),
    ("get notified about new links", ["researcher/standing"]),
    ("which date formats are allowed", ["basics", "archivist/dates-and-statuses"]),
]
# A page is found if it stands no later.
RANK = 3


class Addresses(HTMLParser):
    """The addresses in a page, and the names that a fragment may have."""

    def __init__(self, text):
        super().__init__()
        self.addresses, self.names = [], {""}
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.addresses += [attributes[name] for name in ("href", "src") if attributes.get(name)]
        self.names |= {attributes[name] for name in ("id", "name") if attributes.get(name)}


def broken(book):
    """Addresses that lead nowhere, and how many were looked at."""
    pages = {path: Addresses(path.read_text(encoding="utf-8")) for path in sorted(book.rglob("*.html"))}
    problems, looked_at = [], 0
    for page, content in pages.items():
        # The page for addresses that do not exist has a base of its own; the lists of pages are parts of others.
        if page.name in ("404.html", "print.html", "toc.html"):
            continue
        for address in content.addresses:
            parts = urllib.parse.urlsplit(address)
            if parts.scheme or address.startswith("//"):
                continue
            looked_at += 1
            target = (page.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else page
            target = target / "index.html" if target.is_dir() else target
            if not target.exists():
                problems.append(f"{page.relative_to(book)}: {address} leads nowhere")
            elif target in pages and urllib.parse.unquote(parts.fragment) not in pages[target].names:
                problems.append(f"{page.relative_to(book)}: {address}: no such title")
    return problems, looked_at, len(pages)


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def found(page, base, question):
    """The pages that the search of the book lists, the best first, each once."""
    page.goto(f"{base}/index.html")
    page.locator("body").press("s")
    box = page.locator("#mdbook-searchbar")
    box.wait_for(state="visible")
    page.wait_for_function("!document.querySelector('#mdbook-searchbar').disabled")
    box.press_sequentially(question)
    page.wait_for_function(
        "() => document.querySelector('#mdbook-searchresults-header').textContent.includes('search result')")
    # Results follow the last key after a moment.
    page.wait_for_timeout(600)
    links = page.locator("#mdbook-searchresults a").evaluate_all("all => all.map((a) => a.getAttribute('href'))")
    names = [urllib.parse.urlsplit(urllib.parse.urljoin(f"{base}/", link)).path for link in links]
    return list(dict.fromkeys(name.strip("/").removesuffix(".html") for name in names))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mdbook", default="mdbook")
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        book = Path(directory).resolve() / "book"
        built = subprocess.run([arguments.mdbook, "build", ROOT / "docs", "--dest-dir", book],
                               capture_output=True, text=True)
        if built.returncode or "WARN" in built.stderr or "ERROR" in built.stderr:
            sys.exit(f"mdbook: {built.stderr}")
        problems, looked_at, pages = broken(book)
        print(f"{pages} pages, {looked_at} links, {len(problems)} of them broken")
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=book))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with sync_playwright() as playwright:
            chromium = playwright.chromium.launch(executable_path=arguments.chromium, args=["--no-sandbox"])
            page = chromium.new_page()
            for question, answers in QUESTIONS:
                names = found(page, f"http://127.0.0.1:{server.server_port}", question)
                rank, answer = min(((names.index(name) + 1, name) for name in answers if name in names),
                                   default=(None, answers[0]))
                print(f"{rank or '-':>3}  {question:38}  {answer}")
                if rank is None or rank > RANK:
                    problems.append(f"{question!r} finds {answer} at {rank}, after {names[:RANK]}")
            chromium.close()
        server.shutdown()
    if problems:
        sys.exit("\n".join(problems))
    print(f"{len(QUESTIONS)} questions, each answered among the first {RANK} pages")


if __name__ == "__main__":
    main()
