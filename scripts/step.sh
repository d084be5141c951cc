#!/bin/sh
# Run a command as one quiet step: its title, a dot every five seconds, its output only if it fails.
# Usage: step.sh TITLE COMMAND [ARGUMENT ...]
set -u
title=$1
shift
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT

printf '%s ' "$title"
"$@" >"$log" 2>&1 &
job=$!
# A background job ignores the interrupt key, so it is passed on by hand.
trap 'kill "$job" 2>/dev/null; echo "stopped"; exit 130' INT TERM

seconds=0
while kill -0 "$job" 2>/dev/null; do
    sleep 1
    seconds=$((seconds + 1))
    [ $((seconds % 5)) -ne 0 ] || printf '.'
done
wait "$job"
code=$?

if [ "$code" -eq 0 ]; then
    echo "done"
else
    echo "failed"
    cat "$log"
fi
exit "$code"
