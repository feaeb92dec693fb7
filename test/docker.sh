#!/bin/bash
#
# test/docker.sh
#	  packaging/docker/Dockerfile, step by step, in Debian systems of test/roots.sh, and the
#	  server that it makes; "make docker" calls it, as root.  No container runtime is needed.
#
# FROM makes a copy of a minimal system, COPY copies, RUN and the later commands run in it with
# what ENV has set, as the USER says.  An instruction that this script does not know is an error.
# Then the container is started as docker would start it: without a password, with one, from a
# client's side over TCP, by STOPSIGNAL and again, after a first start that was cut short.
#
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$TREE/test/roots.sh"

why=$(art_roots_possible)
[ -z "$why" ] || art_die "$why"
mkdir -p "$ARTIDX_CACHE" || art_die "cannot write in $ARTIDX_CACHE"
WORK=$(mktemp -d "$ARTIDX_CACHE/docker.XXXXXX") || exit 1
trap 'rm -rf --one-file-system "$WORK"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
file=$TREE/packaging/docker/Dockerfile
passed=0
failed=0

ok() { passed=$((passed + 1)); echo "ok - $1"; }
not_ok()
{
	failed=$((failed + 1))
	echo "not ok - $1"
	tail -30 "$WORK/log" | sed 's/^/# /'
}

# ---- the instructions ---------------------------------------------------------------------

declare -A stage
env=() user=root r='' stopsignal='' healthcheck='' entrypoint=''

# in_image COMMAND...: in the stage's system, with its environment, as its user
in_image()
{
	if [ "$user" = root ]; then art_in_root "$r" /usr/bin/env "${env[@]}" "$@"; else
		art_in_root "$r" /usr/bin/env "${env[@]}" setpriv --reuid="$user" --regid="$user" --init-groups "$@"
	fi
}

from()
{
	local suite=${1#debian:}

	r=$WORK/${3:-image}
	art_base "${suite%-slim}" || art_die "$ART_ROOT_WHY"
	cp -a "$ART_ROOT" "$r"
	env=() user=root
	[ "${2:-}" != AS ] || stage[$3]=$r
}

copy()
{
	local from=$TREE

	case $1 in --from=*) from=${stage[${1#--from=}]} && shift ;; esac
	if [ "$1" = . ]; then
		mkdir -p "$r$2"
		(cd "$from" && git ls-files -z | xargs -0 cp --parents -at "$r$2")
	else
		cp -a "$from/${1#/}" "$r$2"
	fi
}

instruction()
{
	local word=$1 rest=$2

	case $word in
		FROM) from $rest ;;
		COPY) copy $rest ;;
		ENV) env+=("$rest") ;;
		USER) user=$rest ;;
		RUN) in_image sh -c "$rest" ;;
		STOPSIGNAL) stopsignal=$rest ;;
		HEALTHCHECK) healthcheck=${rest##*CMD } ;;
		ENTRYPOINT) entrypoint=$(tr -d '[]"' <<<"$rest") ;;
		VOLUME | EXPOSE) : ;;
		*) echo "unknown instruction: $word"; return 1 ;;
	esac
}

while read -r word rest; do
	case $word in '' | '#'*) continue ;; esac
	began=$SECONDS
	if instruction "$word" "$rest" >"$WORK/log" 2>&1 </dev/null; then
		ok "$word ${rest:0:60}, $((SECONDS - began)) s"
	else
		not_ok "$word $rest"
		exit 1
	fi
done < <(sed -e ':a' -e '/\\$/N; s/\\\n[[:space:]]*/ /; ta' "$file")

# ---- the container ------------------------------------------------------------------------

# container VARIABLE=VALUE... -- COMMAND: a shell script beside the container's process, in its
# namespaces; $pid is that of the server.  What the script says goes to the log.
container()
{
	local vars=() script

	while [ "$1" != -- ]; do vars+=("$1") && shift; done
	script=$2
	in_image /usr/bin/env "${vars[@]}" bash -uc "
		$entrypoint >/tmp/server.log 2>&1 & pid=\$!
		healthy() { for i in \$(seq 600); do $healthcheck >/dev/null 2>&1 && return 0; kill -0 \$pid 2>/dev/null || break; sleep 0.1; done; cat /tmp/server.log; return 1; }
		stop() { kill -${stopsignal#SIG} \$pid; wait \$pid; }
		ask() { PGPASSWORD=secret psql -X -q -A -t -h 127.0.0.1 -U postgres -c \"\$1\"; }
		is() { [ \"\$1\" = \"\$2\" ] || { echo \"\$3: got \$1, want \$2\"; cat /tmp/server.log; exit 1; }; }
		$script" >"$WORK/log" 2>&1 </dev/null
}

try()
{
	if container "${@:2}"; then ok "$1"; else not_ok "$1"; fi
}

try "without a password it says what to do" -- '
	wait $pid && exit 1
	grep -q "POSTGRES_PASSWORD" /tmp/server.log && [ ! -e $PGDATA/PG_VERSION ]'
try "a first start that is killed in the middle" POSTGRES_PASSWORD=secret -- '
	for i in $(seq 600); do [ -e $PGDATA/artidx-unfinished ] && break; sleep 0.02; done
	[ -e $PGDATA/artidx-unfinished ] && kill -9 $pid'
try "is finished by the next; is healthy then, not before; memory from the environment; a look-up over TCP" POSTGRES_PASSWORD=secret ARTIDX_MEMORY=96MB -- '
	healthy || exit 1
	[ ! -e $PGDATA/artidx-unfinished ] || exit 1
	is "$(ask "SHOW artidx.memory")" 96MB memory
	ask "CREATE TABLE t (n int, v text); CREATE UNIQUE INDEX t_n ON t USING art (n)"
	ask "INSERT INTO t SELECT i, i::text FROM generate_series(1, 10000) i"
	is "$(ask "SET enable_seqscan = off; SELECT v FROM t WHERE n = 4711")" 4711 "the look-up"
	ask "CREATE DATABASE another" && PGPASSWORD=secret psql -X -q -h 127.0.0.1 -U postgres another -c "CREATE INDEX ON pg_temp.u USING art (n)" 2>&1 |
		grep -q "does not exist" || exit 1
	PGPASSWORD=wrong psql -X -q -h 127.0.0.1 -U postgres -c "SELECT 1" 2>&1 | grep -q "password authentication failed" || exit 1
	stop'
try "the next start has the rows, and the index from its file" POSTGRES_PASSWORD=other -- '
	healthy || exit 1
	is "$(ask "SET enable_seqscan = off; SELECT v FROM t WHERE n = 4711")" 4711 "the look-up"
	grep -q "artidx: loaded" /tmp/server.log || { cat /tmp/server.log; exit 1; }
	is "$(ask "SELECT entries FROM artidx_check('"'t_n'"', true)")" 10000 "the entries"
	stop'
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
