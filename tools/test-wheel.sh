#!/bin/sh
# Installs a wheel of pubmark into an environment of its own, and measures with it there.
#
#   tools/test-wheel.sh WHEEL
set -eu

[ $# -eq 1 ] || { sed -n '4s/^# *//p' "$0" >&2; exit 2; }
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
wheel=$(realpath "$1")
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' "$(dirname "$0")/../Cargo.toml")

python3 -m venv "$place/env"
"$place/env/bin/pip" install -q --no-index "$wheel"
cd "$place"
PATH=$place/env/bin:/usr/bin:/bin
[ "$(command -v pubmark)" = "$place/env/bin/pubmark" ]
said=$(pubmark --version)
[ "$said" = "pubmark $version" ] || { echo "it says \`$said\`, and this is $version"; exit 1; }
pip list --format freeze | grep -qx "pubmark==$version"
for licence in LICENSE-APACHE LICENSE-MIT; do
  python3 - "$licence" <<'PYTHON'
import importlib.metadata, sys
files = [file for file in importlib.metadata.files("pubmark") if file.name == sys.argv[1]]
assert files and "Licen" in files[0].read_text() or "MIT" in files[0].read_text(), f"no {sys.argv[1]} in the wheel"
PYTHON
done
# What the front page says comes next, cut down to one part of it. A cell without an answer
# is code 3, as on any busy machine.
pubmark run quickstart --quick --only system=kernel --out q || [ $? -eq 3 ]
grep -q '"error":null' q/runs.jsonl && [ -s q/report.html ]
pubmark bench kernel --transport tcp --repeats 1 --duration 1s --warmup 200ms --out r || [ $? -eq 3 ]
grep -q '"error":null' r/runs.jsonl
echo "the wheel of pubmark $version is installed, and measures"
