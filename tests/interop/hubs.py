"""Every call of a server about a hub: its seconds, its CPU and the memory of the server, alone and many at once.

Makes a crawl of N pages that all link to one URL, each on a host of its own (or M hosts), builds it, serves it, and
asks over HTTP. Needs Linux and nothing but Python. Prints a table: for each call the status, seconds, CPU seconds, and
the memory of the server (MiB) before, at most, and three seconds after; first one call, then `--at-once` calls.

    python tests/interop/hubs.py target/release/webstrata --pages 1000000
    python tests/interop/hubs.py target/release/webstrata --pages 10000000 --hosts 5000
"""

import argparse
import json
import os
import pathlib
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

HUB = "http://hub.test/"


def crawl(path, pages, hosts):
    """Two captures a page, a year apart; a tenth has lost the link in the second one. In the end the hub is gone."""
    with path.open("w") as out:
        for number in range(pages):
            url = f"http://h{number % hosts:07}.example/{number // hosts or ''}"
            first = time.strftime("%Y%m%d%H%M%S", time.gmtime(1_100_000_000 + number % 5000 * 7200))
            second = time.strftime("%Y%m%d%H%M%S", time.gmtime(1_140_000_000 + number % 5000 * 7200))
            out.write(f'{{"url":"{url}","ts":"{first}","links":["{HUB}"]}}\n')
            left = [] if number % 10 == 0 else [HUB]
            out.write(f'{{"url":"{url}","ts":"{second}","links":{json.dumps(left)}}}\n')
        out.write(f'{{"url":"{HUB}","ts":"20080601000000","links":["http://h0000000.example/"]}}\n')
        out.write(f'{{"url":"{HUB}","ts":"20090601000000","status":404}}\n')


def mebibytes(pid, field):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) >> 10
    return 0


def cpu(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def ask(address, path, statuses):
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=600) as answer:
            while answer.read(1 << 20):
                pass
            statuses.append(answer.status)
    except urllib.error.HTTPError as error:
        statuses.append(error.code)
    except OSError as error:
        statuses.append(type(error).__name__)


def measure(pid, address, path, at_once):
    pathlib.Path(f"/proc/{pid}/clear_refs").write_text("5")
    before, cpu_before, begun, statuses = mebibytes(pid, "VmRSS"), cpu(pid), time.monotonic(), []
    threads = [threading.Thread(target=ask, args=(address, path, statuses)) for _ in range(at_once)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds, used, most = time.monotonic() - begun, cpu(pid) - cpu_before, mebibytes(pid, "VmHWM")
    time.sleep(3)
    counts = ", ".join(f"{statuses.count(status)} x {status}" for status in sorted(set(statuses), key=str))
    return counts, seconds, used, before, most, mebibytes(pid, "VmRSS")


def calls():
    hub = urllib.parse.quote(HUB, safe="")
    yield "backlinks", f"/v1/backlinks?url={hub}"
    yield "backlinks limit=1", f"/v1/backlinks?url={hub}&limit=1"
    yield "backlinks limit=10000", f"/v1/backlinks?url={hub}&limit=10000&order=most"
    yield "backlinks period=year lost", f"/v1/backlinks?url={hub}&period=year&event=lost&from=2005&to=2007"
    yield "backlinks unit=host", f"/v1/backlinks?url={hub}&unit=host"
    yield "backlinks unit=domain", f"/v1/backlinks?url={hub}&unit=domain&order=last"
    yield "links in", f"/v1/links?url={hub}&direction=in"
    yield "links in limit=1000000", f"/v1/links?url={hub}&direction=in&limit=1000000"
    yield "links in at=2006", f"/v1/links?url={hub}&direction=in&at=2006"
    yield "links in count", f"/v1/links?url={hub}&direction=in&count=true"
    yield "links in sample=10", f"/v1/links?url={hub}&direction=in&sample=10"
    yield "lifespans in", f"/v1/lifespans?url={hub}&direction=in"
    yield "first", f"/v1/first?url={hub}"
    yield "changed in", f"/v1/changed?url={hub}&direction=in&from_date=2005&to_date=2007"
    yield "neighbourhood", f"/v1/neighbourhood?url={hub}"
    yield "neighbourhood fold=300", f"/v1/neighbourhood?url={hub}&fold=300"
    yield "deaths", f"/v1/deaths?url={hub}&match=exact&linkers=100"
    yield "deaths order=most", "/v1/deaths?order=most&limit=1000"
    yield "ways", f"/v1/ways?url={urllib.parse.quote('http://h0000001.example/', safe='')}&target={hub}"
    yield "barcode", f"/v1/barcode?url={hub}&direction=in"
    yield "barcode.svg", f"/v1/barcode.svg?url={hub}&direction=in"
    yield "captures", "/v1/captures?url=example&match=domain"
    yield "suggest", "/v1/suggest?q=h00000"
    yield "cdx", "/cdx?url=example&matchType=domain&limit=1000"
    yield "cdx limit=-10", "/cdx?url=example&matchType=domain&limit=-10"
    yield "timemap", f"/timemap/link/{HUB}"
    yield "urls", "/v1/urls?url=example&match=domain"
    yield "overview", "/v1/overview"
    yield "stats", "/v1/stats"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("webstrata", type=pathlib.Path)
    parser.add_argument("--pages", type=int, default=1_000_000)
    parser.add_argument("--hosts", type=int, help="default: one for each page")
    parser.add_argument("--at-once", type=int, default=20)
    parser.add_argument("--store", type=pathlib.Path, help="kept, and used again if it is there")
    parser.add_argument("--only", default="", help="only calls whose names contain this")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        work = pathlib.Path(directory)
        store = args.store or work / "store"
        if not store.exists():
            crawl(work / "crawl.jsonl", args.pages, args.hosts or args.pages)
            subprocess.run([args.webstrata, "build", work / "crawl.jsonl", "--out", store], check=True)
            (work / "crawl.jsonl").unlink()
            subprocess.run([args.webstrata, "cells", store], check=True)
        command = [args.webstrata, "serve", store, "--listen", "127.0.0.1:0", "--data", work / "data"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            address = server.stdout.readline().split()[-1]
            while "ready" not in (line := server.stdout.readline()):
                assert line, "the server ended"
            heads = "".join(f"{head:>8}" for head in ("s", "CPU s", "before", "most", "after"))
            print(f"{'call':<24} {'at once':>7}  {'answers':<22}{heads}")
            for name, path in calls():
                if args.only not in name:
                    continue
                for at_once in (1, args.at_once):
                    counts, *times, before, most, after = measure(server.pid, address, path, at_once)
                    figures = "".join(f"{time:>8.2f}" for time in times)
                    figures += "".join(f"{memory:>8}" for memory in (before, most, after))
                    print(f"{name:<24} {at_once:>7}  {counts:<22}{figures}", flush=True)
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
