#!/usr/bin/env python3
"""Random ONNX models: whimbrel's answers, in every way it can run, against ONNX Runtime's.

usage: fuzz_vs_ort.py [--seconds 60] [--seed 0] [--batch 60] [--modes NAME ...] [--out DIR] [--keep-going]

A model grows node by node: each node runs alone in ONNX Runtime with optimisations off, and is kept when it
accepts the node and the values stay finite, so the expectation owes nothing to anybody's fusions. Batches of models then
run in build/bin/onnx_backend_runner --write, one process per mode: instruction set, threads, each fusion
pass off, all off, reference kernels. Every set runs twice and must repeat its bits. Models with an open first
dimension also run on single rows. A difference beyond rtol 1e-3 / atol 1e-4 (f16: 1e-2), scaled by the
expectation's magnitude, gets a second look: the inputs are nudged by 1e-6 (f16: 1e-3), and an output that
moves as far by itself is ill-conditioned, no fault.

Exit 1 on a difference; each one's folder (ONNX backend layout, with report.txt) is kept under --out.
The same --seed gives the same models in the same order (folders sSEED_NUMBER).

Left out, because the runtime is wrong or the standard is silent: LSTM sequences of length 0, pools with
SAME_* and dilations, align_corners with fractional lengths, nearest Resize at halves, NaN in pools and maxima.
Needs onnx, onnxruntime and numpy.
"""
import argparse
import collections
import pathlib
import random
import shutil
import sys
import tempfile
import time

import onnx

from fuzz.case import Case
from fuzz.compare import LENIENT, check
from fuzz.engine import modes, run_mode
from fuzz.oracle import Rejected

ROOT = pathlib.Path(__file__).resolve().parent.parent


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--batch", type=int, default=60, help="models per round of modes")
    parser.add_argument("--modes", nargs="+", help="default: all")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("fuzz_failures"))
    parser.add_argument("--keep-going", action="store_true", help="do not stop after the first batch with differences")
    parser.add_argument("--runner", type=pathlib.Path, default=ROOT / "build" / "bin" / "onnx_backend_runner")
    options = parser.parse_args()
    if not options.runner.exists():
        print(f"fuzz_vs_ort: {options.runner} is not built", file=sys.stderr)
        return 2
    end = time.monotonic() + options.seconds
    models = compared = sets = 0
    faults = 0
    skips = collections.Counter()
    operators = collections.Counter()
    number = 0
    while time.monotonic() < end:
        with tempfile.TemporaryDirectory() as name:
            work = pathlib.Path(name)
            cases = {}
            while len(cases) < options.batch and (time.monotonic() < end or not cases):
                case_name = f"s{options.seed}_{number:06d}"
                number += 1
                try:
                    case = Case(case_name, random.Random(f"{options.seed}/{number - 1}"))
                except Rejected:
                    continue
                case.write(work / "cases" / case_name)
                case.write_empty(work / "cases" / f"{case_name}_empty")
                cases[case_name] = case
                operators.update({n.op_type for n in case.net.nodes})
            models += len(cases)
            sets += sum(len(c.sets) for c in cases.values())
            found = collections.defaultdict(list)
            for mode, (flags, environment) in modes(work).items():
                if options.modes and mode not in options.modes:
                    continue
                out_dir = work / mode
                outcome = run_mode(options.runner, work / "cases", out_dir, flags, environment)
                for case_name, failed in outcome.items():
                    if case_name.endswith("_empty") and ("the program ended" in failed or "internal" in failed or "other bits" in failed):
                        found[case_name].append(f"{mode}: {failed}")
                for case_name, case in cases.items():
                    failed = outcome.get(case_name, "FAIL no outcome")
                    if failed.startswith("SKIP") or any(words in failed for words in LENIENT):
                        skips[failed] += 1
                        continue
                    compared += 1
                    text = check(case, out_dir, failed)
                    if text:
                        found[case_name].append(f"{mode}: {text}")
            for case_name, lines in found.items():
                faults += 1
                target = options.out / case_name
                shutil.rmtree(target, ignore_errors=True)
                options.out.mkdir(parents=True, exist_ok=True)
                shutil.copytree(work / "cases" / case_name, target)
                report = "\n".join(lines) + "\n\n" + onnx.printer.to_text(cases[case_name.removesuffix("_empty")].model)
                (target / "report.txt").write_text(report)
                print(f"{case_name} ({len(lines)} modes) {lines[0]}", flush=True)
            if found and not options.keep_going:
                break
    for reason, count in skips.most_common(20):
        print(f"not run, {count} times: {reason}")
    print(f"operators: {', '.join(f'{k} {v}' for k, v in operators.most_common())}")
    print(f"{models} models, {sets} input sets, {compared} model runs compared, {faults} models differ")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
