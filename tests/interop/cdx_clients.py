#!/usr/bin/env python3
"""Four clients of CDX servers ask a server of ours: wayback, waybackpy, cdx_toolkit, and pywb.

  cdx_clients.py [--webstrata BINARY] [--requests]

Builds a small store, serves it, and calls each method of each client that a CDX server answers. What a client yields
must be what `webstrata captures` says of the store. The script prints a line a call: what was called, how many captures
came, and in how many requests; with --requests also each request line. Exit code 1 if a call yields anything else.

No client is changed. cdx_toolkit and pywb have a setting for the address of the server. waybackpy and wayback always
ask https://web.archive.org/cdx/search/cdx; they are given a proxy (HTTPS_PROXY) that answers for that host with a
certificate of its own (REQUESTS_CA_BUNDLE), and asks our server instead. Needs the packages of requirements.txt, and
openssl.
"""
import argparse
import contextlib
import datetime
import http.server
import io
import json
import os
import random
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

from archive_tools import free_port, get, wait_for
from pywb.utils.canonicalize import canonicalize

ARCHIVE = "web.archive.org"
PATHS = ["/", "/a", "/a/b.html", "/a?x=1&y=2", "/~user/%C3%A9", "/long/" + "x" * 300]
HOSTS = ["http://a.example", "https://www.a.example", "http://sub.a.example", "http://b.example",
         "http://www.b.example", "http://c.example:8000"]


def crawl(draw):
    """JSON lines of captures of each path of each host."""
    lines = []
    for host in HOSTS:
        for path in PATHS:
            count = 20 if path == "/" else draw.choice([1, 2, 5, 40])
            for second in draw.sample(range(946684800, 1577836800), count):
                at = datetime.datetime.fromtimestamp(second, datetime.timezone.utc)
                status = draw.choice([200, 200, 200, 404, 410])
                links = [] if status != 200 else [f"{draw.choice(HOSTS)}{draw.choice(PATHS)}"]
                lines.append({"url": host + path, "ts": f"{at:%Y%m%d%H%M%S}", "status": status, "links": links})
    return lines


def truth_of(binary, store, urls):
    """(urlkey, digits, URL, status) of each capture, as `webstrata captures` says."""
    found = []
    for url in urls:
        command = [binary, "captures", store, url, "--format", "json"]
        answer = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        for capture in answer["captures"]:
            at = "".join(filter(str.isdigit, capture["time"]))
            found.append((canonicalize(url), at, capture["url"], str(capture["status"])))
    return sorted(found)


class Between(http.server.BaseHTTPRequestHandler):
    """Between a client and our server: keeps request lines, and answers for the archive's host as its proxy."""
    protocol_version = "HTTP/1.1"
    server_address, context, asked = None, None, []

    def do_CONNECT(self):
        if self.path != f"{ARCHIVE}:443":
            self.send_error(502)
            return
        self.send_response(200)
        self.end_headers()
        self.connection = self.context.wrap_socket(self.connection, server_side=True)
        self.rfile, self.wfile = self.connection.makefile("rb"), self.connection.makefile("wb", buffering=0)
        self.close_connection = False

    def do_GET(self):
        path = self.path.replace("/cdx/search/cdx", "/cdx", 1)
        Between.asked.append(self.path)
        try:
            with urllib.request.urlopen(f"http://{self.server_address}{path}", timeout=30) as answer:
                status, kind, body = answer.status, answer.headers["content-type"], answer.read()
        except urllib.error.HTTPError as error:
            status, kind, body = error.code, error.headers["content-type"], error.read()
        self.send_response(status)
        self.send_header("content-type", kind or "text/plain")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Truth:
    """What a client must yield."""

    def __init__(self, captures):
        self.captures = captures

    def of(self, prefix="", where=lambda own: True, is_whole=False):
        """Captures whose urlkey begins with a prefix or is it, in order of time, as (digits, URL, status)."""
        own = [one for one in self.captures if (one[0] == prefix if is_whole else one[0].startswith(prefix))]
        return sorted(one[1:] for one in own if where(one[1:]))

    def page(self, where=lambda own: True):
        return self.of("example,a)/", where, is_whole=True)


def nearest(lines, digits):
    moment = lambda text: datetime.datetime.strptime(text, "%Y%m%d%H%M%S").timestamp()
    return sorted(lines, key=lambda own: abs(moment(own[0]) - moment(digits)))


def first_of(lines, key):
    """The first of adjacent lines with the same key."""
    return [own for at, own in enumerate(lines) if at == 0 or key(own) != key(lines[at - 1])]


def wayback_calls(truth):
    from wayback import WaybackClient, WaybackSession
    client = WaybackClient(WaybackSession(retries=0, search_calls_per_second=0))

    def search(url, **given):
        return [(f"{one.timestamp:%Y%m%d%H%M%S}", one.original,
                 str(one.statuscode)) for one in client.search(url, **given)]

    page, domain = truth.page(), truth.of("example,a,") + truth.of("example,a)")
    year = datetime.date(2010, 1, 1)
    late = truth.page(lambda own: own[0] >= "20100101000000")
    yield "search(page)", lambda: search("a.example"), page
    yield "search(page, limit=7)", lambda: search("http://www.a.example/", limit=7), page
    yield "search(page, limit=-3)", lambda: search("a.example", limit=-3), page[-3:]
    yield "search(page, limit=-1, fast_latest)", lambda: search("a.example", limit=-1, fast_latest=True), page[-1:]
    yield "search(page, offset=5, limit=9)", lambda: search("a.example", offset=5, limit=9), page[5:]
    yield "search(page, from_date)", lambda: search("a.example", from_date=year), late
    yield "search(page, to_date)", lambda: search("a.example", to_date=year), \
        truth.page(lambda own: own[0] <= "20100101000000")
    yield "search(page, from_date after to_date)", lambda: search(
        "a.example", from_date=year, to_date=datetime.date(2009, 1, 1)), []
    yield "search(page, filter_field)", lambda: search("a.example", filter_field="statuscode:4.."), \
        truth.page(lambda own: own[2][0] == "4")
    yield "search(page, two filters)", lambda: search(
        "a.example", filter_field=["!statuscode:404", "~original:www"]), \
        truth.page(lambda own: own[2] != "404" and "www" in own[1])
    yield "search(page, collapse)", lambda: search("a.example", collapse="timestamp:4", limit=2), \
        first_of(page, lambda own: own[0][:4])
    yield "search(page, resolve_revisits=False)", lambda: search("a.example", resolve_revisits=False), page
    yield "search(a.example/a*)", lambda: search("a.example/a*"), truth.of("example,a)/a")
    yield "search(*.a.example)", lambda: search("*.a.example", limit=50), domain
    for match, expected in (("prefix", truth.of("example,b)/")), ("host", truth.of("example,b)")),
                            ("domain", truth.of("example,b)"))):
        yield f"search(match_type={match})", lambda match=match: search("b.example", match_type=match), expected
    yield "search(nothing)", lambda: search("nowhere.example"), []


def waybackpy_calls(truth):
    from waybackpy import Url, WaybackMachineCDXServerAPI

    def api(url, **given):
        return WaybackMachineCDXServerAPI(url, user_agent="webstrata", **given)

    def line(one):
        return one.timestamp, one.original, one.statuscode

    def snapshots(url, **given):
        return list(map(line, api(url, **given).snapshots()))

    page = truth.page()
    yield "snapshots(page)", lambda: snapshots("a.example"), page
    yield "snapshots(limit=3)", lambda: snapshots("http://a.example/", limit=3), page
    yield "snapshots(start, end)", lambda: snapshots("a.example", start_timestamp=2005, end_timestamp=201006), \
        truth.page(lambda own: "2005" <= own[0] < "201007")
    yield "snapshots(filters)", lambda: snapshots("a.example", filters=["!statuscode:200", "timestamp:20.*"]), \
        truth.page(lambda own: own[2] != "200")
    yield "snapshots(collapses)", lambda: snapshots("a.example", collapses=["timestamp:4"]), \
        first_of(page, lambda own: own[0][:4])
    yield "snapshots(sort=default)", lambda: snapshots("a.example", sort="default"), page
    yield "snapshots(sort=reverse)", lambda: snapshots("a.example", sort="reverse", limit=9), page[::-1]
    yield "snapshots(sort=closest)", lambda: snapshots("a.example", sort="closest", closest=2010, limit=9), \
        nearest(page, "20100101000000")
    yield "snapshots(use_pagination)", lambda: snapshots("a.example", use_pagination=True), page
    yield "snapshots(*.a.example, use_pagination)", lambda: snapshots("*.a.example", use_pagination=True), \
        truth.of("example,a,") + truth.of("example,a)")
    for match, expected in (("exact", page), ("prefix", truth.of("example,a)/")), ("host", truth.of("example,a)")),
                            ("domain", truth.of("example,a,") + truth.of("example,a)"))):
        yield f"snapshots(match_type={match})", lambda match=match: snapshots(
            "a.example", match_type=match, limit=100), expected
    yield "snapshots(match_type=host, sort=reverse)", lambda: snapshots(
        "a.example", match_type="host", sort="reverse", limit=20), truth.of("example,a)")
    yield "near(year, month)", lambda: [line(api("a.example").near(year=2010, month=5, day=1, hour=0, minute=0))], \
        nearest(page, "20100501000000")[:1]
    yield "near(unix_timestamp)", lambda: [line(api("a.example").near(unix_timestamp=1300000000))], \
        nearest(page, "20110313070640")[:1]
    yield "near(wayback_machine_timestamp)", lambda: [line(api("a.example").near(wayback_machine_timestamp=2003))], \
        nearest(page, "20030101000000")[:1]
    yield "newest()", lambda: [line(api("a.example").newest())], page[-1:]
    yield "oldest()", lambda: [line(api("a.example").oldest())], page[:1]
    yield "Url.total_archives()", lambda: [("", "", "")] * Url("a.example").total_archives(), [("", "", "")] * len(page)
    prefix = sorted({(canonicalize(own[1]), own[1]) for own in truth.of("example,a)/")})
    yield "Url.known_urls()", lambda: sorted({canonicalize(own) for own in Url("a.example").known_urls()}), \
        sorted({key for key, _ in prefix})
    yield "snapshots(nothing)", lambda: snapshots("nowhere.example"), []


def cdx_toolkit_calls(truth, home, source):
    import cdx_toolkit
    from cdx_toolkit import cli
    fetcher = cdx_toolkit.CDXFetcher(source=home if source != "ia" else source)

    def lines(found):
        return [(one["timestamp"], one["url"], one["status"]) for one in found]

    def command(*words):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            cli.main((["--ia"] if source == "ia" else ["--source", home]) + list(words))
        return out.getvalue().splitlines()

    def printed(*words):
        """Of lines as `status 200, timestamp .., url ..`."""
        pairs = [dict(pair.split(" ", 1) for pair in own.split(", ", 2)) for own in command(*words)]
        return lines(pairs)

    page, host, status = truth.page(), truth.of("example,a)/"), "statuscode" if source == "ia" else "status"
    missing = truth.page(lambda own: own[2] == "404")
    yield "get(page)", lambda: lines(fetcher.get("a.example")), page
    yield "get(page, limit=3)", lambda: lines(fetcher.get("a.example", limit=3)), page[:3]
    yield "get(page, from_ts, to)", lambda: lines(fetcher.get("a.example", from_ts="2005", to="201006")), \
        truth.page(lambda own: "2005" <= own[0] < "201007")
    yield "get(page, from_ts after to)", lambda: lines(fetcher.get("a.example", from_ts="2010", to="2009")), []
    yield "get(page, closest, sort)", lambda: lines(fetcher.get(
        "a.example", closest="20100101", sort="closest", limit=5)), nearest(page, "20100101000000")[:5]
    yield "get(page, sort=reverse)", lambda: lines(fetcher.get("a.example", sort="reverse")), page[::-1]
    yield "get(page, filter)", lambda: lines(fetcher.get("a.example", filter=f"{status}:404")), missing
    yield "get(page, filter that nothing has)", lambda: lines(fetcher.get("a.example", filter=f"{status}:999")), []
    if source != "ia":
        yield "get(page, filter =)", lambda: lines(fetcher.get("a.example", filter="=status:404")), missing
        yield "get(page, filter !=)", lambda: lines(fetcher.get("a.example", filter=["!=status:404"])), \
            truth.page(lambda own: own[2] != "404")
        yield "get(page, filter ~)", lambda: lines(fetcher.get("a.example", filter=["~status:4.[04]"])), \
            truth.page(lambda own: own[2][0] == "4")
        yield "get(page, fields)", lambda: lines(fetcher.get("a.example", fields="url,timestamp,status")), page
    yield "get(page, fl)", lambda: lines(fetcher.get(
        "a.example", fl="original,timestamp,statuscode" if source == "ia" else "url,timestamp,status")), page
    yield "get(a.example/*)", lambda: lines(fetcher.get("a.example/*")), host
    yield "get(matchType=host)", lambda: lines(fetcher.get("b.example", matchType="host")), truth.of("example,b)")
    yield "iter(page)", lambda: lines(fetcher.iter("a.example")), page
    yield "iter(a.example/*)", lambda: lines(fetcher.iter("a.example/*")), host
    yield "iter(*.a.example)", lambda: lines(fetcher.iter("*.a.example")), \
        truth.of("example,a,") + truth.of("example,a)")
    yield "iter(*.a.example, pageSize=1, limit=10**6)", lambda: lines(fetcher.iter(
        "*.a.example", pageSize=1, limit=10**6)), truth.of("example,a,") + truth.of("example,a)")
    yield "iter(page, filter)", lambda: lines(fetcher.iter("a.example", filter=f"!{status}:200")), \
        truth.page(lambda own: own[2] != "200")
    yield "iter(nothing)", lambda: lines(fetcher.iter("nowhere.example")), []
    for url, expected in (("a.example/*", 1), ("nowhere.example", 0)):
        yield f"get_size_estimate({url}, as_pages)", \
            lambda url=url: [fetcher.get_size_estimate(url, as_pages=True)], [expected]
    yield "cdxt iter", lambda: printed("iter", "a.example/*"), host
    yield "cdxt --get --closest iter", lambda: printed(
        "--get", "--limit", "2", "--closest", "20100101", "iter", "a.example"), nearest(page, "20100101000000")[:2]
    yield "cdxt --limit --filter iter", lambda: printed(
        "--limit", "3", "--filter", f"{status}:404", "iter", "a.example"), missing[:3]
    yield "cdxt size", lambda: command("size", "a.example/*"), ["1500"]


def pywb_calls(truth, collection):
    def lines(question):
        try:
            text = get(f"{collection}cdx?output=json&{question}")
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return []
            raise
        found = map(json.loads, text.splitlines())
        # Where nothing matches, pywb lists what is like it.
        return [(one["timestamp"], one["url"], one["status"]) for one in found if "is_fuzzy" not in one]

    page = truth.page()
    yield "cdx(page)", lambda: lines("url=a.example"), page
    yield "cdx(page, closest)", lambda: lines("url=a.example&closest=20100101000000&limit=5"), \
        nearest(page, "20100101000000")[:5]
    yield "cdx(page, sort=reverse)", lambda: lines("url=a.example&sort=reverse"), page[::-1]
    yield "cdx(page, from, to)", lambda: lines("url=a.example&from=2005&to=201006"), \
        truth.page(lambda own: "2005" <= own[0] < "201007")
    yield "cdx(a.example/*)", lambda: lines("url=http://a.example/*"), truth.of("example,a)/")
    yield "cdx(*.a.example)", lambda: lines("url=*.a.example"), truth.of("example,a,") + truth.of("example,a)")
    yield "cdx(matchType=host)", lambda: lines("url=b.example&matchType=host"), truth.of("example,b)")
    yield "cdx(nothing)", lambda: lines("url=nowhere.example"), []
    timemap = f"{collection}timemap/link/http://a.example/"
    yield "timemap(page)", lambda: [(own.split(f"<{collection}")[1][:14],) for own in get(timemap).splitlines()
                                    if 'rel="memento"' in own], [(own[0],) for own in page]


def run(client, calls, is_ordered, shows_requests):
    """Makes the calls, prints them, and returns how many were wrong."""
    wrong = 0
    for name, call, expected in calls:
        Between.asked.clear()
        try:
            found, problem = call(), ""
        except Exception as error:  # A client that fails is a result.
            found, problem = [], f"{type(error).__name__}: {error}"
        if not is_ordered(name):
            found, expected = sorted(found), sorted(expected)
        if not problem and found != expected:
            problem = f"wrong: {[own for own in found if own not in expected][:2]} instead of " \
                f"{[own for own in expected if own not in found][:2]}"
        wrong += bool(problem)
        asked = len(Between.asked)
        print(f"{client:12} {name:52} {len(found):5} of {len(expected):5} {asked:4} requests  {problem[:200]}")
        if shows_requests or problem:
            print("".join(f"{'':13}GET {path[:160]}\n" for path in Between.asked), end="")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--webstrata", default="target/release/webstrata")
    parser.add_argument("--requests", action="store_true", help="print each request line")
    options = parser.parse_args()
    binary, tools = os.path.abspath(options.webstrata), os.path.dirname(sys.executable)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with tempfile.TemporaryDirectory() as place:
        inside = lambda name: os.path.join(place, name)
        lines = crawl(random.Random(5))
        with open(inside("crawl.jsonl"), "w") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
        subprocess.run([binary, "build", inside("crawl.jsonl"), "--out", inside("store")], check=True, **quiet)
        truth = Truth(truth_of(binary, inside("store"), sorted({line["url"] for line in lines})))
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                        "-subj", f"/CN={ARCHIVE}", "-addext", f"subjectAltName=DNS:{ARCHIVE}",
                        "-keyout", inside("key.pem"), "-out", inside("cert.pem")], check=True, **quiet)
        own, pywb = free_port(), free_port()
        Between.server_address = f"127.0.0.1:{own}"
        Between.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        Between.context.load_cert_chain(inside("cert.pem"), inside("key.pem"))
        between = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Between)
        threading.Thread(target=between.serve_forever, daemon=True).start()
        home = f"http://127.0.0.1:{between.server_port}/cdx"
        with open(inside("config.yaml"), "w") as file:
            file.write(f"collections:\n  remote: cdx+{home}\n")
        proxy = f"http://127.0.0.1:{between.server_port}"
        commands = [[binary, "serve", inside("store"), "--listen", f"127.0.0.1:{own}", "--data", inside("data")],
                    [os.path.join(tools, "wayback"), "-p", str(pywb), "-b", "127.0.0.1"]]
        servers = [subprocess.Popen(command, cwd=place, **quiet) for command in commands]
        os.environ.update(HTTPS_PROXY=proxy, NO_PROXY="127.0.0.1", REQUESTS_CA_BUNDLE=inside("cert.pem"),
                          CDXT_DEFAULT_MIN_RETRY_INTERVAL="0", CDXT_IA_MIN_RETRY_INTERVAL="0", CDXT_MAX_ERRORS="0")
        try:
            wait_for(f"http://127.0.0.1:{own}/readyz", servers[0])
            wait_for(f"http://127.0.0.1:{pywb}/", servers[1])
            begin, wrong = time.monotonic(), 0
            # Clients that list several pages get them in the order of the store.
            is_ordered = lambda name: not any(word in name for word in ["*", "match", "cdxt iter", "known"])
            for client, calls in (
                ("wayback", wayback_calls(truth)),
                ("waybackpy", waybackpy_calls(truth)),
                ("cdx_toolkit", cdx_toolkit_calls(truth, home, "pywb")),
                ("… --ia", cdx_toolkit_calls(truth, home, "ia")),
                ("pywb", pywb_calls(truth, f"http://127.0.0.1:{pywb}/remote/")),
            ):
                wrong += run(client, calls, is_ordered, options.requests)
            print(f"{wrong} calls are wrong; {time.monotonic() - begin:.0f} s")
        finally:
            for server in servers:
                server.terminate()
                server.wait()
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
