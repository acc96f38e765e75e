"""The views of the explorer about what is around a page, compared with the command and with the API."""
import csv
import io
import subprocess
import xml.etree.ElementTree as ET

from explorer_browser import FIRST, digits, fail, seconds


def check_backlinks(browser, api, webstrata, store, domains):
    """The chart and the rows of domains, hosts and pages, against the command; periods chosen by keys and pointer."""
    page, rows, months = browser.page, 0, 0
    for domain in domains:
        for unit in ("page", "host"):
            shown = browser.open(v="backlinks", url=domain, unit=unit)
            command = [webstrata, "backlinks", store, domain, "--unit", unit, "--format", "csv"]
            table = lambda *more: list(csv.DictReader(io.StringIO(
                subprocess.run([*command, *more], check=True, capture_output=True, text=True).stdout)))
            drawn = {(row["url"], run["began"], run["first"], run["last"], run["gone"])
                     for row in shown["rows"] for run in row["runs"]}
            expected = {(row["referrer"], row["began"], seconds(row["first"]), seconds(row["last"]),
                         seconds(row["until"]) if row["until"] else 0) for row in table()}
            if drawn != expected or not drawn:
                fail(f"stays of {unit}s that link to {domain}: {sorted(drawn ^ expected)[:3]}")
            kinds = ["standing", "unknown", "found", "new", "returned", "lost"]
            series = [{kind: int(row[kind]) for kind in kinds} for row in table("--period", "month")]
            if [{kind: month[kind] for kind in kinds} for month in shown["months"]] != series:
                fail(f"months of {domain}, {unit}")
            rows, months = rows + len(drawn), months + len(series)
    firsts = [row["runs"][0]["first"] for row in shown["rows"]]
    if firsts != sorted(firsts):
        fail("backlinks are not in the order of their first links")
    all_rows = shown["rows"]
    page.locator(".over .picture").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.wait_for_timeout(300)
    shown = browser.shown()
    start, end = shown["span"]
    within = lambda run: start <= run["first"] < end or start <= run["gone"] < end
    expected = [row["url"] for row in all_rows if any(map(within, row["runs"]))]
    if [row["url"] for row in shown["rows"]] != expected or digits(start)[:4] not in page.url.split("from=")[-1]:
        fail(f"the rows of {start} to {end}: {len(shown['rows'])}, expected {len(expected)}")
    page.keyboard.press("Escape")
    page.wait_for_timeout(200)
    if len(browser.shown()["rows"]) != len(all_rows):
        fail("Escape does not show all rows again")
    browser.open(v="backlinks", url=domain)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    if browser.ready("barcode")["url"] not in {row["referrer"] for row in csv.DictReader(io.StringIO(subprocess.run(
            [webstrata, "backlinks", store, domain, "--format", "csv"], capture_output=True, text=True).stdout))}:
        fail("Enter on a row does not lead to its page")
    for kind, start in (("SVG", b"<svg"), ("PNG", b"\x89PNG"), ("CSV", b"referrer,"), ("JSON", b"[")):
        browser.open(v="backlinks", url=domain)
        content = browser.saved(page.get_by_role("button", name=kind, exact=True).click)
        if not content.startswith(start):
            fail(f"{kind} of backlinks begins with {content[:20]}")
        if kind == "SVG":
            ET.fromstring(content)
    browser.clean("backlinks")
    print(f"backlinks: {len(domains)} domains, pages and hosts, {rows} stays and {months} months as the command has "
          "them; periods, keys, SVG, PNG, CSV, JSON")


def around(api, url, at):
    """Pages one and two links away at a date, asked one by one; None where the links of one of them are unknown."""
    ask = lambda page, way: api.get("/v1/links", url=page, at=digits(at), direction=way, limit=100000)
    own = ask(url, "out")
    near = (set(own["links"]) | set(ask(url, "in")["links"])) - {url}
    answers = [own] + [ask(page, "out") for page in near]
    if any("unknown" in answer for answer in answers):
        return None
    far = {link for answer in answers[1:] for link in answer["links"]} - near - {url}
    return [near, far]


def check_neighbourhood(browser, api, urls):
    """The rings at dates, against links asked one by one; time by keys and pointer; ways; tables and files."""
    page, compared, nodes = browser.page, 0, 0
    for url in urls:
        for step in (9, 20, 33, 58):
            at = FIRST + step * 4_000_000 + 2_000_000
            shown = browser.open(v="neighbourhood", url=url, at=digits(at))
            rings = [{node["name"] for node in shown["nodes"] if node["ring"] == ring} for ring in (1, 2)]
            unknown = ["unknown" in api.get("/v1/links", url=node, at=digits(at)) for node in rings[0]]
            expected = around(api, url, shown["now"])
            if expected is None or any(unknown):
                continue
            if rings != expected:
                others = [sorted(one ^ other)[:3] for one, other in zip(rings, expected)]
                fail(f"around {url} at {digits(at)}: {others}")
            compared, nodes = compared + 1, nodes + len(shown["nodes"])
    if compared < len(urls):
        fail(f"only {compared} neighbourhoods were compared")
    shown = browser.open(v="neighbourhood", url=urls[0])
    places = {node["name"]: node["place"] for node in shown["nodes"]}
    begun = shown["now"]
    for key in ("ArrowLeft",) * 30 + ("ArrowRight",) * 3:
        page.keyboard.press(key)
    page.wait_for_timeout(400)
    moved = browser.shown()
    if not 25 < (begun - moved["now"]) / (30.4 * 86400) < 29 or f"at={digits(moved['now'])[:8]}" not in page.url:
        fail(f"the keys moved time from {begun} to {moved['now']}: {page.url}")
    others = [node for node in moved["nodes"] if node["name"] in places and node["place"] != places[node["name"]]]
    if any(abs(node["place"][0] - places[node["name"]][0]) > 1 and node["ring"] == 1 for node in others
           if next(own for own in shown["nodes"] if own["name"] == node["name"])["ring"] == 1):
        fail(f"nodes changed their places: {others[:2]}")
    page.keyboard.press("Home")
    page.keyboard.press("Space")
    page.wait_for_timeout(700)
    played = browser.shown()
    page.keyboard.press("Space")
    if not played["isPlaying"] or played["now"] <= played["layout"]["first"] or browser.shown()["isPlaying"]:
        fail("Space does not play and pause")
    slider = page.locator("[role=slider]").bounding_box()
    page.mouse.click(slider["x"] + slider["width"] * 0.75, slider["y"] + 20)
    page.wait_for_timeout(400)
    shown = browser.shown()
    part = (shown["now"] - shown["layout"]["first"]) / (shown["layout"]["end"] - shown["layout"]["first"])
    if abs(part - 0.75) > 0.02:
        fail(f"a click on the slider moved time to {part:.2f}")
    box = page.locator("[role=application]").bounding_box()
    node = max(shown["nodes"], key=lambda one: one["place"][0])
    page.mouse.move(box["x"] + node["place"][0], box["y"] + node["place"][1])
    page.wait_for_timeout(100)
    if node["name"] not in page.locator(".read p").inner_text():
        fail(f"the pointer over {node['name']} tells {page.locator('.read p').inner_text()!r}")
    page.mouse.click(box["x"] + node["place"][0], box["y"] + node["place"][1])
    if browser.ready("neighbourhood")["url"] != node["name"]:
        fail(f"a click on {node['name']} leads to {page.url}")
    page.go_back()
    shown = browser.ready("neighbourhood")
    target = next(node["name"] for node in shown["nodes"] if node["ring"] == 2)
    page.get_by_label("Ways to this URL").fill(target)
    page.keyboard.press("Enter")
    page.wait_for_timeout(400)
    answer = api.get("/v1/ways", url=urls[0], target=target, at=digits(browser.shown()["now"]), limit=5)
    if browser.shown()["ways"] != answer or page.locator(".ways > li").count() != len(answer["ways"]):
        fail(f"the ways to {target}: {browser.shown()['ways']}")
    hosts = browser.open(v="neighbourhood", url=urls[0], unit="host")
    names = {node["name"] for node in hosts["nodes"]}
    if not names or any("/" in name for name in names):
        fail(f"hosts: {sorted(names)[:5]}")
    browser.open(v="neighbourhood", url=urls[0])
    page.get_by_role("button", name="Table", exact=True).click()
    if page.locator(".rows tbody tr").count() != min(200, len(browser.shown()["nodes"])):
        fail("the table has not the nodes of the picture")
    page.get_by_role("button", name="Table", exact=True).click()
    for kind, start in (("SVG", b"<svg"), ("PNG", b"\x89PNG"), ("CSV", b"from,")):
        content = browser.saved(page.get_by_role("button", name=kind, exact=True).click)
        if not content.startswith(start):
            fail(f"{kind} of a neighbourhood begins with {content[:20]}")
        if kind == "SVG":
            ET.fromstring(content)
    browser.clean("neighbourhood")
    print(f"neighbourhood: {compared} of dates of {len(urls)} pages with {nodes} nodes as links asked one by one have "
          "them; keys, play, slider, pointer, ways, hosts, table, SVG, PNG, CSV")
