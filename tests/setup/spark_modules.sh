#!/usr/bin/env bash
# Unpacks the archives from which Spark's Python processes import PySpark, into folders of the same names, with bytecode
# (docs/spark.md, "The start of a query"). Archives come without bytecode, and Python reads their lists of files many
# times in each process. What is a folder stays as it is.
# Usage: tests/setup/spark_modules.sh FOLDER-OF-ARCHIVES PYTHON
set -euo pipefail
cd "$1"
python=$2

for archive in *.zip; do
    [ -f "$archive" ] || continue
    work=$(mktemp -d "$PWD/modules-XXXXXX")
    trap 'rm -rf "$work"' EXIT
    "$python" -m zipfile -e "$archive" "$work/modules"
    # PySpark's own tests are not imported.
    "$python" -m compileall -q -x '/tests/' "$work/modules"
    mv "$archive" "$work/archive"
    mv "$work/modules" "$archive"
    rm -rf "$work"
done
