"""What the explorer prints: the PDF of each view, with all that it has, on white paper."""
import math

import pypdfium2
from explorer_browser import fail
from explorer_look import HOSTILE

A4 = (595, 842)


def printed(browser, state):
    """The texts of the sheets of a view, which are white at their edges and have something on them."""
    browser.open(**state)
    texts = []
    for number, sheet in enumerate(pypdfium2.PdfDocument(browser.paper())):
        where = f"sheet {number + 1} of {state}"
        size = sorted(round(side) for side in sheet.get_size())
        if any(abs(side - wanted) > 20 for side, wanted in zip(size, A4)):
            fail(f"{where} is {size} points large")
        grey = sheet.render(scale=0.5).to_numpy().mean(axis=2)
        if min(grey[2].min(), grey[-3].min(), grey[:, 2].min(), grey[:, -3].min()) < 255 or grey.min() > 200:
            fail(f"{where} is not white at its edges, or has no ink: {grey.min():.0f} to {grey.max():.0f}")
        texts.append(" ".join(sheet.get_textpage().get_text_range().split()))
    return texts


def check_paper(make, url):
    """What is printed has all rows, not those in view, in both themes."""
    sheets = 0
    for scheme in ("light", "dark"):
        browser = make(scheme=scheme)
        host = url.split("/")[2]
        for state, title in (({"url": url}, url.split("://")[1]), ({"url": url, "dir": "in"}, url.split("://")[1]),
                             ({"v": "dates", "url": url}, url.split("://")[1]),
                             ({"v": "backlinks", "url": host}, host), ({"v": "neighbourhood", "url": url}, host),
                             ({"v": "store"}, "store"), ({"v": "deaths"}, "Dead pages of the store")):
            texts = printed(browser, state)
            if title not in texts[0]:
                fail(f"the first sheet of {state} has no {title}: {texts[0][:200]}")
            sheets += len(texts)
        rows = len(browser.open(url=HOSTILE)["rows"])
        texts = printed(browser, {"url": HOSTILE})
        # A sheet that lies across has one picture of 28 rows; Firefox, told its paper by a program, has two on one.
        pictures = math.ceil(rows / 28)
        if len(texts) not in (pictures, math.ceil(pictures / 2)):
            fail(f"{rows} rows are on {len(texts)} sheets, not 28 in each picture")
        shown = browser.open(v="dates", url=url)
        text = "".join(printed(browser, {"v": "dates", "url": url})).replace(" ", "")
        missing = [link for kind in ("lost", "kept", "gained") for link in shown[kind] if link not in text]
        if missing:
            fail(f"links of two dates are not printed: {missing[:3]}")
        if browser.page.locator("#sheet").count():
            fail("what was printed stays")
        browser.clean("paper")
        browser.context.close()
    print(f"paper: {sheets} sheets of seven views in two themes are white and have their titles; all rows, all links")
