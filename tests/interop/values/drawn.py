"""The bars of a saved picture. Where they are tells their times: all of a picture have one axis."""
import xml.etree.ElementTree as ET

from values.words import file_of

SVG = "{http://www.w3.org/2000/svg}"
# The height of the bar of a row that can be read, and how far an end may be from where it should be, in pixels.
THICK = 7
NEAR = 0.6


def check_bars(browser, tally, view, where, rows):
    """`rows`: the (first, last) of the bars of each row, in order; a picture may have fewer rows, but no others."""
    colour = browser.colours()["bar"]
    lines = {}
    for rect in ET.fromstring(file_of(browser, "SVG")).iter(f"{SVG}rect"):
        if rect.get("fill") == colour and float(rect.get("height")) == THICK:
            x, width = float(rect.get("x")), float(rect.get("width"))
            lines.setdefault(float(rect.get("y")), []).append((x, x + width))
    drawn = [sorted(lines[y]) for y in sorted(lines)]
    tally.rows(view, f"{where}: {len(drawn)} rows are drawn", [len(row) for row in drawn],
               [len(row) for row in rows[:len(drawn)]])
    pairs = [(bar, run) for row, runs in zip(drawn, rows, strict=False) for bar, run in zip(row, sorted(runs))]
    first, last = (end(pairs, key=lambda pair: pair[1][0], default=None) for end in (min, max))
    if not pairs or last[1][0] == first[1][0]:
        return
    scale = (last[0][0] - first[0][0]) / (last[1][0] - first[1][0])
    place = lambda time: first[0][0] + (time - first[1][0]) * scale
    right = [abs(bar[0] - place(run[0])) < NEAR and abs(bar[1] - max(place(run[1]), place(run[0]) + 1)) < NEAR
             for bar, run in pairs]
    wrong = [pair for pair, is_right in zip(pairs, right) if not is_right]
    tally.rows(view, f"{where}: {wrong[:2]}", right, [True] * len(right))

