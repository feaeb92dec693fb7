#!/bin/bash
#
# test/fresh.sh [machine ...]
#	  README's two commands, "make demo" and "make test", on machines that are not
#	  ours; "make fresh" calls it, as root.
#
# Each machine is a copy of a minimal Debian 12 (test/roots.sh), with make and:
#
#	bare		nothing else
#	server		postgresql-15 and libpq-dev, so pg_config, pgxs.mk and no postgres.h
#	older		an older minor version of that server, which must not be upgraded
#	stale		the oldest minor version, beside the newest of all else: the headers, too
#	user		everything, and an ordinary user who runs the commands
#	nothing		nothing else, and an ordinary user, who is told what to install
#
#	PARTS		of make test ("symbols core:test_arena regress:basic,unique isolation:write-skew tap:restart")
#	SCALE		rows of make demo (20000)
#
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$TREE/test/roots.sh"

[ $# -gt 0 ] || set -- bare server older stale user nothing
: "${PARTS:=symbols core:test_arena regress:basic,unique isolation:write-skew tap:restart}" "${SCALE:=20000}"
passed=0
failed=0
why=$(art_roots_possible)
[ -z "$why" ] || art_die "$why"
art_base bookworm || art_die "$ART_ROOT_WHY"
base=$ART_ROOT
WORK=$(mktemp -d "$ARTIDX_CACHE/fresh.XXXXXX") || exit 1
trap 'rm -rf "$WORK"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# result STATUS NAME LOG
result()
{
	if [ "$1" -eq 0 ]; then
		passed=$((passed + 1))
		echo "ok - $2"
	else
		failed=$((failed + 1))
		echo "not ok - $2"
		tail -30 "$3" | sed 's/^/# /'
	fi
}

# on MACHINE NAME COMMAND...: a command of that machine, as a test
on()
{
	local r=$1 name=$2 began=$SECONDS rc

	shift 2
	art_in_root "$r" "$@" >"$WORK/log" 2>&1 </dev/null
	rc=$?
	result $rc "$name, $((SECONDS - began)) s" "$WORK/log"
}

version_of()
{
	art_in_root "$1" dpkg-query -W -f '${Version}' postgresql-15
}

for m; do
	r=$WORK/$m
	cp -a "$base" "$r"
	mkdir -p "$r/etc/postgresql-common"
	as=(env)
	packages=()
	case $m in
		bare) ;;
		server) packages=(postgresql-15 libpq-dev) ;;
		older | stale)
			v=$(art_in_root "$r" apt-cache madison postgresql-15 | awk -F'|' '{ gsub(/ /, "", $2); print $2 }' |
				sort -V | head -1)
			packages=("postgresql-15=$v" "postgresql-client-15=$v")
			# its headers are those of the archive that have its version, or here the newest
			[ "$m" = older ] && packages+=("libpq5=$v") || packages+=(postgresql-server-dev-15)
			;;
		user)
			packages=(postgresql-15 postgresql-server-dev-15 gcc libc6-dev libicu-dev liburcu-dev
				libipc-run-perl perl util-linux)
			as=(runuser -u dev --)
			;;
		nothing) as=(setpriv --reuid=nobody --regid=nogroup --clear-groups) ;;
		*) art_die "no such machine: $m" ;;
	esac
	if [ ${#packages[@]} -gt 0 ]; then
		on "$r" "$m: ${packages[*]}" apt-get -q -y install "${packages[@]}"
	fi
	[ "$m" != user ] || on "$r" "$m: useradd" useradd -m dev
	before=
	case $m in older | stale) before=$(version_of "$r") ;; esac
	if [ "$m" = nothing ]; then
		on "$r" "$m: make test says what to install" sh -c "! ${as[*]} make -C /mnt test >/tmp/said 2>&1 &&
			cat /tmp/said && grep -q 'apt-get install .*postgresql-15 postgresql-server-dev-15' /tmp/said"
	else
		on "$r" "$m: make demo" "${as[@]}" make -s -C /mnt demo SCALE="$SCALE"
		on "$r" "$m: make test" "${as[@]}" make -s -C /mnt test PARTS="$PARTS"
		grep -E '^[0-9]+ passed' "$WORK/log" | sed 's/^/# make test: /'
	fi
	if [ -n "$before" ]; then
		[ "$before" = "$(version_of "$r")" ]
		result $? "$m: the server is still $before" /dev/null
	fi
	if [ "$m" = stale ]; then
		headers=$(art_in_root "$r" sed -n 's/^#define PG_VERSION "\([0-9.]*\).*/\1/p' \
			/usr/include/postgresql/15/server/pg_config.h)
		if [ "$(art_in_root "$r" apt-cache madison postgresql-15 | awk '{ print $3 }' | sort -u | wc -l)" -gt 1 ]; then
			[ -n "$headers" ] && [ "$headers" != "${before%%-*}" ]
			result $? "$m: its headers are those of $headers" /dev/null
		else
			echo "# stale: the archive has $before only, so its headers are no newer"
		fi
	fi
	rm -rf --one-file-system "$r"
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
