"""The explorer's view of dead pages, compared with `webstrata deaths` and `webstrata links`: each row and each bar."""
import csv
import json
import subprocess
import time

from explorer_browser import fail, served

HOST = "www.paregineng.org.uk"


def asked(webstrata, store, *options):
    """The lines of JSON of a command, which `options` begin with."""
    name, *rest = map(str, options)
    command = [webstrata, name, store, *rest, "--format", "json"]
    lines = subprocess.run(command, check=True, capture_output=True, text=True)
    return [json.loads(line) for line in lines.stdout.splitlines()]


def build(webstrata, store):
    """A store of made-up pages of which some died."""
    made = ["build", "--out", store, "--generate", "uk:occurrences=120000,months=48,deaths=300"]
    for command in (made, ["cells", store]):
        subprocess.run([webstrata, *command], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def shown_rows(browser, first):
    """Rows of the table, as its text: status, pages that link, and the page."""
    rows = []
    for cells in browser.page.evaluate("""() => [...document.querySelectorAll('table.dead tbody tr:not(.linkers)')]
            .map((row) => [...row.children].map((cell) => cell.textContent))"""):
        rows.append((int(cells[1]), cells[4], first + cells[5] if cells[5].startswith("/") else cells[5]))
    return rows


def expected_rows(lines):
    def linked(line):
        count = line["linking"]
        return "none" if not count else f"{count:,} page" + ("" if count == 1 else "s")
    return [(line["status"], linked(line), line["page"].removeprefix("http://")) for line in lines]


def check_replay(page, lines):
    """Each time of a dead page opens the capture of that time in the archive."""
    for at, line in enumerate(lines):
        times = [line[name] for name in ("died", "seen", "returned") if line[name]]
        digits = ["".join(filter(str.isdigit, time)) for time in times]
        opened = page.locator("table.dead tbody tr").nth(at).evaluate(
            "(row) => [...row.querySelectorAll('.out a')].map((a) => a.href)")
        expected = [f"https://web.archive.org/web/{time}/{line['page']}" for time in digits]
        if opened != expected:
            fail(f"{line['page']} opens {opened}, expected {expected}")


def bars(page, colour):
    """The heights of the bars of a colour, in order of x."""
    return page.evaluate("""(colour) => {
        return [...document.querySelectorAll('.deaths .drawn rect')]
            .filter((rect) => rect.getAttribute('fill') === colour)
            .map((rect) => [Number(rect.getAttribute('x')), Number(rect.getAttribute('height'))])
            .filter(([, height]) => height >= 1).sort(([one], [other]) => one - other).map(([, height]) => height);
    }""", colour)


def check_years(browser, years):
    for colour, column in (("bar", "died"), ("accent", "returned")):
        numbers = [year[column] for year in years if year[column]]
        heights = bars(browser.page, browser.colours()[colour])
        scale = max(heights, default=0) / max(numbers, default=1)
        if len(heights) != len(numbers) or any(abs(height - max(1, number * scale)) > 0.6
                                               for height, number in zip(heights, numbers)):
            fail(f"bars of {column}: {heights}, expected {numbers}")
    return sum(1 for year in years for column in ("died", "returned") if year[column])


def wait_for_year(browser, year):
    """Waits until the rows are those of a year."""
    until = time.monotonic() + 10
    while time.monotonic() < until:
        shown = browser.shown()
        if shown["chosen"] == year and all(row["died"].startswith(str(year)) for row in shown["rows"]):
            return
        browser.page.wait_for_timeout(20)
    fail(f"the rows are not those of {year}")


def check_deaths(make, webstrata, directory):
    """`make` opens a browser at a server's address."""
    values = 0
    store = directory / "dead"
    build(webstrata, store)
    with served(webstrata, store, directory / "dead-data") as base:
        browser = make(base)
        page = browser.page
        # From the first page, by the words of the views. A view is ready when its pictures stand, and draws them once:
        # a pointer would miss one that is put in the place of another.
        for link, view in (("The store", "store"), ("Dead pages", "deaths")):
            browser.open()
            pictures, drawings = browser.drawings(link, view)
            if pictures != drawings or not pictures:
                fail(f"{view} has {pictures} pictures, of {drawings} that were drawn")
        for state, options, first in (
                ({}, [], ""),
                ({"url": f"http://{HOST}/", "order": "most"}, ["--host", HOST, "--order", "most"], HOST),
                ({"url": "org.uk", "still": "1", "order": "key"},
                 ["--domain", "org.uk", "--still", "--order", "key"], ""),
                ({"status": "410", "order": "first"}, ["--status", "410"], "")):
            browser.open(v="deaths", **state)
            page.locator(".deaths .drawn svg").wait_for()
            part = options[:2] if options and options[0] in ("--host", "--domain") else []
            values += check_years(browser, asked(webstrata, store, "deaths", *part, "--period", "year"))
            order = [] if "order" in state else ["--order", "last"]
            lines = asked(webstrata, store, "deaths", *options, *order)
            while page.get_by_role("button", name="Show more").count():
                page.get_by_role("button", name="Show more").click()
                page.wait_for_timeout(100)
            if shown_rows(browser, first) != expected_rows(lines):
                fail(f"rows of {state}: {shown_rows(browser, first)[:5]}, expected {expected_rows(lines)[:5]}")
            check_replay(page, lines[:40])
            values += 3 * len(lines)
        # A year, by click and by key; who links to a page that died in it, and since when.
        browser.open(v="deaths")
        area = page.locator(".deaths .drawn")
        years = browser.shown()["years"]
        box = area.locator("svg").bounding_box()
        step = (box["width"] - 44) / len(years)
        page.mouse.click(box["x"] + 44 + 1.5 * step, box["y"] + 100)
        wait_for_year(browser, years[1])
        area.focus()
        page.keyboard.press("ArrowRight")
        wait_for_year(browser, years[2])
        page.wait_for_timeout(300)
        if f"from={years[2]}&to={years[2]}" not in page.url:
            fail(f"the address does not keep the year: {page.url}")
        lines = asked(webstrata, store, "deaths", "--from", years[2], "--to", years[2], "--order", "last")
        if shown_rows(browser, "") != expected_rows(lines):
            fail(f"rows of {years[2]}")
        linked = next(at for at, line in enumerate(lines) if 0 < line["linking"] < 100)
        dead = lines[linked]["page"]
        page.locator("table.dead tbody tr").nth(linked).locator("button").click()
        page.locator("table.dead tr.linkers").wait_for()
        named = page.locator("table.dead tr.linkers li").all_inner_texts()
        links = asked(webstrata, store, "links", dead, "--in", "--at", "now")[0]["links"]
        if sorted(named) != sorted(url.removeprefix("http://") for url in links):
            fail(f"{dead} is linked by {named}, expected {links}")
        saved = browser.saved(page.get_by_role("button", name="CSV", exact=True).click)
        rows = list(csv.DictReader(saved.decode().splitlines()))
        command = [webstrata, "deaths", store, "--from", str(years[2]), "--to", str(years[2]), "--order", "last",
                   "--linkers", "100", "--format", "csv"]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        if rows != list(csv.DictReader(text.splitlines())):
            fail(f"the CSV has {len(rows)} lines, not those of the command")
        values += len(rows) * len(rows[0])
        page.locator("table.dead tr.linkers").get_by_role("link", name="since when").click()
        shown = browser.ready("backlinks")
        if len(shown["rows"]) != len(links):
            fail(f"backlinks of {dead}: {len(shown['rows'])} rows, expected {len(links)}")
        # Paper, a narrow window, and a part in which no page died.
        browser.open(v="deaths", url=f"http://{HOST}/")
        page.set_viewport_size({"width": 390, "height": 800})
        page.wait_for_timeout(200)
        wide = page.evaluate("""() => {
            const { scrollWidth, clientWidth } = document.querySelector('.deaths');
            return scrollWidth - clientWidth; }""")
        if wide > 0:
            fail(f"dead pages are {wide} pixels wider than a phone")
        page.set_viewport_size({"width": 1280, "height": 800})
        if page.evaluate("""() => { dispatchEvent(new Event('beforeprint'));
                const rows = document.querySelectorAll('#sheet tr').length;
                dispatchEvent(new Event('afterprint')); return rows; }""") < 5:
            fail("the paper has no rows")
        browser.open(v="deaths", url="http://nobody-died.example/", match="store", status="451")
        if "No death" not in page.locator(".foot").inner_text():
            fail(f"nobody died with 451: {page.locator('.foot').inner_text()}")
        browser.clean("dead pages")
        browser.context.close()
    print(f"dead pages: {values} values as `webstrata deaths`; a year by click and by key, who links, CSV, paper")

