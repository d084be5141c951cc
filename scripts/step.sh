#!/bin/sh
# Run a command as one quiet step: its title, how long it is at it, its output only if it fails, and not then where
# STEP_QUIET is set.
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

# A person sees the seconds go by, and the newest line of what is done; a file gets a dot every five seconds.
seconds=0
while kill -0 "$job" 2>/dev/null; do
    sleep 1
    seconds=$((seconds + 1))
    if [ -t 1 ]; then
        printf '\r\033[K%s ... %s s  %.60s' "$title" "$seconds" "$(tail -n 1 "$log" | tr -d '\r\033')"
    elif [ $((seconds % 5)) -eq 0 ]; then
        printf '.'
    fi
done
wait "$job"
code=$?
[ ! -t 1 ] || printf '\r\033[K%s ' "$title"

if [ "$code" -eq 0 ]; then
    echo "done, $seconds s"
else
    echo "failed"
    [ -n "${STEP_QUIET:-}" ] || cat "$log"
fi
exit "$code"
