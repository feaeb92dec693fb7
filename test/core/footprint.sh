#!/bin/bash
# The footprint of every transaction of elision, by site: which cache lines it
# reads and writes, traced by valgrind's lackey, so nearly the same on every run,
# and without a processor that has transactions; and how likely that overflows a
# first-level cache of 32 KiB, with 8 ways and with 4.  "make footprint" calls it.
#
#   footprint.sh benchlines
#
# Prints a table, in Markdown; fails when a section that is met all the time
# comes near where a cache overflows.  STRUCTURES="art-olc ..", SETS="random dense",
# SIZES="1000 ..", CSV=file (every value), JOBS=processors.
set -e -o pipefail
prog=$1
: "${SETS:=random dense}" "${SIZES:=1000 100000 10000000}" "${JOBS:=$(nproc)}"
command -v valgrind >/dev/null || { echo "footprint: valgrind is not installed" >&2; exit 1; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# one STRUCTURE SET SIZE
one()
{
	local f="$dir/$1.$2.$3"

	AX_STRUCTURE=$1 "$prog" fill "$f" "$2" "$3"
	# lackey speaks on its own descriptor, about itself too
	AX_STRUCTURE=$1 valgrind --tool=lackey --trace-mem=yes --basic-counts=no \
		--log-fd=9 "$prog" work "$f" 9>&1 >"$f.err" 2>&1 |
		"$prog" lines "$1" "$2" "$3" >"$f.csv" || { cat "$f.err" >&2; return 1; }
	rm -f "$f"
}
export -f one
export prog dir

for n in $SIZES; do for set in $SETS; do for s in $STRUCTURES; do
	echo "$s $set $n"
done; done; done | xargs -P "$JOBS" -L 1 bash -e -o pipefail -c 'one "$@"' one
cat "$dir"/*.csv >"$dir/all"
[ -z "${CSV:-}" ] || {
	echo "structure,set,keys,site,sections,mean,median,p99,max,written_median,written_p99,written_max,over8,over4,full8,full4,gave_up"
	cat "$dir/all"
} >"$CSV"

echo "Lines of 64 bytes that a section touches: the median, the 99th percentile and the"
echo "most, by keys in the tree; those it writes among them; the probability that so many"
echo "lines, strewn, overflow a first-level cache of 32 KiB with 8 ways, and with the 4"
echo "that another hardware thread leaves; in brackets, what the lines' real places did."
echo "Of the key sets ($SETS), the worse.  Gave up: wanted memory, and was latched."
echo
awk -F, -v sizes="$SIZES" -v order="$STRUCTURES" '
	{
		row = $4 "," $1
		sections[row] += $5
		refused[row] += $17
		k = row "," $3
		n = split("7 8 9", f, " ")
		for (i = 1; i <= n; i++)
			if ($f[i] + 0 > lines[k, i]) lines[k, i] = $f[i]
		n = split("10 11 12", f, " ")
		for (i = 1; i <= n; i++)
			if ($f[i] + 0 > written[row, i]) written[row, i] = $f[i]
		n = split("13 14 15 16", f, " ")
		for (i = 1; i <= n; i++)
			if ($f[i] + 0 > p[row, i]) p[row, i] = $f[i] + 0
	}
	function num(x) { return x == 0 ? "0" : x < 1e-6 ? "< 1e-6" : sprintf("%.1g", x) }
	END {
		ns = split(sizes, size, " ")
		no = split(order, engine, " ")
		nt = split("leaf_insert leaf_delete node_insert node_delete split tail_flush coarse_read coarse_write", site, " ")
		printf "| section | engine |"
		for (i = 1; i <= ns; i++)
			printf " %s keys |", size[i]
		print " written | 8 ways | 4 ways | gave up |"
		printf "|---|---|"
		for (i = 1; i <= ns; i++)
			printf "---|"
		print "---|---|---|---|"
		for (t = 1; t <= nt; t++)
			for (e = 1; e <= no; e++) {
				row = site[t] "," engine[e]
				if (!(row in sections))
					continue
				printf "| %s | %s |", site[t], engine[e]
				for (i = 1; i <= ns; i++) {
					k = row "," size[i]
					if ((k, 1) in lines) printf " %d, %d, %d |", lines[k, 1], lines[k, 2], lines[k, 3]
					else printf " - |"
				}
				printf " %d, %d, %d | %s (%s) | %s (%s) | %.2g %% |\n", written[row, 1], written[row, 2], written[row, 3],
					num(p[row, 1]), num(p[row, 3]), num(p[row, 2]), num(p[row, 4]),
					100 * refused[row] / (sections[row] + refused[row])
				# what every write or read does
				if (site[t] ~ /^(leaf|coarse)_/ && p[row, 1] > 1e-3) {
					printf "%s of %s overflows 8 ways once in %.0f sections\n", site[t], engine[e], 1 / p[row, 1] > "/dev/stderr"
					failed = 1
				}
			}
		exit failed
	}' "$dir/all" && ok=ok || ok='not ok'
echo
echo "So many lines, strewn, overflow the cache with the probability:"
"$prog" model | awk -F, '
	NR == 1 { printf "| |"; for (i = 2; i <= NF; i++) printf " %s |", $i; printf "\n|---|"; for (i = 2; i <= NF; i++) printf "---|"; print ""; next }
	{ printf "| %s ways |", $1; for (i = 2; i <= NF; i++) printf " %s |", $i; print "" }'
echo
echo "$ok - core footprint: no section of every day overflows 8 ways once in 1,000 times"
[ "$ok" = ok ]
