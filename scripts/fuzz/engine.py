"""onnx_backend_runner over a folder of cases, in every mode whimbrel can run."""
import json
import os
import pathlib
import subprocess
import tempfile

PASSES = ["ConvBnAct", "MatMulBiasAct", "BroadcastRank", "ElementwiseChain"]


def modes(folder):
    def switch_file(name):
        path = folder / f"{name}_off.json"
        path.write_text(json.dumps({"Switch": {"GraphFusion": {name: "off"}}}))
        return str(path)

    table = {"default": ([], {}), "threads1": (["--threads", "1"], {}), "threads2": (["--threads", "2"], {}),
             "avx2": (["--threads", "1"], {"WHIMBREL_ISA": "avx2"}), "portable": ([], {"WHIMBREL_ISA": "portable"}),
             "all_off": (["--fusion-switch-file", switch_file("ALL")], {}), "reference": (["--reference"], {})}
    for name in PASSES:
        table[f"{name}_off"] = (["--fusion-switch-file", switch_file(name)], {})
    return table


def run_mode(runner, cases_dir, out_dir, flags, environment):
    """NAME -> '' or what failed; crashes name their case, and the rest runs on."""
    outcome = {}
    waiting = sorted(p.name for p in cases_dir.iterdir())
    place = cases_dir
    while waiting:
        command = [str(runner), str(place), "--write", str(out_dir), *flags]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, timeout=600)
        for line in done.stdout.splitlines():
            word, _, rest = line.partition(" ")
            name, _, text = rest.partition(": ")
            if word in ("PASS", "FAIL", "SKIP"):
                outcome[name] = "" if word == "PASS" else f"{word} {text}"
        waiting = [n for n in waiting if n not in outcome]
        if not waiting:
            break
        outcome[waiting[0]] = f"FAIL the program ended with {done.returncode}: {done.stderr[-400:]}"
        place = pathlib.Path(tempfile.mkdtemp(prefix="rest_", dir=cases_dir.parent))
        waiting = waiting[1:]
        for name in waiting:
            (place / name).symlink_to(cases_dir / name)
    return outcome
