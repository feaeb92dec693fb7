#!/bin/bash
#
# test/matrix.sh [row ...]
#	  artidx on every version of PostgreSQL; "make matrix" calls it.
#
# Each row builds the tree, warnings as errors, against one PostgreSQL and runs
# parts of test/run.sh on it; a table of what ran stands at the end.  Rows:
#
#	builds		compiles with gcc and clang against each PostgreSQL here, and each
#				pg_config of PG_CONFIGS; no test runs
#	15 ... 19	that version: this machine's, if it has the headers, or else
#				Debian's, in a system of its own (test/roots.sh; root, apt)
#	first		builds against the newest minor releases of 15, 17 and 18, run on the
#				first ones, which npm has (test/roots.sh)
#	assert		PostgreSQL 15 from Debian's source, with assertions
#	asan		the same, server and artidx under ASan and UBSan
#	valgrind	the server of "assert" under valgrind, which knows of its memory contexts.
#				Every report of one of the last two is a failure.
#
# A "?" behind a row says that nothing is wrong if no suite has the version; it
# is listed as not available.  Everything else that cannot run is a failure.
#
#	MATRIX			the rows (builds 16? 17 18 19 first assert asan)
#	PARTS			the parts of every row; else those of default_parts()
#	ARTIDX_CACHE	what is made once stays there (~/.cache/artidx)
#	CONFORMANCE_SRC	a source tree of PostgreSQL 15, instead of Debian's
#	ROW_SECONDS		the longest that one row's tests may take (5400, valgrind's 20000)
#	EVIDENCE=1		assert, asan and valgrind: what came of them goes to doc/evidence.md
#
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$TREE/test/roots.sh"
. "$TREE/test/conformance/fetch.sh"

[ $# -gt 0 ] || set -- ${MATRIX:-builds 16? 17 18 19 first assert asan}
ROW_SECONDS=${ROW_SECONDS:-}
PASSED=0
FAILED=0
TABLE=()
WORK=$(mktemp -d "${TMPDIR:-/tmp}/artidx-matrix.XXXXXX") || exit 1
chmod 755 "$WORK"
trap 'rm -rf "$WORK"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

default_parts()
{
	case $1 in
		# no symbols: of assertions, the library wants some that no release need have
		assert) echo "regress isolation keys tap:all_types stress" ;;
		asan | valgrind) echo "regress isolation" ;;
		*) echo "symbols regress isolation keys tap" ;;
	esac
}

# row NAME VERSION PASSED FAILED WORDS: a line of the table
row()
{
	PASSED=$((PASSED + $3))
	FAILED=$((FAILED + $4))
	TABLE+=("$(printf '%-7s %-34s %s%s' "$1" "$2" \
		"$([ "$4" -eq 0 ] && [ "$3" -gt 0 ] && echo "ok   " || { [ "$4" -gt 0 ] && echo "FAIL " || echo "-    "; })" "$5")")
}

# tests NAME WHERE COMMAND...: a run of test/run.sh, whose counts become a row
tests()
{
	local name=$1 where=$2 log=$WORK/$1.log rc passed failed words version

	shift 2
	timeout --kill-after=60 "${ROW_SECONDS:-5400}" "$@" 2>&1 </dev/null | tee "$log"
	rc=${PIPESTATUS[0]}
	version=$(sed -n 's/^# building with PostgreSQL \([^ ]*\).*, user .*/\1/p' "$log" | head -1)
	read -r passed failed < <(sed -nE 's/^([0-9]+) passed, ([0-9]+) failed$/\1 \2/p' "$log" | tail -1)
	# "regress   31 passed   0 failed   90 s", one a part
	words=$(sed -nE 's/^([a-z]+[a-z -]*[a-z]) +([0-9]+) passed +([0-9]+) failed +[0-9]+ s$/\1 \2\/\3/p' "$log" |
		sed 's/\/0$//' | paste -sd, | sed 's/,/, /g')
	if [ -z "${passed:-}" ]; then
		passed=0 failed=1
		words="exit status $rc, nothing counted: $(grep -m1 -E '^ERROR:|error:' "$log")"
	elif [ "$rc" -ne 0 ] && [ "$failed" -eq 0 ]; then
		failed=1
		words="$words; exit status $rc"
	fi
	row "$name" "${version:-?}, $where" "$passed" "$failed" "$words"
}

# Compile only, with both compilers.
row_builds()
{
	local c cc opts flags passed failed
	local src=$WORK/src

	art_need_packages
	flags="-Wno-unknown-warning-option -Wno-ignored-attributes"
	flags+=" -Wno-ignored-optimization-argument -Wno-missing-field-initializers"
	for c in /usr/lib/postgresql/{15,16,17,18,19}/bin/pg_config ${PG_CONFIGS:-}; do
		[ -x "$c" ] && [ -f "$("$c" --includedir-server)/postgres.h" ] || continue
		passed=() failed=()
		for cc in gcc clang; do
			command -v $cc >/dev/null 2>&1 || continue
			rm -rf "$src"
			SRC=$src art_copy_tree
			opts=()
			# the server's recorded flags are for the compiler that built it
			[ $cc = clang ] && opts+=(EXTRA_CFLAGS="$flags")
			if make -s -C "$src" PG_CONFIG="$c" CC=$cc WERROR=1 "${opts[@]}" \
				all >"$WORK/log" 2>&1; then
				passed+=($cc)
			else
				cat "$WORK/log"
				failed+=($cc)
			fi
		done
		row builds "$("$c" --version | sed 's/^PostgreSQL \([^ ]*\).*/\1/'), $c" ${#passed[@]} ${#failed[@]} \
			"compiles with ${passed[*]:-nothing}${failed:+, NOT with ${failed[*]}}"
	done
}

# A version: here, or in a system of Debian's.
row_version()
{
	local version=$1 optional=$2 here=/usr/lib/postgresql/$1/bin/pg_config rc
	local parts=${PARTS:-$(default_parts "$1")}

	if [ -x "$here" ] && art_pg_complete "$here"; then
		tests "$version" "this machine's" env WERROR=1 PG_CONFIG="$here" FIRST_SERVER="${FIRST:-}" \
			bash "$TREE/test/run.sh" $parts
		return
	fi
	art_root "$version"
	rc=$?
	if [ $rc -eq 2 ] && art_wheel_server "$version"; then
		parts=${PARTS:-symbols regress isolation}
		tests "$version" "PyPI's, without ICU" env WERROR=1 PG_CONFIG="$ART_WHEEL/pgsql/bin/pg_config" \
			bash "$TREE/test/run.sh" $parts
	elif [ $rc -eq 2 ] && [ "$optional" = '?' ]; then
		row "$version" "not available" 0 0 "$ART_ROOT_WHY"
	elif [ $rc -ne 0 ]; then
		row "$version" "not available" 0 1 "$ART_ROOT_WHY"
	else
		if [ -n "${FIRST:-}" ]; then
			rm -rf "$ART_ROOT/opt/first"
			cp -a "$FIRST" "$ART_ROOT/opt/first"
		fi
		# it looks up shell variables of ours and is a function, hence the bash
		tests "$version" "Debian $(cat "$ART_ROOT/made")" bash -c \
			'. "$1/test/lib.sh"; . "$1/test/roots.sh"; shift; art_in_root "$@"' matrix \
			"$TREE" "$ART_ROOT" env WERROR=1 PG_CONFIG="$ART_ROOT_PG_CONFIG" FIRST_SERVER=${FIRST:+/opt/first} \
			${STRESS_SECONDS:+STRESS_SECONDS="$STRESS_SECONDS"} \
			bash /mnt/test/run.sh $parts
	fi
}

# One build for all minor releases: on the first of each version.
row_first()
{
	local version FIRST

	for version in 15 17 18; do
		if art_first_server "$version"; then
			FIRST=$ART_FIRST PARTS=first row_version "$version" ''
		else
			row "$version" "not available" 0 1 "$ART_ROOT_WHY"
		fi
	done
}

# reports KIND DIR: a row of what the tools wrote there, each report a failure, and the first of them
reports()
{
	local kind=$1 dir=$2 n

	# valgrind makes a file for each process
	[ "$kind" != valgrind ] || ls "$dir"/* >/dev/null 2>&1 || { row "$kind" reports 0 1 "valgrind did not run"; return; }
	n=$(cat "$dir"/* 2>/dev/null | grep -cE 'VALGRINDERROR-BEGIN|ERROR: AddressSanitizer|runtime error: ')
	row "$kind" "reports" $((n == 0)) "$n" "$n reports of $(find "$dir" -type f -size +0 | wc -l) processes"
	REPORTS=$n
	[ "$n" -gt 0 ] || return 0
	grep -hE 'runtime error: |ERROR: AddressSanitizer' "$dir"/* | sort | uniq -c | sort -rn | head -40
	grep -hA 25 VALGRINDERROR-BEGIN "$dir"/* | head -200
	[ -z "${RESULTS:-}" ] || cp -r "$dir" "$RESULTS/"
}

# A server that checks itself.
row_checked()
{
	local kind=$1 server=$1 words="15 with assertions" dir=$WORK/reports-$1 under='' parts=${PARTS:-$(default_parts "$1")}
	local ROW_SECONDS=$ROW_SECONDS REPORTS=

	[ "$kind" != valgrind ] || ROW_SECONDS=${ROW_SECONDS:-20000}
	case $kind in
		asan) words="15 with assertions, under ASan and UBSan" ;;
		valgrind) words="15 with assertions, under valgrind" server=assert NEEDS=valgrind ;;
	esac
	art_need_packages
	if ! art_checked_server "$server"; then
		row "$kind" "$words" 0 1 "$ART_ROOT_WHY"
		return
	fi
	mkdir -m 1777 "$dir"
	[ "$kind" != valgrind ] ||
		cat "$ARTIDX_CACHE/postgresql-15-assert/valgrind.supp" "$TREE/test/valgrind.supp" >"$WORK/valgrind.supp" || return
	[ "$kind" != valgrind ] ||
		under="valgrind -q --leak-check=no --num-callers=25 --error-markers=VALGRINDERROR-BEGIN,VALGRINDERROR-END --suppressions=$WORK/valgrind.supp --log-file=$dir/%p"
	# no leak is looked for, since a backend never gives all back; a frame
	# moved to the heap would be taken for a stack that overflowed
	tests "$kind" "${words#15 }" env WERROR=1 \
		PG_CONFIG="$ARTIDX_CACHE/postgresql-15-$server/bin/pg_config" SERVER_UNDER="$under" \
		ASAN_OPTIONS=detect_leaks=0:detect_stack_use_after_return=0:abort_on_error=1:log_path="$dir/asan" \
		UBSAN_OPTIONS=print_stacktrace=1:log_path="$dir/ubsan" \
		${under:+REGRESS_TIMEOUT="$ROW_SECONDS" PGCTLTIMEOUT=600} EVIDENCE=0 \
		bash "$TREE/test/run.sh" $parts
	[ "$kind" = assert ] || reports "$kind" "$dir"
	EVIDENCE_SERVER="PostgreSQL $words" art_evidence "matrix-$kind" "make matrix MATRIX=$kind" \
		"Regression tests on PostgreSQL from its source, which checks itself: $words." \
		"parts" "$parts" "tests" "$(sed -nE '/^[0-9]+ passed, [0-9]+ failed$/p' "$WORK/$kind.log" | tail -1)" \
		${REPORTS:+"reports" "$REPORTS"}
}

started=$(date +%s)
for r in "$@"; do
	echo "=== $r"
	case $r in
		builds) row_builds ;;
		first) row_first ;;
		1[5-9] | 1[5-9]\?) row_version "${r%\?}" "${r#1[5-9]}" ;;
		assert | asan | valgrind) row_checked "$r" ;;
		*) art_die "no such row: $r (builds, 15 to 19, first, assert, asan, valgrind)" ;;
	esac
done

echo
printf '%s\n' "row     PostgreSQL                         passed, or passed/failed" "${TABLE[@]}"
echo "total time: $(($(date +%s) - started)) s"
[ $((PASSED + FAILED)) -gt 0 ] || { echo "nothing ran, which is a failure"; FAILED=1; }
echo "$PASSED passed, $FAILED failed"
[ $FAILED -eq 0 ]
