#!/usr/bin/env python3
"""Writes whimbrel/migrate/data/function_bodies.csv: standard ops and the ops of their ONNX function bodies.

usage: build/venv/bin/python scripts/gen_function_bodies.py     (needs the PyPI package onnx)

Only ops that the Ascend parser does not take are of interest; those that it takes need no body.
A body that depends on the call (attributes, types) is asked for with the plain calls of CALLS.
"""

import csv
import pathlib

import onnx
import onnx.defs
from onnx import TensorProto, helper

DATA = pathlib.Path(__file__).resolve().parent.parent / "whimbrel" / "migrate" / "data"
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64

# op -> (input types, attributes) of plain calls. A body is the union of what these calls need.
CALLS = {
    "Attention": [([(FLOAT, [1, 2, 4, 8])] * 3, {})],
    "CastLike": [([(FLOAT, [2]), (INT64, [2])], {})],
    "CenterCropPad": [([(FLOAT, [4, 4]), (INT64, [2])], {})],
    "Gelu": [([(FLOAT, [2])], {}), ([(FLOAT, [2])], {"approximate": "tanh"})],
    "GroupNormalization": [([(FLOAT, [1, 4, 2, 2]), (FLOAT, [4]), (FLOAT, [4])], {"num_groups": 2})],
    "NegativeLogLikelihoodLoss": [([(FLOAT, [2, 3]), (INT64, [2])], {})],
    "RMSNormalization": [([(FLOAT, [2, 8]), (FLOAT, [8])], {})],
    "RotaryEmbedding": [([(FLOAT, [1, 2, 4, 8]), (FLOAT, [4, 4]), (FLOAT, [4, 4]), (INT64, [1, 4])], {})],
}


def names_of(function):
    names = set()
    for node in function.node:
        names.add(node.op_type)
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                names |= names_of(attribute.g)
    return names


def body(schema):
    if schema.has_function:
        return names_of(schema.function_body)
    names = set()
    for inputs, attributes in CALLS.get(schema.name, []):
        node = helper.make_node(
            schema.name, [f"i{k}" for k in range(len(inputs))], [o.name for o in schema.outputs][:1], **attributes
        )
        types = [helper.make_tensor_type_proto(t, s).SerializeToString() for t, s in inputs]
        text = schema.get_context_dependent_function(node.SerializeToString(), types)
        function = onnx.FunctionProto()
        function.ParseFromString(text)
        names |= names_of(function)
    return names


def main():
    with open(DATA / "onnx_ops.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    lines = ["op,body_ops"]
    for row in rows:
        if row["standard"] != "1" or row["parsed"] != "N":
            continue
        names = body(onnx.defs.get_schema(row["op"], 100, ""))
        if names:
            lines.append(f"{row['op']},{' '.join(sorted(names))}")
    (DATA / "function_bodies.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{len(lines) - 1} ops, onnx {onnx.__version__}")


if __name__ == "__main__":
    main()
