#!/bin/bash
#
# test/mutants.sh [NAME... | missing]
#	  Do the tests notice?  Applies each mutation of test/mutants/*.list (or those named) to a
#	  copy of the tree, builds what it changes, and runs the one test that is to fail.
#	  "missing" are those of which RESULTS says nothing yet.
#
# First that test has to pass without it.  A line each: killed, by what, in how many seconds; or
# that it SURVIVED.  One that hangs is ended and counts as killed, "by its time".  The last line
# is "N passed, N failed"; the exit status is not zero when a mutation survived that is not
# listed as one that does, one was killed that is, one does not compile, or a test fails without.
#
#	TIMEOUT		seconds that the test of a mutation may take (45), or four times what it took without,
#				where that is more; of one of the core, no more than 60 of a processor's time either
#	TAP_SCALE	per cent of the work of a test of the core (10)
#	SECONDS_EACH	length of each threaded stress of the core (1)
#	TRY			tests of the core, each FLAVOUR:TEST:STRUCTURE: run all of them for every
#				mutation named instead, and print which of them notice
#	COPY		the directory to work in, which stays; what is there already is used again
#	RESULTS		a file of what became of each: it keeps the lines of those that do not run now.
#				With EVIDENCE=1 that is doc/evidence/mutants.tsv, and doc/evidence.md is written anew
#	WERROR=1	warnings are errors, but not those of a mutation
#	KEEP=1		keep the temporary directory
#
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

: "${TIMEOUT:=45}" "${TAP_SCALE:=10}" "${SECONDS_EACH:=1}" "${TRY:=}" "${COPY:=}" "${RESULTS:=}"
[ -z "$COPY" ] || COPY=$(realpath -m "$COPY")
[ "${EVIDENCE:-0}" != 1 ] || RESULTS=$TREE/doc/evidence/mutants.tsv
if [ -n "$RESULTS" ]; then
	RESULTS=$(realpath -m "$RESULTS")
	mkdir -p "$(dirname "$RESULTS")" || exit 1
	art_evidence_begins
fi
art_whole_numbers 1 TIMEOUT TAP_SCALE SECONDS_EACH
passed=0
failed=0

mutate()
{
	perl "$TREE/test/mutants/mutate.pl" "$@"
}

# ---- the copy ------------------------------------------------------------------------------

# What was built of a mutated file is as of the file before: put_back FILE OBJECT...
keep()
{
	local f

	for f in "$@"; do
		[ ! -f "$SRC/$f" ] || cp -p "$SRC/$f" "$SRC/$f.kept"
	done
	printf '%s\n' "$@" >"$WORK/mutated"
}

put_back()
{
	local f

	while IFS= read -r f; do
		if [ -f "$SRC/$f.kept" ]; then mv -f "$SRC/$f.kept" "$SRC/$f"; else rm -f "$SRC/$f"; fi
		# all that includes it was built with the mistake
		case $f in src/core/*) ;; *.h) touch "$SRC/$f" ;; esac
	done <"$WORK/mutated"
	rm -f "$WORK/mutated"
}

# claim_copy DIR: nobody else works there, and what an earlier run left that was ended in the middle is put back
claim_copy()
{
	WORK=$1
	SRC=$WORK/src
	mkdir -p "$WORK/tmp" "$SRC" || art_die "cannot write to $WORK"
	exec 9>"$WORK/lock"
	flock -n 9 || art_die "another run works in $WORK"
	[ ! -f "$WORK/mutated" ] || put_back
}

# setup_core: no PostgreSQL is wanted
setup_core()
{
	art_choose_user
	BIN=/usr/bin
	claim_copy "${COPY:-$(mktemp -d "${TMPDIR:-/tmp}/artidx-mutants.XXXXXX")}"
	[ -n "$COPY" ] || trap art_cleanup EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
	chmod 755 "$WORK"
	art_copy_tree
	[ "$(id -u)" -ne 0 ] || chown -R "$RUN_AS" "$WORK"
}

# ---- the core: one file is compiled, one program is linked --------------------------------

# core_make TARGET [VARIABLE=...]
core_make()
{
	as_user make -s -j2 --no-print-directory -C "$SRC/test/core" "$@"
}

# core_run FLAVOUR TEST:STRUCTURE: in the words of check.sh
core_run()
{
	local run=

	[ "$1" != tsan ] || ! command -v setarch >/dev/null || run="setarch -R"
	(cd "$SRC/test/core" && ulimit -c 0 -t 60 && as_user env TAP_SCALE="$TAP_SCALE" SECONDS="$SECONDS_EACH" \
		TIMEOUT="$TIMEOUT" RUN="$run" ./check.sh "$1" "$2")
}

# fuzz_make TARGET [VARIABLE=...]: a program of test/fuzz, by gcc
fuzz_make()
{
	as_user make -s -j2 --no-print-directory -C "$SRC/test/fuzz" PG_CONFIG="$PG_CONFIG" "$@"
}

# built FILE FLAVOUR:TEST...: what is built of it
built()
{
	local file=$1 t

	shift
	case $1 in
		*:fuzz)
			(cd "$SRC" && ls test/fuzz/build/gcc/server/*.o $(find test/fuzz/build/gcc -maxdepth 1 -type f -perm -100) 2>/dev/null)
			case $file in src/core/*) (cd "$SRC" && ls test/core/build/asan/*.o) ;; esac
			return
			;;
	esac
	case $file in
		src/core/*.c)
			for t in "$@"; do
				echo "test/core/build/${t%%:*}/core_$(basename "$file" .c).o"
				echo "test/core/build/${t%%:*}/${t#*:}"
			done | sort -u
			;;
		src/core/*) (cd "$SRC" && for t in "$@"; do
			ls "test/core/build/${t%%:*}"/*.o "test/core/build/${t%%:*}/${t#*:}"
		done 2>/dev/null | sort -u) ;;
		*) printf '%s\n' "${file%.c}.o" artidx.so ;;
	esac
}

# ---- the extension: one file is compiled, the library is linked ---------------------------

glue_make()
{
	as_user make -s -j2 -C "$SRC" PG_CONFIG="$PG_CONFIG" WERROR=0 artidx.so &&
		as_user cp "$SRC/artidx.so" "$("$PG_CONFIG" --pkglibdir)/"
}

# on_server PROGRAM INPUT NAME: a test of regress or isolation, on a server that is made for it
on_server()
{
	local data=$WORK/data pgxs rc

	pgxs=$(dirname "$("$PG_CONFIG" --pgxs)")/..
	if [ ! -d "$WORK/template" ]; then
		as_user "$BIN/initdb" -D "$WORK/template" -A trust -N --no-locale -E UTF8 >"$WORK/initdb.log" 2>&1 ||
			art_die "initdb failed: see $WORK/initdb.log"
		{
			cat "$SRC/test/artidx.conf"
			# as pg_regress sets them in an instance of its own
			echo "unix_socket_directories = '$WORK/tmp'"
			echo "port = 65438"
			echo "max_prepared_transactions = 2"
		} | as_user tee -a "$WORK/template/postgresql.conf" >/dev/null
	fi
	as_user cp -a "$WORK/template" "$data"
	as_user "$BIN/pg_ctl" -D "$data" -l "$data.log" -w -t 300 start >/dev/null || { tail -20 "$data.log"; rc=1; }
	if [ -z "${rc:-}" ]; then
		# a step that waits where none should ends after some seconds
		as_user env PGISOLATIONTIMEOUT=15 timeout -k 10 "$TIMEOUT" "$pgxs/$1" --inputdir="$SRC/$2" --outputdir="$WORK/tmp" \
			--bindir="$BIN" --dlpath="$SRC" --host="$WORK/tmp" --port=65438 --user="$RUN_AS" \
			--dbname=contrib_regression "$3"
		rc=$?
	fi
	as_user "$BIN/pg_ctl" -D "$data" -m immediate -w stop >/dev/null 2>&1
	[ $rc -eq 0 ] || { cat "$WORK/tmp/regression.diffs" 2>/dev/null; tail -20 "$data.log"; }
	rm -rf "$data" "$data.log" "$WORK/tmp/regression.diffs"
	return $rc
}

# glue_run PART:NAME
glue_run()
{
	local rc pid

	case $1 in
		regress:*) on_server test/regress/pg_regress . "${1#*:}" ;;
		isolation:*) on_server test/isolation/pg_isolation_regress test/isolation "${1#*:}" ;;
		tap:*)
			art_tap "$TIMEOUT" "${1#*:}"
			rc=$?
			# what a script that was ended has left
			while IFS= read -r pid; do
				as_user "$BIN/pg_ctl" -D "$(dirname "$pid")" -m immediate -w stop >/dev/null 2>&1
			done < <(find "$WORK/tap" -name postmaster.pid)
			rm -rf "$WORK/tap"
			return $rc
			;;
	esac
}

# ---- one test, one mutation ----------------------------------------------------------------

# build_for BY FLAVOUR; its messages are in the log
build_for()
{
	local t=${1#core:}

	case $1 in
		# an unused variable is no reason not to compile
		core:*) core_make CFLAGS_EXTRA="$WARNINGS" "build/$2/${t%%:*}" ;;
		fuzz:*) fuzz_make CFLAGS_EXTRA="$WARNINGS" "build/gcc/${1#fuzz:}" ;;
		*) glue_make ;;
	esac >"$WORK/log" 2>&1
}

# run_test BY FLAVOUR: sets "took" and "how", of one that fails
run_test()
{
	local began=$SECONDS rc

	case $1 in
		core:*) core_run "$2" "${1#core:}" ;;
		fuzz:*) as_user env TIMEOUT="$TIMEOUT" "$SRC/test/fuzz/run.sh" replay "${1#fuzz:}" ;;
		*) glue_run "$1" ;;
	esac >"$WORK/log" 2>&1 </dev/null
	rc=$?
	took=$((SECONDS - began))
	how=
	if [ $rc -eq 124 ] || [ $rc -eq 137 ] ||
		grep -qE 'it took too long|still running after|signal (XCPU|KILL)' "$WORK/log"; then
		how=", by its time"
	elif grep -qoE -m1 '(Thread|Address|UndefinedBehavior)Sanitizer' "$WORK/log"; then
		how=", $(grep -oE -m1 '(Thread|Address|UndefinedBehavior)Sanitizer' "$WORK/log")"
	elif grep -q 'exit status .* signal' "$WORK/log"; then
		how=", $(grep -oE -m1 'signal [A-Z0-9]+' "$WORK/log")"
	fi
	return $rc
}

# result VERDICT TEXT NOTE: of the mutation "name" that "by_line" is to kill; its line here and in
# RESULTS
result()
{
	case $1 in
		killed | survives) passed=$((passed + 1)) ;;
		*) failed=$((failed + 1)) ;;
	esac
	printf '%-30s %s\n' "$name" "$2"
	[ -z "$RESULTS" ] ||
		mutate record "$RESULTS" "$name" "$1" "$took" "$by_line" "$EVIDENCE_COMMIT" "$(date -u +%F)" \
			"$(case $by in core:*) echo - ;; *) "$PG_CONFIG" --version ;; esac)" "$3"
}

# The test has to pass without a mutation, once.  On a machine that has other work it may take
# its time.
declare -A whole=()
passes_whole()
{
	local key="$1 $2" TIMEOUT=$((5 * TIMEOUT))

	if [ -z "${whole[$key]:-}" ]; then
		WARNINGS=
		if build_for "$1" "$2" && run_test "$1" "$2"; then
			whole[$key]=$took
		else
			whole[$key]="no"
			tail -40 "$WORK/log"
		fi
	fi
	[ "${whole[$key]}" != no ]
}

# one NAME FILE BY FLAVOUR REASON
one()
{
	local name=$1 file=$2 by=$3 flavour=$4 reason=$5 t=${3#core:} by_line=$3 TIMEOUT=$TIMEOUT

	[ "$flavour" = - ] || by_line="$by $flavour"
	if ! passes_whole "$by" "$flavour"; then
		took=-
		result "not tried" "NOT TRIED: $by_line fails without it" "the test fails without it"
		return
	fi
	took=$((4 * ${whole[$by $flavour]}))
	[ $took -le "$TIMEOUT" ] || TIMEOUT=$took
	# shellcheck disable=SC2046
	keep "$file" $(built "$file" "$flavour:${t%%:*}")
	WARNINGS=-Wno-error
	took=-
	if ! mutate apply "$name" "$SRC"; then
		result "not tried" "cannot be made" "cannot be made"
	elif ! build_for "$by" "$flavour"; then
		result "not tried" "does not compile" "does not compile"
		cat "$WORK/log"
	elif run_test "$by" "$flavour"; then
		if [ "$reason" != - ]; then
			result survives "survives, as listed: $reason" "$reason"
		else
			result SURVIVED "SURVIVED $by_line, $took s" "a test is missing"
		fi
	elif [ "$reason" != - ]; then
		result "killed, listed" "killed by $by_line in $took s$how, though it is listed as one that survives" "listed as one that survives"
	else
		result killed "killed by $by_line in $took s$how" "${how#, }"
	fi
	cp "$WORK/log" "$WORK/log.$name"
	put_back
}

# try_all NAME FILE: every test of TRY, one line: those that notice and those that do not
try_all()
{
	local name=$1 file=$2 f test structure x some kills=() not=()

	for f in plain asan tsan sched; do
		some=()
		for x in $TRY; do
			[ "${x%%:*}" != $f ] || ! passes_whole "core:${x#*:}" "$f" || some+=("$x")
		done
		[ ${#some[@]} -gt 0 ] || continue
		# shellcheck disable=SC2046
		keep "$file" $(built "$file" $(printf '%s\n' "${some[@]%:*}"))
		if mutate apply "$name" "$SRC" && core_make CFLAGS_EXTRA=-Wno-error $(printf '%s\n' "${some[@]%:*}" | sed 's,:,/,; s,^,build/,' | sort -u) >"$WORK/log" 2>&1; then
			for x in "${some[@]}"; do
				if run_test "core:${x#*:}" "$f"; then
					not+=("$x(${took}s)")
				else
					kills+=("$x(${took}s$how)")
				fi
			done
		else
			not+=("$f:does-not-compile")
			tail -5 "$WORK/log"
		fi
		put_back
	done
	printf '%s\n\tkilled by: %s\n\tunseen by: %s\n' "$name" "${kills[*]}" "${not[*]}"
}

mutate check || art_die "the list of mutations does not fit the tree (test/mutants/README.md)"
# shellcheck disable=SC2046
[ "${1:-}" != missing ] || [ -z "$RESULTS" ] || set -- $(mutate missing "$RESULTS")
list=$(mutate list "$@") || exit 1
if cut -f3 <<<"$list" | grep -qv '^core:'; then
	[ -z "$COPY" ] || claim_copy "$COPY"
	ART_WORK=$COPY art_setup mutants
else
	setup_core
fi
[ -z "$RESULTS" ] ||
	art_evidence_head "make mutants" "Each of these small mistakes was made in a copy of the source, and the one test that must notice was run." |
	mutate head "$RESULTS" || exit 1
while IFS=$'\t' read -r name file by flavour reason <&3; do
	if [ -n "$TRY" ]; then
		try_all "$name" "$file"
	else
		one "$name" "$file" "$by" "$flavour" "$reason"
	fi
done 3<<<"$list"
[ -z "$TRY" ] || exit 0
[ "${EVIDENCE:-0}" != 1 ] || perl "$TREE/test/evidence.pl" write
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
