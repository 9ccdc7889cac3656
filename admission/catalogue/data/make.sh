#!/bin/sh
# Takes the facts of the known client releases out of their packages, as `sf admin catalog snapshot` reads them: names,
# versions, digests, parameters; nothing is installed or executed. Needs pip, and sf in PATH.
#
#     admission/catalogue/data/make.sh
set -eu
out=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for release in starforge-core==0.3.51 starforge-core==0.3.56 tuneplane==0.4.0; do
    python3 -m pip download -q --no-deps --ignore-requires-python -d "$work" "$release"
    wheel=$(ls "$work"/*.whl)
    sf admin catalog snapshot "$wheel" >"$out/$(echo "$release" | sed 's/==/-/').json"
    rm "$wheel"
done
