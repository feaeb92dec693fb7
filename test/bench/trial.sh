#!/bin/bash
#
# test/bench/trial.sh
#	  Do others notice a trial?  "make trial" calls it.
#
# pgbench's clients run its standard transactions all the time.  In turn they are alone for
# some seconds, beside an artidx_trial() of pgbench_accounts_pkey, and alone again.  Prints the
# latencies of the transactions that began in each, and their ratios to alone: that of "again"
# says what else the machine did.
#
#	SCALE=20		of pgbench
#	CLIENTS=2		of pgbench
#	RATE=400		transactions a second, of all clients; 0: as many as can be
#	SECONDS_EACH=10		of a trial, and alone
#	REPS=5			turns
#	RESULTS=dir		default: bench-results/trial-<date> in the tree
#
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

: "${SCALE:=20}" "${CLIENTS:=2}" "${RATE:=400}" "${SECONDS_EACH:=10}" "${REPS:=5}"
: "${RESULTS:=$TREE/bench-results/trial-$(date +%Y%m%d-%H%M%S)}"
art_whole_numbers 1 SCALE CLIENTS SECONDS_EACH REPS
art_whole_numbers 0 RATE
art_results_dir

# turns OUT: the turns, and pgbench's log and ours in OUT
turns()
{
	local i rate=()

	[ "$RATE" -eq 0 ] || rate=(--rate "$RATE")
	as_user "$BIN/pgbench" -n -c "$CLIENTS" -T $((REPS * (3 * SECONDS_EACH + 60))) "${rate[@]}" \
		-l --log-prefix="$1/pgbench" >"$1/pgbench.out" 2>&1 &
	sleep 5
	for i in $(seq "$REPS"); do
		echo "alone $(date +%s.%N)"
		sleep "$SECONDS_EACH"
		echo "trial $(date +%s.%N)"
		sql "CALL artidx_trial('pgbench_accounts_pkey', $SECONDS_EACH)" >/dev/null || return 1
		echo "again $(date +%s.%N)"
		sleep "$SECONDS_EACH"
	done
	echo "end $(date +%s.%N)"
	kill $!
	wait $! 2>/dev/null
	return 0
}

# percentiles OUT: each is the median of the turns
percentiles()
{
	cat "$1"/pgbench.[0-9]* | perl -e '
		use strict; use warnings;
		open my $t, "<", $ARGV[0] or die; my @turns = map { [split] } <$t>;
		my (%ms, %at);
		while (my ($client, $no, $us, $file, $s, $u, $late) = split " ", <STDIN> // "")
		{
			# pgbench was ended in the middle of its last line
			last if !defined $u;
			my $began = $s + $u / 1e6 - $us / 1e6;
			my $i = (grep { $turns[$_][1] <= $began } 0 .. $#turns)[-1];
			push @{ $ms{$turns[$i][0]}{$i} }, ($us - ($late || 0)) / 1000 if defined $i;
		}
		printf "%-8s %8s %8s %8s %8s\n", "", "number", "p50 ms", "p95 ms", "p99 ms";
		foreach my $turn ("alone", "trial", "again")
		{
			my ($n, @all) = (0);
			foreach my $of (values %{ $ms{$turn} })
			{
				my @sorted = sort { $a <=> $b } @$of;
				$n += @sorted;
				push @{ $all[$_] }, $sorted[$#sorted * (0.5, 0.95, 0.99)[$_]] foreach 0 .. 2;
			}
			$at{$turn} = [map { (sort { $a <=> $b } @$_)[$#$_ / 2] } @all];
			printf "%-8s %8d %8.2f %8.2f %8.2f\n", $turn, $n, @{ $at{$turn} };
		}
		foreach my $turn ("trial", "again")
		{
			printf "%-17s %8.2f %8.2f %8.2f\n", "$turn / alone", map { $at{$turn}[$_] / $at{alone}[$_] } 0 .. 2;
		}
	' "$1/turns"
}

art_setup trial
art_cluster trial "shared_preload_libraries = 'artidx'" "artidx.memory = '$((SCALE * 4 + 256))MB'" \
	"shared_buffers = '$((SCALE * 20 + 128))MB'" "fsync = off" "max_wal_size = '20GB'" "checkpoint_timeout = '1d'" \
	"autovacuum = off"
sql "CREATE EXTENSION artidx" >/dev/null || art_die "no extension"
as_user "$BIN/pgbench" -i -q -s "$SCALE" >"$RESULTS/pgbench.log" 2>&1 || art_die "no tables: $(tail -3 "$RESULTS/pgbench.log")"
out=$(mktemp -d "${WORK:-/tmp}/trial.XXXXXX")
chmod 777 "$out"
turns "$out" >"$out/turns" || art_die "the trial failed"
echo "scale $SCALE, $CLIENTS clients, rate $RATE, $REPS turns of $SECONDS_EACH s; $(sql 'SHOW server_version')" | tee "$RESULTS/trial.txt"
percentiles "$out" | tee -a "$RESULTS/trial.txt"
