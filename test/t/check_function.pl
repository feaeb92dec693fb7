# artidx_check goes over the structure some leaves at a time: a cancel ends it at once,
# and what others remove comes back meanwhile.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use List::Util qw(max);
use Test::More;
use Time::HiRes qw(time);
use ArtTest;

my $node = art_node('check', 'artidx.memory' => "'256MB'");
$node->safe_psql('postgres', 'CREATE EXTENSION artidx_debug');

$node->safe_psql('postgres', q{
	CREATE TABLE big (a bigint);
	INSERT INTO big SELECT hashint8extended(i, 1) FROM generate_series(1, 1500000) i;
	CREATE INDEX big_art ON big USING art (a);
	CREATE INDEX big_btree ON big USING art (a) WITH (structure = btree);
	CREATE TABLE small (a bigint);
	CREATE INDEX small_a ON small USING art (a) WITH (sync = rowex);
	CREATE FUNCTION epoch() RETURNS bigint LANGUAGE sql
		AS 'SELECT max(global_epoch) FROM artidx_epochs';
});

# Seconds that a check takes, with a timeout in ms or none, and how it ended.
sub check
{
	my ($index, $timeout) = @_;
	my $err;
	my $begin = time;

	$node->psql('postgres',
		"SET statement_timeout = $timeout; SELECT entries FROM artidx_check('$index')",
		stderr => \$err);
	return (time - $begin, $err);
}

for my $index (qw(big_art big_btree))
{
	# This machine may be busy: once is enough, and a walk that cannot be cut never is.
	# Each try measures anew what a whole check takes, less what a connection takes.
	my $cut = 0;

	for (1 .. 20)
	{
		my ($empty) = sort { $a <=> $b } map { (check('small_a', 0))[0] } 1 .. 3;
		my ($whole) = sort { $a <=> $b } map { (check($index, 0))[0] - $empty } 1 .. 3;
		my ($took, $err) = check($index, 1 + int(1000 * max($whole, 0) / 20));

		$cut = $took - $empty < $whole / 2 &&
		  $err =~ /canceling statement due to statement timeout/;
		last if $cut;
		diag("$index: a check takes $whole s; with a timeout of a 20th, ", $took - $empty, " s: $err");
	}
	ok($cut, "$index: a cancel ends a check at once");

	# one checks until the other, whose rows come and go, has done its share; once more
	# where that one had to wait for the disk
	my $checker = $node->background_psql('postgres');
	my $writer = $node->background_psql('postgres');
	my ($moved, $checks);

	for (1 .. 5)
	{
		$writer->query_safe('SELECT pg_advisory_lock(1)');
		$checker->query_until(qr/begun/, qq{
			\\echo begun
			DO \$\$ DECLARE n int := 0; BEGIN
				LOOP
					PERFORM artidx_check('$index');
					n := n + 1;
					EXIT WHEN pg_try_advisory_lock(1);
				END LOOP;
				PERFORM set_config('t.checks', n::text, false);
			END \$\$;
		});
		$node->poll_query_until('postgres',
			q{SELECT count(*) = 1 FROM pg_stat_activity WHERE query ~ 'DO' AND state = 'active' AND pid <> pg_backend_pid()});
		$moved = $writer->query_safe(q{
			CREATE TEMP TABLE e AS SELECT epoch() AS before;
			DO $$ BEGIN
				FOR i IN 1 .. 40 LOOP
					INSERT INTO small SELECT hashint8extended(j, i) FROM generate_series(1, 4000) j;
					TRUNCATE small;
					COMMIT;
				END LOOP;
			END $$;
			SELECT epoch() - before FROM e;
			DROP TABLE e});
		$writer->query_safe('SELECT pg_advisory_unlock(1)');
		$checks = $checker->query_safe(q{SELECT current_setting('t.checks') FROM pg_advisory_unlock(1)});
		diag("$index: the epoch moved $moved times during $checks checks");
		last if $moved > 3 * $checks;
	}
	# a walk in one epoch lets it move once, and once more before the next
	cmp_ok($moved, '>', 3 * $checks, "$index: the epoch moves in the midst of a check");
	$_->quit for $checker, $writer;
}
is(join("\n", server_crashes($node)), '', 'nothing crashed');
$node->stop;
done_testing();
