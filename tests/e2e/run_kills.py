#!/usr/bin/env python3
"""Kills `whimbrel migrate` with SIGKILL at many moments; a run after it must end with the undisturbed package.

usage: run_kills.py --program build/bin/whimbrel [--moments 24] [--seed 1]

The moments are spread over the length of an undisturbed run, with a random part; every third run is killed twice
before it may end. Also: two migrates into one folder at a time, of which one must be refused.
"""

import argparse
import hashlib
import json
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

MODEL = pathlib.Path(__file__).resolve().parent.parent / "data" / "derived" / "rnet_extdata" / "model.onnx"
PACKAGE = "rnet_extdata.wbl"


def command(program, folder, seconds="0.1"):
    return [program, "migrate", str(MODEL), "--to", "cpu:0", "--shape", "input_2:4x24x24x3", "--threads", "1",
            "--seconds", seconds, "--json", "-o", str(folder)]


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def finish(program, folder):
    done = subprocess.run(command(program, folder), capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise AssertionError(f"rerun ended with {done.returncode}: {done.stderr}")
    answer = json.loads(done.stdout)
    manifest = json.loads((folder / "manifest.json").read_text())
    digest = sha256(folder / PACKAGE)
    assert manifest["package"]["sha256"] == digest == answer["package_sha256"], "manifest names another package"
    assert manifest["verdict"] == "pass"
    assert (folder / "report.html").stat().st_size > 100000
    left = [p.name for p in folder.rglob("*") if p.name.endswith(".tmp")]
    assert not left, f"left behind: {left}"
    assert len(list(folder.glob("*.wbl"))) == 1
    return digest, [s["name"] for s in answer["stages"] if s["reused"]]


def kill_after(program, folder, seconds):
    process = subprocess.Popen(command(program, folder), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(seconds)
    process.send_signal(signal.SIGKILL)
    process.wait()


def two_at_a_time(program, folder):
    first = subprocess.Popen(command(program, folder, "3"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 30
    while not (folder / "manifest.json").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    second = subprocess.run(command(program, folder), capture_output=True, text=True, timeout=300)
    code = first.wait()
    assert code == 0, f"the first migrate ended with {code}"
    assert second.returncode == 2 and "in use by another migrate" in second.stdout + second.stderr, second


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--moments", type=int, default=24)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    program = str(pathlib.Path(options.program).resolve())
    rng = random.Random(options.seed)
    root = pathlib.Path(tempfile.mkdtemp(prefix="whimbrel-kills-"))
    failed = 0
    try:
        start = time.monotonic()
        expected, _ = finish(program, root / "undisturbed")
        length = time.monotonic() - start
        reused_somewhere = set()
        for k in range(options.moments):
            folder = root / f"kill-{k}"
            moments = [length * (k + rng.random()) / options.moments]
            if k % 3 == 2:
                moments.append(length * rng.random())
            for moment in moments:
                kill_after(program, folder, moment)
            try:
                digest, reused = finish(program, folder)
                assert digest == expected, f"package {digest} instead of {expected}"
                reused_somewhere.update(reused)
            except (AssertionError, KeyError, OSError, ValueError) as e:
                failed += 1
                print(f"killed after {moments}: {e}")
        print("stages that some rerun found whole:", ", ".join(sorted(reused_somewhere)))
        try:
            two_at_a_time(program, root / "two")
        except AssertionError as e:
            failed += 1
            print(f"two at a time: {e}")
    finally:
        shutil.rmtree(root, ignore_errors=True)
    print(f"{options.moments + 1 - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
