#!/usr/bin/env python3
"""Counts the text regions in a detector's probability map: connected pixels above a threshold.

usage: count_regions.py MAP.npy [--threshold 0.3] [--min-pixels 10]

MAP is float32 and [..., height, width] with leading dimensions of 1. Regions are 8-connected. Standard library only.
"""
import argparse
import array
import ast
import math
import struct
import sys


def read_npy(path):
    """(shape, values) of a little-endian float32 .npy file."""
    with open(path, "rb") as f:
        data = f.read()
    if data[:6] != b"\x93NUMPY":
        raise ValueError(f"{path} is no .npy file")
    length_format, length_size = ("<H", 2) if data[6] == 1 else ("<I", 4)
    (length,) = struct.unpack_from(length_format, data, 8)
    start = 8 + length_size
    header = ast.literal_eval(data[start:start + length].decode("latin-1").strip())
    if header["descr"] != "<f4" or header["fortran_order"]:
        raise ValueError(f"{path} holds {header['descr']}, fortran_order {header['fortran_order']}; "
                         "float32 in C order is wanted")
    values = array.array("f")
    values.frombytes(data[start + length:])
    if sys.byteorder == "big":
        values.byteswap()
    if len(values) != math.prod(header["shape"]):
        raise ValueError(f"{path} holds {len(values)} values, its shape {header['shape']} says otherwise")
    return header["shape"], values


def region_sizes(values, height, width, threshold):
    """Pixels of each 8-connected region above THRESHOLD."""
    waiting = {index for index, value in enumerate(values) if value > threshold}
    sizes = []
    while waiting:
        stack = [waiting.pop()]
        size = 0
        while stack:
            size += 1
            row, column = divmod(stack.pop(), width)
            for next_row in range(max(row - 1, 0), min(row + 2, height)):
                for next_column in range(max(column - 1, 0), min(column + 2, width)):
                    index = next_row * width + next_column
                    if index in waiting:
                        waiting.remove(index)
                        stack.append(index)
        sizes.append(size)
    return sizes


def main():
    parser = argparse.ArgumentParser(description="Counts text regions in a probability map.")
    parser.add_argument("map", metavar="MAP.npy")
    parser.add_argument("--threshold", type=float, default=0.3)
    parser.add_argument("--min-pixels", type=int, default=10)
    args = parser.parse_args()
    try:
        shape, values = read_npy(args.map)
    except (OSError, ValueError, KeyError, SyntaxError, struct.error) as error:
        print(f"count_regions: {error}", file=sys.stderr)
        return 3
    if len(shape) < 2 or math.prod(shape[:-2]) != 1:
        print(f"count_regions: {args.map} has shape {shape}, one map [..., height, width] is wanted", file=sys.stderr)
        return 3
    sizes = region_sizes(values, shape[-2], shape[-1], args.threshold)
    print(sum(size >= args.min_pixels for size in sizes))
    return 0


if __name__ == "__main__":
    sys.exit(main())
