#!/usr/bin/env python3
"""Runs every test_data_set_* of the handed models through `whimbrel run` and compares with the stored outputs.

usage: run_models.py [--program FILE] [--filter WORD] [--isa avx512|avx2|portable] [--list]

Models that other people made lie in $WHIMBREL_CACHE/models or ~/.cache/whimbrel/models (scripts/fetch_models.py brings
them), derived ones in tests/data/derived. |a - b| <= atol + rtol * |b|: float32 models rtol 1e-3, atol 1e-4; float16
models 2e-2 for both; integers and bools equal; where the last dimension is a class, arg-max equal. A line per set, then
`N passed, N failed`. Only the standard library is used.
"""
import argparse
import ast
import csv
import math
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"
# Models of INT8 arithmetic are judged by the issue that brings those ops.
DERIVED = ["rnet_fp16", "rnet_extdata", "ppocr_cls_fp16", "yolox_tail_nms"]
# Outputs whose last dimension is a choice among classes.
CLASSIFIERS = {"ppocr_cls", "ppocr_cls_fp16", "magika", "mtcnn_rnet", "mtcnn_onet", "rnet_fp16", "rnet_extdata"}

# onnx.TensorProto.DataType -> numpy letter, struct letter, bytes.
TYPES = {1: ("f4", "f", 4), 2: ("u1", "B", 1), 3: ("i1", "b", 1), 6: ("i4", "i", 4), 7: ("i8", "q", 8),
         9: ("b1", "?", 1), 10: ("f2", "e", 2), 11: ("f8", "d", 8)}
LETTERS = {letter: code for letter, code, _ in TYPES.values()}


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def fields(data):
    """(number, value) of each field of a protobuf message; bytes for lengths, ints for varints."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 1:
            value, at = data[at:at + 8], at + 8
        elif kind == 2:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
        elif kind == 5:
            value, at = data[at:at + 4], at + 4
        else:
            raise ValueError(f"wire type {kind}")
        yield number, value


def packed_varints(value):
    if isinstance(value, int):
        return [value]
    out, at = [], 0
    while at < len(value):
        number, at = varint(value, at)
        out.append(number)
    return out


def signed(value):
    return value - (1 << 64) if value >= 1 << 63 else value


def read_tensor_proto(path):
    """(name, numpy letter, dims, values) of a serialised TensorProto."""
    dims, dtype, name, raw = [], 0, "", None
    floats, ints, doubles = b"", [], b""
    for number, value in fields(path.read_bytes()):
        if number == 1:
            dims += packed_varints(value)
        elif number == 2:
            dtype = value
        elif number == 4:
            floats += value
        elif number in (5, 7, 11):
            ints += [signed(v) for v in packed_varints(value)]
        elif number == 8:
            name = value.decode()
        elif number == 9:
            raw = value
        elif number == 10:
            doubles += value
    letter, code, size = TYPES[dtype]
    if raw is not None:
        values = list(struct.unpack(f"<{len(raw) // size}{code}", raw))
    elif dtype == 1:
        values = list(struct.unpack(f"<{len(floats) // 4}f", floats))
    elif dtype == 11:
        values = list(struct.unpack(f"<{len(doubles) // 8}d", doubles))
    elif dtype == 10:
        values = list(struct.unpack(f"<{len(ints)}e", struct.pack(f"<{len(ints)}H", *ints)))
    else:
        values = ints
    return name, letter, dims, values


def read_npy(path):
    data = path.read_bytes()
    if data[:6] != b"\x93NUMPY":
        raise ValueError(f"{path} is no .npy file")
    size, start = (struct.unpack("<H", data[8:10])[0], 10) if data[6] == 1 else (struct.unpack("<I", data[8:12])[0], 12)
    header = ast.literal_eval(data[start:start + size].decode("latin1"))
    letter = header["descr"].lstrip("<|=")
    body = data[start + size:]
    code = LETTERS[letter]
    return letter, list(header["shape"]), list(struct.unpack(f"<{len(body) // struct.calcsize('<' + code)}{code}", body))


def input_names(path):
    """Names of the graph's inputs without initialisers, in order: what input_K.pb stands for."""
    graph = b"".join(value for number, value in fields(path.read_bytes()) if number == 7)
    inputs, initialisers = [], set()
    for number, value in fields(graph):
        if number == 11:
            inputs.append(next((v.decode() for n, v in fields(value) if n == 1), ""))
        elif number == 5:
            initialisers.add(next((v.decode() for n, v in fields(value) if n == 8), ""))
    return [name for name in inputs if name not in initialisers]


def difference(name, model, got, want, tolerance):
    """Why the two tensors differ, or None; and the largest absolute difference."""
    (letter, shape, values), (_, want_letter, want_shape, expected) = got, want
    if letter != want_letter or shape != want_shape:
        return f"{name} is {letter} {shape}, expected {want_letter} {want_shape}", 0
    rtol, atol = tolerance if letter.startswith("f") else (0, 0)
    worst = 0.0
    for i, (a, b) in enumerate(zip(values, expected)):
        if a == b or (letter.startswith("f") and math.isnan(a) and math.isnan(b)):
            continue
        gap = abs(a - b)
        worst = max(worst, gap)
        if not gap <= atol + rtol * abs(b):
            return f"{name}[{i}] = {a}, expected {b}", worst
    if model in CLASSIFIERS and shape and shape[-1] > 1 and len(shape) == 2:
        step = shape[-1]
        for row in range(0, len(values), step):
            ours, theirs = values[row:row + step], expected[row:row + step]
            if ours.index(max(ours)) != theirs.index(max(theirs)):
                return f"{name} row {row // step}: another arg-max", worst
    return None, worst


def run_set(program, model, model_file, folder, environment):
    fp16 = model.endswith("_fp16")
    tolerance = (2e-2, 2e-2) if fp16 else (1e-3, 1e-4)
    names = input_names(model_file)
    with tempfile.TemporaryDirectory() as out:
        command = [str(program), "run", str(model_file), "--output-dir", out]
        for k, name in enumerate(names):
            command += ["--input", f"{name}={folder / f'input_{k}.pb'}"]
        result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
        if result.returncode != 0:
            return f"exit {result.returncode}: {result.stderr.strip()}", 0
        worst = 0.0
        expected = sorted(folder.glob("output_*.pb"))
        for k in range(len(expected)):
            why, gap = difference(f"output_{k}", model, read_npy(pathlib.Path(out) / f"output_{k}.npy"),
                                  read_tensor_proto(folder / f"output_{k}.pb"), tolerance)
            worst = max(worst, gap)
            if why:
                return why, worst
        if not expected:
            return "no expected outputs", 0
        return None, worst


def models():
    cache = pathlib.Path(os.environ.get("WHIMBREL_CACHE") or pathlib.Path.home() / ".cache" / "whimbrel") / "models"
    with open(DATA / "models.csv", newline="") as table:
        handed = [row["name"] for row in csv.DictReader(table) if row["handed"] == "yes"]
    for name in handed:
        yield name, cache / name / "model.onnx", DATA / "models" / name
    for name in DERIVED:
        yield name, DATA / "derived" / name / "model.onnx", DATA / "derived" / name


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build" / "bin" / "whimbrel")
    parser.add_argument("--filter", default="", help="only models whose name holds this")
    parser.add_argument("--isa", default="", help="sets WHIMBREL_ISA")
    args = parser.parse_args()
    environment = dict(os.environ)
    if args.isa:
        environment["WHIMBREL_ISA"] = args.isa
    passed = failed = 0
    for name, model_file, folder in models():
        if args.filter not in name:
            continue
        sets = sorted(folder.glob("test_data_set_*"))
        if not model_file.exists() or not sets:
            print(f"FAIL {name}: {model_file if sets else folder} is not there; run scripts/fetch_models.py")
            failed += 1
            continue
        for data_set in sets:
            try:
                why, worst = run_set(args.program, name, model_file, data_set, environment)
            except (OSError, ValueError, KeyError, subprocess.TimeoutExpired) as error:
                why, worst = f"{type(error).__name__}: {error}", 0
            print(f"{'FAIL' if why else 'ok  '} {name}/{data_set.name[5:]} max abs {worst:.2g}{': ' + why if why else ''}", flush=True)
            failed += why is not None
            passed += why is None
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
