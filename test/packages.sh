#!/bin/bash
#
# test/packages.sh [suite ...]
#	  "make deb", and what it makes, in fresh Debian systems (test/roots.sh); "make packages"
#	  calls it, as root.  The suites: bookworm (PostgreSQL 15), trixie (17), forky (18),
#	  experimental (19, in a sid).  No suite has 16.
#
# For each suite the packages are built as a user without rights, in a system with what
# debian/control asks for.  It stays in the cache.  In a copy of a minimal system apt installs
# an older package, a cluster of Debian's begins, apt upgrades, ALTER EXTENSION follows, the
# packages' own test runs, and apt removes it all.
#
#	OUT=dir			the packages that are there, rather than built ones (for one suite)
#	VERSIONS="19"	these only, of those that the suite has
#
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$TREE/test/roots.sh"

[ $# -gt 0 ] || set -- bookworm
passed=0
failed=0
why=$(art_roots_possible)
[ -z "$why" ] || art_die "$why"
version=$(sed -n 's/^EXTVERSION = //p' "$TREE/Makefile")
mkdir -p "$ARTIDX_CACHE" || art_die "cannot write in $ARTIDX_CACHE"
WORK=$(mktemp -d "$ARTIDX_CACHE/packages.XXXXXX") || exit 1
trap 'rm -rf --one-file-system "$WORK"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# on ROOT NAME SCRIPT ARGUMENT...: a script in that system, as a test
on()
{
	local r=$1 name=$2 began=$SECONDS

	if art_in_root "$r" bash -euc "$server$3" bash "${@:4}" >"$WORK/log" 2>&1 </dev/null; then
		passed=$((passed + 1))
		echo "ok - $name, $((SECONDS - began)) s"
	else
		failed=$((failed + 1))
		echo "not ok - $name"
		tail -30 "$WORK/log" | sed 's/^/# /'
		return 1
	fi
}

# Debian's cluster MAIN of version V, which the script starts and stops: nothing that a
# script leaves survives it.
# shellcheck disable=SC2016
server='
start() { pg_ctlcluster "$1" main start || { tail -20 "/var/log/postgresql/postgresql-$1-main.log"; exit 1; }; }
stop() { pg_ctlcluster "$1" main stop; }
sql() { runuser -u postgres -- psql -X -q -A -t -v ON_ERROR_STOP=1 -c "$1"; }
is() { [ "$1" = "$2" ] || { echo "$3: got $1, want $2"; exit 1; }; }
'

# builder SUITE: BUILDER is a system with what the build wants.
builder()
{
	BUILDER=$ARTIDX_CACHE/packages-$1
	art_base "$1" || art_die "$ART_ROOT_WHY"
	[ ! -f "$BUILDER/made" ] || [ -n "$(find "$BUILDER/made" -mtime +"$ROOT_DAYS")" ] || return 0
	art_say "what the build of packages wants on $1, into $BUILDER"
	rm -rf --one-file-system "$BUILDER" "$BUILDER.new"
	cp -a "$ART_ROOT" "$BUILDER.new"
	# as packaging/debian/control.in has it, and what checks the result
	art_in_root "$BUILDER.new" sh -ec 'apt-get -q update; headers=
		for v in $1; do
			! apt-cache show "postgresql-server-dev-$v" >/dev/null 2>&1 || headers="$headers postgresql-server-dev-$v"
		done
		apt-get -q -y install build-essential lintian $headers $(sed -nE "/^Build-Depends:/,/^[A-Z]/{s/^Build-Depends: *//;/^[A-Z]/d;s/\(.*\)//;s/debhelper-compat/debhelper/;s/,//;p}" \
			/mnt/packaging/debian/control.in)' sh "$ART_VERSIONS" >"$BUILDER.log" 2>&1 </dev/null ||
		{ tail -20 "$BUILDER.log" >&2; art_die "could not make it, log: $BUILDER.log"; }
	touch "$BUILDER.new/made"
	mv "$BUILDER.new" "$BUILDER"
}

# older DEB OUT: a package 0.1.0-1 of it, whose extension is of 0.1.0
older()
{
	local dir=$WORK/older ext

	rm -rf "$dir"
	dpkg-deb -R "$1" "$dir" || return 1
	ext=$(echo "$dir"/usr/share/postgresql/*/extension)
	rm "$ext"/artidx*--*.sql "$ext/artidx_debug.control"
	cp "$TREE/test/old/artidx--0.1.0.sql" "$ext/"
	sed -i "s/^default_version = .*/default_version = '0.1.0'/" "$ext/artidx.control"
	sed -i 's/^Version: .*/Version: 0.1.0-1/' "$dir/DEBIAN/control"
	(cd "$dir" && find usr -type f -exec md5sum {} + >DEBIAN/md5sums)
	dpkg-deb --root-owner-group -b "$dir" "$2" >/dev/null
}

for suite; do
	builder "$suite"
	base=$ART_ROOT
	if [ -n "${OUT:-}" ]; then
		debs=$OUT
	else
		debs=$WORK/debs-$suite
		rm -rf "$BUILDER/var/tmp/out"
		install -d -m 777 "$BUILDER/var/tmp/out"
		on "$BUILDER" "$suite: make deb, as nobody" '
			runuser -u nobody -- env HOME=/var/tmp TMPDIR=/var/tmp OUT=/var/tmp/out VERSIONS="$1" make -s -C /mnt deb' "${VERSIONS:-}"
		built=$?
		grep '^# ' "$WORK/log"
		[ $built -eq 0 ] || continue
		mv "$BUILDER/var/tmp/out" "$debs"
	fi
	for deb in "$debs"/postgresql-*-artidx_*.deb; do
		v=${deb##*/postgresql-}
		v=${v%%-*}
		p=postgresql-$v-artidx
		r=$WORK/$suite-$v
		cp -a "$base" "$r"
		mkdir "$r/var/tmp/debs"
		older "$deb" "$r/var/tmp/debs/${p}_older.deb" || art_die "could not make an older package of $deb"
		cp "$deb" "$r/var/tmp/debs/$p.deb"

		on "$r" "$suite, $v: apt installs 0.1.0 and the server" 'apt-get -q update
			apt-get -q -y install "/var/tmp/debs/$2_older.deb"
			pg_lsclusters -h | grep -q "^$1 *main " || pg_createcluster "$1" main' "$v" "$p" || continue
		on "$r" "$suite, $v: preload, CREATE EXTENSION, a look-up" '
			pg_conftool "$1" main set shared_preload_libraries artidx
			pg_conftool "$1" main set artidx.memory 128MB
			start "$1"
			sql "CREATE SCHEMA artidx; CREATE EXTENSION artidx SCHEMA artidx"
			sql "CREATE TABLE t (n int, v text); CREATE UNIQUE INDEX t_n ON t USING art (n)"
			sql "INSERT INTO t SELECT i, i::text FROM generate_series(1, 10000) i"
			is "$(sql "SET enable_seqscan = off; SELECT v FROM t WHERE n = 4711")" 4711 "the look-up"
			is "$(sql "SELECT extversion FROM pg_extension WHERE extname = '\''artidx'\''")" 0.1.0 version
			stop "$1"' "$v"
		on "$r" "$suite, $v: apt upgrades, ALTER EXTENSION UPDATE" '
			apt-get -q -y install "/var/tmp/debs/$2.deb"
			start "$1"
			sql "ALTER EXTENSION artidx UPDATE"
			is "$(sql "SELECT extversion FROM pg_extension WHERE extname = '\''artidx'\''")" "$3" version
			is "$(sql "SELECT entries FROM artidx.artidx_check('\''t_n'\'', true)")" 10000 "the entries"
			is "$(sql "SET enable_seqscan = off; SELECT v FROM t WHERE n = 4711")" 4711 "the look-up"
			sql "SET enable_seqscan = off; EXPLAIN SELECT v FROM t WHERE n = 4711" | grep -q "t_n"
			stop "$1"' "$v" "$p" "$version"
		on "$r" "$suite, $v: the packages' own test" 'sh /mnt/packaging/debian/tests/demo'
		on "$r" "$suite, $v: the documents, and each link between them" '
			# what a document says of the source leads to the source
			cd "/usr/share/doc/$1"
			test -f copyright
			for f in README.md doc/*.md; do
				grep -oE "\]\([^):#]+\.(md|svg|yml)" "$f" | sed "s/.*(//" | while read -r to; do
					case $to in test/*) continue ;; esac
					test -f "$(dirname "$f")/$to" || { echo "$f: no $to"; exit 1; }
				done
			done' "$p"
		on "$r" "$suite, $v: apt removes all of it, the server starts without it" '
			dpkg -L "$2" >/var/tmp/files
			grep -q "/lib/artidx.so$" /var/tmp/files
			start "$1"
			sql "DROP EXTENSION artidx CASCADE"
			stop "$1"
			apt-get -q -y purge "$2"
			while read -r f; do
				case $f in *artidx*) test ! -e "$f" || { echo "left: $f"; exit 1; } ;; esac
			done </var/tmp/files
			left=$(find / -xdev -name "*artidx*" ! -path "/mnt/*" ! -path "/var/tmp/*" ! -path "/var/lib/postgresql/*" \
				! -path "/etc/apt/*" ! -path "/proc/*" ! -path "/dev/*")
			is "$left" "" "left of the package"
			pg_conftool "$1" main set shared_preload_libraries ""
			pg_conftool "$1" main remove artidx.memory
			start "$1"
			is "$(sql "SELECT count(*), max(v::int) FROM t")" "10000|10000" "the table without its index"
			stop "$1"' "$v" "$p"
		rm -rf --one-file-system "$r"
	done
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
