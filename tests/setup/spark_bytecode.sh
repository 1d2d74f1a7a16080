#!/usr/bin/env bash
# Adds bytecode to the archives from which Spark's Python processes import PySpark (docs/spark.md, "Speed"). They come
# without, so that each process compiles PySpark again. Archives that have bytecode stay as they are.
# Usage: tests/setup/spark_bytecode.sh FOLDER-OF-ARCHIVES PYTHON
set -euo pipefail
cd "$1"
python=$2

for archive in *.zip; do
    [ "$("$python" -m zipfile -l "$archive" | grep -c '\.pyc ')" -eq 0 ] || continue
    work=$(mktemp -d "$PWD/bytecode-XXXXXX")
    trap 'rm -rf "$work"' EXIT
    "$python" -m zipfile -e "$archive" "$work/modules"
    # Not by the files' times, which the archive would round. PySpark's own tests are not imported.
    "$python" -m compileall -q -b --invalidation-mode unchecked-hash -x '/tests/' "$work/modules"
    "$python" -m zipfile -c "$work/$archive" "$work/modules"/*
    mv "$work/$archive" "$archive"
    rm -rf "$work"
done
