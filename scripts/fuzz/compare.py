"""Tolerances and known differences: is whimbrel's answer ONNX Runtime's?"""
import numpy as np

# What we refuse and the runtime takes: it reduces a scalar over any axis.
LENIENT = ("outside [0, 0) of a tensor of rank 0",)


def difference(got, want, slack=None):
    """Empty, or the worst element in words."""
    if got.dtype != want.dtype:
        return f"type {got.dtype}, expected {want.dtype}"
    if got.shape != want.shape:
        return f"shape {got.shape}, expected {want.shape}"
    if want.size == 0:
        return ""
    if want.dtype.kind != "f":
        bad = got != want
        if slack is not None:
            bad &= slack == 0
        return f"{int(bad.sum())} of {bad.size} elements differ, first at {tuple(map(int, np.argwhere(bad)[0]))}" if bad.any() else ""
    a, b = got.astype(np.float64), want.astype(np.float64)
    loose = 10.0 if want.dtype == np.float16 else 1.0
    magnitude = float(np.nan_to_num(np.abs(b), nan=0.0, posinf=0.0).max())
    allowed = loose * (1e-3 * np.abs(b) + 1e-4 * min(magnitude, 1.0) + 1e-5 * magnitude) + 1e-6
    if slack is not None:
        allowed = allowed + 30 * slack
    with np.errstate(invalid="ignore"):
        error = np.abs(a - b)
        bad = ~((error <= allowed) | (a == b) | (np.isnan(a) & np.isnan(b)))
    if not bad.any():
        return ""
    worst = np.unravel_index(np.argmax(np.where(bad, np.nan_to_num(error, nan=np.inf), -1)), bad.shape)
    return f"{int(bad.sum())} of {bad.size} elements differ; at {tuple(map(int, worst))} {a[worst]:.7g}, expected {b[worst]:.7g}"


def check(case, out_dir, failed):
    """The first difference of a case in one mode, or ''."""
    if failed:
        return failed
    for k, (_, expected) in enumerate(case.sets):
        slack = None
        for j, want in enumerate(expected):
            got = np.load(out_dir / case.name / f"test_data_set_{k}_{j}.npy")
            text = difference(got, want)
            if not text:
                continue
            if slack is None:
                slack = case.nudged(k, 1e-3 if case.net.dtype == np.float16 else 1e-6) or [None] * len(expected)
            text = difference(got, want, slack[j]) if got.shape == want.shape else text
            if text:
                return f"set {k} output {j} ({case.outputs[j]}): {text}"
    return ""
