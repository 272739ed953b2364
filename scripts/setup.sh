#!/usr/bin/env bash
# Installs what building, testing or benchmarking needs; a second run only checks (well under a second).
#
# usage: scripts/setup.sh [build|test|bench]     (default build; each includes the one before)
#
# Debian 12: missing packages are installed with apt-get, as root or through sudo. Elsewhere the list
# is printed and the script goes on when the tools are there. Python packages go into build/venv.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
stage=${1:-build}

apt_packages=(
  g++ cmake make git ca-certificates python3 python3-venv python3-dev
  libdnnl-dev libhwy-dev nlohmann-json3-dev libsimdjson-dev libspdlog-dev libfmt-dev
  libcli11-dev libyaml-cpp-dev libprotobuf-dev protobuf-compiler libjs-chart.js
  libjpeg62-turbo-dev libpng-dev libssl-dev zlib1g-dev ccache mold ninja-build pkg-config
)
pip_packages=()
case $stage in
  build) ;;
  test | bench)
    apt_packages+=(libgtest-dev libgmock-dev librapidcheck-dev)
    pip_packages+=(numpy==2.4.6 onnx==1.23.2 ml_dtypes==0.7.0)
    if [ "$stage" = bench ]; then
      apt_packages+=(libbenchmark-dev)
      pip_packages+=(onnxruntime==1.32.0)
    fi
    ;;
  *)
    echo "setup: no stage '$stage'; usage: scripts/setup.sh [build|test|bench]" >&2
    exit 2
    ;;
esac

say() { echo "setup: $*" >&2; }

# retry COMMAND...: three tries, 5 s and 15 s apart.
retry() {
  local pause
  for pause in 5 15 0; do
    if "$@"; then return 0; fi
    [ "$pause" = 0 ] && return 1
    say "failed: $*; next try in $pause s"
    sleep "$pause"
  done
}

missing_apt_packages() {
  local have
  have=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "${apt_packages[@]}" 2>/dev/null |
    sed -n 's/^installed //p' || true)
  comm -23 <(printf '%s\n' "${apt_packages[@]}" | sort -u) <(printf '%s\n' "$have" | sort -u)
}

install_apt_packages() {
  local missing as_root=()
  mapfile -t missing < <(missing_apt_packages)
  [ ${#missing[@]} -gt 0 ] || return 0
  if [ "$(id -u)" != 0 ]; then
    if ! command -v sudo >/dev/null; then
      say "these packages are missing and this user can neither be root nor use sudo:"
      say "  apt-get install --no-install-recommends ${missing[*]}"
      say "have them installed and run the command again"
      exit 3
    fi
    as_root=(sudo)
  fi
  say "installing ${#missing[@]} packages: ${missing[*]}"
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300)
  if ! retry "${apt[@]}" update >&2; then
    say "apt-get update failed three times; going on with the package lists that are there"
  fi
  if ! retry "${apt[@]}" install --no-install-recommends "${missing[@]}" >&2; then
    say "apt-get could not install: ${missing[*]}"
    say "see its message above; offline machines need a package mirror in /etc/apt/sources.list"
    exit 3
  fi
}

check_tools_without_apt() {
  local tool absent=()
  for tool in cmake make git python3 protoc ninja c++; do
    command -v "$tool" >/dev/null || absent+=("$tool")
  done
  say "this is no Debian; the packages needed, by their Debian 12 names (docs/INSTALL.md):"
  say "  ${apt_packages[*]}"
  if [ ${#absent[@]} -gt 0 ]; then
    say "not found here: ${absent[*]}"
    exit 3
  fi
}

# The system's Python, never one that stands before it on PATH: CMake is told to use the same.
python=/usr/bin/python3
venv=build/venv

make_venv() {
  [ -x "$venv/bin/python" ] && [ -f "$venv/.complete" ] && return 0
  say "making $venv"
  rm -rf "$venv"
  "$python" -m venv "$venv"
  touch "$venv/.complete"
}

install_pip_packages() {
  [ ${#pip_packages[@]} -gt 0 ] || return 0
  local stamp
  stamp=$venv/.has-$(printf '%s\n' "${pip_packages[@]}" | cksum | cut -d' ' -f1)
  [ -f "$stamp" ] && return 0
  say "pip: ${pip_packages[*]}"
  if ! retry "$venv/bin/python" -m pip install -q --disable-pip-version-check "${pip_packages[@]}" >&2; then
    say "pip could not install: ${pip_packages[*]}"
    say "offline machines: fill a folder with 'pip download' elsewhere and set PIP_FIND_LINKS to it"
    exit 3
  fi
  touch "$stamp"
}

if command -v dpkg-query >/dev/null && command -v apt-get >/dev/null; then
  install_apt_packages
else
  check_tools_without_apt
fi
[ -x "$python" ] || python=$(command -v python3)

# Two runs at once share build/: the second waits here for the first.
mkdir -p build
exec 9>build/.setup.lock
if command -v flock >/dev/null; then flock 9; fi
make_venv
install_pip_packages
