#!/usr/bin/env python3
"""Writes the ONNX node backend tests as files: onnx itself ships them only as Python.

usage: gen_node_tests.py [OUTDIR]     (default CACHE/onnx-node-VERSION; CACHE as in fetch_models.py)

OUTDIR/node/NAME/model.onnx and OUTDIR/node/NAME/test_data_set_K/{input,output}_J.pb, once: OUTDIR/COMPLETE
says with which onnx and how many, and a second run only reads it. onnx 1.23.2 gives 1884 cases in about 4 s.
"""
import argparse
import importlib.metadata
import os
import pathlib
import sys
import tempfile
import warnings

from fetch_models import cache_dir, locked, write_whole

WANTED_VERSION = "1.23.2"
WANTED_CASES = 1884


def encoded(value, value_info):
    """VALUE as the protobuf that its declared type asks for."""
    import numpy
    from onnx import TensorProto, numpy_helper

    kind = value_info.type.WhichOneof("value")
    if isinstance(value, TensorProto):
        return value
    if kind == "sequence_type":
        return numpy_helper.from_list(value, value_info.name)
    if kind == "optional_type":
        return numpy_helper.from_optional(value, value_info.name)
    if kind == "map_type":
        return numpy_helper.from_dict(value, value_info.name)
    return numpy_helper.from_array(numpy.asarray(value), value_info.name)


def write_cases(folder):
    """All cases under FOLDER; how many there are."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the cases overflow and divide by zero on purpose
        from onnx.backend.test.case.node import collect_testcases

        cases = collect_testcases(None)
    for case in cases:
        case_dir = folder / case.name
        case_dir.mkdir(parents=True)
        (case_dir / "model.onnx").write_bytes(case.model.SerializeToString())
        graph = case.model.graph
        for number, (inputs, outputs) in enumerate(case.data_sets):
            set_dir = case_dir / f"test_data_set_{number}"
            set_dir.mkdir()
            for kind, values, infos in (("input", inputs, graph.input), ("output", outputs, graph.output)):
                for index, (value, info) in enumerate(zip(values, infos)):
                    (set_dir / f"{kind}_{index}.pb").write_bytes(encoded(value, info).SerializeToString())
    return len(cases)


def main():
    parser = argparse.ArgumentParser(description="Writes the ONNX node backend tests as files.")
    parser.add_argument("outdir", nargs="?", metavar="OUTDIR", type=pathlib.Path,
                        help=f"default: CACHE/onnx-node-{WANTED_VERSION}")
    outdir = parser.parse_args().outdir or cache_dir() / f"onnx-node-{WANTED_VERSION}"

    stamp = outdir / "COMPLETE"
    stamp_text = f"onnx {WANTED_VERSION}, {WANTED_CASES} cases\n"
    if stamp.is_file() and stamp.read_text() == stamp_text:
        return 0

    try:
        version = importlib.metadata.version("onnx")
    except importlib.metadata.PackageNotFoundError:
        version = "not installed"
    if version != WANTED_VERSION:
        print(f"gen_node_tests: needs onnx {WANTED_VERSION}, this Python has: {version}\n"
              "  run scripts/setup.sh test and use build/venv/bin/python", file=sys.stderr)
        return 1

    outdir.mkdir(parents=True, exist_ok=True)
    with locked(outdir / ".lock"):
        if stamp.is_file() and stamp.read_text() == stamp_text:
            return 0  # another run was faster
        print(f"gen_node_tests: writing the node tests of onnx {version} to {outdir}", file=sys.stderr)
        # Written aside and renamed, the stamp last: an interrupted run leaves nothing that looks whole.
        with tempfile.TemporaryDirectory(prefix=".new-", dir=outdir) as scratch:
            fresh = pathlib.Path(scratch) / "node"
            fresh.mkdir()
            count = write_cases(fresh)
            if count != WANTED_CASES:
                print(f"gen_node_tests: onnx {version} gave {count} cases, not {WANTED_CASES}", file=sys.stderr)
                return 1
            if (outdir / "node").exists():
                os.rename(outdir / "node", pathlib.Path(scratch) / "old")
            os.rename(fresh, outdir / "node")
        write_whole(stamp, stamp_text.encode())
    print(f"gen_node_tests: {count} cases written", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
