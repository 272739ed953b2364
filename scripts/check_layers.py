#!/usr/bin/env python3
"""Checks that the folders of whimbrel/ are one straight tower.

usage: check_layers.py [--root DIR] [--self-test]

Each violation is a line `file:line: text`; the last line is `N upward includes, N circles`. Exit 1 when there
is any. Checked: a folder includes only itself and lower floors, nobody includes the emulator, files do not
include each other in a circle, includes are whole paths from the root, files have at most 900 lines, each
folder of the tower has a README.md of at most 40, platform macros and heavy headers stay where they belong.
"""
import argparse
import dataclasses
import fnmatch
import pathlib
import re
import sys
import tempfile

FLOORS = {
    "base": 0, "device": 1, "monitor": 1, "tensor": 2, "kernels": 3, "graph": 4, "store": 4, "emulator": 5,
    "models": 5, "engine": 6, "serve": 7, "migrate": 7, "capi": 8, "cli": 9, "python": 9,
}
MAX_FILE_LINES = 900
MAX_README_LINES = 40

# Where `#if` may ask for the machine: the folders of one device, and the one file that reads the CPU.
PLATFORM_PLACES = re.compile(r"whimbrel/(device|kernels)/(?!ops/)[^/]+/|whimbrel/base/cpu\.cc$")
PLATFORM_MACRO = re.compile(
    r"\b(__x86_64__|__i386__|__AVX\w*|__SSE\w*|_WIN32|_WIN64|__linux__|__APPLE__|__aarch64__|__ARM_\w+|"
    r"_M_X64|_M_ARM64)\b")

# Heavy headers: pattern of the included path, patterns of the files that may include it.
HEAVY = [
    ("nlohmann/json.hpp", ["*.cc"], "only .cc files include it; headers take nlohmann/json_fwd.hpp"),
    ("spdlog/*", ["*.cc"], "only .cc files include it"),
    ("CLI/*", ["*.cc"], "only .cc files include it"),
    ("yaml-cpp/*", ["*.cc"], "only .cc files include it"),
    ("oneapi/dnnl/*", ["whimbrel/kernels/cpu/onednn_*"], "only whimbrel/kernels/cpu/onednn_* include it"),
    ("dnnl*.h*", ["whimbrel/kernels/cpu/onednn_*"], "only whimbrel/kernels/cpu/onednn_* include it"),
    ("*.pb.h", ["whimbrel/tensor/tensor_proto.cc", "whimbrel/graph/onnx_*.cc"],
     "only tensor/tensor_proto.cc and graph/onnx_*.cc include generated protobuf code"),
]

# Quoted by custom although they are other people's: Highway's own examples write "hwy/...".
FOREIGN_QUOTED = ("hwy/",)

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>)', re.M)
CONDITION = re.compile(r"^[ \t]*#[ \t]*(?:if|ifdef|ifndef|elif)\b((?:[^\n\\]|\\[ \t]*\n|\\.)*)", re.M)
# Comments and raw strings go (an include inside is text); other literals are matched so that `//` in them stays.
NOT_CODE = re.compile(
    r'R"([^()\\\s"]{0,16})\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|'
    r"(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])*'|//[^\n]*|/\*.*?\*/", re.S)


@dataclasses.dataclass
class Report:
    violations: list = dataclasses.field(default_factory=list)  # (path, line, text)
    upward: int = 0
    circles: int = 0

    def add(self, path, line, text):
        self.violations.append((path, line, text))


def code_only(text):
    def blank(match):
        piece = match.group(0)
        return piece if piece[0] in "\"'" else "\n" * piece.count("\n")

    return NOT_CODE.sub(blank, text)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def folder_of(path):
    """whimbrel/FOLDER/... -> FOLDER; None for a file that lies in no folder of whimbrel/."""
    parts = path.split("/")
    return parts[1] if len(parts) > 2 and parts[0] == "whimbrel" else None


def check_floor(report, path, line, included):
    own, other = folder_of(path), folder_of(included)
    if own == other or own not in FLOORS:
        return  # a file outside the tower has its own message
    if other not in FLOORS:
        report.add(path, line, f"includes {included}: whimbrel/{other} is no folder of the tower"
                   if other else f"includes {included}, which lies in no folder of the tower")
        return
    if other == "emulator":
        text = "nobody includes the emulator, it is reached by dlopen"
    elif FLOORS[other] > FLOORS[own]:
        text = f"{own} (floor {FLOORS[own]}) includes upward into {other} (floor {FLOORS[other]})"
    elif FLOORS[other] == FLOORS[own]:
        text = f"{own} and {other} are both on floor {FLOORS[own]} and may not include each other"
    else:
        return
    report.upward += 1
    report.add(path, line, f"{text}: {included}")


def check_heavy(report, path, line, included):
    for header, places, text in HEAVY:
        if fnmatch.fnmatchcase(included, header) and not any(fnmatch.fnmatchcase(path, p) for p in places):
            report.add(path, line, f"{included}: {text}")


def check_file(report, path, text):
    """One file; the whimbrel files that it includes, with the line of each."""
    lines = text.count("\n") + (not text.endswith("\n") and bool(text))
    if lines > MAX_FILE_LINES:
        report.add(path, lines, f"{lines} lines, at most {MAX_FILE_LINES}; split it")
    folder = folder_of(path)
    if folder not in FLOORS:
        report.add(path, 1, f"whimbrel/{folder} has no floor; see FLOORS in scripts/check_layers.py"
                   if folder else "lies in no folder of the tower")
    code = code_only(text)
    edges = {}
    for match in INCLUDE.finditer(code):
        quoted, angled = match.groups()
        included = quoted or angled
        line = line_of(code, match.start())
        if included.startswith("whimbrel/") and "/../" not in included:
            edges.setdefault(included, line)
            check_floor(report, path, line, included)
        elif quoted and not included.startswith(FOREIGN_QUOTED):
            report.add(path, line, f'"{included}" is no whole path from the root ("whimbrel/..."); '
                       "other people's headers stand in <>")
        check_heavy(report, path, line, included)
    if not PLATFORM_PLACES.match(path):
        for match in CONDITION.finditer(code):
            macro = PLATFORM_MACRO.search(match.group(1))
            if macro:
                report.add(path, line_of(code, match.start()), f"#if on {macro.group(1)} outside "
                           "whimbrel/device/NAME, whimbrel/kernels/NAME and whimbrel/base/cpu.cc")
    return edges


def check_circles(report, graph):
    """Depth first over the include graph; each edge back onto the path being walked closes a circle."""
    state = {}  # path -> "open" while on the trail, "done" after
    for root in sorted(graph):
        if root in state:
            continue
        state[root] = "open"
        trail = [(root, iter(sorted(graph[root].items())))]
        while trail:
            path, edges = trail[-1]
            for included, line in edges:
                if included not in graph:
                    continue
                if state.get(included) == "open":
                    names = [entry[0] for entry in trail]
                    circle = names[names.index(included):] + [included]
                    report.circles += 1
                    report.add(path, line, "circle: " + " -> ".join(circle))
                elif included not in state:
                    state[included] = "open"
                    trail.append((included, iter(sorted(graph[included].items()))))
                    break
            else:
                state[path] = "done"
                trail.pop()


def check_readmes(report, root):
    for folder in sorted(FLOORS):
        if (root / "whimbrel" / folder).is_dir() and not (root / "whimbrel" / folder / "README.md").is_file():
            report.add(f"whimbrel/{folder}/README.md", 1, "is missing")
    for readme in sorted((root / "whimbrel").rglob("README.md")):
        lines = len(readme.read_text(encoding="utf-8", errors="replace").splitlines())
        if lines > MAX_README_LINES:
            report.add(readme.relative_to(root).as_posix(), lines, f"{lines} lines, at most {MAX_README_LINES}")


def check_tree(root):
    report = Report()
    graph = {}
    for file in sorted((root / "whimbrel").rglob("*")):
        if file.suffix in (".h", ".cc", ".inc") and file.is_file():
            path = file.relative_to(root).as_posix()
            graph[path] = check_file(report, path, file.read_text(encoding="utf-8", errors="replace"))
    check_circles(report, graph)
    check_readmes(report, root)
    return report, len(graph)


# The self-test: a tree that breaks every rule once, and the words by which each breach must be found.
BROKEN = {
    "whimbrel/base/up.cc": '#include <vector>\n#include "whimbrel/graph/graph.h"\n',
    "whimbrel/device/same.h": '// One.\n\n#include "whimbrel/monitor/monitor.h"\n',
    "whimbrel/engine/emu.cc": '#include "whimbrel/emulator/emulator.h"\n',
    "whimbrel/graph/a.h": '#include "whimbrel/graph/b.h"\n',
    "whimbrel/graph/b.h": '#include "whimbrel/graph/a.h"\n',
    "whimbrel/graph/short.cc": '#include "short.h"\n',
    "whimbrel/graph/long.cc": "int a;\n" * 901,
    "whimbrel/graph/README.md": "line\n" * 41,
    "whimbrel/tensor/simd.cc": "#if defined(__AVX2__) && \\\n    1\n#endif\n",
    "whimbrel/kernels/ops/os.cc": "#ifdef __linux__\n#endif\n",
    "whimbrel/graph/json.h": "#include <nlohmann/json.hpp>\n",
    "whimbrel/base/log.h": "#include <spdlog/spdlog.h>\n",
    "whimbrel/cli/cli.h": "#include <CLI/CLI.hpp>\n",
    "whimbrel/base/config.h": "#include <yaml-cpp/yaml.h>\n",
    "whimbrel/kernels/cpu/gemm.cc": "#include <oneapi/dnnl/dnnl.hpp>\n",
    "whimbrel/graph/scan.cc": '#include "whimbrel/tensor/onnx.pb.h"\n',
    "whimbrel/misc/x.cc": "\n",
}
FOUND = [
    ("whimbrel/base/up.cc", 2, "includes upward"), ("whimbrel/device/same.h", 3, "both on floor 1"),
    ("whimbrel/engine/emu.cc", 1, "emulator"), ("whimbrel/graph/b.h", 1, "circle"),
    ("whimbrel/graph/short.cc", 1, "no whole path"), ("whimbrel/graph/long.cc", 901, "901 lines"),
    ("whimbrel/graph/README.md", 41, "41 lines"), ("whimbrel/tensor/simd.cc", 1, "__AVX2__"),
    ("whimbrel/kernels/ops/os.cc", 1, "__linux__"), ("whimbrel/graph/json.h", 1, "json_fwd"),
    ("whimbrel/base/log.h", 1, "spdlog"), ("whimbrel/cli/cli.h", 1, "CLI"),
    ("whimbrel/base/config.h", 1, "yaml-cpp"), ("whimbrel/kernels/cpu/gemm.cc", 1, "onednn"),
    ("whimbrel/graph/scan.cc", 1, "protobuf"), ("whimbrel/misc/x.cc", 1, "no floor"),
    ("whimbrel/base/README.md", 1, "is missing"),
]
SOUND = {
    "whimbrel/base/base.h": "#include <string>\n",
    "whimbrel/base/cpu.cc": '#include "whimbrel/base/base.h"\n#ifdef __x86_64__\n#endif\n',
    "whimbrel/base/json.cc": "#include <nlohmann/json.hpp>\n#include <nlohmann/json_fwd.hpp>\n",
    "whimbrel/kernels/cpu/onednn_gemm.cc": "#include <oneapi/dnnl/dnnl.hpp>\n",
    "whimbrel/kernels/cpu/simd.cc": '#include "whimbrel/kernels/cpu/onednn_gemm.h"\n'
                                    '#include "hwy/foreach_target.h"\n#if __AVX2__\n#endif\n',
    "whimbrel/tensor/tensor_proto.cc": '#include "whimbrel/tensor/onnx.pb.h"\n',
    "whimbrel/graph/text.cc": 'const char* kUrl = "http://x";  // "\n'
                              '// #include "gone.h"\n/* \n#include "gone.h"\n*/\n'
                              'const char* kCode = R"x(\n#include "gone.h"\n#ifdef _WIN32\n)x";\n'
                              '#include "whimbrel/base/base.h"\n',
}


def self_test():
    failures = []
    with tempfile.TemporaryDirectory() as temporary:
        for name, tree in (("broken", BROKEN), ("sound", SOUND)):
            for path, text in tree.items():
                target = pathlib.Path(temporary) / name / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text, encoding="utf-8")
        for folder in ("base", "kernels", "tensor", "graph"):
            (pathlib.Path(temporary) / "sound/whimbrel" / folder / "README.md").write_text("x\n" * 40, encoding="utf-8")
        report, _ = check_tree(pathlib.Path(temporary) / "broken")
        for path, line, word in FOUND:
            if not any(p == path and n == line and word in text for p, n, text in report.violations):
                failures.append(f"not found: {path}:{line}: ...{word}...")
        missing_readmes = len({path.split("/")[1] for path in BROKEN} & set(FLOORS)) - 1
        wanted = len(FOUND) + missing_readmes - 1
        if len(report.violations) != wanted:
            failures.append(f"{len(report.violations)} violations in the broken tree, {wanted} are in it")
        if (report.upward, report.circles) != (3, 1):
            failures.append(f"{report.upward} upward includes and {report.circles} circles, 3 and 1 are in it")
        failures += [f"false alarm: {p}:{n}: {text}"
                     for p, n, text in check_tree(pathlib.Path(temporary) / "sound")[0].violations]
    for failure in failures:
        print(f"self-test: {failure}")
    print(f"self-test: {'failed' if failures else f'all {len(FOUND)} rules bite, no false alarm'}")
    return 1 if failures else 0


def main():
    parser = argparse.ArgumentParser(description="Checks that the folders of whimbrel/ are one straight tower.")
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    parser.add_argument("--self-test", action="store_true", help="check the checker on two made-up trees")
    args = parser.parse_args()
    if args.self_test:
        return self_test()
    report, files = check_tree(args.root)
    if not files:
        print(f"check_layers: no source file under {args.root / 'whimbrel'}", file=sys.stderr)
        return 2
    for path, line, text in sorted(report.violations):
        print(f"{path}:{line}: {text}")
    others = len(report.violations) - report.upward - report.circles
    if others:
        print(f"{others} other violations in {files} files")
    print(f"{report.upward} upward includes, {report.circles} circles")
    return 1 if report.violations else 0


if __name__ == "__main__":
    sys.exit(main())
