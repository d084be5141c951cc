#!/bin/sh
# Run the full tier. pytest answers 5 when it ran no test: right while no test is marked full, an error after that.
# Usage: full.sh PYTEST [ARGUMENT ...]
set -u
"$@"
code=$?
[ "$code" -eq 5 ] || exit "$code"

if grep -rq --include='*.py' 'pytest\.mark\.full' tests; then
    echo "Tests are marked full, but none was run. See the lines above."
    exit 5
fi
echo "No test is marked full yet: the full tier ran nothing."
