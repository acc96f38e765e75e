"""Prints the licenses of the crates that the program contains: their names, and each text once.

    python3 packages/release/notices.py > THIRD-PARTY.txt

Needs cargo, and the sources of the crates, which cargo fetches.
"""

import json
import subprocess
import sys
from pathlib import Path

FEATURES = Path(__file__).with_name("features").read_text().strip()
NAMES = ("license", "licence", "copying", "notice", "unlicense", "copyright")

metadata = json.loads(subprocess.run(
    ["cargo", "metadata", "--locked", "--format-version", "1", "--manifest-path", "jobs/Cargo.toml", "--features",
     FEATURES], check=True, capture_output=True, text=True).stdout)
packages = {package["id"]: package for package in metadata["packages"]}
nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}

# All that the program needs to run, on any system: neither tests nor what only builds.
open_, reached = [metadata["resolve"]["root"]], set()
while open_:
    here = open_.pop()
    if here not in reached:
        reached.add(here)
        open_ += [dep["pkg"] for dep in nodes[here]["deps"] if any(kind["kind"] is None for kind in dep["dep_kinds"])]

texts = {}
bare = []
crates = sorted((packages[each] for each in reached if packages[each]["source"]), key=lambda each: each["name"])
for crate in crates:
    name = f"{crate['name']} {crate['version']} ({crate['license']})"
    root = Path(crate["manifest_path"]).parent
    found = sorted(path for path in root.iterdir() if path.is_file() and path.name.lower().startswith(NAMES))
    if not found:
        bare.append(name)
    for path in found:
        text = path.read_text(errors="replace").strip()
        texts.setdefault(text, []).append(name)

print(f"Webstrata contains {len(crates)} crates of other projects, under these licenses.")
print("The crates below have no text of their license in their sources:", *bare, sep="\n  ")
for text, names in texts.items():
    print("", "-" * 100, *names, "", text, sep="\n")
print(f"{len(crates)} crates, {len(texts)} texts of licenses, {len(bare)} crates without a text", file=sys.stderr)
