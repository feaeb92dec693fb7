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

# art_fetch_source DIR: the original archive of the source package into DIR
art_fetch_source()
{
	local apt=$WORK/apt version

	command -v apt-get >/dev/null 2>&1 ||
		art_die "no apt-get here: give CONFORMANCE_SRC=/path/to/postgresql-15.x"
	mkdir -p "$apt/lists/partial" "$apt/archives/partial"
	art_source_lists >"$apt/sources.list"
	[ -s "$apt/sources.list" ] ||
		art_die "apt knows no Debian mirror: give CONFORMANCE_SRC=/path/to/postgresql-15.x"
	cat >"$apt/apt.conf" <<-EOF
		Dir::Etc::SourceList "$apt/sources.list";
		Dir::Etc::SourceParts "-";
		Dir::State::Lists "$apt/lists";
		Dir::Cache "$apt";
		APT::Sandbox::User "root";
	EOF
	art_say "fetching the source package of PostgreSQL 15"
	APT_CONFIG=$apt/apt.conf apt-get -q update >"$apt/log" 2>&1 ||
		art_say "apt-get update was not all well, trying on"
	# the server's own minor version if the mirror has it, or else the newest
	# that it has: not everything that is listed is always there
	version=$(dpkg-query -W -f '${source:Version}' postgresql-15 2>/dev/null)
	for version in $version $(APT_CONFIG=$apt/apt.conf apt-cache showsrc postgresql-15 \
		2>>"$apt/log" | sed -n 's/^Version: //p' | sort -Vru); do
		(cd "$1" && APT_CONFIG=$apt/apt.conf apt-get -q source --download-only \
			"postgresql-15=$version") >>"$apt/log" 2>&1 && return 0
	done
	tail -20 "$apt/log" >&2
	art_die "could not fetch the source: give CONFORMANCE_SRC=/path/to/postgresql-15.x"
}

art_pg_source()
{
	local dir=${CONFORMANCE_CACHE:-$WORK/source} archive

	if [ -n "${CONFORMANCE_SRC:-}" ]; then
		PGSRC=$CONFORMANCE_SRC
	else
		mkdir -p "$dir" || art_die "cannot write in $dir"
		dir=$(cd "$dir" && pwd)
		ls "$dir"/postgresql-15_15.*.orig.tar.* >/dev/null 2>&1 ||
			art_fetch_source "$dir"
		archive=$(ls "$dir"/postgresql-15_15.*.orig.tar.* | grep -v '\.asc$' |
			sort -V | tail -1)
		mkdir -p "$WORK/pgsrc"
		tar -C "$WORK/pgsrc" -xf "$archive" --wildcards --strip-components=1 \
			'*/src/test/regress' '*/src/test/isolation' '*/contrib/spi' ||
			art_die "could not unpack $archive"
		PGSRC=$WORK/pgsrc
		art_say "tests of $(basename "$archive")"
	fi
	[ -f "$PGSRC/src/test/regress/parallel_schedule" ] ||
		art_die "$PGSRC has no src/test/regress/parallel_schedule"
}
