#!/bin/sh
# Gets the unmodified tools that `make accept` drives, and prints the folder that holds them. Those written in Go are
# built once at the versions below and kept in the user's cache; Debian's own are installed where they are missing, if they can be.
# Usage: clients.sh GO [NAME…] (no name: all)
set -eu
go=$1
shift
bin=${GATEHOUSE_CLIENTS:-${XDG_CACHE_HOME:-$HOME/.cache}/gatehouse-clients}

# The one list: name, module, version.
built='
oras    oras.land/oras/cmd/oras                          v1.3.6
crane   github.com/google/go-containerregistry/cmd/crane v0.22.1
regctl  github.com/regclient/regclient/cmd/regctl        v0.11.7
cosign  github.com/sigstore/cosign/v3/cmd/cosign         v3.1.3
helm    helm.sh/helm/v3/cmd/helm                         v3.22.0
minio   github.com/minio/minio                           v0.0.0-20260212201848-7aac2a2c5b7c
registry github.com/distribution/distribution/v3/cmd/registry v3.1.2
'
# Debian's own: name, package.
packaged='
skopeo       skopeo
podman       podman
chromium     chromium
chromedriver chromium-driver
jq           jq
'

mkdir -p "$bin"
wanted=" ${*:-$(echo "$built$packaged" | awk '{ print $1 }')} "
wanted=" $(echo $wanted) "

# install PACKAGE: installs one of Debian's, where this runs as root on such a system.
install() {
	command -v apt-get >/dev/null && [ "$(id -u)" = 0 ] || return
	echo "clients: installing $1" >&2
	apt-get update -q >&2
	DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$1" >&2
}

# fetch NAME MODULE VERSION: builds a client unless this version lies there. The stamp is written last.
fetch() {
	stamp="$bin/.$1-$3"
	[ -x "$bin/$1" ] && [ -e "$stamp" ] && return
	echo "clients: building $1 $3" >&2
	rm -f "$bin/.$1-"*
	CGO_ENABLED=0 GOFLAGS= GOBIN="$bin" "$go" install -trimpath -ldflags '-s -w' "$2@$3" >&2
	: >"$stamp"
}

echo "$built" | while read -r name module version; do
	case "$wanted" in *" $name "*) [ -z "$name" ] || fetch "$name" "$module" "$version" ;; esac
done
echo "$packaged" | while read -r name package; do
	case "$wanted" in *" $name "*)
		[ -z "$name" ] || command -v "$name" >/dev/null || install "$package" || { echo "clients: $name is missing; on Debian: apt-get install $package" >&2; exit 1; } ;;
	esac
done
echo "$bin"
