#!/bin/sh
# The official conformance program of the distribution specification against a fresh registry of each form, every workflow
# on. Prints 0 failed, 0 errors and 0 skipped for each, or fails. Usage: conformance.sh PATH/TO/sf [FORM…]
set -eu
sf=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
shift
root=$(cd "$(dirname "$0")/.." && pwd)
go=${GO:-go}
[ $# -gt 0 ] || set -- embedded postgres-s3
tools=$(sh "$root/scripts/clients.sh" "$go" minio)
export GATEHOUSE_TEST_MINIO="$tools/minio"
for form in "$@"; do
	echo "conformance of the form $form"
	"$go" run -C "$root" ./testdata/interop/withserver -sf "$sf" -form "$form" -- \
		"$go" run -C "$root/registry/internal/conformance" . -server '{server}' -user admin -password-file '{token-file}'
done
