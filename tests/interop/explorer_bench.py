"""Backlinks as a workbench in the explorer: dates that are typed, two targets beside each other, a list of targets in
the address, and the host and the domain of a page. All that is shown is compared with answers of the API."""
import csv
import io
import json
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

from explorer_browser import fail, seconds

KINDS = ("standing", "unknown", "found", "new", "returned", "lost")
# Forms of a time, and texts that are none: the page must understand what the server does.
TIMES = ("2008", "2008-06", "2008/06", "200806", "June 2008", "Jun 2008", "2008-06-01", "2008/06/01", "20080601",
         "1 June 2008", "June 1, 2008", "2008-06-01T12", "2008060112", "2008-06-01T12:30", "2008-06-01 12:30",
         "200806011230", "2008-06-01T12:30:05.9", "20080601123005", "2008-06-01T12:30+02:00", "2008-06-01T12:30-0230",
         "today", "yesterday", "30d ago", "-30d", "2 weeks ago", "2008-02-29", "2004-02", "2007-02-29", "2008-13",
         "200", "20086", "05/01/2006", "may 06", "1d", "0000", "+2006", "2008-06-01T24", "20080431", "sept 2006")


def at(browser):
    """The parameters of the address."""
    return dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(browser.page.url).query))


def rows_of(api, url, **question):
    return [row.get("name", row["page"]) for row in api.get("/v1/backlinks", url=url, limit=10000, **question)["rows"]]


def soon(browser, holds, what):
    """Waits until something holds: an address is written a moment after a choice."""
    for _ in range(100):
        if holds():
            return
        browser.page.wait_for_timeout(50)
    fail(f"{what}: {browser.page.url}")


def settled(browser, wanted, what):
    """Waits until the rows are those that are wanted."""
    for _ in range(60):
        rows = [row["url"] for row in browser.shown()["rows"]]
        if rows == wanted:
            return
        browser.page.wait_for_timeout(50)
    fail(f"{what}: {len(rows)} rows, expected {len(wanted)}: {sorted(set(rows) ^ set(wanted))[:3]}")


def reopened(browser, what):
    """The address, opened again, shows the same rows."""
    rows = [row["url"] for row in browser.shown()["rows"]]
    browser.page.wait_for_timeout(200)
    browser.page.goto(browser.page.url)
    browser.ready("backlinks")
    settled(browser, rows, f"{what}: the address opened again")


def write(browser, field, text):
    browser.page.locator(f"#between-{field}").fill(text)
    browser.page.keyboard.press("Enter")
    browser.page.wait_for_timeout(150)


def check_typed(browser, api, url):
    """Dates in the fields choose the rows that the server chooses; a click on a period writes them."""
    page, checked = browser.page, 0
    browser.open(v="backlinks", url=url)
    everything = rows_of(api, url)
    settled(browser, everything, "without dates")
    for start, end in (("2008", "2008-06"), ("2009-03", ""), ("", "1 June 2007"), ("20061231", "2010-02-03T04:05")):
        write(browser, "from", start)
        write(browser, "to", end)
        question = {name: text for name, text in (("from", start), ("to", end)) if text}
        wanted = rows_of(api, url, **question)
        settled(browser, wanted, f"between {start!r} and {end!r}")
        written = lambda: [at(browser).get(name, "") for name in ("from", "to")]
        soon(browser, lambda: written() == [start, end], f"the dates {start!r} and {end!r} are not in the address")
        checked += len(wanted) != len(everything)
        reopened(browser, "dates")
    if checked < 3:
        fail("the dates choose all rows")
    for start, end, said in (("20xx", "", "“20xx” is not a time"), ("2010", "2008", "earlier than the first date")):
        write(browser, "from", start)
        write(browser, "to", end)
        settled(browser, everything, f"wrong dates {start!r} and {end!r}")
        told = page.locator("#between-wrong").inner_text()
        if said not in told or page.locator(".date-field[aria-invalid]").count() != 1:
            fail(f"{start!r} to {end!r} is answered by {told!r}")
    write(browser, "from", "")
    write(browser, "to", "")
    settled(browser, everything, "cleared fields")
    soon(browser, lambda: not at(browser).keys() & {"from", "to"}, "cleared fields leave dates in the address")
    if page.locator("#between-wrong").inner_text():
        fail(f"cleared fields are answered by {page.locator('#between-wrong').inner_text()!r}")
    box = page.locator(".over .picture").bounding_box()
    page.mouse.click(box["x"] + box["width"] * 0.7, box["y"] + 40)
    page.wait_for_timeout(300)
    period = {name: page.evaluate(f"document.getElementById('between-{name}').value") for name in ("from", "to")}
    if not period["from"]:
        fail("a click on a period does not fill the fields")
    soon(browser, lambda: period == {name: at(browser).get(name) for name in period}, f"a click writes {period}")
    settled(browser, rows_of(api, url, **period), f"a click on {period}")
    page.locator("[aria-label='All dates']").click()
    settled(browser, everything, "the sign for all dates")
    browser.clean("dates of backlinks")
    return checked


def check_forms(browser, api):
    """Each form of a time is understood as the server does: its refusals say which seconds it takes."""
    page = browser.page

    def taken(**question):
        try:
            api.get("/v1/backlinks", url="museum.example", **question)
        except urllib.error.HTTPError as error:
            message = json.load(error)["error"]["message"]
            return message if " is later than " in message else None
        fail(f"{question} is not refused")

    browser.open(v="backlinks", url="museum.example")
    for text in TIMES:
        first, last = taken(**{"from": text, "to": "0001"}), taken(**{"from": "9999-12-31T23:59:59", "to": text})
        expected = [first and seconds(first.split()[1]), last and seconds(last.split()[-1])]
        own = page.evaluate("(text) => import('./explorer/text/dates.js').then(({ timeOf }) => [timeOf(text) ?? null, "
                            "timeOf(text, true) ?? null])", text)
        same = [(one is None) == (other is None) and (one is None or abs(one - other) <= (5 if "ago" in text or
                "-30d" == text else 0)) for one, other in zip(own, expected)]
        if not all(same):
            fail(f"the time {text!r} is {own} for the page, {expected} for the server")
    return len(TIMES)


def check_beside(browser, api, a, b):
    """Two targets: the series of both, and who links to both, to A only, and to B only."""
    page, compared = browser.page, 0
    browser.open(v="backlinks", url=a)
    page.locator("#beside").fill(b)
    page.keyboard.press("Enter")
    soon(browser, lambda: at(browser).get("and") == b, "the second target is not in the address")
    browser.ready("backlinks")
    for more in ({}, {"unit": "host"}, {"event": "standing"}, {"unit": "domain", "internal": "1"},
                 {"from": "2008", "to": "2009"}):
        question = {key: value for key, value in more.items() if key != "internal"}
        question |= {"internal": "true"} if "internal" in more else {}
        shown = browser.open(**{"v": "backlinks", "url": a, "and": b}, **more)
        answers = [api.get("/v1/backlinks", url=url, limit=10000, **question) for url in (a, b)]
        for months, answer in zip((shown["months"], shown["otherMonths"]), answers):
            if [[month[kind] for month in months] for kind in KINDS] != [answer[kind] for kind in KINDS]:
                fail(f"the months of {answer['url']} with {more}")
        stays = [{row.get("name", row["page"]): [seconds(stay["first"]) for stay in row["stays"]]
                  for row in answer["rows"]} for answer in answers]
        drawn = [{row["url"]: [run["first"] for run in row["parts"][side]]
                  for row in shown["rows"] if side in row["parts"]} for side in "AB"]
        if drawn != stays:
            fail(f"the rows of {a} and {b} with {more} are not those of the server")
        one, other = map(set, stays)
        right = {"both": one & other, "a": one - other, "b": other - one}
        for number, who in ((1, "both"), (2, "a"), (3, "b")):
            word = page.locator(".who [role=radio]").nth(number)
            if word.inner_text().split()[-1].replace(",", "") != str(len(right[who])):
                fail(f"{word.inner_text()!r} with {more}, expected {len(right[who])}")
            word.click()
            soon(browser, lambda: at(browser).get("who") == who, f"{who} is not in the address")
            rows = browser.shown()["rows"]
            if {row["url"] for row in rows} != right[who] or len(rows) != len(right[who]):
                fail(f"{who} with {more}: {len(rows)} rows, expected {len(right[who])}")
            compared += len(rows)
        reopened(browser, f"who links to {b} only, with {more}")
    browser.open(**{"v": "backlinks", "url": a, "and": b})
    answers = [api.get("/v1/backlinks", url=url) for url in (a, b)]
    pages = [{host["host"]: host["pages"] for host in answer["hosts"]} for answer in answers]
    lines = [line.split("\t") for line in page.locator(".hosts tbody tr").all_inner_texts()]
    for host, *numbers in lines:
        expected = [str(own.get(host, 0)) for own in pages]
        if numbers[:2] != expected:
            fail(f"the host {host} has {numbers[:2]} pages, expected {expected}")
    page.locator(f"[aria-label='Compare no longer with {b}']").click()
    soon(browser, lambda: "and" not in at(browser), "the second target stays")
    browser.ready("backlinks")
    if browser.shown().get("otherMonths"):
        fail("the second target is still drawn")
    browser.clean("two targets")
    return compared, len(lines)


def check_list(browser, a, b, inside):
    """A list in the address: kept with a key and a click, gone to, compared, carried along, and removed."""
    page = browser.page
    both = f"{a} host!{b}"
    has = lambda **wanted: lambda: wanted.items() <= at(browser).items()
    names = lambda: page.locator(".kept a").all_inner_texts()
    browser.open(v="backlinks", url=a)
    page.keyboard.press("k")
    soon(browser, has(list=a), "the key does not keep the target")
    browser.open(v="backlinks", url=b, match="host", list=a)
    page.locator(f"[aria-label='Keep host {b} in the list']").click()
    soon(browser, has(list=both), "a click does not keep the host")
    if names() != [a, f"host {b}"] or page.locator(".kept [aria-current]").inner_text() != f"host {b}":
        fail(f"the list shows {names()}")
    page.locator(".kept a").first.click()
    soon(browser, has(url=a, list=both), "a click in the list does not lead to its target")
    browser.ready("backlinks")
    if names() != [a, f"host {b}"]:
        fail(f"after a click the list shows {names()}")
    page.locator(f"[aria-label='Compare with host {b}']").click()
    soon(browser, has(**{"url": a, "and": f"host!{b}"}), "a target of the list is not compared")
    browser.ready("backlinks")
    page.locator("[aria-label^='Show host']").click()
    soon(browser, has(**{"url": b, "match": "host", "and": a}), "the targets are not swapped")
    browser.ready("backlinks")
    browser.open(v="barcode", url=inside, list=both)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    soon(browser, lambda: at(browser)["url"] != inside and has(list=both)(), "a row of a barcode loses the list")
    browser.ready("barcode")
    browser.open(v="backlinks", url=b, list=both)
    page.keyboard.press("5")
    browser.ready("store")
    page.keyboard.press("3")
    browser.ready("backlinks")
    page.locator(f"[aria-label='Keep {a} no longer']").click()
    soon(browser, has(list=f"host!{b}"), "a target is not removed from the list")
    if names() != [f"host {b}"]:
        fail(f"after a removal the list shows {names()}")
    browser.clean("the list")


def check_wider(browser, api, url):
    """The host and the domain of a page are one click away."""
    page = browser.page
    host = urllib.parse.urlsplit(url).netloc
    domain = ".".join(host.split(".")[-2:])
    for at_link, name, match in ((0, host, "host"), (1, domain, "domain")):
        browser.open(v="backlinks", url=url)
        soon(browser, lambda: page.locator(".wider a").count() == 2, "host and domain are not offered")
        link = page.locator(".wider a").nth(at_link)
        if name not in link.inner_text():
            fail(f"{link.inner_text()!r} is offered for {url}, expected {name}")
        link.click()
        soon(browser, lambda: at(browser)["url"] == name, f"the {match} is not opened")
        shown = browser.ready("backlinks")
        expected = api.get("/v1/backlinks", url=name, match=match, limit=1)["rows_total"]
        if shown["total"] != expected:
            fail(f"the {match} {name}: {shown['total']} rows at {page.url}, expected {expected}")
    # An address without a scheme has the same host.
    browser.open(v="backlinks", url=url.removeprefix("https://"))
    if page.locator(".wider a").first.inner_text() != f"to all URLs of {host}":
        fail(f"{page.locator('.wider a').first.inner_text()!r} is offered without a scheme")
    browser.open(v="deaths", url=url.removeprefix("https://"))
    if host not in page.locator("h1").first.inner_text():
        fail(f"dead pages of {page.locator('h1').first.inner_text()!r}, expected {host}")
    browser.clean("host and domain")


def saved(page, name):
    with page.expect_download() as download:
        page.get_by_role("button", name=name, exact=True).click()
    return Path(download.value.path()).read_text(encoding="utf-8")


def check_files(browser, api, a, b):
    """Rows and series of both targets as files; rows that come in parts; a target that is not in the store."""
    page = browser.page
    browser.open(**{"v": "backlinks", "url": a, "and": b, "who": "both"})
    lines = list(csv.DictReader(io.StringIO(saved(page, "CSV"))))
    both = set(rows_of(api, a)) & set(rows_of(api, b))
    if {line["referrer"] for line in lines} != both or {line["target"] for line in lines} != {a, b}:
        fail(f"the CSV of both has {len(lines)} lines of {sorted({line['target'] for line in lines})}")
    browser.open(**{"v": "backlinks", "url": a, "and": b, "list": f"news.example none.example host!{b}"})
    series = list(csv.DictReader(io.StringIO(saved(page, "Series"))))
    expected = []
    for url, match in ((a, "domain"), (b, "domain"), ("news.example", "domain"), (b, "host")):
        answer = api.get("/v1/backlinks", url=url, match=match, limit=1)
        expected += [{"target": url, "match": match, "month": start[:7],
                      **{kind: str(answer[kind][place]) for kind in KINDS}}
                     for place, start in enumerate(answer["periods"])]
    if series != expected:
        fail(f"the series have {len(series)} lines, expected {len(expected)}")
    # As from a server that gives ten rows at once.
    smaller = lambda route: route.continue_(
        url=route.request.url.replace("limit=5000", "limit=10").replace("limit=10000", "limit=10"))
    page.route("**/v1/backlinks**", smaller)
    shown = browser.open(**{"v": "backlinks", "url": a, "and": b})
    told = page.locator(".read p").inner_text()
    if shown["isWhole"] or page.locator(".who [role=radio]").count() or "The first 10 of" not in told:
        fail(f"parts pass for wholes: {told!r}")
    page.locator(".who button").click()
    soon(browser, lambda: page.locator(".who [role=radio]").count() == 4, "all rows are not read")
    if {row["url"] for row in browser.shown()["rows"]} != set(rows_of(api, a)) | set(rows_of(api, b)):
        fail("the rows that were read in parts are not all rows")
    page.unroute("**/v1/backlinks**")
    browser.open(**{"v": "backlinks", "url": a, "and": "none.example"})
    if "none.example is not in the store" not in page.locator(".with").inner_text().replace("\n", " ") or \
            not browser.shown()["rows"]:
        fail("a second target that is not in the store is not named as such")
    browser.problems = [problem for problem in browser.problems if "404" not in problem]
    browser.clean("files of two targets")
    return len(lines), len(series)


def check_sizes(make, a, b):
    """Nothing is wider than the window, and the picture keeps its room, with all of the bench in use."""
    state = {"v": "backlinks", "url": a, "and": b, "list": f"{a} host!{b} news.example https://museum.example/1.html"}
    for width, height in ((1280, 800), (768, 1024), (390, 844)):
        browser = make(width, height)
        browser.open(**state)
        wide = browser.page.evaluate("document.documentElement.scrollWidth")
        tall = browser.page.locator("[role=application]").bounding_box()["height"]
        if wide > width or tall < 150:
            fail(f"at {width} pixels the page is {wide} wide, and the rows are {tall} high")
        browser.context.close()


def check_bench(browser, api, page_url):
    """What is the same in each browser."""
    a, b = "museum.example", "archive.example"
    dates = check_typed(browser, api, a)
    rows, hosts = check_beside(browser, api, a, b)
    check_list(browser, a, b, page_url)
    check_wider(browser, api, page_url)
    print(f"bench: {dates} pairs of dates typed, a period clicked; two targets with {rows} rows of who links to both "
          f"and {hosts} hosts as /v1/backlinks has them; the list, host and domain")


def check_bench_whole(browser, api, page_url, make):
    """The bench with all its files, forms and sizes."""
    check_bench(browser, api, page_url)
    forms = check_forms(browser, api)
    lines, months = check_files(browser, api, "museum.example", "archive.example")
    check_sizes(make, "museum.example", "archive.example")
    print(f"bench: {forms} texts of times as the server takes them, {lines} lines of rows and {months} months as "
          "files, rows in parts, three sizes of windows")
