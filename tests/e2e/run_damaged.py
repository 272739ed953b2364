#!/usr/bin/env python3
"""Scans damaged ONNX files: each must end with exit 0 or 3 and a message, within 20 s and 4 GiB, never by a signal.

usage: run_damaged.py --program build/bin/whimbrel [--files 200] [--seed 1] [--keep DIR]

The files: models of tests/data/derived cut short, with bytes flipped, overwritten, doubled or taken out; empty, random
and text files; a message nested a thousand deep; lengths that claim gigabytes; a graph that feeds itself. The
address sanitizer's build takes the same command (its memory is not limited).
"""

import argparse
import pathlib
import random
import resource
import subprocess
import sys
import tempfile

DERIVED = pathlib.Path(__file__).resolve().parent.parent / "data" / "derived"
TIMEOUT_S = 20
MEMORY_BYTES = 4 << 30


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number, payload):
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def model(graph):
    return b"\x08\x08" + field(8, field(1, b"") + b"\x10\x0d") + field(7, graph)


def node(op, inputs, outputs, more=b""):
    return field(1, b"".join(field(1, i) for i in inputs) + b"".join(field(2, o) for o in outputs) + field(4, op) + more)


def tensor(dims, kind=1):
    return b"".join(b"\x08" + varint(d) for d in dims) + b"\x10" + varint(kind) + field(8, b"w")


def special():
    deep = b""
    for _ in range(1000):
        deep = node(b"If", [b"c"], [b"y"], field(5, field(1, b"then_branch") + field(6, deep)))
    output = field(12, field(1, b"y"))
    yield "empty", b""
    yield "text", b"this is no model\n" * 40
    yield "zeros", bytes(4096)
    yield "nested", model(deep + output)
    yield "cycle", model(node(b"Relu", [b"b"], [b"a"]) + node(b"Relu", [b"a"], [b"b"]) + field(12, field(1, b"a")))
    yield "self", model(node(b"Relu", [b"a"], [b"a"]) + field(12, field(1, b"a")))
    yield "huge-tensor", model(field(5, tensor([10 << 30])) + node(b"Relu", [b"w"], [b"y"]) + output)
    yield "huge-dims", model(field(5, tensor([1 << 40, 1 << 40])) + node(b"Relu", [b"w"], [b"y"]) + output)
    yield "huge-length", b"\x08\x08\x3a" + varint(10 << 30) + b"x" * 64
    yield "huge-fill", model(field(5, b"\x08\x02\x10\x07" + field(8, b"s") + field(9, (1 << 20).to_bytes(8, "little") * 2)) +
                             node(b"ConstantOfShape", [b"s"], [b"y"]) + output)
    # A few KB that would fold to 50 GB, each constant within any limit of its own.
    size = field(5, b"\x08\x01\x10\x07" + field(8, b"s") + field(9, (1 << 26).to_bytes(8, "little")))
    names = [b"y%d" % i for i in range(200)]
    yield "many-fills", model(size + b"".join(node(b"ConstantOfShape", [b"s"], [n]) + field(12, field(1, n)) for n in names))
    external = field(13, field(1, b"location") + field(2, b"../../../etc/passwd"))
    yield "escape", model(field(5, tensor([4]) + external + b"\x70\x01") + node(b"Relu", [b"w"], [b"y"]) + output)
    yield "unknown", model(node(b"Frobnicate", [], [b"y"], field(7, b"com.example")) + output)


def mutate(data, rng):
    data = bytearray(data)
    kind = rng.randrange(5)
    at = rng.randrange(len(data))
    # Half of the changes go where the structure is: near the start and the end.
    if rng.random() < 0.5:
        at = rng.choice([rng.randrange(min(len(data), 2000)), len(data) - 1 - rng.randrange(min(len(data), 2000))])
    length = rng.choice([1, 1, 2, 8, 64, 1000])
    if kind == 0:
        return bytes(data[:at])
    if kind == 1:
        for _ in range(rng.choice([1, 3, 30])):
            data[rng.randrange(len(data)) if rng.random() < 0.3 else at] ^= 1 << rng.randrange(8)
    elif kind == 2:
        data[at:at + length] = rng.randbytes(length)
    elif kind == 3:
        data[at:at] = data[at:at + length]
    else:
        del data[at:at + length]
    return bytes(data)


def cases(count, rng):
    yield from special()
    models = [p.read_bytes() for p in sorted(DERIVED.glob("*/model.onnx"))]
    for k in range(count):
        yield f"mutant-{k}", mutate(rng.choice(models), rng) if k % 20 else rng.randbytes(rng.randrange(1, 5000))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--files", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", help="folder for the files that failed")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    passed = failed = whole = 0
    with tempfile.TemporaryDirectory(prefix="whimbrel-damaged-") as folder:
        path = pathlib.Path(folder) / "model.onnx"
        for name, data in cases(options.files, rng):
            path.write_bytes(data)
            before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
            try:
                done = subprocess.run([options.program, "scan", str(path), "--target", rng.choice(["cpu", "ascend910b"])],
                                      capture_output=True, text=True, errors="replace", timeout=TIMEOUT_S)
                code, message = done.returncode, done.stderr
            except subprocess.TimeoutExpired:
                code, message = "timeout", ""
            peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
            good = code == 0 or (code == 3 and "error:" in message)
            # The sanitizer's own report is a failure whatever the exit code.
            good = good and "Sanitizer" not in message and (peak <= MEMORY_BYTES or peak == before * 1024 or "asan" in options.program)
            whole += code == 0
            passed += good
            if not good:
                failed += 1
                print(f"{name}: exit {code}, peak {peak >> 20} MiB: {message.strip()[-300:]}")
                if options.keep:
                    (pathlib.Path(options.keep) / f"{name}.onnx").write_bytes(data)
    print(f"{whole} files could still be read")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
