#!/bin/sh
# Acceptance: the unmodified clients of both platforms against a fresh server, the real launcher behind `sf launch`, the
# unmodified OCI clients and the official conformance program against a registry in one folder and against one on
# PostgreSQL and S3. Needs python3 >= 3.11, git, skopeo, podman, and on the first run a Python index and a Go proxy; what
# clients.sh builds and the Python packages stay in the user's cache. Usage: accept.sh PATH/TO/sf
set -eu
sf=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
root=$(cd "$(dirname "$0")/.." && pwd)
go=${GO:-go}
steps=${ACCEPT_STEPS:-signin,publish,refusals,project,install,submission,disable,outside,builtin}
tools=$(sh "$root/scripts/clients.sh" "$go")
export GATEHOUSE_TEST_MINIO="$tools/minio"
work=$(mktemp -d "${TMPDIR:-/tmp}/gatehouse-accept.XXXXXX")
finish() {
	chmod -R u+w "$work" 2>/dev/null || true
	rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM
for tool in ociclients withserver; do
	"$go" build -C "$root" -o "$work/$tool" "./testdata/interop/$tool"
done

# run NAME COMMAND…: shows a part's output, and keeps its counting last line for the summary. A part that fails ends the script.
run() {
	name=$1
	shift
	status=0
	"$@" >"$work/part.log" 2>&1 || status=$?
	cat "$work/part.log"
	echo "accept: $name: $(tail -n 1 "$work/part.log")" | tee -a "$work/summary"
	return "$status"
}

# against FORM COMMAND…: runs a command against a fresh server.
against() {
	form=$1
	shift
	"$work/withserver" -sf "$sf" -form "$form" -- "$@"
}

venv=${REALCLIENTS_VENV:-${XDG_CACHE_HOME:-$HOME/.cache}/realclients-venv}
run clients against embedded sh "$root/testdata/interop/realclients/run.sh" --server '{server}' --admin-token '{token}' --steps "$steps"
run launch "${PYTHON:-python3}" "$root/testdata/interop/launch/accept.py" --sf "$sf" --launcher "$venv/bin/forge-launch"
run oci "$work/ociclients" -sf "$sf" -bin "$tools"
run oci-postgres-s3 "$work/ociclients" -sf "$sf" -bin "$tools" -form postgres-s3
run moving sh "$root/scripts/moving.sh" "$sf" "$tools" "$tools/registry"
for form in embedded postgres-s3; do
	run "conformance-$form" sh "$root/scripts/conformance.sh" "$sf" "$form"
done
# One line for all parts.
awk '{ for (i = 2; i < NF; i++) if ($(i + 1) ~ /^passed/) n += $i } END { printf "accept: %d passed, 0 failed\n", n }' "$work/summary"
