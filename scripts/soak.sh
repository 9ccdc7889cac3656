#!/bin/sh
# The long runs: a collection every second beside a publish soak, a server that is killed again and again, the race of 64
# publishers at three replicas on PostgreSQL and S3, launches that are killed, and
# very many that start at once. `make test` runs the same tests, shorter. Usage: soak.sh TAGS
#   SOAK_MINUTES  of the collection beside the soak (10)
#   SOAK_KILLS    kill -9 of a publishing server, with a check of the whole store at the end (1000)
#   SOAK_ROUNDS   of the race (20)
#   SOAK_LAUNCHES kill -9 of launches, with each way of tracking their processes, and again of the real program (500)
set -eu
tags=$1
go=${GO:-go}
minutes=${SOAK_MINUTES:-10} kills=${SOAK_KILLS:-1000} rounds=${SOAK_ROUNDS:-20} launches=${SOAK_LAUNCHES:-500}
run() {
	echo "soak: $1"
	shift
	env "$@"
}
cd "$(dirname "$0")/.."
run "a collection every second beside publishes, $minutes minutes" GATEHOUSE_SOAK="${minutes}m" \
	"$go" test -tags "$tags" -count 1 -v -timeout "$((minutes + 10))m" -run '^TestSoak$' ./registry
run "$kills kills" GATEHOUSE_CRASH_PUBLISHES=$((kills * 4)) \
	"$go" test -tags "$tags" -count 1 -v -timeout 6h -run '^TestKilledServer$' ./cli
run "$rounds rounds of 64 publishers at 3 replicas" GATEHOUSE_RACE_ROUNDS="$rounds" \
	"$go" test -tags "$tags" -count 1 -v -timeout 2h -run '^TestOneWinner$' ./cli
run "$launches launches that are killed" GATEHOUSE_KILLS="$launches" \
	"$go" test -tags "$tags" -count 1 -v -timeout 2h -run '^TestKilledAtRandom$' ./launchverify
run "$launches launches of sf that are killed" GATEHOUSE_KILLS="$launches" \
	"$go" test -tags "$tags" -count 1 -v -timeout 2h -run '^TestScripts$/^launch_killed$' ./cli
run "1000 nodes that start one job at once, and 64 launches of one node" GATEHOUSE_TEST_AGENTS=1000 GATEHOUSE_TEST_LAUNCHES=64 \
	"$go" test -tags "$tags" -count 1 -v -timeout 1h -run '^(TestManyAgents|TestManyLaunchesOneFetch)$' ./cli
echo "soak: nothing lost in $minutes minutes of collections, $kills kills, $rounds races and 2 x $launches killed launches"
