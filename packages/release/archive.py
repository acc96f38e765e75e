"""Makes the archive of a release for one target: the program, licenses, completions and manual pages.

    python3 packages/release/archive.py PROGRAM TARGET EXTRAS DIRECTORY

writes DIRECTORY/webstrata-TARGET.tar.gz, or .zip for Windows. EXTRAS is what packages/release/extras wrote. Two runs
over the same files give the same bytes. SOURCE_DATE_EPOCH is the time of all files in it, else that of the last commit.
"""

import gzip
import io
import os
import subprocess
import sys
import tarfile
import time
import zipfile
from pathlib import Path

program, target, extras, directory = sys.argv[1:]
root = Path(__file__).resolve().parents[2]
top = f"webstrata-{target}"
is_windows = "windows" in target

files = {f"webstrata{'.exe' if is_windows else ''}": Path(program)}
files |= {name: root / name for name in ("LICENSE-MIT", "LICENSE-APACHE", "README.md", "CHANGELOG.md")}
files |= {path.relative_to(extras).as_posix(): path for path in Path(extras).rglob("*") if path.is_file()}


def seconds():
    return int(os.environ.get("SOURCE_DATE_EPOCH") or subprocess.run(
        ["git", "log", "-1", "--format=%ct"], cwd=root, check=True, capture_output=True, text=True).stdout)


def mode(path):
    return 0o755 if path == Path(program) else 0o644


written = Path(directory) / (top + (".zip" if is_windows else ".tar.gz"))
written.parent.mkdir(parents=True, exist_ok=True)
if is_windows:
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, path in sorted(files.items()):
            entry = zipfile.ZipInfo(f"{top}/{name}", time.gmtime(max(seconds(), 315532800))[:6])
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = mode(path) << 16
            archive.writestr(entry, path.read_bytes())
else:
    with open(written, "wb") as raw, gzip.GzipFile("", "wb", 6, raw, seconds()) as packed:
        with tarfile.open(fileobj=packed, mode="w") as archive:
            for name, path in sorted(files.items()):
                entry = tarfile.TarInfo(f"{top}/{name}")
                entry.size, entry.mode, entry.mtime = path.stat().st_size, mode(path), seconds()
                archive.addfile(entry, io.BytesIO(path.read_bytes()))
print(f"{written}: {written.stat().st_size} bytes, {len(files)} files")
