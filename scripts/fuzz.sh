#!/bin/sh
# Runs every native fuzz target of the module for the given time each.
set -eu
go=$1 tags=$2 time=$3
count=0
for file in $(grep -rl --include='*_test.go' '^func Fuzz' digest admission launchverify registry cli | sort); do
	package=$(dirname "$file")
	for target in $(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$file"); do
		echo "fuzz ./$package $target"
		"$go" test -tags "$tags" -run '^$' -fuzz "^$target\$" -fuzztime "$time" -fuzzminimizetime 10x "./$package"
		count=$((count + 1))
	done
done
echo "fuzz: $count targets, $time each, no failure"
