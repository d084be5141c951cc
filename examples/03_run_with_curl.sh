#!/bin/sh
# A run from start to end with curl: started, followed, read again from the middle, cancelled, found in history.
# Needs a server (recto serve): one started in this folder is found, another is named in RECTO_URL and RECTO_TOKEN.
set -eu
url="${RECTO_URL:-http://127.0.0.1:8787}"
api="$url/api/v1/agent"
token_file="${RECTO_DATA:-recto-data}/token"
case $url in # the token of a folder is for servers of this machine
    *@*) ;;
    http://127.0.0.1:* | http://localhost:*) : "${RECTO_TOKEN:=$(cat "$token_file" 2>/dev/null || true)}" ;;
esac
if [ -z "${RECTO_TOKEN:-}" ]; then
    echo "No token: $token_file is not there, or not for $url. Start recto serve in this folder, or set RECTO_TOKEN." >&2
    exit 1
fi
thread=$(cat /proc/sys/kernel/random/uuid 2>/dev/null || uuidgen | tr A-Z a-z)

ask() { # METHOD PATH [MORE OPTIONS OF CURL ...]
    method=$1 path=$2
    shift 2
    curl -sSN -f -X "$method" -H "authorization: Bearer $RECTO_TOKEN" "$@" "$api$path"
}

body() { # RUN MESSAGE WORDS: the input of a run
    printf '{"protocolVersion": "1.0", "threadId": "%s", "runId": "%s-%s", "messages": [{"id": "%s", "role": "user", "content": "%s"}], "forwardedProps": {"agent": "chat"}}' \
        "$thread" "$thread" "$1" "$2" "$3"
}

echo "# Start a run: 202 once it is stored"
ask POST /runs -H 'content-type: application/json' -d "$(body first m1 'What is 12 * 7?')"

echo; echo "# Follow its events; the stream ends when the run does"
ask GET "/runs/$thread-first/events"

echo "# Read them again behind number 3"
ask GET "/runs/$thread-first/events" -H 'last-event-id: 3'

echo "# Start another and end it; what it wrote so far is kept. If it is over already, nothing changes"
ask POST /runs -H 'content-type: application/json' -d "$(body second m2 'Tell me a very long story.')"
echo
ask POST "/runs/$thread-second/cancel"
echo
ask GET "/runs/$thread-second/events"
ask GET "/runs/$thread-second"

echo; echo "# The newest day of the thread"
ask GET "/history?threadId=$thread"
echo
