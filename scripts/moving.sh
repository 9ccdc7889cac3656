#!/bin/sh
# A newcomer moves the content of a registry over with one command, and the clients notice nothing but the host name.
# Starts the registry OLD (distribution's `registry`, or `zot`), fills it with oras and crane, moves it with `sf mirror`
# to a fresh `sf serve`, interrupts one such move and runs it again, and compares what crane and oras see on both sides.
# Usage: moving.sh PATH/TO/sf FOLDER-OF-CLIENTS PATH/TO/OLD. The last line counts what passed.
set -eu
sf=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
PATH=$2:$PATH
old=$3
work=$(mktemp -d "${TMPDIR:-/tmp}/gatehouse-moving.XXXXXX")
pids=
finish() {
	status=$?
	for pid in $pids; do kill "$pid" 2>/dev/null || true; wait "$pid" 2>/dev/null || true; done
	[ "$status" -eq 0 ] || tail -n 20 "$work"/*.log >&2
	rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM
passed=0
ok() { passed=$((passed + 1)); }
fail() { echo "moving: $*" >&2; exit 1; }

# Our own server says where it listens; the other one is told a port that was free a moment ago.
free=$("${PYTHON:-python3}" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
from=127.0.0.1:$free
case "$(basename "$old")" in
zot*)
	cat >"$work/old.json" <<-END
		{"storage": {"rootDirectory": "$work/old"}, "http": {"address": "127.0.0.1", "port": "$free"}, "log": {"level": "error"}}
	END
	"$old" serve "$work/old.json" >"$work/old.log" 2>&1 &
	;;
*)
	cat >"$work/old.yml" <<-END
		version: 0.1
		log: {level: error}
		storage: {filesystem: {rootdirectory: "$work/old"}}
		http: {addr: "$from"}
	END
	"$old" serve "$work/old.yml" >"$work/old.log" 2>&1 &
	;;
esac
pids="$pids $!"
"$sf" serve --data "$work/data" --listen 127.0.0.1:0 >"$work/new.log" 2>&1 &
pids="$pids $!"
for _ in $(seq 100); do
	[ -s "$work/data/address" ] && crane catalog --insecure "$from" >/dev/null 2>&1 && break
	sleep 0.1
done
to=$(sed 's,^http://,,' "$work/data/address")
export HOME="$work/home" DOCKER_CONFIG="$work/home/.docker" GATEHOUSE_HOME="$work/home/gatehouse"
mkdir -p "$DOCKER_CONFIG"

# What the old registry holds: names of one part and of three, an index, things that refer to others, 120 tags.
cd "$work"
head -c 3000000 /dev/urandom >layer.bin
echo hello >note.txt
for name in alpine a/b/c team/app; do
	oras push --plain-http "$from/$name:v1" --artifact-type application/vnd.test.app layer.bin >/dev/null
	oras push --plain-http "$from/$name:v2" --artifact-type application/vnd.test.app note.txt >/dev/null
	oras manifest index create --plain-http "$from/$name:multi" v1 v2 >/dev/null
	oras attach --plain-http "$from/$name:v1" --artifact-type application/vnd.test.note note.txt >/dev/null
done
tar -cf base.tar note.txt
crane append --insecure --oci-empty-base -f base.tar -t "$from/team/image:latest" >/dev/null 2>&1
for n in $(seq 120); do crane tag --insecure "$from/team/image:latest" "t$n" >/dev/null 2>&1; done

# The owner that the names of other forms go to, and the one command. First it is interrupted.
export GATEHOUSE_SERVER="http://$to" GATEHOUSE_TOKEN="$(cat data/admin-token)"
"$sf" login "http://$to" >/dev/null
"$sf" admin account create library >/dev/null
unset GATEHOUSE_SERVER GATEHOUSE_TOKEN
"$sf" mirror "$from" "$to" --owner library >first.log 2>&1 &
first=$!
sleep 0.3
kill -9 "$first" 2>/dev/null || true
wait "$first" 2>/dev/null || true
"$sf" mirror "$from" "$to" --owner library >mirror.log 2>&1 || { cat mirror.log >&2; fail "sf mirror: exit $?"; }
ok
"$sf" mirror "$from" "$to" --owner library --json >again.log 2>/dev/null || fail "a second sf mirror: exit $?"
grep -q '"blobs": 0,' again.log && grep -q '"manifests": 0,' again.log || fail "a second run copied again: $(cat again.log)"
ok

# The same repositories, tags and digests for crane; the same referrers and bytes for oras.
crane auth login -u admin -p "$(cat data/admin-token)" "$to" >/dev/null 2>&1
oras login --plain-http -u admin -p "$(cat data/admin-token)" "$to" >/dev/null 2>&1
crane catalog --insecure "$from" | sort >old.txt
crane catalog --insecure "$to" | sort >new.txt
cmp old.txt new.txt || fail "the catalogues differ"
ok
while read -r name; do
	crane ls --insecure "$from/$name" | grep -v '^sha256-' | sort >old-tags.txt
	crane ls --insecure "$to/$name" | grep -v '^sha256-' | sort >new-tags.txt
	cmp old-tags.txt new-tags.txt || fail "the tags of $name differ"
	while read -r tag; do
		[ "$(crane digest --insecure "$from/$name:$tag")" = "$(crane digest --insecure "$to/$name:$tag")" ] || fail "$name:$tag differs"
		ok
	done <old-tags.txt
done <old.txt
for name in alpine a/b/c team/app; do
	for at in "$from" "$to"; do
		oras discover --plain-http --format json "$at/$name:v1" | sed "s,$at,,g" | grep -o '"digest": *"[^"]*"' | sort >"refs-${at#*:}.txt"
	done
	[ -s "refs-${from#*:}.txt" ] && cmp "refs-${from#*:}.txt" "refs-${to#*:}.txt" || fail "the referrers of $name:v1 differ"
	rm -rf pulled && oras pull --plain-http -o pulled "$to/$name:v1" >/dev/null && cmp layer.bin pulled/layer.bin || fail "$name:v1 does not pull"
	ok
done
echo "moving from $(basename "$old"): $passed passed, 0 failed"
