"""The explorer's view of the whole store, compared with `webstrata overview`: each number and each bar."""
import json
import subprocess
import xml.etree.ElementTree as ET

from explorer_browser import fail

SVG = "{http://www.w3.org/2000/svg}"


def bars(page, plate, colour):
    """The bars of a plate in a colour, as (x, height), in order of x."""
    return page.evaluate("""([plate, colour]) => {
        const section = [...document.querySelectorAll('.plates section')]
            .find((own) => own.querySelector('h2').textContent === plate);
        return [...section.querySelectorAll('rect')].filter((rect) => rect.getAttribute('fill') === colour)
            .map((rect) => [Number(rect.getAttribute('x')), Number(rect.getAttribute('height'))])
            .filter(([, height]) => height >= 1).sort(([one], [other]) => one - other);
    }""", [plate, colour])


def check_store(browser, webstrata, store):
    """Figures, bars, hosts and domains; the key, the words above, a host's link, and what is saved."""
    page = browser.page
    command = [webstrata, "overview", store, "--format", "json"]
    answer = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    counts, overview = answer["counts"], answer["overview"]
    browser.open(v="store")
    page.locator(".plates svg").first.wait_for()
    figures = page.locator(".figures dd").all_inner_texts()
    names = ["urls", "pages", "captures", "links", "occurrences", "unknown_captures"]
    if figures[:6] != [f"{counts[name]:,}" for name in names]:
        fail(f"figures of the store: {figures}")
    drawn, theme = 0, browser.colours()
    for plate, colour, column in (("Links gained and lost", "accent", "links_gained"),
                                  ("Links gained and lost", "soft", "links_found"),
                                  ("Links gained and lost", "bar", "links_lost")):
        numbers = [number for number in overview["all"][column] if number]
        shown = bars(page, plate, theme[colour])
        highest = max((height for _, height in shown), default=0)
        expected = [max(1, number / max(numbers) * highest) for number in numbers]
        if len(shown) != len(expected) or any(abs(one[1] - two) > 0.6 for one, two in zip(shown, expected)):
            fail(f"bars of {column}: {shown}, expected heights {expected}")
        drawn += len(shown)
    rows = page.locator(".plates table").first.locator("tbody tr").all()
    for row, host in zip(rows, overview["hosts"], strict=False):
        numbers = host["numbers"]
        expected = [host["host"], *(f"{number:,}" for number in
                                    (sum(numbers["captures"]), host["pages"], sum(numbers["urls"]), host["links"]))]
        if row.locator("td").all_inner_texts() != expected:
            fail(f"the row of {host['host']}: {row.inner_text()}")
    if len(rows) != min(12, len(overview["hosts"])) or not rows:
        fail(f"{len(rows)} hosts are shown")
    text = " ".join(page.locator(".plates svg").all_text_contents())
    for linked in overview["domains"]:
        if f"{linked['links']:,}" not in text:
            fail(f"{linked} is not shown")
    for kind, start in (("SVG", b"<svg"), ("PNG", b"\x89PNG")):
        content = browser.saved(page.get_by_role("button", name=kind, exact=True).click)
        if not content.startswith(start):
            fail(f"{kind} of the store begins with {content[:20]}")
        if kind == "SVG" and len(ET.fromstring(content).findall(f".//{SVG}rect")) < drawn:
            fail("the saved SVG has fewer bars than the page")
    # By key from another view and back, and from the first page without a URL.
    page.locator(".plates table a").first.click()
    browser.ready("backlinks")
    page.keyboard.press("5")
    browser.ready("store")
    page.keyboard.press("3")
    browser.ready("backlinks")
    browser.open()
    page.get_by_role("link", name="The store").click()
    browser.ready("store")
    page.set_viewport_size({"width": 390, "height": 800})
    page.wait_for_timeout(200)
    wide = page.evaluate("document.querySelector('.store').scrollWidth - document.querySelector('.store').clientWidth")
    if wide > 0:
        fail(f"the store is {wide} pixels wider than a phone")
    page.set_viewport_size({"width": 1280, "height": 800})
    browser.clean("the store")
    print(f"the store: {drawn} bars, {len(rows)} hosts and {len(overview['domains'])} domains as `webstrata overview`; "
          "key, words, links, SVG, PNG")
