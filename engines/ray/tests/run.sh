#!/bin/sh
# Builds pubmark-ray, installs it where Ray is, and tests it there.
#
#   tests/run.sh PYTHON
set -eu

python=$1
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
# What a build leaves behind is not wanted beside the sources.
cp -R . "$build/source"
"$python" -m pip wheel -q --no-deps --wheel-dir "$build" "$build/source"
"$python" -m pip install -q --no-deps --force-reinstall "$build"/pubmark_ray-*.whl
# By its name, so that it is the installed package that is tested.
cp -R tests "$build/tests"
mkdir -p "$build/engines/ray" && mv "$build/tests" "$build/engines/ray/tests"
cp -R ../kubernetes "$build/engines/kubernetes"
cp rayjob.yaml cluster.yaml "$build/engines/ray/"
export PUBMARK_RAY_SOURCES="$build/source"
cd "$build/engines/ray"
"$python" -m unittest -v tests.test_words tests.test_relay tests.test_manifests tests.test_ray tests.test_demo
