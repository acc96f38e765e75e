"""Expressions of the dashboard grafana.json, for packages/prometheus/check.

    dashboard.py rules        prints them as rules, for `promtool check rules`
    dashboard.py ask URL      asks a Prometheus each of them, and fails if one finds no data

Needs Python 3 only. A variable of Grafana becomes what a person would choose.
"""

import json
import re
import sys
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import urlopen

VARIABLES = {"$job": "webstrata", "$instance": ".+", "$__rate_interval": "1m"}


def targets():
    """The title and the expressions of each panel, and of each variable that asks for labels."""
    dashboard = json.loads(Path(__file__).with_name("grafana.json").read_text())
    numbers = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(numbers)) == len(numbers), "two panels have the same id"
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["name"], re.fullmatch(r"label_values\((.*), \w+\)", variable["query"]["query"])[1]
    for panel in dashboard["panels"]:
        assert panel["type"] == "row" or panel["targets"] and panel["description"], panel["title"]
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"]


def expressions():
    for title, text in targets():
        for name, value in VARIABLES.items():
            text = text.replace(name, value)
        assert "$" not in text, f"{title}: unknown variable in {text}"
        yield title, text


def rules():
    found = [{"record": f"panel:{number}", "expr": text} for number, (_, text) in enumerate(expressions())]
    # JSON is YAML.
    print(json.dumps({"groups": [{"name": "dashboard", "rules": found}]}))


def ask(url):
    empty = []
    count = 0
    for title, text in expressions():
        with urlopen(f"{url}/api/v1/query?{urlencode({'query': text})}") as answer:
            found = json.load(answer)["data"]["result"]
        count += 1
        if not found:
            empty.append(f"{title}: no data for {text}")
    if empty:
        sys.exit("\n".join(empty))
    print(f"dashboard: each of {count} expressions finds data")


if __name__ == "__main__":
    {"rules": rules, "ask": ask}[sys.argv[1]](*sys.argv[2:])
