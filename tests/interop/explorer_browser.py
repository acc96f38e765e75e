"""What the checks of the explorer share: a browser that keeps what went wrong, and the API to compare with."""
import json
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path

FIRST = 1_100_000_000


def fail(text):
    sys.exit(f"explorer.py: {text}")


def digits(seconds):
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y%m%d%H%M%S")


def seconds(text):
    return int(datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc).timestamp())


@contextmanager
def served(webstrata, store, data, *options):
    """A server of a store on a port of its own: its address. `data` is a directory for its cells."""
    command = [webstrata, "serve", store, "--listen", "127.0.0.1:0", "--data", data, *options]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        listening, ready = server.stdout.readline(), server.stdout.readline()
        if not ready.startswith("ready"):
            fail(f"the server of {store} ended before it was ready")
        yield "http://" + listening.split()[-1]
    finally:
        server.terminate()
        server.wait()


class Browser:
    """A page of Chromium that keeps what went wrong in it."""

    def __init__(self, chromium, base, width=1280, height=800, scheme="light"):
        self.base, self.problems = base, []
        self.context = chromium.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
        self.page = self.context.new_page()
        self.page.on("console", lambda message: self.problems.append(f"console: {message.text}"))
        self.page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        self.page.on("request", self.asked)

    def asked(self, request):
        if not request.url.startswith((self.base, "blob:")):
            self.problems.append(f"asks {request.url[:200]}")

    def open(self, **state):
        self.page.goto(f"{self.base}/?{urllib.parse.urlencode(state)}" if state else f"{self.base}/")
        return self.ready(state.get("v", "barcode") if state else "search")

    def ready(self, view):
        """Waits for the picture of a view, and returns what it shows."""
        until = time.monotonic() + 20
        while time.monotonic() < until:
            if self.page.evaluate("window.webstrata?.ready && window.webstrata.view") == view:
                return self.page.evaluate("window.webstrata.picture()")
            self.page.wait_for_timeout(20)
        fail(f"{view} is not drawn at {self.page.url[:200]}: {self.problems}")

    def drawings(self, link, view):
        """How many pictures there are in a view that a link of the page opens, and how many of them were drawn."""
        self.page.evaluate("""() => {
            window.drawings = 0;
            const pictures = (nodes) => Array.from(nodes).filter((node) => node.matches?.('.drawn svg')).length;
            new MutationObserver((changes) => {
                for (const { addedNodes } of changes) window.drawings += pictures(addedNodes);
            }).observe(document.body, { childList: true, subtree: true }); }""")
        self.page.get_by_role("link", name=link, exact=True).click()
        self.ready(view)
        self.page.wait_for_timeout(300)
        return self.page.locator(".drawn svg").count(), self.page.evaluate("window.drawings")

    def shown(self):
        return self.page.evaluate("window.webstrata.picture()")

    def colours(self):
        """The colours that canvases and pictures take, by name."""
        module = "import(new URL('explorer/drawing/canvas.js', location))"
        return self.page.evaluate(f"{module}.then((canvas) => canvas.colours())")

    def framed(self, site):
        """Of a page of another origin: how wide its first picture is, and how many views its frame names."""
        self.page.goto(site)
        self.page.wait_for_load_state("networkidle")
        frame = self.page.frames[1]
        views = 0 if "chrome-error" in frame.url else frame.locator("#views a").count()
        return self.page.evaluate("document.images[0].naturalWidth"), views

    def paper(self):
        """The bytes of the PDF that is printed."""
        return self.page.pdf(format="A4", prefer_css_page_size=True)

    def saved(self, press):
        """The bytes of the file that is saved when something is pressed."""
        with self.page.expect_download() as saved:
            press()
        return Path(saved.value.path()).read_bytes()

    def clean(self, where):
        if self.problems:
            fail(f"{where}: {self.problems[:3]}")


class Api:
    def __init__(self, base):
        self.base = base

    def get(self, path, **parameters):
        with urllib.request.urlopen(f"{self.base}{path}?{urllib.parse.urlencode(parameters)}") as answer:
            return json.load(answer)

    def lifespans(self, url, direction):
        spans = set()
        key = {}
        while key is not None:
            answer = self.get("/v1/lifespans", url=url, direction=direction, **key)
            spans |= {(span["link"], seconds(span["first"]), seconds(span["last"])) for span in answer["lifespans"]}
            key = {"resume_key": answer["resume_key"]} if "resume_key" in answer else None
        return spans

    def links(self, url, at):
        return set(self.get("/v1/links", url=url, at=digits(at), limit=100000)["links"])
