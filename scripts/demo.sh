#!/usr/bin/env bash
# The demo: migrates a real text detector to the CPU, then finds the text of a scanned page with the package.
#
# usage: scripts/demo.sh     (after a build; `make demo` does both)
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
whimbrel=build/bin/whimbrel
python=build/venv/bin/python
name=ppocr_v4_det
page=tests/data/images/page_640.jpg
# (x / 255 - 0.5) / 0.5 as the detector was trained, blue first.
image=mean=127.5,std=127.5,order=bgr,layout=nchw
out=out/$name

if [ ! -x "$whimbrel" ]; then
  echo "demo: $whimbrel is missing; run 'make demo'" >&2
  exit 2
fi

"$python" scripts/fetch_models.py --only "$name"
model=$("$python" scripts/fetch_models.py --print-dir)/$name/model.onnx

mkdir -p "$out"
"$whimbrel" migrate "$model" --to cpu:0 --shape x:1x3x640x640 \
  --input "x=$page" --image "$image" -o "$out"

# The answer, from the package that came out and not from the model that went in.
rm -rf "$out/answer"
"$whimbrel" run "$out/$name.wbl" --input "x=$page" --image "$image" --output-dir "$out/answer"
regions=$(/usr/bin/python3 scripts/count_regions.py "$out/answer/output_0.npy")

echo
echo "$regions text regions found in $page"
echo "report: $out/report.html"
if [ "$regions" != 7 ]; then
  echo "demo: 7 regions are expected (tests/data/images/index.csv)" >&2
  exit 1
fi
