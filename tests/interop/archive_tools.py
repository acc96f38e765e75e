#!/usr/bin/env python3
"""Tools for web archives ask a server: Memento and CDX clients, with a replay server beside it.

  archive_tools.py [--webstrata BINARY] [--pages N]

Writes WARC files with warcio, and gives them to pywb (which replays and indexes them) and to Webstrata, whose server
names pywb as the replay service. Then:

- memento-client asks our TimeGate for pages at dates. It must come to the nearest capture, and pywb must answer there
  with the date that we named.
- The TimeMaps of both servers must name the same captures, in link format and, read by rfc's grammar, in JSON.
- The CDX answers of both servers must be the same lines: by URL, prefix, host and domain, from and to, with limits.
- waybackpy reads all captures of a page through resume keys, and collapses them by year.

Exit code 1 at the first difference. Needs the packages of requirements.txt.
"""
import argparse
import datetime
import http.server
import io
import json
import os
import random
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

from memento_client import MementoClient
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter
from waybackpy import WaybackMachineCDXServerAPI

PATHS = ["/", "/a", "/a/b.html", "/a?x=1&y=2", "/q?u=http://b.example/x", "/~user/%C3%A9", "/long/" + "x" * 900]
HOSTS = ["a.example", "www.b.example", "sub.a.example", "c.example:8000"]


def crawl(path, pages, draw):
    """WARCs of captures; (URL, time, status) of each."""
    urls = [f"http://{host}{own}" for host in HOSTS for own in PATHS][:pages]
    captures = []
    with open(path, "wb") as file:
        writer = WARCWriter(file, gzip=True)
        for url in urls:
            seconds = sorted(draw.sample(range(946684800, 1577836800), draw.choice([1, 2, 5, 30])))
            for second in seconds:
                at = datetime.datetime.fromtimestamp(second, datetime.timezone.utc)
                status = draw.choice(["200 OK"] * 4 + ["404 Not Found"])
                fields = [("Content-Type", "text/html; charset=utf-8")]
                body = f"<p>{second}</p><a href='{draw.choice(urls)}'>next</a>".replace("&", "&amp;").encode()
                record = writer.create_warc_record(
                    url, "response", payload=io.BytesIO(body),
                    http_headers=StatusAndHeaders(status, fields, "HTTP/1.1"),
                    warc_headers_dict={"WARC-Date": at.strftime("%Y-%m-%dT%H:%M:%SZ")})
                writer.write_record(record)
                captures.append((url, at.strftime("%Y%m%d%H%M%S"), status[:3]))
    return captures


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def get(url, **headers):
    request = urllib.request.Request(url, headers=headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return answer.read().decode()


def wait_for(url, process):
    for _ in range(600):
        try:
            return get(url)
        except (urllib.error.URLError, ConnectionError):
            if process.poll() is not None:
                sys.exit(f"{process.args[0]} ended: {process.returncode}")
            time.sleep(0.1)
    sys.exit(f"no answer: {url}")


class Web(http.server.BaseHTTPRequestHandler):
    """The web of today, as a proxy: memento-client asks a page itself before it asks for its past."""

    def do_HEAD(self):
        self.send_response(200)
        self.end_headers()

    do_GET = do_HEAD

    def log_message(self, *_):
        pass


def fail(what, own, other):
    sys.exit(f"{what}\n  here:  {own}\n  there: {other}")


def date_of(digits):
    return datetime.datetime.strptime(digits, "%Y%m%d%H%M%S")


def check_timegate(home, replay, captures, draw):
    client = MementoClient(timegate_uri=f"{home}/timegate/", check_native_timegate=False)
    asked = 0
    for url in sorted({url for url, _, _ in captures}):
        times = [date_of(at) for own, at, _ in captures if own == url]
        for _ in range(3):
            wanted = datetime.datetime(1999, 1, 1) + datetime.timedelta(seconds=draw.randrange(22 * 365 * 86400))
            nearest = min(times, key=lambda time: (abs(time - wanted), time))
            found = client.get_memento_info(url, wanted)
            closest = found["mementos"]["closest"]
            expected = [f"{replay}{nearest:%Y%m%d%H%M%S}/{url}"]
            if (closest["datetime"], closest["uri"]) != (nearest, expected):
                fail(f"{url} at {wanted}", closest, expected)
            ends = [found["mementos"][end]["datetime"] for end in ("first", "last")]
            if ends != [min(times), max(times)]:
                fail(f"the first and the last capture of {url}", ends, times)
            asked += 1
    print(f"timegate: memento-client came to the nearest capture {asked} times")


def mementos_of(text):
    """(URL, date) of the mementos of link format."""
    links = re.findall(r'<([^>]*)>((?:;\s*[\w-]+="[^"]*")*)', text)
    fields = [(url, dict(re.findall(r'([\w-]+)="([^"]*)"', rest))) for url, rest in links]
    return [(url, own["datetime"]) for url, own in fields if "memento" in own.get("rel", "").split()]


def check_timemaps(home, replay, captures):
    pages = sorted({url for url, _, _ in captures})
    for url in pages:
        text = get(f"{home}/timemap/link/{url}")
        own, theirs = mementos_of(text), mementos_of(get(f"{replay}timemap/link/{url}"))
        # pywb marks a memento of its collection as mp_.
        theirs = [(one.replace("mp_/", "/", 1), date) for one, date in theirs]
        if own != theirs:
            fail(f"the TimeMap of {url}", own, theirs)
        listed = json.loads(get(f"{home}/timemap/json/{url}"))["mementos"]["list"]
        dates = [one["uri"] for one in listed]
        if dates != [one for one, _ in own]:
            fail(f"the TimeMap of {url} in JSON", dates, own)
    print(f"timemaps: those of {len(pages)} pages name the captures that pywb names")


def check_cdx(home, replay, captures):
    asked = lines = 0
    for url in sorted({url for url, _, _ in captures}):
        for match in ["exact", "prefix", "host", "domain"]:
            for window in ["", "&from=2005&to=2010", "&to=201203", "&limit=3", "&filter=statuscode:404"]:
                if window.startswith("&limit") and match != "exact":
                    continue  # The order of pages is each server's own.
                question = f"url={urllib.parse.quote(url, safe='')}&matchType={match}{window}"
                theirs = get(f"{replay}cdx?{question.replace('=statuscode', '=%3Dstatus')}&output=json").splitlines()
                # Where nothing matches, pywb lists what is like it.
                theirs = [one for one in map(json.loads, theirs) if "is_fuzzy" not in one]
                theirs = sorted((one["timestamp"], one["url"], one["status"]) for one in theirs)
                own = get(f"{home}/cdx?{question}&fl=timestamp,original,statuscode").splitlines()
                own = sorted(tuple(line.split(" ")) for line in own)
                if own != theirs:
                    fail(question, own, theirs)
                asked, lines = asked + 1, lines + len(own)
    print(f"cdx: {asked} answers with {lines} lines are those of pywb")


def check_waybackpy(home, captures):
    pages = sorted({url for url, _, _ in captures})
    for url in pages:
        times = sorted(at for own, at, _ in captures if own == url)
        for collapse, length in [([], 14), (["timestamp:4"], 4)]:
            expected = []
            for at in times:
                if not expected or expected[-1][:length] != at[:length]:
                    expected.append(at)
            api = WaybackMachineCDXServerAPI(url, user_agent="webstrata", limit="2", collapses=collapse)
            api.endpoint = f"{home}/cdx"
            own = [one.timestamp for one in api.snapshots()]
            if own != expected:
                fail(f"waybackpy, {url}, {collapse}", own, expected)
    print(f"waybackpy: read the captures of {len(pages)} pages, two at a time")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--webstrata", default="target/release/webstrata")
    parser.add_argument("--pages", type=int, default=24)
    options = parser.parse_args()
    binary = os.path.abspath(options.webstrata)
    tools = os.path.dirname(sys.executable)
    draw = random.Random(7)
    with tempfile.TemporaryDirectory() as place:
        warc = os.path.join(place, "crawl.warc.gz")
        captures = crawl(warc, options.pages, draw)
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        for command in (["init", "crawl"], ["add", "crawl", warc]):
            subprocess.run([os.path.join(tools, "wb-manager"), *command], cwd=place, check=True, **quiet)
        store = os.path.join(place, "store")
        subprocess.run([binary, "build", warc, "--out", store], check=True, **quiet)
        pywb, own = free_port(), free_port()
        replay, home = f"http://127.0.0.1:{pywb}/crawl/", f"http://127.0.0.1:{own}"
        commands = [[os.path.join(tools, "wayback"), "-p", str(pywb), "-b", "127.0.0.1"],
                    [binary, "serve", store, "--listen", f"127.0.0.1:{own}", "--replay", replay,
                     "--data", os.path.join(place, "data")]]
        servers = [subprocess.Popen(command, cwd=place, **quiet) for command in commands]
        web = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Web)
        threading.Thread(target=web.serve_forever, daemon=True).start()
        os.environ.update(http_proxy=f"http://127.0.0.1:{web.server_port}", no_proxy="127.0.0.1")
        try:
            wait_for(f"http://127.0.0.1:{pywb}/crawl/", servers[0])
            wait_for(f"{home}/readyz", servers[1])
            check_timegate(home, replay, captures, draw)
            check_timemaps(home, replay, captures)
            check_cdx(home, replay, captures)
            check_waybackpy(home, captures)
        finally:
            for server in servers:
                server.terminate()
                server.wait()


if __name__ == "__main__":
    main()
