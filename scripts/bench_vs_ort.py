#!/usr/bin/env python3
"""Compare whimbrel with ONNX Runtime on the handed float32 models: same file, inputs and thread count, in turn.

usage: bench_vs_ort.py [--threads 1 2] [--pairs 5] [--seconds 1] [--only NAME ...] [--json FILE]
Each pair runs one engine, then the other, in random order; a pair gives one ratio (ONNX Runtime's median latency over
whimbrel's: above 1, whimbrel is faster). The table has the median and the range of the ratios; the last line
is the geometric mean over the models. Needs build/bin/whimbrel, the models (scripts/fetch_models.py) and
onnxruntime (make bench installs it).
"""
import argparse
import json
import math
import os
import pathlib
import random
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
FLOAT_MODELS = ["ppocr_v4_det", "ppocr_cls", "mtcnn_pnet", "mtcnn_rnet", "mtcnn_onet", "silero_vad", "magika",
                "basic_pitch", "dnsmos_sig_bak_ovr", "rnet_extdata", "yolox_tail_nms"]


def cache_dir():
    base = os.environ.get("WHIMBREL_CACHE")
    if base:
        return pathlib.Path(base)
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "whimbrel"


def model_files(name):
    derived = ROOT / "tests" / "data" / "derived" / name
    if derived.exists():
        return derived / "model.onnx", derived / "test_data_set_0"
    return cache_dir() / "models" / name / "model.onnx", ROOT / "tests" / "data" / "models" / name / "test_data_set_0"


def serve_ort(model, data, threads):
    """Worker process: loads once, answers each line SECONDS with the median latency in milliseconds."""
    import numpy as np
    import onnx
    import onnxruntime as ort
    from onnx import numpy_helper
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    feed = {}
    for j, spec in enumerate(session.get_inputs()):
        tensor = onnx.TensorProto()
        tensor.ParseFromString((pathlib.Path(data) / f"input_{j}.pb").read_bytes())
        feed[spec.name] = numpy_helper.to_array(tensor)
    for _ in range(5):
        session.run(None, feed)
    print("ready", flush=True)
    for line in sys.stdin:
        end = time.perf_counter() + float(line)
        times = []
        while time.perf_counter() < end or len(times) < 10:
            start = time.perf_counter()
            session.run(None, feed)
            times.append(time.perf_counter() - start)
        print(float(np.median(times)) * 1e3, flush=True)


def input_names(model):
    import onnx
    graph = onnx.load(str(model), load_external_data=False).graph
    weights = {tensor.name for tensor in graph.initializer}
    return [value.name for value in graph.input if value.name not in weights]


def run_whimbrel(model, data, names, threads, seconds):
    command = [str(ROOT / "build" / "bin" / "whimbrel"), "bench", str(model), "--threads", str(threads), "--seconds", str(seconds), "--json"]
    for j, name in enumerate(names):
        command += ["--input", f"{name}={data}/input_{j}.pb"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\nexit {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout)["latency_ms"]["p50"]


def compare(name, threads, pairs, seconds):
    model, data = model_files(name)
    if not model.exists():
        raise SystemExit(f"{model} is missing: run scripts/fetch_models.py first")
    names = input_names(model)
    worker = subprocess.Popen([sys.executable, __file__, "--serve-ort", str(model), str(data), str(threads)],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        if worker.stdout.readline().strip() != "ready":
            raise SystemExit(f"ONNX Runtime cannot run {model}")

        def ort():
            worker.stdin.write(f"{seconds}\n")
            worker.stdin.flush()
            return float(worker.stdout.readline())

        ratios, ours, theirs = [], [], []
        order = random.Random(name)
        for _ in range(pairs):
            if order.random() < 0.5:
                a, b = run_whimbrel(model, data, names, threads, seconds), ort()
            else:
                b = ort()
                a = run_whimbrel(model, data, names, threads, seconds)
            ours.append(a)
            theirs.append(b)
            ratios.append(b / a)
    finally:
        worker.stdin.close()
        worker.wait(timeout=60)
    return {"model": name, "threads": threads, "pairs": pairs, "whimbrel_ms": statistics.median(ours), "ort_ms": statistics.median(theirs),
            "ratio": statistics.median(ratios), "ratio_min": min(ratios), "ratio_max": max(ratios)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--only", nargs="+", default=FLOAT_MODELS)
    parser.add_argument("--json")
    parser.add_argument("--serve-ort", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve_ort:
        serve_ort(args.serve_ort[0], args.serve_ort[1], int(args.serve_ort[2]))
        return
    rows = []
    print(f"{'model':<20} {'threads':>7} {'whimbrel ms':>12} {'ort ms':>10} {'ratio':>7}  range over {args.pairs} pairs", flush=True)
    for threads in args.threads:
        for name in args.only:
            row = compare(name, threads, args.pairs, args.seconds)
            rows.append(row)
            print(f"{name:<20} {threads:>7} {row['whimbrel_ms']:>12.3f} {row['ort_ms']:>10.3f} {row['ratio']:>6.2f}x  "
                  f"{row['ratio_min']:.2f} .. {row['ratio_max']:.2f}", flush=True)
    means = {}
    for threads in args.threads:
        logs = [math.log(row["ratio"]) for row in rows if row["threads"] == threads]
        means[threads] = math.exp(sum(logs) / len(logs))
        print(f"geometric mean at {threads} thread{'s' if threads > 1 else ''}: {means[threads]:.2f}x of ONNX Runtime's throughput over {len(logs)} models")
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps({"rows": rows, "geometric_mean": means}, indent=2) + "\n")


if __name__ == "__main__":
    main()
