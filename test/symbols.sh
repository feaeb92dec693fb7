#!/bin/bash
#
# test/symbols.sh
#	  Does a build of artidx load on every minor release of its major version?
#
# A minor release may make a function of a macro.  A library that was built with
# its headers then needs that function, and no server before it has one.
#
#	test/symbols.sh list LIBRARY PG_CONFIG
#		Each function and variable that the library wants of the server is in the
#		first minor release, by test/symbols.txt.  One TAP line.
#	test/symbols.sh server LIBRARY PG_CONFIG
#		... is in the server of that pg_config.  Prints the others, fails if there are any.
#	test/symbols.sh selftest PG_CONFIG
#		A library that wants what no server has is caught by both.  One TAP line.
#	test/symbols.sh learn LIBRARY|SYMBOL...
#		Asks the first minor releases themselves, which npm has, and writes
#		test/symbols.txt anew.  Of a version that npm has not yet it asks Debian's.
#
# What a library wants weakly is NULL where the server has none: src/art_compat.h.
#
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$TREE/test/roots.sh"

LIST=$TREE/test/symbols.txt

# wanted LIBRARY: what it wants of the server: neither of a library with versions,
# such as the C library, nor of one that it names itself, liburcu
wanted()
{
	comm -23 <(nm -D --undefined-only "$1" | awk '$1 == "U" && $2 !~ /@/ { print $2 }' | sort -u) \
		<(ldd "$1" | awk '$3 ~ "^/" { print $3 }' | xargs -r nm -D --defined-only |
			awk 'NF == 3 { print $3 }' | sed 's/@.*//' | sort -u)
}

# offered SERVER: what its program gives to libraries
offered()
{
	nm -D --defined-only "$1" | awk '{ print $3 }' | sort -u
}

# places PG_CONFIG: each symbol of the input with a line of the server's headers and of ours
places()
{
	local symbol dir place

	dir=$("$1" --includedir-server)
	while IFS= read -r symbol; do
		# the line that declares it, not one that speaks of it
		place=$(cd "$dir" && grep -rnE -m1 "^([^[:blank:]/*].*[[:blank:]*])?$symbol\\b" . | head -1 |
			sed -E 's,^\./([^:]*:[0-9]+):.*,\1,')
		echo "$symbol (${place:-in no header}$(cd "$TREE" &&
			grep -rnw -m1 --include='*.[ch]' -e "$symbol" src | head -1 | sed -E 's/^([^:]*:[0-9]+):.*/; \1/'))"
	done
}

major()
{
	"$1" --version | sed -E 's/^PostgreSQL ([0-9]+).*/\1/'
}

# listed VERSION: what its first minor release has, of what artidx ever wanted
listed()
{
	awk -v v="$1" '!/^#/ { if (NF == 1) print $1; else for (i = 2; i <= NF; i++) if ($i == v) print $1 }' "$LIST" | sort -u
}

case ${1:-} in
	list)
		version=$(major "$3")
		n=$(wanted "$2" | wc -l)
		lacks=$(comm -23 <(wanted "$2") <(listed "$version"))
		grep -q "^# $version: " "$LIST" && [ "$n" -gt 100 ] && [ -z "$lacks" ] &&
			{ echo "ok 1 - $version: $n symbols, all in $(sed -n "s/^# $version: //p" "$LIST")"; exit 0; }
		echo "not ok 1 - $version: $n symbols, all in the first minor release"
		places "$3" <<<"$lacks" | sed 's/^/#   not there, or never asked for: /'
		echo "#   art_compat.h makes do without what the first minor release has not;"
		echo "#   what is new, and there: bash test/symbols.sh learn SYMBOL..."
		exit 1
		;;
	server)
		lacks=$(comm -23 <(wanted "$2") <(offered "$("$3" --bindir)/postgres"))
		[ -z "$lacks" ] && exit 0
		places "$3" <<<"$lacks"
		exit 1
		;;
	selftest)
		tmp=$(mktemp -d) || exit 1
		trap 'rm -rf "$tmp"' EXIT
		# heap_getattr() is in a header of the server, and a function in none
		echo 'extern int heap_getattr(void); int art_self_test(void); int art_self_test(void) { return heap_getattr(); }' |
			gcc -shared -fPIC -x c -o "$tmp/wrong.so" - || exit 1
		bash "$0" list "$tmp/wrong.so" "$2" >"$tmp/list" && bad=1 || bad=0
		bash "$0" server "$tmp/wrong.so" "$2" >"$tmp/server" && bad=1
		for f in list server; do
			grep -qE 'heap_getattr \(access/htup_details.h:[0-9]+; src/' "$tmp/$f" || bad=1
		done
		[ $bad -eq 0 ] && { echo "ok 2 - a symbol that no server has is named, with the header's line"; exit 0; }
		echo "not ok 2 - a symbol that no server has is named, with the header's line"
		sed 's/^/#   /' "$tmp/list" "$tmp/server"
		exit 1
		;;
	learn)
		shift
		tmp=$(mktemp -d) || exit 1
		trap 'rm -rf "$tmp"' EXIT
		{
			[ ! -f "$LIST" ] || awk '!/^#/ { print $1 }' "$LIST"
			for what; do
				if [ -f "$what" ]; then wanted "$what"; else echo "$what"; fi
			done
		} | sort -u >"$tmp/all"
		for v in $ART_VERSIONS; do
			# a version that npm has not yet: Debian's
			if grep -qw "$v:[^ ]*" <<<"$ART_FIRST_MINORS"; then
				art_first_server "$v" || art_die "$ART_ROOT_WHY"
				server=$ART_FIRST/bin/postgres
				echo "# $v: $(cat "$ART_FIRST/version")" >>"$tmp/head"
			else
				art_root "$v" || art_die "$ART_ROOT_WHY"
				server=$ART_ROOT/usr/lib/postgresql/$v/bin/postgres
				sed -n "s/^#define PG_VERSION \"\(.*\)\"/# $v: \1/p" \
					"$(art_in_root "$ART_ROOT" /usr/lib/postgresql/$v/bin/pg_config --includedir-server |
						sed "s,^,$ART_ROOT,")/pg_config.h" >>"$tmp/head"
			fi
			offered "$server" | comm -12 - "$tmp/all" | sed "s/\$/ $v/" >>"$tmp/have"
		done
		{
			echo "# What artidx wants of the server, and the first minor releases that have it: those"
			echo "# of all versions, where none is named.  test/symbols.sh learn writes this."
			cat "$tmp/head"
			awk -v all="$ART_VERSIONS" '{ have[$1] = have[$1] " " $2 }
				END { for (s in have) print s (have[s] == " " all ? "" : have[s]) }' "$tmp/have" | sort
		} >"$LIST"
		comm -23 "$tmp/all" <(awk '!/^#/ { print $1 }' "$LIST" | sort) | sed 's/^/in none of them: /'
		;;
	*) art_die "symbols.sh list|server LIBRARY PG_CONFIG, or learn LIBRARY|SYMBOL..." ;;
esac
