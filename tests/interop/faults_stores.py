"""What faults.py runs Webstrata on: a small made-up store with all that a store may have, and what is to be compared.

`Workplace` is one directory, always of the same name, because a watch remembers the absolute path of its tables:

    crawls/1.jsonl .. 4.jsonl   captures with links, unknown links, failures and revisits
    crawls/more                 the same in other formats: WARC, Parquet, LGA; and a link to a file
    store                       epochs of a build, a removal and two updates; cells, an overview and two watches of the
                                epoch before the last
    out, tables, spill          what commands write besides: exports, tables of watches, temporary files

`Snapshot` is what a store says of itself and of every URL; `files` are the names of all files.
"""
import hashlib
import json
import random
import re
import shutil
import subprocess

SITES = ["a.example", "b.example", "c.example", "www.d.example"]
URLS = [f"http://{site}/{path}" for site in SITES for path in ("", "1", "2", "news/3")]
GONE = "http://c.example/2"
# A command that takes longer hangs.
SECONDS = 60
DATES = ["20060120", "20060220", "20060320", "20060420"]


def capture(draw, url, month):
    """A capture as JSON lines have it: mostly good, sometimes a failure, a revisit, or of unknown links."""
    line = {"url": url, "ts": f"2006{month:02}{draw.randrange(1, 28):02}120000"}
    kind = draw.random()
    if kind < .1:
        return line | {"status": draw.choice([404, 503])}
    if kind < .2:
        return line | {"status": 304}
    if kind < .3:
        return line
    return line | {"links": draw.sample(URLS, draw.randrange(6)), "digest": f"sha1:{draw.randrange(1000)}"}


LGA = {
    "graph.json": ['{"id":1,"timestamp":"20060130204826","outlink_ids":[1,2]}'],
    "map.json": ['{"surt_url":"example,a)/","url":"http://a.example/","id":1}',
                 '{"surt_url":"example,e)/","url":"http://e.example/","id":2}'],
}


def write_crawls(directory):
    more = directory / "more"
    more.mkdir(parents=True)
    for name, lines in LGA.items():
        (more / name).write_text("".join(line + "\n" for line in lines))
    (more / "link.jsonl").symlink_to("../2.jsonl")
    draw = random.Random(5)
    for month in range(1, 5):
        pages = draw.sample(URLS, 9)
        lines = [json.dumps(capture(draw, url, month)) + "\n" for url in pages for _ in range(2)]
        (directory / f"{month}.jsonl").write_text("".join(lines))


class Workplace:
    """The directory, and what runs in it."""

    def __init__(self, binary, directory):
        self.binary, self.root, self.saved = binary, directory / "work", directory / "saved"
        self.store = self.root / "store"
        self.saved.mkdir()
        self.questions = directory / "questions.jsonl"
        self.questions.write_text("".join(json.dumps(question) + "\n" for question in questions()))

    def command(self, words):
        """Words with places for names: STORE, OUT, TABLES and CRAWLS."""
        for name in ("store", "out", "tables", "crawls"):
            words = words.replace(name.upper(), str(self.root / name))
        return [str(self.binary), *words.split()]

    def run(self, words, environment=None, **more):
        spill = {"TMPDIR": str(self.root / "spill")}
        words, environment = self.command(words), spill | (environment or {})
        try:
            return subprocess.run(words, env=environment, capture_output=True, text=True, timeout=SECONDS, **more)
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(words, -1, "", f"not over after {SECONDS} s")

    def succeeds(self, words, **more):
        done = self.run(words, **more)
        if done.returncode:
            raise RuntimeError(f"{words}: exit {done.returncode}: {done.stdout[-1000:]}{done.stderr[-1000:]}")
        return done.stdout

    def save(self, name):
        shutil.copytree(self.root, self.saved / name, symlinks=True)

    def restore(self, name):
        """As it was saved, with the times of the files."""
        shutil.rmtree(self.root, ignore_errors=True)
        subprocess.run(["cp", "-a", self.saved / name, self.root], check=True)

    def prepare(self):
        """The places to begin with: `empty`, without a store, and `full`."""
        self.root.mkdir()
        for name in ("out", "tables", "spill"):
            (self.root / name).mkdir()
        write_crawls(self.root / "crawls")
        for name in ("warc.gz", "parquet"):
            self.succeeds(f"generate uk:occurrences=60,months=2 --out CRAWLS/more/uk.{name}")
        self.save("empty")
        for words in (
            "build --partition-urls 8 --out STORE CRAWLS/1.jsonl",
            f"remove STORE --no-merge --url {GONE}",
            "update STORE --no-merge CRAWLS/2.jsonl",
            "cells STORE",
            "watch STORE degrees --once --out TABLES",
            "watch STORE top --k 3 --once --out TABLES",
            "update STORE --no-merge CRAWLS/3.jsonl",
        ):
            self.succeeds(words)
        self.save("full")

    def ask(self, words, environment=None):
        """Runs a command whose input are all questions."""
        with self.questions.open() as lines:
            return self.run(words, environment, stdin=lines)

    def state(self):
        """The snapshot of a store that is sound, or what is wrong with the store; None where there is none."""
        if not (self.store / "CURRENT").exists():
            return None
        checked = self.run("check --all STORE")
        if checked.returncode:
            return f"check: {checked.stdout[:600]}{checked.stderr[:600]}"
        try:
            return Snapshot(self)
        except (RuntimeError, OSError) as error:
            return str(error)

    def tree(self):
        """All files but the crawls, by name, with what must be the same in them.

        Rows that were begun and never committed use up numbers, so rows have their ranks here. Files with such a number
        or a digest of a manifest in them are compared without these; the layers are compared by the snapshot.
        """
        names = [path.relative_to(self.root).as_posix() for path in self.root.rglob("*") if not path.is_dir()]
        names = sorted(name for name in names if not name.startswith("crawls/"))
        rows = sorted({name.split("/")[2] for name in names if name.startswith("store/rows/")})
        order = {row: f"row-{rank}" for rank, row in enumerate(rows, 1)}
        parts = re.compile(r"^(store/(?:rows|cells)/)(\d+)(?=/)")
        return {
            parts.sub(lambda found: found[1] + order.get(found[2], found[2]), name): self.content(name)
            for name in names
        }

    def content(self, name):
        path = self.root / name
        if re.match("store/(overviews|watches)/.*json$", name):
            return [without_numbers(json.loads(line)) for line in values(path.read_text())]
        if re.match("(out|tables|store/rows)/", name):
            return hashlib.sha256(path.read_bytes()).hexdigest()
        return None


def questions():
    """All there is to know of every URL."""
    for number, url in enumerate(URLS):
        yield {"id": number, "op": "captures", "url": url}
        for direction in ("out", "in"):
            yield {"id": number, "op": "links", "url": url, "direction": direction}
            for date in DATES:
                yield {"id": number, "op": "links", "url": url, "direction": direction, "at": date}


class Snapshot:
    """What the current epoch of a store is, and what it answers.

    The manifest has the checksums of all files of the layers, so equal snapshots of sound stores have the same bytes.
    """

    def __init__(self, place):
        manifest = json.loads((place.store / "epochs" / f"{current(place):06}.json").read_text())
        self.epoch = manifest["epoch"]
        self.content = without_numbers(manifest)
        info = json.loads(place.succeeds("info STORE --format json"))
        self.info = without_numbers(info)
        log = [json.loads(line) for line in place.succeeds("log STORE --format json").splitlines()]
        self.log = [log[0][field] for field in ("epoch", "counts", "origin")]
        with place.questions.open() as lines:
            self.answers = place.succeeds("query STORE", stdin=lines).splitlines()

    def differs(self, other):
        """What is not as in the other one; None where all is."""
        for what in ("epoch", "log", "answers", "info", "content"):
            if getattr(self, what) != getattr(other, what):
                return what
        return None


def values(text):
    """The JSON values of a file, whose last line is its seal."""
    body, seal = text.strip().rsplit("\n", 1)
    return [body, seal]


def current(place):
    return int((place.store / "CURRENT").read_text().split()[0])


def without_numbers(value):
    """Without the numbers of rows, and without what follows from them: digests of manifests and paths."""
    if isinstance(value, dict):
        return {key: without_numbers(part) for key, part in value.items() if key not in ("row", "path", "digest")}
    return [without_numbers(part) for part in value] if isinstance(value, list) else value
