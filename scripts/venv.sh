#!/bin/sh
# Make .venv, with what installs the rest. Debian splits the venv module off Python: root gets the package, others get one line that names it.
# Usage: venv.sh PYTHON
set -eu
python=$1

fail() {
    echo "$1"
    exit 1
}

make_venv() {
    rm -rf .venv
    "$python" -m venv .venv
}

# The installer of all that follows, from its wheel.
add_installer() {
    .venv/bin/python -m pip --disable-pip-version-check --no-input install --no-compile --require-hashes \
        --only-binary :all: -r requirements-build.lock
}

command -v "$python" >/dev/null || fail "Recto needs Python 3.11 or newer, and '$python' is not to be found. Install it, or run: make PYTHON=/path/to/python3"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "Recto needs Python 3.11 or newer; '$python' is $("$python" -V 2>&1). Run: make PYTHON=/path/to/a/newer/python3"

if make_venv; then
    add_installer
    exit
fi
rm -rf .venv
[ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null ||
    fail "Python's venv module is missing. On Debian and Ubuntu: apt-get install python3-venv (as root)"
apt-get update
DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends python3-venv
if make_venv; then
    add_installer
    exit
fi
rm -rf .venv
fail "'$python' cannot make a virtual environment, even with python3-venv installed. Run: make PYTHON=/usr/bin/python3"
