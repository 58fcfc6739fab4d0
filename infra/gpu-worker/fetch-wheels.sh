#!/bin/sh
# Fetches what the image of a variant is built from: sh infra/gpu-worker/fetch-wheels.sh cpu|cuda [options of pip].
# cpu needs an index or a folder of CPU wheels of torch, in pip's own settings or here: --extra-index-url …, --find-links ….
# cuda is several GB.
set -eu
variant=$1
shift
here=$(cd "$(dirname "$0")" && pwd)
exec "${PYTHON:-python3}" -m pip download --no-deps --require-hashes --only-binary :all: --python-version 3.11 \
  --platform manylinux_2_28_x86_64 --platform manylinux_2_27_x86_64 --platform manylinux_2_17_x86_64 \
  --platform manylinux2014_x86_64 --platform manylinux_2_5_x86_64 --platform manylinux1_x86_64 \
  --dest "$here/wheels/$variant" -r "$here/locks/$variant.txt" "$@"
