#!/usr/bin/env bash
# venv.sh FOLDER: makes a virtual environment with a Python that the project supports (3.11 to 3.14). A Python
# that is missing, or lacks the venv module as Debian's does, is installed with apt if this user may.
set -euo pipefail
source "$(dirname "$0")/apt.sh"
folder=$1

# usable PROGRAM MODULE...: whether it is a supported Python that has the modules.
usable() {
    local program=$1
    shift
    "$program" -c 'import importlib, sys
sys.exit(not (3, 11) <= sys.version_info < (3, 15) or not all(map(importlib.import_module, sys.argv[1:])))' \
        "$@" 2>/dev/null
}

# find_python MODULE...: prints the first that is usable.
find_python() {
    local name
    for name in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
        usable "$name" "$@" && command -v "$name" && return
    done
    return 1
}

make_venv() {
    local python
    python=$(find_python venv ensurepip) && "$python" -m venv --clear "$folder"
}

make_venv && exit
for package in python3 python3.14 python3.13 python3.12 python3.11; do
    install_packages "$package" "$package-venv" && make_venv && exit
done
if python=$(find_python); then
    echo "$python lacks the venv module: install it (on Debian and Ubuntu: sudo apt-get install python3-venv)." >&2
else
    echo "Python 3.11, 3.12, 3.13 or 3.14 is needed and none was found: install one," \
        "or name the one to use: make PYTHON=/path/to/python3" >&2
fi
exit 1
