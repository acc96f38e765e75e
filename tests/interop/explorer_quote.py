"""Pictures and pages of the explorer that other pages quote: `/v1/barcode.svg`, and frames that `--embed` allows."""
import http.server
import threading
import urllib.parse
import urllib.request
import xml.etree.ElementTree as ET
from contextlib import contextmanager, nullcontext

from explorer_browser import fail, served

SVG = "{http://www.w3.org/2000/svg}"
BAR, THIN = "#3d4452", "#8b8f98"


def svg_of(base, **parameters):
    with urllib.request.urlopen(f"{base}/v1/barcode.svg?{urllib.parse.urlencode(parameters)}") as answer:
        if answer.headers["content-type"] != "image/svg+xml":
            fail(f"the picture has the type {answer.headers['content-type']}")
        return answer.read().decode()


def check_picture(api, base, url, direction):
    """As many bars, thin lines and names as the API has runs, runs that ended, and rows."""
    picture = ET.fromstring(svg_of(base, url=url, direction=direction, limit=500))
    fills = [rect.get("fill") for rect in picture.findall(f".//{SVG}rect")]
    runs = api.lifespans(url, direction)
    rows = {link for link, _, _ in runs}
    if len(rows) > 500:
        fail(f"{url} has too many rows for this check")
    if fills.count(BAR) != len(runs):
        fail(f"{url}: {fills.count(BAR)} bars, expected {len(runs)}")
    answer = api.get("/v1/barcode", url=url, direction=direction)
    texts = [text.text or "" for text in picture.findall(f".//{SVG}text")]
    many = f"{len(rows):,}".replace(",", "")
    if not any(many in text.replace(",", "") and "capture" in text for text in texts[:2]) and answer["captures"]:
        fail(f"{url}: the words are {texts[:3]}, expected {many} rows")
    if picture.find(f"{SVG}title").text[:8] != url[:8]:
        fail(f"the title is {picture.find(f'{SVG}title').text}")
    return len(runs) + len(rows)


@contextmanager
def other_site(words):
    """A page of another origin, whose text stands in `words` by the time that it is asked for."""
    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("content-type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(words["text"].encode())

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()


def is_framed(make, base, url, embed):
    """Whether a page of another origin shows the explorer in a frame, and the picture; `embed` gets its origin."""
    words = {}
    with other_site(words) as site, embed(site) as framing:
        address = urllib.parse.quote(url, safe="")
        words["text"] = (f"<img src='{base}/v1/barcode.svg?url={address}'>"
                         f"<iframe width=1000 height=600 src='{framing}/?url={address}'></iframe>")
        browser = make(base)
        width, views = browser.framed(site)
        if width != 960:
            fail(f"the quoted picture is {width} pixels wide")
        browser.context.close()
        return views > 0


def check_quote(make, api, base, webstrata, store, data, urls):
    values = sum(check_picture(api, base, url, direction) for url in urls for direction in ("out", "in"))
    hostile = ET.fromstring(svg_of(base, url="https://hostile.example/", limit=500))
    if hostile.findall(f".//{SVG}script") or len(list(hostile)) < 10:
        fail("the picture of hostile addresses has a script, or nothing")

    if is_framed(make, base, urls[0], lambda site: nullcontext(base)):
        fail("a page of another origin shows the explorer without --embed")
    if not is_framed(make, base, urls[0], lambda site: served(webstrata, store, data, "--embed", site)):
        fail("a page that --embed names does not show the explorer")
    print(f"quoted: {values} bars and rows in {2 * len(urls)} pictures as /v1/lifespans has them; "
          "frames as --embed says")
