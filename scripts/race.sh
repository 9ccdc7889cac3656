#!/bin/sh
# Runs the packages with concurrency under the race detector, which needs cgo and a C compiler. Without a compiler
# it says so and succeeds, except in CI, where that is a failure.
set -eu
go=$1 tags=$2
if ! command -v "${CC:-cc}" >/dev/null 2>&1; then
	if [ "${CI:-}" = true ]; then
		echo "race: no C compiler; CI must have one" >&2
		exit 1
	fi
	echo "race: no C compiler, left out (the tests ran without the race detector above)"
	exit 0
fi
# Left out here, not above: launches themselves (processes of their own, slow when instrumented), what measures memory, which the detector multiplies, plans of queries, what must not grow with what is stored, and walks of tables one request at a time.
CGO_ENABLED=1 "$go" test -p 4 -race -short -skip 'Memory|ManyFiles|Access$|DeadCredentials|SignInAtPages|ChangePassword|SignInWhileReadOnly|Plans|NotGrow|CostTheSame|CostsTheSame|OnS3|Malformed|FailingStores|FailingCalls|EveryRequestFails' -tags "$tags" ./digest/tree ./admission/archive \
	./launchverify/nodecache ./launchverify/runspool ./registry/...
