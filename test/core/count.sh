#!/bin/sh
# Instructions an operation, one process, counted by callgrind, so the same on
# every run: each engine as it ships ($1), beside itself without counters ($2)
# and beside the centralized latch, olc, without them.
#
#   count.sh benchcount benchcount-without-counters
#
# Fails above 1.03: of any engine against itself, and of OptiQL's against olc's.
# (The others differ from olc in more than the latch: a coarse one is taken on
# top of all, ROWEX's nodes are not sorted.)  N=keys, STRUCTURES="art-olc ..".
set -e
with=$1 without=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# count NAME PROGRAM STRUCTURE SET: lines "operation instructions-each"
count()
{
	(cd "$dir" && rm -f cg.* && AX_STRUCTURE=$3 valgrind --tool=callgrind -q --collect-atstart=no \
		--callgrind-out-file=cg.out "$2" "${N:-5000}" "$4" > ops 2> err || { cat err >&2; exit 1; })
	# "desc: Trigger: Client Request: insert", later "totals: 123"
	awk 'FNR == NR { ops[$1] = $2; next }
		/^desc: Trigger: Client Request:/ { what = $NF }
		/^(totals|summary):/ { if (what != "") { printf "%s %.1f\n", what, $2 / ops[what]; what = "" } }' \
		"$dir/ops" "$dir"/cg.out* | sort -u > "$dir/$1"
	test -s "$dir/$1"
}

fail=0
for set in random dense; do
	printf '\n%-14s %-9s %9s %9s %7s %7s\n' "$set" operation shipped 'no count' ratio 'of olc'
	for s in $STRUCTURES; do
		count shipped "$with" "$s" $set
		count plain "$without" "$s" $set
		case $s in *-olc) cp "$dir/plain" "$dir/${s%%-*}.olc" ;; esac
		for op in insert contains lookup scan remove; do
			awk -v s="$s" -v op=$op -v olc="$dir/${s%%-*}.olc" '
				function get(f,  l, a) { while ((getline l < f) > 0) { split(l, a, " "); if (a[1] == op) { close(f); return a[2] } }
					print "no count of " op; exit 2 }
				BEGIN { a = get(ARGV[1]); b = get(ARGV[2]); c = get(olc)
					bad = a / b > 1.03 || (s ~ /-optiql$/ && a / c > 1.03)
					printf "%-14s %-9s %9.1f %9.1f %7.3f %7.3f%s\n", s, op, a, b, a / b, a / c, bad ? "  above 1.03" : ""
					exit bad }' "$dir/shipped" "$dir/plain" || fail=1
		done
	done
done
echo
[ $fail -eq 0 ] && echo 'ok - core count' || echo 'not ok - core count: more than 1.03'
exit $fail
