#!/bin/bash
#
# test/bench/unused.sh
#	  What does artidx cost a server that preloads it and has no art index?  "make unused" calls it.
#
# Two servers with the same tables, one with artidx preloaded and one without, run pgbench -S in
# turn, forwards and backwards.  Of each turn comes a ratio of transactions a second, and one of
# the server's processor time a transaction, which what else the machine does changes less.  A
# third server is as the first: its ratios say what a ratio of 1 looks like here.  Prints the
# medians, and the quartiles.  Then the instructions of a statement, by valgrind if that is here,
# which nothing else changes.
#
#	SCALE=10			of pgbench
#	CLIENTS="1 8"		of pgbench, one after the other
#	SECONDS_EACH=5		of a run
#	REPS=10				turns
#	RESULTS=dir			default: bench-results/unused-<date> in the tree
#
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

: "${SCALE:=10}" "${CLIENTS:=1 8}" "${SECONDS_EACH:=5}" "${REPS:=10}"
: "${RESULTS:=$TREE/bench-results/unused-$(date +%Y%m%d-%H%M%S)}"
art_whole_numbers 1 SCALE SECONDS_EACH REPS
art_results_dir

# server NAME PORT [setting...]: with pgbench's tables, in memory
server()
{
	local name=$1

	art_cluster "$name" "port = $2" "shared_buffers = '$((SCALE * 20 + 128))MB'" "fsync = off" "autovacuum = off" \
		"checkpoint_timeout = '1d'" "${@:3}"
	PGPORT=$2
	as_user "$BIN/pgbench" -i -q -s "$SCALE" >"$RESULTS/$name.log" 2>&1 || art_die "no tables: $(tail -3 "$RESULTS/$name.log")"
	sql "VACUUM FREEZE"
	sql "CREATE EXTENSION pg_prewarm; SELECT pg_prewarm('pgbench_accounts'), pg_prewarm('pgbench_accounts_pkey')" >/dev/null
}

# ticks NAME: the processor time of the backends that have ended, in ticks
ticks()
{
	# behind the name, which is in brackets: cutime and cstime
	sed 's/.*) //' "/proc/$(head -1 "$WORK/$1/postmaster.pid")/stat" | awk '{ print $14 + $15 }'
}

# run_one NAME PORT CLIENTS: "tps us", the second of processor time a transaction
run_one()
{
	local before out

	before=$(ticks "$1")
	out=$(PGPORT=$2 as_user "$BIN/pgbench" -n -S -M prepared -c "$3" -j 1 -T "$SECONDS_EACH" 2>&1) || art_die "$out"
	# the backends of pgbench end when it has gone
	until [ "$(PGPORT=$2 sql "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgbench'")" = 0 ]; do
		sleep 0.1
	done
	sleep 0.2
	awk -v ticks=$(($(ticks "$1") - before)) -v hz="$(getconf CLK_TCK)" '
		/^number of transactions actually processed/ { n = $NF }
		/^tps = / { tps = $3 }
		END { printf "%.1f %.3f\n", tps, ticks * 1e6 / hz / n }' <<<"$out"
}

# instructions NAME KIND: of one statement of pgbench -S, in a server of a single user that is stopped.
# Of two lengths, so that the beginning and the end do not count.
instructions()
{
	local n count counts=()

	for n in 500 1500; do
		count=$(perl -e '
			srand 1;
			print "PREPARE p (int) AS SELECT abalance FROM pgbench_accounts WHERE aid = \$1;\n";
			printf $ARGV[2] eq "prepared" ? "EXECUTE p (%d);\n" : "SELECT abalance FROM pgbench_accounts WHERE aid = %d;\n",
				1 + rand $ARGV[1] foreach 1 .. $ARGV[0]' "$n" $((SCALE * 100000)) "$2" |
			as_user valgrind --tool=callgrind --callgrind-out-file=/dev/null "$BIN/postgres" --single -D "$WORK/$1" postgres 2>&1 >/dev/null |
			sed -n 's/^==[0-9]*== Collected : //p')
		counts+=("$count")
	done
	echo $(((counts[1] - counts[0]) / 1000))
}

art_setup unused
server without 65439
server with 65440 "shared_preload_libraries = 'artidx'" "artidx.memory = '128MB'"
server again 65441
for clients in $CLIENTS; do
	for rep in $(seq "$REPS"); do
		order="without with again"
		[ $((rep % 2)) -eq 1 ] || order="again with without"
		for name in $order; do
			case $name in without) port=65439 ;; with) port=65440 ;; again) port=65441 ;; esac
			echo "$clients $rep $name $(run_one "$name" "$port" "$clients")"
		done
	done
done >"$RESULTS/runs.txt" || art_die "pgbench failed"
{
	echo "pgbench -S, scale $SCALE, $REPS turns of $SECONDS_EACH s; load before $LOAD_BEFORE, at the end $(cut -d' ' -f1 /proc/loadavg); $(PGPORT=65439 sql 'SHOW server_version')"
	perl -e '
		my %run;
		while (<>) { my ($c, $rep, $name, @at) = split; $run{$c}{$rep}{$name} = \@at; }
		sub at { my ($part, @sorted) = @_; @sorted = sort { $a <=> $b } @sorted; return $sorted[$part * $#sorted + 0.5]; }
		printf "%-8s %-22s %8s %8s %8s\n", "clients", "", "median", "1st q", "3rd q";
		foreach my $c (sort { $a <=> $b } keys %run)
		{
			foreach my $of ([ with => "with / without" ], [ again => "without / without" ])
			{
				foreach my $what ([ 0, "tps" ], [ 1, "1 / processor time" ])
				{
					my @ratios = map { $what->[0] ? $_->{without}[1] / $_->{$of->[0]}[1] : $_->{$of->[0]}[0] / $_->{without}[0] } values %{ $run{$c} };
					printf "%-8d %-38s %6.3f %8.3f %8.3f\n", $c, "$of->[1], $what->[1]", map { at($_, @ratios) } 0.5, 0.25, 0.75;
				}
			}
		}' "$RESULTS/runs.txt"
	if command -v valgrind >/dev/null 2>&1; then
		for name in without with again; do
			DATA=$WORK/$name art_cluster_stop
		done
		for kind in simple prepared; do
			echo "instructions of a statement, $kind: $(for name in without with; do echo "$(instructions $name $kind) $name"; done | xargs |
				awk '{ printf "%d %s, %d %s, ratio %.4f", $1, $2, $3, $4, $1 / $3 }')"
		done
	else
		echo "instructions are not counted: there is no valgrind"
	fi
} | tee "$RESULTS/unused.txt"
