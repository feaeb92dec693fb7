# test/lib.sh
#	  What the test, demo and bench scripts share (sourced, bash).
#
# Everything happens in one temporary directory: a private, relocated copy of
# the PostgreSQL installation (so that artidx is never installed into the
# system), a copy of this tree built there, and throwaway clusters that listen
# on a unix socket only.  The directory goes away when the script ends, unless
# KEEP=1.
#
# After art_setup:
#	WORK		the temporary directory
#	SRC			the copy of the tree, built and installed into ROOT
#	ROOT		the private installation; BIN its bin directory
#	RUN_AS		the unprivileged user of the servers

set -u
export LC_ALL=C LANG=C
unset PGHOST PGPORT PGUSER PGDATABASE PGDATA PGOPTIONS PGSERVICE PGPASSFILE \
	PGAPPNAME PGCLIENTENCODING PSQLRC MAKEFLAGS MAKELEVEL MFLAGS PERL5LIB

TREE=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
WORK=
MADE_USER=
LOAD_BEFORE=$(cut -d" " -f1 /proc/loadavg)

art_say()
{
	printf '%s\n' "# $*" >&2
}

art_die()
{
	printf '%s\n' "ERROR: $*" >&2
	exit 1
}

# What the tests use of one installation: the server, its headers, and PGXS with
# the test programs.  Debian has these in three packages, so any may be missing.
art_pg_complete()
{
	local bin pgxs

	bin=$("$1" --bindir) && pgxs=$(dirname "$("$1" --pgxs)")/.. || return 1
	[ -x "$bin/postgres" ] && [ -x "$bin/initdb" ] && [ -x "$bin/pgbench" ] &&
		[ -f "$("$1" --includedir-server)/postgres.h" ] &&
		[ -f "$pgxs/Makefile.global" ] && [ -x "$pgxs/test/regress/pg_regress" ] &&
		[ -x "$pgxs/test/isolation/isolationtester" ] &&
		[ -f "$pgxs/test/perl/PostgreSQL/Test/Cluster.pm" ]
}

ART_VERSIONS="15 16 17 18 19"

# The pg_config to use: PG_CONFIG if given, else the oldest complete one.
art_find_pg_config()
{
	local c v list=()

	if [ -n "${PG_CONFIG:-}" ] && [ "$PG_CONFIG" != pg_config ]; then
		list=("$PG_CONFIG")
	else
		for v in $ART_VERSIONS; do
			list+=("/usr/lib/postgresql/$v/bin/pg_config")
		done
		list+=("$(command -v pg_config 2>/dev/null)")
	fi
	for c in "${list[@]}"; do
		if [ -n "$c" ] && [ -x "$c" ] && art_pg_complete "$c"; then
			echo "$c"
			return 0
		fi
	done
	return 1
}

# The packages that complete a PostgreSQL: the headers for a server that is here,
# else the oldest server that the machine's apt has.  A server that is here is
# named with the version that it has, or apt would upgrade it beside its headers
# and restart its clusters.  Its headers have the same version where the archive
# still has that, else the newest.
art_pg_packages()
{
	local v have

	for v in $ART_VERSIONS; do
		if [ -x "/usr/lib/postgresql/$v/bin/postgres" ]; then
			have=$(dpkg-query -W -f '${Version}' "postgresql-$v" 2>/dev/null)
			apt-cache madison "postgresql-server-dev-$v" 2>/dev/null |
				awk -F'|' -v want="$have" '{ gsub(/ /, "", $2); found += $2 == want } END { exit !found }' &&
				have="=$have" || have=
			echo "postgresql-server-dev-$v$have" $(dpkg-query -W -f '${Package}=${Version} ' \
				"postgresql-$v" "postgresql-client-$v" 2>/dev/null)
			return
		fi
	done
	for v in $ART_VERSIONS; do
		if apt-cache show "postgresql-$v" >/dev/null 2>&1; then
			echo "postgresql-$v postgresql-server-dev-$v"
			return
		fi
	done
	echo postgresql-15 postgresql-server-dev-15
}

# art_has_header HEADER: can the compiler find it?
art_has_header()
{
	echo "#include <$1>" | gcc -x c -fsyntax-only - >/dev/null 2>&1
}

# Debian packages that are still missing for this machine.
art_missing_packages()
{
	local p=() c

	command -v make >/dev/null 2>&1 || p+=(make)
	command -v gcc >/dev/null 2>&1 || p+=(gcc)
	art_has_header stdio.h || p+=(libc6-dev)
	art_has_header urcu/lfstack.h || p+=(liburcu-dev)
	# the server's headers include ICU's
	art_has_header unicode/ucol.h || p+=(libicu-dev)
	if ! art_find_pg_config >/dev/null; then
		[ -z "${PG_CONFIG:-}" ] || [ "$PG_CONFIG" = pg_config ] ||
			art_die "$PG_CONFIG is no pg_config of a PostgreSQL with server headers, PGXS and initdb"
		# shellcheck disable=SC2207
		p+=($(art_pg_packages))
	fi
	perl -MIPC::Run -MTest::More -e 1 >/dev/null 2>&1 || p+=(libipc-run-perl)
	command -v prove >/dev/null 2>&1 || p+=(perl)
	command -v runuser >/dev/null 2>&1 || p+=(util-linux)
	# what only some parts of test/run.sh want
	case " ${PARTS[*]:-} " in
		*" models "*) command -v spin >/dev/null 2>&1 || p+=(spin) ;;
	esac
	case " ${PARTS[*]:-} " in
		*" helgrind "* | *" count "*) command -v valgrind >/dev/null 2>&1 || p+=(valgrind) ;;
	esac
	# and programs whose packages have their names
	for c in ${NEEDS:-}; do
		command -v "$c" >/dev/null 2>&1 || p+=("$c")
	done
	echo "${p[*]}"
}

# art_apt update|install PACKAGE...: quiet unless it fails
art_apt()
{
	local log rc

	log=$(mktemp)
	DEBIAN_FRONTEND=noninteractive apt-get -y -qq "$1" \
		-o Dpkg::Options::=--force-confold --no-install-recommends \
		"${@:2}" </dev/null >"$log" 2>&1
	rc=$?
	[ $rc -eq 0 ] || tail -20 "$log" >&2
	rm -f "$log"
	[ $rc -eq 0 ] || [ "$1" = update ] ||
		art_die "could not install: ${*:2}"
	return $rc
}

# Install what is missing, or say exactly what to install.
art_need_packages()
{
	local p conf saved rc

	p=$(art_missing_packages) || exit 1
	[ -z "$p" ] && return 0

	if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null 2>&1; then
		art_say "Something is missing on this machine.  As root, run:"
		art_say "    apt-get update && apt-get install $p"
		art_die "missing packages: $p"
	fi

	art_apt update || art_say "apt-get update failed, trying on"
	# only now apt knows which versions of PostgreSQL there are
	p=$(art_missing_packages)
	art_say "installing Debian packages: $p"
	# A server's package would make and start a cluster of its own: the machine
	# gets the programs only, and the setting that prevents the cluster is put
	# back as it was.
	saved=
	if [[ " $p " =~ \ postgresql-[0-9]+\  ]]; then
		art_apt install postgresql-common
		conf=/etc/postgresql-common/createcluster.conf
		saved=$(mktemp)
		cp -p "$conf" "$saved"
		printf '\ncreate_main_cluster = false\n' >>"$conf"
	fi
	# shellcheck disable=SC2086
	(art_apt install $p)
	rc=$?
	if [ -n "$saved" ]; then
		cp -p "$saved" "$conf"
		rm -f "$saved"
	fi
	[ $rc -eq 0 ] || exit 1
	p=$(art_missing_packages)
	[ -z "$p" ] || art_die "still missing after apt-get install: $p"
}

# The servers refuse to run as root.
art_choose_user()
{
	if [ "$(id -u)" -ne 0 ]; then
		RUN_AS=$(id -un)
	elif id postgres >/dev/null 2>&1; then
		RUN_AS=postgres
	else
		RUN_AS=artidxtest
		if ! id "$RUN_AS" >/dev/null 2>&1; then
			useradd --system --no-create-home --shell /bin/sh "$RUN_AS" ||
				art_die "could not make the user $RUN_AS"
			MADE_USER=$RUN_AS
		fi
	fi
}

# Run a command as that user, in the copy of the tree, with ROOT's programs
# first.
as_user()
{
	if [ "$(id -u)" -eq 0 ]; then
		runuser -u "$RUN_AS" -- env HOME="$WORK" PATH="$BIN:$PATH" \
			TMPDIR="$WORK/tmp" "$@"
	else
		env PATH="$BIN:$PATH" TMPDIR="$WORK/tmp" "$@"
	fi
}

art_cleanup()
{
	local rc=$? d

	trap - EXIT INT TERM HUP
	if [ -n "$WORK" ] && [ -d "$WORK" ]; then
		# every server under WORK, ours only: by the pid in its data directory
		while IFS= read -r d; do
			as_user "$BIN/pg_ctl" -D "$(dirname "$d")" -m immediate -w -t 20 \
				stop >/dev/null 2>&1
		done < <(find "$WORK" -name postmaster.pid 2>/dev/null)
		cd /
		if [ "${KEEP:-0}" = 1 ]; then
			art_say "kept: $WORK"
		else
			rm -rf "$WORK"
		fi
	fi
	[ -n "$MADE_USER" ] && userdel "$MADE_USER" >/dev/null 2>&1
	exit $rc
}

# art_copy_tree: SRC from TREE, without what git ignores or another build left
art_copy_tree()
{
	mkdir -p "$SRC"
	tar -C "$TREE" --exclude=./.git --exclude='*.o' --exclude='*.so' \
		--exclude='*.bc' --exclude='*.a' \
		--exclude='./artidx*--*.sql' --exclude=./tmp_regress \
		--exclude=./tmp_isolation --exclude=./tmp_check --exclude=./results \
		--exclude=./output_iso --exclude=./bench-results --exclude=./build-deb --exclude=./build-rpm --exclude=./build-dist \
		--exclude='./test/core/build*' --exclude=./test/fuzz/build -cf - . | tar -C "$SRC" -xf - ||
		art_die "could not copy the tree to $SRC"
}

# art_copy_root PG_CONFIG: the relocated installation.  PostgreSQL finds its
# files relative to its own bin directory, so a copy under another root with
# the same paths below it is an installation of its own.
art_copy_root()
{
	local d

	for d in "$("$1" --bindir)" "$("$1" --pkglibdir)" "$("$1" --sharedir)" \
		"$("$1" --includedir)" "$("$1" --pkgincludedir)" \
		"$("$1" --includedir-server)"; do
		[ -d "$d" ] || continue
		# /usr/include of a distribution: the two directories below are enough
		[ "$d" = /usr/include ] && continue
		[ -d "$ROOT$d" ] && continue
		mkdir -p "$ROOT$(dirname "$d")"
		tar -C "$(dirname "$d")" --exclude="$(basename "$d")/bitcode" -cf - \
			"$(basename "$d")" | tar -C "$ROOT$(dirname "$d")" -xf - ||
			art_die "could not copy $d"
	done
	PG_CONFIG=$ROOT$("$1" --bindir)/pg_config
	BIN=$(dirname "$PG_CONFIG")
	[ -f "$("$PG_CONFIG" --pgxs)" ] ||
		art_die "the copy of PostgreSQL in $ROOT is not complete"
}

# art_server_under COMMAND: the servers of ROOT run under it.  What initdb calls does not.
art_server_under()
{
	[ -f "$BIN/postgres.real" ] || mv "$BIN/postgres" "$BIN/postgres.real"
	cat >"$BIN/postgres" <<-END
		#!/bin/sh
		case " \$* " in *' -V '* | *' --version '* | *' --boot '* | *' --check '* | *' --single '* | *' -C '*)
			exec "$BIN/postgres.real" "\$@" ;;
		esac
		exec $1 "$BIN/postgres.real" "\$@"
	END
	chmod 755 "$BIN/postgres"
}

# art_setup NAME: all of the above, then build and install into ROOT.  With ART_WORK the directory
# is that one, which stays, and what is there already is used again.  With SERVER_UNDER all servers
# run under that command.
art_setup()
{
	local pgc jobs

	art_need_packages
	pgc=$(art_find_pg_config) || art_die "no PostgreSQL with PGXS found"
	art_choose_user
	WORK=${ART_WORK:-$(mktemp -d "${TMPDIR:-/tmp}/artidx-$1.XXXXXX")} || art_die "no temporary directory"
	[ -z "${ART_WORK:-}" ] || KEEP=1
	BIN=$("$pgc" --bindir)
	trap art_cleanup EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
	chmod 755 "$WORK"
	SRC=$WORK/src
	ROOT=$WORK/root
	mkdir -p "$WORK/tmp" "$ROOT"
	art_copy_tree
	art_copy_root "$pgc"
	[ "$(id -u)" -eq 0 ] && chown -R "$RUN_AS" "$WORK"
	cd "$SRC" || exit 1

	jobs=$(nproc 2>/dev/null || echo 2)
	art_say "building with $("$PG_CONFIG" --version), user $RUN_AS, in $WORK"
	as_user make -s -j"$jobs" PG_CONFIG="$PG_CONFIG" WERROR="${WERROR:-0}" \
		all >"$WORK/build.log" 2>&1 ||
		{ cat "$WORK/build.log" >&2; art_die "artidx does not build"; }
	as_user make -s PG_CONFIG="$PG_CONFIG" WERROR="${WERROR:-0}" install \
		>>"$WORK/build.log" 2>&1 ||
		{ cat "$WORK/build.log" >&2; art_die "artidx does not install"; }
	art_loads
	# last, since art_loads looks into the program
	[ -z "${SERVER_UNDER:-}" ] || art_server_under "$SERVER_UNDER"
}

# art_loads: the server has all that the build wants of it, or we say what it lacks
# and what helps, before any cluster is started
art_loads()
{
	local lacks headers server

	lacks=$(bash "$SRC/test/symbols.sh" server "$SRC/artidx.so" "$PG_CONFIG") && return
	headers=$(sed -n 's/^#define PG_VERSION "\(.*\)"/\1/p' "$("$PG_CONFIG" --includedir-server)/pg_config.h")
	server=$("$BIN/postgres" --version | sed -E 's/^[^0-9]*([^ ]*).*/\1/')
	art_die "artidx was built with headers of $headers for a server $server, which lacks: ${lacks//$'\n'/, }." \
		"As root: apt-get install postgresql-${server%%[!0-9]*}"
}

# art_cluster NAME [setting=value ...]: a running throwaway cluster; sets
# PGHOST and PGPORT for psql and friends
art_cluster()
{
	local name=$1 s

	shift
	DATA=$WORK/$name
	as_user "$BIN/initdb" -D "$DATA" -U artidx -A trust -N --no-locale -E UTF8 \
		>"$WORK/$name.initdb.log" 2>&1 ||
		{ cat "$WORK/$name.initdb.log" >&2; art_die "initdb failed"; }
	{
		echo "listen_addresses = ''"
		echo "unix_socket_directories = '$WORK/tmp'"
		echo "port = 65439"
		for s in "$@"; do
			echo "$s"
		done
	} | as_user tee -a "$DATA/postgresql.conf" >/dev/null
	as_user "$BIN/pg_ctl" -D "$DATA" -l "$DATA.log" -w -t 120 start \
		>/dev/null ||
		{ tail -30 "$DATA.log" >&2; art_die "the cluster did not start"; }
	export PGHOST=$WORK/tmp PGPORT=65439 PGUSER=artidx PGDATABASE=postgres
}

art_cluster_stop()
{
	as_user "$BIN/pg_ctl" -D "$DATA" -m "${1:-fast}" -w -t 120 stop >/dev/null
}

# sql TEXT: unaligned answer, stops at the first error
sql()
{
	as_user "$BIN/psql" -X -q -A -t -v ON_ERROR_STOP=1 -c "$1"
}

# art_whole_numbers LEAST NAME...: each setting is a whole number, and no less than that
art_whole_numbers()
{
	local least=$1 name

	shift
	for name in "$@"; do
		[[ ${!name} =~ ^[0-9]+$ ]] && [ "${!name}" -ge "$least" ] ||
			art_die "$name must be a whole number, at least $least, not \"${!name}\""
	done
}

# art_tap SECONDS NAME [SETTING=VALUE...]: one file of test/t, whose nodes have a directory and a
# socket of their own
art_tap()
{
	local pgxs dir=$WORK/tap/$2

	pgxs=$(dirname "$("$PG_CONFIG" --pgxs)")/..
	as_user mkdir -p "$dir" "$WORK/tap/portlock"
	# 15 goes by TESTDIR, later ones by the other two
	as_user env TESTDIR="$dir" PGPORT=65432 \
		TESTDATADIR="$dir/tmp_check" \
		TESTLOGDIR="$dir/tmp_check/log" \
		PG_TEST_PORT_DIR="$WORK/tap/portlock" \
		PG_REGRESS="$pgxs/test/regress/pg_regress" "${@:3}" \
		timeout -k 30 "$1" prove -v --nocolor \
		-I "$pgxs/test/perl" -I "$SRC/test/perl" "$SRC/test/t/$2.pl"
}

# art_results_dir: make RESULTS, and name it in full
art_results_dir()
{
	mkdir -p "$RESULTS" || art_die "cannot write to $RESULTS"
	RESULTS=$(cd "$RESULTS" && pwd)
}

# art_results FILE COMMAND SCALE CONDITIONS: the head of a bench's results, which
# test/bench/figures.pl reads; the cluster runs
art_results()
{
	cat >"$1" <<-END
		# command: $2
		# date: $(date -u +%F)
		# machine: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), $(nproc) processors, $(awk '/^MemTotal/ {print int($2 / 1048576 + 0.5)}' /proc/meminfo) GB, $(uname -sm)
		# server: $(sql "SELECT split_part(version(), ' on ', 1)")
		# load: $LOAD_BEFORE
		# scale: $3
		# conditions: $4
	END
}

# art_draw FOLDER: the plots of the results in it, as SVG files beside them, where
# artidx-report is installed
art_draw()
{
	if command -v artidx-report >/dev/null 2>&1; then
		artidx-report figures "$1" --svg "$1"
	else
		art_say "for plots: pip install ./report, then artidx-report figures $1"
	fi
}

# art_figures FILE NAME: with FIGURES=1 the results become doc/figures/NAME.tsv, and
# the documents and plots are made anew.  The plots come last: their program may be missing.
art_figures()
{
	local doc=$TREE/doc/figures

	[ "${FIGURES:-0}" = 1 ] || return 0
	mkdir -p "$doc"
	cp "$1" "$doc/$2.tsv" && perl "$TREE/test/bench/figures.pl" write &&
		art_say "written: doc/figures.md from doc/figures/$2.tsv" || return 1
	command -v artidx-report >/dev/null 2>&1 ||
		{ python3 -m venv "$WORK/report" && "$WORK/report/bin/pip" -q install "$TREE/report" &&
			PATH=$WORK/report/bin:$PATH; } || return 1
	art_draw "$doc"
}

# What doc/evidence.md says of a run (test/evidence.pl has the form): its commit is that of its begin.
EVIDENCE_BEGAN=${EVIDENCE_BEGAN:-$(date +%s)}
art_evidence_begins()
{
	[ -z "${EVIDENCE_COMMIT:-}" ] || return 0
	EVIDENCE_COMMIT=$(git -C "$TREE" rev-parse --short=10 HEAD 2>/dev/null || echo unknown)
	[ -z "$(git -C "$TREE" status --porcelain -uno -- . ':!doc/evidence*' 2>/dev/null)" ] || EVIDENCE_COMMIT+=", changed"
	export EVIDENCE_COMMIT
}
[ "${EVIDENCE:-0}" != 1 ] || art_evidence_begins

# art_evidence_head COMMAND SHOWS
art_evidence_head()
{
	local server=none

	[ -z "${PG_CONFIG:-}" ] || ! command -v "$PG_CONFIG" >/dev/null || server=$("$PG_CONFIG" --version)
	cat <<-END
		# run: $1
		# shows: $2
		# date: $(date -u +%F)
		# seconds: $(($(date +%s) - EVIDENCE_BEGAN))
		# commit: $EVIDENCE_COMMIT
		# server: ${EVIDENCE_SERVER:-$server}
		# machine: $(nproc) processors, $(awk '/^MemTotal/ {print int($2 / 1048576 + 0.5)}' /proc/meminfo) GB, $(uname -sm)
		# load: $LOAD_BEFORE
	END
}

# art_evidence NAME COMMAND SHOWS LABEL VALUE...: with EVIDENCE=1 what a run came to becomes
# doc/evidence/NAME.tsv, in the place of what an earlier one came to, and doc/evidence.md is
# written anew.  SHOWS is a sentence, for the reader who does not know the run.
art_evidence()
{
	local file=$TREE/doc/evidence/$1.tsv

	[ "${EVIDENCE:-0}" = 1 ] || return 0
	[ $# -ge 5 ] && [ $((($# - 3) % 2)) -eq 0 ] || art_die "art_evidence: a value to each label"
	mkdir -p "$TREE/doc/evidence"
	{
		art_evidence_head "$2" "$3"
		printf 'label\tvalue\n'
		printf '%s\t%s\n' "${@:4}"
	} >"$file" && perl "$TREE/test/evidence.pl" write && art_say "written: doc/evidence.md from ${file#"$TREE/"}"
}

# Every structure with every way of synchronizing it, or those asked for.
art_engines()
{
	echo "${ARTIDX_ENGINES:-$(sed 's/#.*//' "$TREE/test/engines" | xargs)}"
}

# Build the module that stands in for transactions of the processor, and name it
# in ELISION_MODULE; it is loaded by its path.
art_elision_module()
{
	local dir=${SRC:-$TREE}/test/modules/art_elidetest

	as_user make -s -C "$dir" PG_CONFIG="$BIN/pg_config" all || art_die "no $dir"
	export ELISION_MODULE=$dir/art_elidetest
}

# What the environment asks for in every server, one setting a line, no spaces.
# With ELISION_PROVIDER it wants ELISION_MODULE.
art_elision_conf()
{
	[ -z "${ELISION:-}" ] || echo "artidx.elision='$ELISION'"
	[ -z "${ELISION_PROVIDER:-}" ] || printf '%s\n' "art_elidetest.provider='$ELISION_PROVIDER'" \
		"shared_preload_libraries='artidx,$ELISION_MODULE'"
}
