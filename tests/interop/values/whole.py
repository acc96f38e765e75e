"""The whole store, and what is offered to begin with: figures, plates, files, the first page, suggestions."""
from explorer_store import bars
from values.words import bare, many, month, saved, text_of

PLATES = (("Links gained and lost", "accent", "links_gained"), ("Links gained and lost", "soft", "links_found"),
          ("Links gained and lost", "bar", "links_lost"), ("Pages that died", "accent", "pages_returned"),
          ("Pages that died", "bar", "pages_died"))


def check_store(browser, tally, reference):
    """Figures, bars, hosts, domains, and the file."""
    answer = reference.overview()
    counts, overview = answer["counts"], answer["overview"]
    browser.open(v="store")
    page = browser.page
    page.locator(".plates svg").first.wait_for()
    names = ["urls", "pages", "captures", "links", "occurrences", "unknown_captures"]
    tally.rows("the store, figures", "", page.locator(".figures dd").all_inner_texts()[:6],
               [f"{counts[name]:,}" for name in names])
    columns = [name for name in overview["all"] if isinstance(overview["all"][name], list)]
    years = lambda host, numbers: [
        (str(overview["first_year"] + at), host, *(str(numbers[name][at]) for name in sorted(columns)))
        for at in range(len(numbers["captures"]))]
    expected = years("", overview["all"])
    expected += [line for host in overview["hosts"] for line in years(host["host"], host["numbers"])]
    lines = [(line["year"], line["host"], *(line[name] for name in sorted(columns))) for line in saved(browser, "CSV")]
    tally.same("the store, CSV", "", lines, expected)
    theme = browser.colours()
    for plate, colour, column in PLATES:
        numbers = [number for number in overview["all"][column] if number]
        if plate == "Pages that died" and not any(overview["all"]["pages_died"]):
            continue
        drawn = [height for _, height in bars(page, plate, theme[colour])]
        highest = max(drawn, default=0)
        # A bar of a height below a pixel has one; colours of a plate may also draw its line.
        wanted = [max(1, number / max(numbers) * highest) for number in numbers]
        tally.rows("the store, bars", f"{plate}, {column}", [len(drawn)], [len(wanted)])
        close = [abs(one - other) < 0.6 for one, other in zip(drawn, wanted)]
        tally.rows("the store, bars", f"{plate}, {column}: {drawn} {wanted}", close, [True] * len(close))
    rows = page.locator(".plates table").first.locator("tbody tr").evaluate_all(
        "(rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent))") if overview["hosts"] else []
    tally.same("the store, hosts", "", map(tuple, rows), [
        (host["host"], *(f"{number:,}" for number in (sum(host["numbers"]["captures"]), host["pages"],
                                                       sum(host["numbers"]["urls"]), host["links"])))
        for host in overview["hosts"][:12]])
    texts = page.locator(".plates svg text").all_text_contents()
    for linked in overview["domains"]:
        tally.rows("the store, domains", linked["domain"], [f"{linked['links']:,}" in texts], [True])


def facts(reference, url):
    """What is written beside a suggestion."""
    captures = reference.captures(url)
    if not captures:
        number = reference.in_links(url)
        return f"{many(number, 'page')} link{'s' if number == 1 else ''} · not captured"
    first, last = (month(captures[at][0])[-4:] for at in (0, -1))
    return f"{many(len(captures), 'capture')} · {first if first == last else f'{first} – {last}'}"


def check_search(browser, tally, reference, typed):
    """The first page, and suggestions for what is typed."""
    browser.open()
    page = browser.page
    counts = reference.overview()["counts"]
    word = "" if counts["exact"] else "at most "
    tally.rows("first page", "", [text_of(browser, ".first > p").split(". Type")[0]], [
        f"{word}{many(counts['captures'], 'capture')} of {many(counts['pages'], 'page')}, and {counts['urls']:,} URLs "
        "in all"])
    shown = browser.shown()["pages"]
    offered = page.locator(".first ul").nth(page.locator(".first ul").count() - 2).locator("li").evaluate_all(
        "(items) => items.map((item) => [...item.children].map((own) => own.textContent))")
    expected = []
    for url in shown:
        captures, number = reference.captures(url), reference.in_links(url)
        times = [month(captures[at][0]) for at in (0, -1)] if captures else ["", ""]
        expected.append([bare(url), many(len(captures), "capture"),
                         many(number, "page") + (" links" if number == 1 else " link"), " – ".join(times)])
    tally.rows("first page", "pages", map(tuple, offered), map(tuple, expected))
    most = sorted((len(reference.captures(url)) for url in reference.pages()), reverse=True)[:len(shown)]
    tally.rows("first page", "most captures", [len(reference.captures(url)) for url in shown], most)
    for text in typed:
        page.locator("#search input").fill(text)
        page.wait_for_timeout(250)
        found = page.locator("#suggestions .page").evaluate_all(
            "(items) => items.map((item) => [item.querySelector('.name').textContent, "
            "item.querySelector('.fact').textContent])")
        known = {}
        for url in reference.urls():
            known.setdefault(bare(url), []).append(url)
        for name, fact in found:
            right = [facts(reference, url) for url in known.get(name, [])]
            tally.rows("suggestions", f"{text}: {name}: {fact}, expected {right}", [fact in right], [True])
    page.keyboard.press("Escape")


