#!/bin/sh
# Acceptance: a fresh server, the unmodified clients of both platforms against it, and the real launcher behind
# `sf launch`. Needs python3 >= 3.11, git, and a Python index for the first run. Usage: accept.sh PATH/TO/sf
set -eu
sf=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
root=$(cd "$(dirname "$0")/.." && pwd)
steps=${ACCEPT_STEPS:-signin,publish,refusals,project,install,submission,disable,outside,builtin}
work=$(mktemp -d "${TMPDIR:-/tmp}/gatehouse-accept.XXXXXX")
server=
finish() {
	status=$?
	[ -z "$server" ] || kill "$server" 2>/dev/null || true
	[ -z "$server" ] || wait "$server" 2>/dev/null || true
	if [ "$status" -ne 0 ] && [ -f "$work/server.log" ]; then
		echo "--- the server's last lines" >&2
		tail -n 30 "$work/server.log" >&2
	fi
	chmod -R u+w "$work" 2>/dev/null || true
	rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM

"$sf" serve --data "$work/data" --listen 127.0.0.1:0 >"$work/server.log" 2>&1 &
server=$!
for _ in $(seq 100); do
	[ -s "$work/data/address" ] && break
	kill -0 "$server" 2>/dev/null || { echo "accept: the server ended early" >&2; exit 1; }
	sleep 0.1
done
url=$(cat "$work/data/address")
token=$(cat "$work/data/admin-token")

# run NAME COMMAND…: shows a part's output, and keeps its counting last line for the summary.
run() {
	name=$1
	shift
	status=0
	"$@" >"$work/part.log" 2>&1 || status=$?
	cat "$work/part.log"
	echo "accept: $name: $(tail -n 1 "$work/part.log")" | tee -a "$work/summary"
	return "$status"
}

run clients "$root/testdata/interop/realclients/run.sh" --server "$url" --admin-token "$token" --steps "$steps"
venv=${REALCLIENTS_VENV:-${XDG_CACHE_HOME:-$HOME/.cache}/realclients-venv}
run launch "${PYTHON:-python3}" "$root/testdata/interop/launch/accept.py" --sf "$sf" --launcher "$venv/bin/forge-launch"
run conformance "${GO:-go}" run -C "$root/registry/internal/conformance" . -server "$url" -user admin -password-file "$work/data/admin-token"
# One line for all parts; each part that failed has ended the script before.
awk '{ for (i = 2; i < NF; i++) if ($(i + 1) ~ /^passed/) n += $i } END { printf "accept: %d passed, 0 failed\n", n }' "$work/summary"
