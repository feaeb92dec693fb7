# test/conformance/fetch.sh
#	  Where the tests of PostgreSQL itself come from (sourced after lib.sh).
#
# art_pg_source: sets PGSRC to a directory with PostgreSQL's own src/test:
#	CONFORMANCE_SRC=dir		an unpacked source tree
#	CONFORMANCE_CACHE=dir	keeps what was fetched for the next time
# or else Debian's source package, from the mirrors that this machine's apt
# knows already.  apt works in directories of its own and checks signatures as
# always; what the machine has configured is read and not changed.

# art_source_lists: deb-src lines for every Debian release that apt has
art_source_lists()
{
	local site release component origin signed

	apt-get indextargets --format \
		'$(SITE)|$(RELEASE)|$(COMPONENT)|$(ORIGIN)|$(SIGNED_BY)' \
		'Identifier: Packages' | sort -u |
		while IFS='|' read -r site release component origin signed; do
			[ "$origin" = Debian ] || continue
			case $signed in
				/*) signed="[signed-by=$signed] " ;;
				*) signed= ;;
			esac
			echo "deb-src $signed$site $release $component"
		done | sort -u
}

# art_apt_sources: an apt of our own in WORK/apt, whose lists have Debian's source packages
art_apt_sources()
{
	local apt=$WORK/apt

	[ ! -f "$apt/apt.conf" ] || return 0
	command -v apt-get >/dev/null 2>&1 || { art_say "no apt-get here"; return 1; }
	mkdir -p "$apt/lists/partial" "$apt/archives/partial"
	art_source_lists >"$apt/sources.list"
	[ -s "$apt/sources.list" ] || { art_say "apt knows no Debian mirror"; return 1; }
	cat >"$apt/apt.conf" <<-EOF
		Dir::Etc::SourceList "$apt/sources.list";
		Dir::Etc::SourceParts "-";
		Dir::State::Lists "$apt/lists";
		Dir::Cache "$apt";
		APT::Sandbox::User "root";
	EOF
	APT_CONFIG=$apt/apt.conf apt-get -q update >"$apt/log" 2>&1 ||
		art_say "apt-get update was not all well, trying on"
}

# art_fetch_source DIR PACKAGE: its source package into DIR, of the version that is installed
# here if the mirror has it, or else the newest that it has: not everything that is listed is
# always there
art_fetch_source()
{
	local apt=$WORK/apt version

	art_apt_sources || return 1
	art_say "fetching the source package $2"
	for version in $(dpkg-query -W -f '${source:Version}' "$2" 2>/dev/null) $(APT_CONFIG=$apt/apt.conf apt-cache showsrc "$2" \
		2>>"$apt/log" | sed -n 's/^Version: //p' | sort -Vru); do
		(cd "$1" && APT_CONFIG=$apt/apt.conf apt-get -q source --download-only \
			"$2=$version") >>"$apt/log" 2>&1 && return 0
	done
	tail -20 "$apt/log" >&2
	return 1
}

art_pg_source()
{
	local dir=${CONFORMANCE_CACHE:-$WORK/source} archive

	if [ -n "${CONFORMANCE_SRC:-}" ]; then
		PGSRC=$CONFORMANCE_SRC
	else
		mkdir -p "$dir" && dir=$(cd "$dir" && pwd) || return 1
		ls "$dir"/postgresql-15_15.*.orig.tar.* >/dev/null 2>&1 ||
			art_fetch_source "$dir" postgresql-15 ||
			{ art_say "could not fetch the source: give CONFORMANCE_SRC=/path/to/postgresql-15.x"; return 1; }
		archive=$(ls "$dir"/postgresql-15_15.*.orig.tar.* | grep -v '\.asc$' |
			sort -V | tail -1)
		mkdir -p "$WORK/pgsrc"
		tar -C "$WORK/pgsrc" -xf "$archive" --wildcards --strip-components=1 \
			'*/src/test/regress' '*/src/test/isolation' '*/contrib' || return 1
		PGSRC=$WORK/pgsrc
		art_say "tests of $(basename "$archive")"
	fi
	[ -f "$PGSRC/src/test/regress/parallel_schedule" ] ||
		{ art_say "$PGSRC has no src/test/regress/parallel_schedule"; return 1; }
}

# art_pg_modules: the modules that PostgreSQL's tests load, from their own source, in WORK/modules
art_pg_modules()
{
	local dir=$WORK/modules

	mkdir -p "$dir"
	cp "$PGSRC/src/test/regress/regress.c" "$PGSRC/contrib/spi/autoinc.c" \
		"$PGSRC/contrib/spi/refint.c" "$dir/" || art_die "no regress.c in $PGSRC"
	cat >"$dir/Makefile" <<-'EOF'
		MODULES = regress autoinc refint
		override with_llvm = no
		PGXS := $(shell $(PG_CONFIG) --pgxs)
		include $(PGXS)
	EOF
	[ "$(id -u)" -eq 0 ] && chown -R "$RUN_AS" "$dir"
	as_user make -s -C "$dir" PG_CONFIG="$PG_CONFIG" >"$WORK/modules.log" 2>&1 ||
		{ cat "$WORK/modules.log" >&2; art_die "the tests' modules do not build"; }
}

# art_leave_out_using DIR: in the tests there, indexes leave the access method to the setting
art_leave_out_using()
{
	find "$1" \( -name '*.sql' -o -name '*.spec' \) -exec perl -0pi -e '
		s/(\bCREATE\s+(?:UNIQUE\s+)?INDEX\b[^;(]*?)\s+USING\s+btree\b/$1/gi;
		s/(\bEXCLUDE)\s+USING\s+btree\b/$1/gi' {} +
	[ "$(id -u)" -eq 0 ] && chown -R "$RUN_AS" "$1"
	return 0
}
