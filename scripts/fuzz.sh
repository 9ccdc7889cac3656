#!/bin/sh
# Runs the native fuzz targets of the module. Usage: fuzz.sh GO TAGS TIME [REST]
# The targets on what comes straight from outside run for TIME each, the others for REST (default: TIME).
set -eu
go=$1 tags=$2 time=$3 rest=${4:-$3}
outer='admission/archive:FuzzCheck admission/pyyaml:FuzzLoad admission/pack:FuzzManifest admission/pack:FuzzRecipe
admission/jobspec:FuzzJobSpec admission/name:FuzzReference registry:FuzzReadManifest registry/oci:FuzzParse'
count=0
for file in $(grep -rl --include='*_test.go' '^func Fuzz' digest admission launchverify registry cli | sort); do
	package=$(dirname "$file")
	for target in $(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$file"); do
		case " $(echo $outer) " in
		*" $package:$target "*) span=$time ;;
		*) span=$rest ;;
		esac
		echo "fuzz ./$package $target $span"
		"$go" test -tags "$tags" -run '^$' -fuzz "^$target\$" -fuzztime "$span" -fuzzminimizetime 10x "./$package"
		count=$((count + 1))
	done
done
echo "fuzz: $count targets, no failure"
