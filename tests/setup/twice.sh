#!/usr/bin/env bash
# Runs pytest, then what failed once more, one test at a time; the last lines name the tests that needed that.
# Usage: PYTHON=… tests/setup/twice.sh [options of the first run] -- [tests]
set -euo pipefail

run() {
    "$PYTHON" -m pytest -p tests.support.second_try "$@"
}

first=()
while [ "$1" != -- ]; do
    first+=("$1")
    shift
done
shift

status=0
run "${first[@]}" "$@" || status=$?
# 1: tests failed. With any other status (interrupted, not collected…) some tests may not have run at all.
[ "$status" -eq 1 ] || exit "$status"
# Where no list of what failed was kept, none of them run, and that is an error.
run --last-failed --last-failed-no-failures none "$@"
