#!/usr/bin/env bash
# Runs the tests of one build folder, fast ones first; the last line is "N passed, N failed".
#
# usage: scripts/run_tests.sh [BUILD_DIR]     (default build)
#
# Fails when a test failed, when none ran, and when a test has neither the label fast nor slow (or both).
# WHIMBREL_TEST_JOBS: tests at a time, default one per core; a test that measures time says RUN_SERIAL.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=${1:-build}
jobs=${WHIMBREL_TEST_JOBS:-$(nproc)}
# Set for every test, so that none has to know the rule.
WHIMBREL_CACHE=$(dirname "$(/usr/bin/python3 scripts/fetch_models.py --print-dir)")
export WHIMBREL_CACHE

if [ ! -f "$build/CTestTestfile.cmake" ]; then
  echo "run_tests: $build holds no tests; configured without GTest? run 'make test'" >&2
  echo "0 passed, 0 failed"
  exit 1
fi

results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
status=0
for label in fast slow; do
  ctest --test-dir "$build" --output-on-failure --parallel "$jobs" --label-regex "^$label\$" \
    --output-junit "$results/$label.xml" || status=$?
done
ctest --test-dir "$build" --show-only=json-v1 >"$results/all.json" || status=$?

/usr/bin/python3 - "$results" "$status" <<'END'
import json
import pathlib
import sys
import xml.etree.ElementTree as xml

folder, status = pathlib.Path(sys.argv[1]), int(sys.argv[2])
count = {}
names = []
failed = []
for label in ("fast", "slow"):
    try:
        cases = list(xml.parse(folder / f"{label}.xml").getroot().iter("testcase"))
    except (FileNotFoundError, xml.ParseError):
        cases = []
    for case in cases:
        state = case.get("status")
        skipped = case.find("skipped")
        if state == "notrun" and not (skipped is not None and skipped.get("message", "").startswith("SKIP_")):
            state = "fail"  # could not be started, or a fixture failed; a test that skips itself is no failure
        count[state] = count.get(state, 0) + 1
        names.append(case.get("name"))
        if state == "fail":
            failed.append(case.get("name"))
try:
    every = [test["name"] for test in json.loads((folder / "all.json").read_text())["tests"]]
except (ValueError, KeyError):
    every = []

wrong_label = sorted((set(every) - set(names)) | {name for name in names if names.count(name) > 1})
for name in wrong_label[:20]:
    print(f"run_tests: {name} must have one label, fast or slow", file=sys.stderr)
not_run = {state: n for state, n in count.items() if state not in ("run", "fail")}
if not_run:
    print("not run: " + ", ".join(f"{n} {state}" for state, n in sorted(not_run.items())))
for name in failed:
    print(f"failed: {name}")
passed = count.get("run", 0)
if not passed + len(failed):
    print("run_tests: no test ran", file=sys.stderr)
sys.stdout.flush()
print(f"{passed} passed, {len(failed)} failed")
sys.exit(1 if failed or wrong_label or status or not passed else 0)
END
