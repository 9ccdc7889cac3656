#!/bin/sh
# The --prepare step of attacks on the launch agent (README.md): publishes the trees of $ATTACK_PUBLISHED to a registry of its own, has
# gate 2 admit the job's spec, and leaves what an offline launch needs. From the environment: SF (the binary), SF_CACHE (the node's
# cache), ATTACK_JOB, ATTACK_PUBLISHED, ATTACK_DIALECT, ATTACK_PLUGIN_ID; SF_JOB_USER (UID:GID) gives the job to another user.
# Run by root, it opens the folder that the job lies in, so that `sf launch --user` can be used.
# It leaves: $ATTACK_JOB.receipt.json, $ATTACK_JOB.trust.json, the stored spec in the job directory, the plugin.yaml of a method pack
# that has none, and the packs in $SF_CACHE. The registry lives as long as this script.
set -eu
umask 022
: "${SF:?names the sf binary}" "${SF_CACHE:?names the cache}" "${ATTACK_JOB:?}" "${ATTACK_PUBLISHED:?}" "${ATTACK_PLUGIN_ID:?}"
case $ATTACK_DIALECT in
forge) spec=.starforge/jobspec.json recipes=forge_recipes schema=forge/plugin/v1 kind=kind ;;
tuneplane) spec=.tuneplane/jobspec.json recipes=tuneplane_recipes schema=tuneplane/plugin/v1 kind=capability ;;
*) echo "prepare: ATTACK_DIALECT is $ATTACK_DIALECT, expected forge or tuneplane" >&2; exit 2 ;;
esac

# In memory where there is room, a container often has 64 MiB: nothing here outlives the script, so nothing need survive a crash.
shm=/dev/shm
[ -w "$shm" ] && [ "$(df -Pk "$shm" | awk 'END { print $4 }')" -gt 500000 ] || shm=${TMPDIR:-/tmp}
work=$(mktemp -d "$shm/attack-registry.XXXXXX")
server=
finish() {
	if [ -n "$server" ]; then
		kill "$server" 2>/dev/null || true
		wait "$server" 2>/dev/null || true
	fi
	rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM HUP
fail() {
	echo "prepare: $*" >&2
	exit 2
}
sf() { "$SF" "$@" >"$work/out" 2>&1 || { status=$?; cat "$work/out" >&2; return $status; }; }

unset XDG_CONFIG_HOME GATEHOUSE_CONFIG
export GATEHOUSE_HOME="$work/home"
with= # even a script that is killed takes its registry along
setpriv --pdeathsig KILL true 2>/dev/null && with="setpriv --pdeathsig KILL"
$with "$SF" serve --data "$work/data" --listen 127.0.0.1:0 --log-level error </dev/null >"$work/log" 2>&1 &
server=$!
until [ -s "$work/data/address" ]; do
	kill -0 "$server" 2>/dev/null || fail "the registry did not start: $(cat "$work/log")"
	sleep 0.01
done
read -r GATEHOUSE_SERVER <"$work/data/address"
read -r GATEHOUSE_TOKEN <"$work/data/admin-token"
export GATEHOUSE_SERVER GATEHOUSE_TOKEN

# owner ID: makes the account, once.
owner() {
	[ -e "$work/owner-$1" ] || { sf admin account create "$1" && : >"$work/owner-$1"; }
}

# The plugins. Each folder is a plugin called as its folder; its owner is the spec's.
for tree in "$ATTACK_PUBLISHED"/*/; do
	tree=${tree%/}
	name=${tree##*/}
	id=$(grep -o '"[A-Za-z0-9][A-Za-z0-9._-]*/'"$name"'"' "$ATTACK_JOB/$spec" 2>/dev/null | head -n 1 | tr -d '"') || true
	id=${id:-${ATTACK_PLUGIN_ID%%/*}/$name}
	case $id in tuneplane/* | starforge/* | builtin/*) continue ;; esac # these ship inside the clients
	owner "${id%%/*}"
	sf plugin publish "$tree" --owner "${id%%/*}" || echo "prepare: gate 1 refused $id; its job will not launch" >&2
done

# The method packs of the job: what the platform injects is a pack with a plugin.yaml.
for pack in "$ATTACK_JOB/$recipes"/*/*/; do
	[ -f "$pack/recipe.yaml" ] || continue
	pack=${pack%/}
	by=${pack%/*}
	by=${by##*/}
	if [ ! -e "$pack/plugin.yaml" ]; then
		version=$(sed -n 's/^version: *"\{0,1\}\([^"]*\)"\{0,1\} *$/\1/p' "$pack/recipe.yaml" | head -n 1)
		printf 'schema: %s\nname: %s\nversion: "%s"\n%s: recipe\nsummary: The method of an attacked job.\n' "$schema" "${pack##*/}" "${version:-1.0.0}" "$kind" >"$pack/plugin.yaml"
	fi
	owner "$by"
	sf plugin publish "$pack" --owner "$by" || echo "prepare: gate 1 refused the method pack $by/${pack##*/}" >&2
done

# Gate 2 admits the spec, and what it stored is what the job directory has from here on. The method of the forge jobs declares no
# parameters, so gate 2 refuses those that the jobs carry, as the client does.
if ! sf submit --jobspec "$ATTACK_JOB/$spec" --save "$ATTACK_JOB" 2>"$work/why"; then
	grep -q job.hyperparams.recipe "$work/why" || { cat "$work/why" >&2; fail "gate 2 refused the spec"; }
	python3 -IS -c '
import json, sys
doc = json.load(open(sys.argv[1]))
del doc["spec"]["hyperparams"]
json.dump(doc, open(sys.argv[2], "w"))' "$ATTACK_JOB/$spec" "$work/spec.json"
	sf submit --jobspec "$work/spec.json" --save "$ATTACK_JOB" || fail "gate 2 refused the spec"
fi
"$SF" admin key show >"$ATTACK_JOB.trust.json"
sf cache warm --receipt "$ATTACK_JOB.receipt.json" --trust "$ATTACK_JOB.trust.json" --cache "$SF_CACHE" || fail "the cache can't be warmed"
# The folder of a job that root made is root's alone; a job with another uid has to reach it, and writes its trace there.
[ "$(id -u)" != 0 ] || chmod a+rwx "${ATTACK_JOB%/*}"
if [ -n "${SF_JOB_USER:-}" ]; then
	chown -hR "$SF_JOB_USER" "${ATTACK_JOB%/*}"
fi
