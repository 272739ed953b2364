#!/usr/bin/env python3
"""Runs the .case files: command lines of the program with what they must print and the exit code they must give.

usage: run_cases.py [--program FILE] [--filter WORD] [FILE.case ...]     (default: all beside this script)

A case file holds cases one after the other; each line is `key: value`, lines beginning with # are remarks:

    case: an unknown verb names the nearest     opens a case
    file: conf.yaml                             writes a file before the command; its lines follow, indented by 4
    run: whimbrel rn                            bash with pipefail, in an empty folder
    exit: 2                                     default 0
    stderr: did you mean run?                   holds this text; stderr-not, stdout, stdout-not alike
    json: error.code = "invalid_argument"       of stdout: PATH = JSON, PATH exists, PATH length N, PATH >= N, PATH <= N
    wrote: out/output_0.npy                     the file is there and not empty; wrote-not: it is not there

$MODELS, $DERIVED and $DATA are the fetched models, tests/data/derived and tests/data. A line per case, then
`N passed, N failed`. Only the standard library is used.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
KEYS = {"run", "exit", "stdout", "stdout-not", "stderr", "stderr-not", "json", "wrote", "wrote-not"}
PATH_PART = re.compile(r"([^.\[\]]+)|\[(-?\d+)\]")
TIMEOUT_S = 120


def parse(path):
    """The cases of one file: name, files to write, and the (key, value) lines."""
    cases, file_lines = [], None
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if file_lines is not None and line.startswith("    "):
            file_lines.append(line[4:])
            continue
        if not line.strip() or line.startswith("#"):
            continue
        key, colon, value = line.partition(":")
        value = value.strip()
        if not colon or key not in KEYS | {"case", "file"} or (key != "case" and not cases):
            sys.exit(f"{path.name}:{number}: not understood: {line}")
        file_lines = None
        if key == "case":
            cases.append({"name": value, "files": [], "lines": []})
        elif key == "file":
            file_lines = []
            cases[-1]["files"].append((value, file_lines))
        else:
            cases[-1]["lines"].append((key, value))
    for case in cases:
        if sum(key == "run" for key, _ in case["lines"]) != 1:
            sys.exit(f"{path.name}: case '{case['name']}' needs one run line")
    return cases


def look_up(document, path):
    for name, index in PATH_PART.findall(path):
        document = document[int(index)] if index else document[name]
    return document


def check_json(document, text):
    """Why the document is not as `text` says, or None."""
    match = re.fullmatch(r"(\S+) (exists|length|=|>=|<=)(?: (.*))?", text)
    if not match:
        return f"json line not understood: {text}"
    path, relation, operand = match.groups()
    try:
        value = look_up(document, path) if path != "." else document
    except (KeyError, IndexError, TypeError):
        return f"json has no {path}"
    if relation == "exists":
        return None
    wanted = json.loads(operand)
    if relation == "length":
        value, holds = len(value), len(value) == wanted
    elif relation == "=":
        holds = value == wanted
    else:
        holds = value >= wanted if relation == ">=" else value <= wanted
    return None if holds else f"json {path} is {json.dumps(value)}, not {relation} {operand}"


def complaints(case, result, folder):
    lines = dict(case["lines"])
    expected = int(lines.get("exit", 0))
    if result.returncode != expected:
        yield f"exit {result.returncode}, expected {expected}"
    texts = {"stdout": result.stdout, "stderr": result.stderr}
    document = None
    for key, value in case["lines"]:
        stream, _, negated = key.partition("-")
        if stream in texts and (value in texts[stream]) == bool(negated):
            yield f"{stream} {'holds' if negated else 'lacks'} '{value}'"
        elif key == "json":
            try:
                document = json.loads(result.stdout) if document is None else document
            except ValueError as error:
                yield f"stdout is no JSON: {error}"
                continue
            why = check_json(document, value)
            if why:
                yield why
        elif stream == "wrote":
            there = (folder / value).is_file() and (folder / value).stat().st_size > 0
            if there == bool(negated):
                yield f"{value} is {'' if there else 'not '}there"


def run_case(case, environment):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for path, lines in case["files"]:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text("".join(line + "\n" for line in lines))
        command = dict(case["lines"])["run"]
        try:
            result = subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=folder, env=environment, text=True,
                                    errors="replace", capture_output=True, timeout=TIMEOUT_S, check=False)
        except subprocess.TimeoutExpired:
            return [f"took over {TIMEOUT_S} s"], ""
        return list(complaints(case, result, folder)), result.stdout[-2000:] + result.stderr[-2000:]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build" / "bin" / "whimbrel")
    parser.add_argument("--filter", default="", help="only cases whose file or name holds this")
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    args = parser.parse_args()
    # Options in the caller's environment must not decide the outcome.
    environment = {k: v for k, v in os.environ.items() if not k.startswith("WHIMBREL_") or k in ("WHIMBREL_CACHE", "WHIMBREL_ISA")}
    cache = pathlib.Path(os.environ.get("WHIMBREL_CACHE") or pathlib.Path.home() / ".cache" / "whimbrel")
    environment.update({
        "MODELS": str(cache / "models"), "DATA": str(ROOT / "tests" / "data"), "DERIVED": str(ROOT / "tests" / "data" / "derived"),
        "PATH": f"{args.program.resolve().parent}:{os.environ.get('PATH', '/usr/bin:/bin')}"})
    passed = failed = 0
    for path in args.files or sorted(pathlib.Path(__file__).parent.glob("*.case")):
        for case in parse(path):
            title = f"{path.stem}: {case['name']}"
            if args.filter not in title:
                continue
            why, output = run_case(case, environment)
            print(f"{'FAIL' if why else 'ok  '} {title}", flush=True)
            if why:
                print("".join(f"     {line}\n" for line in why) + "     " + output.replace("\n", "\n     "))
            failed += bool(why)
            passed += not why
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
