#!/bin/sh
# Prints a folder in which the unmodified launchers of both platforms are installed on a Python 3.13 of their own: DIR/bin/python3,
# DIR/bin/forge-launch, DIR/bin/tuneplane-launch (which needs Python >= 3.12). Python comes from Debian trixie: debootstrap fetches and
# verifies the packages, those that Python is made of are unpacked, nothing is installed or configured, so no root is needed, and
# no chroot is entered, which would forbid user namespaces: the interpreter is started by its own loader, wherever the folder
# lies. It may be copied elsewhere. Made once, kept in the user's cache by what this script says.
# Needs on the first run: a Debian mirror (that of apt, or $DEBIAN_MIRROR), apt, dpkg-deb, and a Python index.
set -eu
umask 022
suite=trixie
packages='starforge-core==0.3.56 tuneplane==0.4.0'
needs='typer rich pyyaml packaging'
key=$(sha256sum "$0" | cut -c1-16)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/gatehouse-launchers
dir=$cache/$suite-$key
if [ -x "$dir/bin/tuneplane-launch" ]; then
	echo "$dir"
	exit
fi

mkdir -p "$cache"
work=$(mktemp -d "$cache/.making.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
say() { echo "launchers: $*" >&2; }

# debootstrap, of this machine or unpacked for this once. It fetches with wget.
if [ "$(id -u)" = 0 ] && { ! command -v debootstrap || ! command -v wget; } >/dev/null; then
	say "installing debootstrap"
	{ apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends debootstrap wget; } >&2
fi
command -v wget >/dev/null || { say "wget is missing"; exit 1; }
if ! command -v debootstrap >/dev/null; then
	say "fetching debootstrap"
	(cd "$work" && { apt-get download -q debootstrap || { apt-get update -q && apt-get download -q debootstrap; }; }) >&2
	dpkg-deb -x "$work"/debootstrap_*.deb "$work/tool"
	export DEBOOTSTRAP_DIR="$work/tool/usr/share/debootstrap"
	PATH="$work/tool/usr/sbin:$PATH"
fi
mirror=${DEBIAN_MIRROR:-$(apt-get indextargets --format '$(REPO_URI) $(LABEL)' 'Created-By: Packages' 2>/dev/null | awk '$2 == "Debian" { print $1; exit }')}
if [ -z "${http_proxy:-}" ]; then
	eval "$(apt-config shell http_proxy Acquire::http::Proxy)"
	export http_proxy
fi
say "fetching Python from Debian $suite"
debootstrap --download-only --variant=minbase --include=python3,python3-venv,python3-pip-whl "$suite" "$work/fetched" \
	"${mirror:-http://deb.debian.org/debian}" >"$work/log" 2>&1 || { tail -n 20 "$work/log" >&2; exit 1; }
mkdir -p "$work/made/root" "$work/made/bin" "$work/made/lib/python3.13/site-packages"
for name in python3.13 python3.13-minimal libpython3.13-minimal libpython3.13-stdlib python3-pip-whl libc6 zlib1g libssl3t64 libffi8 \
	libexpat1 libbz2-1.0 liblzma5 libzstd1 libsqlite3-0 libuuid1 libgcc-s1 media-types; do
	for file in "$work/fetched/var/cache/apt/archives/${name}_"*.deb; do
		[ ! -e "$file" ] || dpkg-deb -x "$file" "$work/made/root"
	done
done

# The interpreter, by its own loader. What it starts has the host's libraries again.
cat >"$work/made/bin/python3" <<'END'
#!/bin/sh
bin=$(dirname "$0")
root=$bin/../root
for lib in "$root"/usr/lib/*-linux-gnu; do break; done
exec "$root"/usr/lib*/ld-linux*.so.* --library-path "$lib" --argv0 "$0" "$root/usr/bin/python3.13" "$@"
END
cat >"$work/made/pyvenv.cfg" <<END
home = $dir/root/usr/bin
include-system-site-packages = false
version = 3.13
END
chmod 755 "$work/made/bin/python3"
# pip writes the path of the interpreter into scripts, so it must see the final one.
rm -rf "$dir"
mv "$work/made" "$dir"
python="$dir/bin/python3"
for wheel in "$dir"/root/usr/share/python-wheels/pip-*.whl; do
	pip() { PYTHONPATH="$wheel" "$python" -m pip install -q --disable-pip-version-check --no-cache-dir "$@" >&2; }
done
say "installing $packages"
# shellcheck disable=SC2086
{ pip $needs && pip --no-deps $packages; } || { rm -rf "$dir"; exit 1; }
"$python" -m compileall -q "$dir/lib" "$dir/root/usr/lib/python3.13" >/dev/null 2>&1 || true
[ -x "$dir/bin/tuneplane-launch" ] || { say "the packages brought no tuneplane-launch"; rm -rf "$dir"; exit 1; }
echo "$dir"
