#!/bin/sh
# Acceptance: the unmodified clients of both platforms, whole, against a registry in one folder, against one on PostgreSQL and
# S3, and below the base path of each client; their sign-in in a real Chromium; both real launchers behind `sf launch`, in all launch
# cases and under attack; the unmodified OCI clients and the official conformance program against both forms. Needs python3 >= 3.11,
# git, skopeo, podman, chromium, chromedriver, and on the first run a Python index, a Debian mirror and a Go proxy; what clients.sh builds,
# the Python packages and the launchers' own Python stay in the user's cache. Attacks and cases that are no part of the project come
# from $SHARED, else from ../shared beside it. Usage: accept.sh PATH/TO/sf
set -eu
sf=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
root=$(cd "$(dirname "$0")/.." && pwd)
go=${GO:-go}
tools=$(sh "$root/scripts/clients.sh" "$go")
export GATEHOUSE_TEST_MINIO="$tools/minio"
work=$(mktemp -d "${TMPDIR:-/tmp}/gatehouse-accept.XXXXXX")
finish() {
	chmod -R u+w "$work" 2>/dev/null || true
	rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM
for tool in ociclients withserver browser launch/sign; do
	"$go" build -C "$root" -o "$work/${tool##*/}" "./testdata/interop/$tool"
done
shared=${SHARED:-}
[ -n "$shared" ] || [ ! -d "$root/../shared/tools/attacks" ] || shared=$(cd "$root/../shared" && pwd)

# run NAME COMMAND…: shows a part's output, and keeps its counting last line for the summary. A part that fails, or skips a check,
# ends the script.
run() {
	name=$1
	shift
	status=0
	"$@" >"$work/part.log" 2>&1 || status=$?
	cat "$work/part.log"
	last=$(tail -n 1 "$work/part.log")
	echo "accept: $name: $last" | tee -a "$work/summary"
	case "$last" in *" 0 skipped"*) ;; *" skipped"*) status=1 ;; esac
	return "$status"
}

# against FORM COMMAND…: runs a command against a fresh server.
against() {
	form=$1
	shift
	"$work/withserver" -sf "$sf" -form "$form" -- "$@"
}

# clients BASE OPTION…: every step of the platforms' clients at a base path; an administrator approves their device sign-ins.
clients() {
	form=$1 base=$2
	shift 2
	against "$form" sh "$root/testdata/interop/realclients/run.sh" --server "{server}$base" --admin-token '{token}' \
		--approve-command "GATEHOUSE_SERVER={server} GATEHOUSE_TOKEN={token} '$sf' admin device approve {code} --as {account}" "$@"
}

venv=${REALCLIENTS_VENV:-${XDG_CACHE_HOME:-$HOME/.cache}/realclients-venv}
run clients-embedded clients embedded ''
run clients-postgres-s3 clients postgres-s3 '' --fast
run clients-base-path-sf clients embedded /sf --clients sf --fast
run clients-base-path-tp clients embedded /tp --clients tp --fast
for form in embedded postgres-s3; do
	run "browser-$form" against "$form" "$work/browser" -server '{server}' -token '{token}' -sf "$sf" -venv "$venv"
done
run projects "${PYTHON:-python3}" "$root/testdata/interop/projects/accept.py" --sf "$sf" --venv "$venv" --methods 5 ${shared:+--samples "$shared/fixtures/starforge/projects"}
launchers=$(sh "$root/testdata/interop/launch/launchers.sh")
if [ -z "$shared" ]; then
	echo "accept: WARNING: there is no \$SHARED and no ../shared: its attacks and launch cases are NOT run, only the project's own" >&2
fi
run launch "${PYTHON:-python3}" "$root/testdata/interop/launch/accept.py" --sf "$sf" --sign "$work/sign" --launchers "$launchers" \
	--cases "$root/testdata/launch" ${shared:+--cases "$shared/fixtures/starforge/launch/jobs"}
run attacks "${PYTHON:-python3}" "$root/testdata/interop/attacks/accept.py" --sf "$sf" --launchers "$launchers" ${shared:+--shared "$shared"}
for form in embedded postgres-s3; do
	run "runs-$form" against "$form" "${PYTHON:-python3}" "$root/testdata/interop/runs/accept.py" --sf "$sf" --server '{server}' --token '{token}' --cosign "$tools/cosign"
done
# docs/launch/*.md, by the files of those pages: they need root, as the node of a cluster does.
for part in slurm ray; do
	run "$part" "${PYTHON:-python3}" "$root/testdata/interop/$part/accept.py" --sf "$sf" --launcher "$venv/bin/forge-launch"
done
run kubernetes "${PYTHON:-python3}" "$root/testdata/interop/kubernetes/accept.py" --sf "$sf" --go "$go"
run ssh "${PYTHON:-python3}" "$root/testdata/interop/ssh/accept.py" --sf "$sf"
run submissions "${PYTHON:-python3}" "$root/testdata/interop/submissions/accept.py" --sf "$sf" --venv "$venv" ${shared:+--projects "$shared/fixtures/starforge/projects"}
run oci "$work/ociclients" -sf "$sf" -bin "$tools"
run oci-postgres-s3 "$work/ociclients" -sf "$sf" -bin "$tools" -form postgres-s3
run moving sh "$root/scripts/moving.sh" "$sf" "$tools" "$tools/registry"
for form in embedded postgres-s3; do
	run "conformance-$form" sh "$root/scripts/conformance.sh" "$sf" "$form"
done
# One line for all parts.
awk '{ for (i = 2; i < NF; i++) if ($(i + 1) ~ /^passed/) n += $i } END { printf "accept: %d passed, 0 failed\n", n }' "$work/summary"
