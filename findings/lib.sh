# findings/lib.sh
#	  A PostgreSQL of Debian's packages, or a program with a crate of Rust, in a temporary directory (sourced).
#
#	fetch PACKAGE=VERSION...	these, and what they need that this machine has not; PostgreSQL, too, unless
#								WITH is empty
#	start [SETTING=VALUE...]	a server of them, whose superuser is "me"
#	sql TEXT...					what psql prints for each text, errors too, unaligned
#	crate NAME=VERSION			builds the program on standard input with that crate by cargo, runs it, and
#								keeps what it printed in $output
#	verdict STATUS				the last line, and the exit status
#
# The versions of the packages are pinned.  Root is not needed; a server that refuses root
# runs as nobody.
#
set -u
export LC_ALL=C
PG=15.20-0+deb12u1
WITH="postgresql-15=$PG postgresql-client-15=$PG"

tmp=$(mktemp -d)
trap '[ ! -f "$tmp/data/postmaster.pid" ] || "${as[@]}" "$bin/pg_ctl" -D "$tmp/data" -m immediate stop >/dev/null; rm -rf "$tmp"' EXIT
chmod 755 "$tmp"
cd "$tmp" || exit 1
root=$tmp/root
bin=$root/usr/lib/postgresql/15/bin
lib=$root/usr/lib/$(gcc -print-multiarch 2>/dev/null || echo x86_64-linux-gnu)
as=(env)
[ "$(id -u)" -ne 0 ] || as=(setpriv --reuid=nobody --regid=nogroup --clear-groups env HOME="$tmp")

fetch()
{
	local deb

	mkdir -p debs
	(cd debs && apt-get -qq download $WITH "$@" &&
		apt-get -qq install --print-uris --no-install-recommends "${@%%=*}" |
		sed -n "s/^'[^']*' \([^_]*\)_.*/\1/p" | xargs -r apt-get -qq download) >fetch.log 2>&1 ||
		{ cat fetch.log; exit 1; }
	for deb in debs/*.deb; do
		dpkg-deb -x "$deb" "$root"
	done
	export LD_LIBRARY_PATH=$lib PATH=$bin:$PATH
}

start()
{
	[ "$(id -u)" -ne 0 ] || chown -R nobody "$tmp"
	"${as[@]}" initdb -D data -A trust --no-locale -E UTF8 -U me >/dev/null
	printf '%s\n' "listen_addresses = ''" "unix_socket_directories = '$tmp'" "$@" |
		"${as[@]}" tee -a data/postgresql.conf >/dev/null
	"${as[@]}" pg_ctl -D data -w -l data/log start >/dev/null || { cat data/log; exit 1; }
	export PGHOST=$tmp PGUSER=me PGDATABASE=postgres
	sql 'SHOW server_version'
}

sql()
{
	local text

	for text in "$@"; do
		psql -X -q -A -t -c "$text" 2>&1
	done
}

crate()
{
	mkdir -p src
	printf '%s\n' '[package]' 'name = "finding"' 'edition = "2021"' '[dependencies]' "${1%%=*} = \"=${1#*=}\"" >Cargo.toml
	cat >src/main.rs
	cargo build --quiet >log 2>&1 || { cat log; exit 1; }
	output=$(target/debug/finding 2>&1)
	printf '%s\n' "$1" "$output"
}

# verdict: as said, or not
verdict()
{
	[ "$1" -eq 0 ] && echo "as described" || { echo "NO LONGER as described"; exit 1; }
}
