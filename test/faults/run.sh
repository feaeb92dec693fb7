#!/bin/bash
#
# test/faults/run.sh
#	  Consistency through faults: "make faults" calls it, and README.md beside it says all.
#
# Clients that know what must be so (test/faults/client), a primary and a synchronous
# standby, and one fault after the other: processes that are killed or stand still,
# failover, a network that is cut, a disk and a memory that are full, a clock that
# jumps, DDL.  After each one everything is compared on both servers.
#
#	FAULT_SECONDS=60	length
#	SEED=number			decides which faults come when; printed
#	WORKLOADS="bank fork set append claim agg skew"
#	NEMESES=			names in client/nemeses.py; all of them
#	MEMORY=24MB			artidx.memory of each server
#	PLANTS=1			instead: plants wrong answers, and counts those that are noticed
#	MUTANT=name			with that mistake of test/mutants in the library: is it noticed?
#	RESULTS=dir			default: bench-results/faults-<date> in the tree; histories of a failure
#
# As root it makes network namespaces and small file systems, and takes them away.  An
# ordinary user has neither: the faults that want them are named and not run.
#
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

: "${FAULT_SECONDS:=60}" "${SEED:=}" "${WORKLOADS:=}" "${NEMESES:=}" "${MEMORY:=24MB}" "${PLANTS:=0}" "${MUTANT:=}"
: "${RESULTS:=$TREE/bench-results/faults-$(date +%Y%m%d-%H%M%S)}"
art_whole_numbers 1 FAULT_SECONDS

# networks: three of them, the clients with a, with b, and a with b
NET="artidx-$$"
networks()
{
	local net=$((RANDOM % 200 + 20)) name

	for name in clients a b; do
		ip netns add "$NET-$name" && ip -n "$NET-$name" link set lo up || return 1
	done
	connect clients to-a "10.213.$net.1" a clients "10.213.$net.2" &&
		connect clients to-b "10.213.$net.5" b clients "10.213.$net.6" &&
		connect a peer "10.213.$net.9" b peer "10.213.$net.10" || return 1
	NAMESPACES="a=$NET-a b=$NET-b"
	ADDRESSES="a=10.213.$net.2 b=10.213.$net.6 a-for-b=10.213.$net.9 b-for-a=10.213.$net.10"
}

# connect ROOM DEVICE ADDRESS ROOM DEVICE ADDRESS: a link between two namespaces
connect()
{
	ip -n "$NET-$1" link add "$2" type veth peer name "$5" netns "$NET-$4" &&
		ip -n "$NET-$1" addr add "$3/30" dev "$2" && ip -n "$NET-$4" addr add "$6/30" dev "$5" &&
		ip -n "$NET-$1" link set "$2" up && ip -n "$NET-$4" link set "$5" up
}

undo()
{
	local rc=$? name

	# the servers must be gone before their file systems
	for name in a b; do
		[ ! -f "$WORK/$name/postmaster.pid" ] || as_user "$BIN/pg_ctl" -D "$WORK/$name" -m immediate -w -t 20 stop >/dev/null 2>&1
		umount "$WORK/small-$name" 2>/dev/null
	done
	for name in clients a b; do
		ip netns del "$NET-$name" 2>/dev/null
	done
	(exit "$rc")
	art_cleanup
}

faketime()
{
	ls /usr/lib/*/faketime/libfaketime.so.1 2>/dev/null | head -1
}

if [ -z "$(faketime)" ] && [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1; then
	art_apt update
	(art_apt install libfaketime)
fi
art_setup faults
if [ -n "$MUTANT" ]; then
	perl "$TREE/test/mutants/mutate.pl" apply "$MUTANT" "$SRC" || art_die "no such mutation: $MUTANT"
	as_user make -s -j2 -C "$SRC" PG_CONFIG="$PG_CONFIG" WERROR=0 install >>"$WORK/build.log" 2>&1 || art_die "the mutation does not build"
fi
python3 -m venv "$WORK/venv" && "$WORK/venv/bin/pip" -q install "psycopg[binary]" ||
	art_die "python3 -m venv, pip and a package index are needed"

NAMESPACES= ADDRESSES= ENTER=()
if [ "$(id -u)" -eq 0 ]; then
	trap undo EXIT
	networks || art_die "no network namespaces, though root"
	for name in a b; do
		mkdir "$WORK/small-$name" && mount -t tmpfs -o size=24m tmpfs "$WORK/small-$name" && chown "$RUN_AS" "$WORK/small-$name" ||
			art_die "no small file system, though root"
	done
	ENTER=(nsenter --net="/run/netns/$NET-clients")
fi
options=()
[ "$PLANTS" = 0 ] || options+=(--plants)
# the engines of all tests, and the one that is a version of another
PYTHONPATH=$TREE/test/faults PYTHONDONTWRITEBYTECODE=1 "${ENTER[@]}" "$WORK/venv/bin/python" -m client \
	--work "$WORK" --bin "$BIN" --user "$RUN_AS" --results "$RESULTS" --port $((40000 + RANDOM % 20000)) \
	--engines "$(art_engines) hydra-mvrlu" --memory "$MEMORY" --namespaces "$NAMESPACES" --addresses "$ADDRESSES" \
	--faketime "$(faketime)" --more-conf "$(art_elision_conf)" --tsv "$WORK/faults.tsv" \
	--seconds "$FAULT_SECONDS" --seed "$SEED" --workloads "$WORKLOADS" --nemeses "$NEMESES" "${options[@]}"
rc=$?
if [ -f "$WORK/faults.tsv" ] && [ -z "$MUTANT" ]; then
	mapfile -t values < <(tr '\t' '\n' <"$WORK/faults.tsv")
	if [ "$PLANTS" = 0 ]; then
		art_evidence faults "make faults SECONDS=$FAULT_SECONDS" \
			"What clients were told stays so, and indexes answer as tables, on a primary and its standby, through faults." \
			"${values[@]}"
	else
		art_evidence faults-plants "make faults PLANTS=1" \
			"The checker of make faults notices each wrong answer that is planted." "${values[@]}"
	fi
fi
exit $rc
