# One table on three servers: partitions over postgres_fdw, with art indexes on each, a
# local partition among them.  COPY, inserts, updates that move rows, and remote backends
# that die go on in between.  Every question is asked of art, of no index anywhere, and of
# a plain copy of the tables; and every index is compared with its table.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);
use ArtTest;

my %node = map {
	$_ => art_node($_, restart_after_crash => 'on', log_line_prefix => $ArtTest::LOG_PREFIX,
		'artidx.memory' => "'64MB'")
} qw(front east west);
my $front = $node{front};

# ---- the tables ----

# Both tables on hash.  A remote partition is one on its own server, too: so that server
# refuses rows of another.
my $parents = q{
	CREATE TABLE customer (id int NOT NULL, name text) PARTITION BY HASH (id);
	CREATE TABLE purchase (customer int NOT NULL, id int NOT NULL, item text, paid int)
		PARTITION BY HASH (customer);
};

# Partition $r of both, with its indexes.
sub partition
{
	my ($r) = @_;

	return qq{
	CREATE TABLE customer_$r PARTITION OF customer FOR VALUES WITH (MODULUS 3, REMAINDER $r);
	CREATE UNIQUE INDEX customer_${r}_id ON customer_$r USING art (id);
	CREATE TABLE purchase_$r PARTITION OF purchase FOR VALUES WITH (MODULUS 3, REMAINDER $r);
	CREATE UNIQUE INDEX purchase_${r}_key ON purchase_$r USING art (customer, id);
	CREATE INDEX purchase_${r}_item ON purchase_$r USING art (item) WITH (structure = btree);
	};
}

# the role that asks decides about the plans, on every server
foreach my $n (values %node)
{
	$n->safe_psql('postgres', q{
	CREATE ROLE by_art SUPERUSER LOGIN;
	ALTER ROLE by_art SET enable_seqscan = off;
	ALTER ROLE by_art SET enable_partitionwise_join = on;
	ALTER ROLE by_art SET enable_partitionwise_aggregate = on;
	CREATE ROLE by_heap SUPERUSER LOGIN;
	ALTER ROLE by_heap SET enable_indexscan = off;
	ALTER ROLE by_heap SET enable_indexonlyscan = off;
	ALTER ROLE by_heap SET enable_bitmapscan = off;
	} . $parents);
}
$node{east}->safe_psql('postgres', partition(1));
$node{west}->safe_psql('postgres', partition(2) . q{
	CREATE TABLE visit_old (day date NOT NULL, customer int NOT NULL, page text,
		CHECK (day < '2026-01-01'));
	CREATE UNIQUE INDEX visit_old_key ON visit_old USING art (day, customer);
});
my $schema = 'CREATE EXTENSION postgres_fdw;' . partition(0);
my %options = (east => "use_remote_estimate 'true', batch_size '100'", west => "fetch_size '7'");
my %remainder = (east => 1, west => 2);
foreach my $name (sort keys %remainder)
{
	my ($n, $r) = ($node{$name}, $remainder{$name});

	$schema .= sprintf q{CREATE SERVER %s FOREIGN DATA WRAPPER postgres_fdw OPTIONS
		(host '%s', port '%s', dbname 'postgres', async_capable 'true', %s);},
	  $name, $n->host, $n->port, $options{$name};
	$schema .= "CREATE USER MAPPING FOR $_ SERVER $name OPTIONS (user '$_');"
	  foreach qw(by_art by_heap);
	$schema .= "CREATE FOREIGN TABLE ${_}_$r PARTITION OF $_
		FOR VALUES WITH (MODULUS 3, REMAINDER $r) SERVER $name;"
	  foreach qw(customer purchase);
}
$front->safe_psql('postgres', $schema . q{
	CREATE TABLE visit (day date NOT NULL, customer int NOT NULL, page text) PARTITION BY RANGE (day);
	CREATE FOREIGN TABLE visit_old PARTITION OF visit FOR VALUES FROM (MINVALUE) TO ('2026-01-01')
		SERVER west;
	CREATE TABLE visit_new PARTITION OF visit FOR VALUES FROM ('2026-01-01') TO (MAXVALUE);
	CREATE UNIQUE INDEX visit_new_key ON visit_new USING art (day, customer);
	-- of the parent: the local partition gets one, a foreign one cannot
	CREATE INDEX visit_customer ON visit USING art (customer);

	CREATE SCHEMA plain;
	CREATE TABLE plain.customer (id int, name text);
	CREATE TABLE plain.purchase (customer int, id int, item text, paid int);
	CREATE TABLE plain.visit (day date, customer int, page text);
});

# ---- writing and asking ----

my $as_art = [ '-U', 'by_art' ];

# Run the statements on the partitions, and then on the plain copy.
sub both
{
	my ($sql) = @_;

	$front->safe_psql('postgres', $sql, extra_params => $as_art);
	$front->safe_psql('postgres', "SET search_path = plain; $sql");
	return;
}

# Customers of each server.  The last ones get no purchases.
both('INSERT INTO customer SELECT i, \'name \' || i % 20 FROM generate_series(1, 80) i');
my %customers = map {
	$_ => [ split /\n/, $front->safe_psql('postgres', 'SELECT id FROM customer WHERE tableoid = '
		  . "'customer_" . ($remainder{$_} // 0) . "'::regclass ORDER BY id", extra_params => $as_art) ]
} keys %node;
my ($here, $east, $west) = map { $customers{$_} } qw(front east west);
cmp_ok(scalar(@$_), '>=', 10, 'each server has customers') foreach $here, $east, $west;

my @questions = (
	(map { "SELECT item, paid FROM purchase WHERE customer = $_ AND id = 3" }
		  $here->[0], $east->[0], $west->[0], $here->[1], $east->[1], $west->[1]),
	q{SELECT count(*), sum(customer), sum(id), sum(paid) FROM purchase},
	q{SELECT count(*), sum(id), sum(paid) FROM purchase WHERE item = 'item 7'},
	q{SELECT customer, id, item FROM purchase WHERE customer BETWEEN 10 AND 30 AND id < 30
		ORDER BY customer DESC, id LIMIT 40},
	q{SELECT customer, max(id), min(item) FROM purchase WHERE customer < 40 GROUP BY 1 ORDER BY 1},
	# joined on the servers, by the key of the partitions
	q{SELECT c.name, count(*), sum(p.paid) FROM customer c JOIN purchase p ON p.customer = c.id
		WHERE c.id IN (1, 2, 3, 4, 5, 6, 7, 8) GROUP BY 1 ORDER BY 1},
	q{SELECT count(*), sum(p.id) FROM customer c JOIN purchase p ON p.customer = c.id AND p.id = c.id},
	# and across them
	q{SELECT count(*), sum(p.id), max(v.page) FROM visit v JOIN purchase p ON p.customer = v.customer
		WHERE v.day = '2025-12-31' AND p.id < 9},
	q{SELECT count(*), sum(v.customer) FROM visit v JOIN customer c ON c.id = v.customer
		WHERE v.day BETWEEN '2025-12-28' AND '2026-01-03' AND c.name = 'name 3'},
	q{SELECT id FROM customer c WHERE NOT EXISTS (SELECT FROM purchase p WHERE p.customer = c.id)
		ORDER BY id},
	q{SELECT page, day FROM visit WHERE customer = 17 ORDER BY day},
	q{PREPARE p (int) AS SELECT count(*), sum(paid) FROM purchase WHERE customer = $1;
		SET plan_cache_mode = force_generic_plan;}
	  . join('', map { "EXECUTE p ($_);" } $here->[2], $east->[2], $west->[2]));

# Ask all questions in one session for each way, and compare the answers.
sub compare
{
	my ($when) = @_;
	my $all = join("\n", map { "\\echo \@$_\n$questions[$_];" } 0 .. $#questions);
	my ($art, $heap, $plain) = (
		$front->safe_psql('postgres', $all, extra_params => $as_art),
		$front->safe_psql('postgres', $all, extra_params => [ '-U', 'by_heap' ]),
		$front->safe_psql('postgres', "SET search_path = plain;\n$all"));

	is($heap, $plain, "$when: the partitions without indexes say what the plain copy says");
	return is($art, $plain, "$when: and so with art");
}

# ---- bulk ----

both("COPY purchase FROM stdin;\n"
	  . join('', map { my $c = $_; map { "$c\t$_\titem " . ($c * $_) % 50 . "\t" . $c % 7 . "\n" } 1 .. 40 } 1 .. 60)
	  . "\\.\n");
both(q{INSERT INTO visit SELECT date '2025-12-01' + i % 60, i, 'page ' || i % 9
	FROM generate_series(1, 80) i;
	INSERT INTO visit SELECT date '2025-12-31' + i % 2, i, 'again' FROM generate_series(1, 29) i;});
compare('after COPY and INSERT');
foreach my $name (sort keys %node)
{
	my $r = $remainder{$name} // 0;
	ok( $node{$name}->poll_query_until('postgres',
			"SELECT count(*) = 3 FROM pg_stat_user_indexes WHERE idx_scan > 0
				AND indexrelname IN ('purchase_${r}_key', 'purchase_${r}_item', 'customer_${r}_id')"),
		"the questions were answered by the art indexes of $name");
}

# ---- updates, and rows that move ----

both(join('', map { "UPDATE purchase SET paid = paid + 1 WHERE customer = $_ AND id BETWEEN 5 AND 9;" }
		  $here->[0], $east->[0], $west->[0])
	  . q{UPDATE purchase SET item = 'item 7' WHERE id % 10 = 0;}
	  # from here to another server: PostgreSQL does it
	  . "UPDATE purchase SET customer = $east->[0], id = id + 1000 WHERE customer = $here->[0] AND id < 20;
		UPDATE purchase SET customer = $west->[0], id = id + 1000 WHERE customer = $here->[0];
		UPDATE visit SET day = day - 60 WHERE day BETWEEN '2026-01-04' AND '2026-01-09'");
# from another server: it refuses, since the partition there is not that of the new key
fails_with($front,
	"SET ROLE by_art; UPDATE purchase SET customer = $here->[0] WHERE customer = $west->[0] AND id = 3",
	'23514', qr/"purchase_2" violates partition constraint/, 'no row leaves a remote partition by UPDATE');
fails_with($front, q{SET ROLE by_art; UPDATE visit SET day = '2026-02-01' WHERE day = '2025-12-31'},
	'23514', qr/"visit_old" violates check constraint/, 'nor where a CHECK says what belongs there');
# so it is deleted, and inserted
both(join('', map {
		my ($from, $to, $more) = @$_;
		"WITH gone AS (DELETE FROM purchase WHERE customer = $from RETURNING *)
			INSERT INTO purchase SELECT $to, id + $more, item, paid FROM gone;"
	} [ $east->[1], $here->[1], 3000 ], [ $west->[1], $east->[1], 4000 ]));
compare('after rows moved');

# what was deleted comes again, in the places of the rows that went
both('DELETE FROM purchase WHERE customer % 4 = 1');
$_->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP ON)') foreach values %node;
both(q{INSERT INTO purchase SELECT c, i, 'item ' || i, 1
	FROM generate_series(1, 60, 4) c, generate_series(1, 40) i});

# ---- unique, on each server, and over all of them ----

foreach my $name (sort keys %node)
{
	my ($c, $r) = ($customers{$name}[4], $remainder{$name} // 0);

	fails_with($front, "SET ROLE by_art; INSERT INTO purchase VALUES ($c, 7, 'twice', 0)",
		'23505', qr/"purchase_${r}_key"/, "a key that is on $name already");
}
both(qq{BEGIN;
	INSERT INTO purchase VALUES ($here->[5], 500, 'no', 0), ($east->[5], 500, 'no', 0), ($west->[5], 500, 'no', 0);
	ROLLBACK;
	BEGIN;
	INSERT INTO purchase VALUES ($here->[5], 600, 'yes', 1), ($east->[5], 600, 'yes', 1), ($west->[5], 600, 'yes', 1);
	SAVEPOINT s;
	DELETE FROM purchase WHERE id = 600;
	INSERT INTO purchase VALUES ($west->[5], 601, 'no', 0), ($east->[5], 601, 'no', 0);
	ROLLBACK TO s;
	INSERT INTO purchase VALUES ($east->[5], 602, 'yes', 1);
	COMMIT;});
# three of these are there; before 18 the parent's INSERT does not reach the local partition
$front->safe_psql('postgres', "INSERT INTO purchase VALUES ($east->[5], 600, 'no', 0), ($west->[5], 600, 'no', 0),
	($west->[5], 603, 'yes', 1) ON CONFLICT DO NOTHING;
	INSERT INTO purchase_0 VALUES ($here->[5], 600, 'no', 0) ON CONFLICT DO NOTHING", extra_params => $as_art);
$front->safe_psql('postgres', "INSERT INTO plain.purchase VALUES ($west->[5], 603, 'yes', 1)");
fails_with($front, "SET ROLE by_art; INSERT INTO purchase VALUES ($here->[5], 600, 'no', 0)
	ON CONFLICT (customer, id) DO UPDATE SET paid = 9", '42P10', qr/no unique or exclusion constraint/,
	'ON CONFLICT with columns');
compare('after rows came again, a rollback, one to a savepoint, and ON CONFLICT');

# ---- a remote backend dies, with the transaction open ----

my $s = $front->background_psql('postgres', on_error_stop => 0, extra_params => $as_art);
$s->query('BEGIN');
$s->query("INSERT INTO purchase VALUES ($_, 700, 'lost', 0)") foreach $here->[6], $east->[6], $west->[6];
is($s->query('SELECT count(*) FROM purchase WHERE id = 700'), '3', 'the transaction has its rows');
my $other_half = $node{west}->safe_psql('postgres', q{SELECT pid FROM pg_stat_activity
	WHERE application_name = 'postgres_fdw' AND state = 'idle in transaction'});
like($other_half, qr/^\d+$/, 'and one backend on another server');
kill_and_recover($node{west}, $other_half);
$s->query("INSERT INTO purchase VALUES ($west->[6], 701, 'lost', 0)");
like($s->{stderr}, qr/ERROR: /, 'the transaction fails, since its other half is gone');
$s->{stderr} = '';
$s->query('ROLLBACK');
# the session goes on, over a new connection
$s->query("INSERT INTO purchase VALUES ($_, 800, 'kept', 1)") foreach $here->[6], $east->[6], $west->[6];
is($s->{stderr}, '', 'the same session writes to all servers again');
$s->quit;
$front->safe_psql('postgres', 'INSERT INTO plain.purchase VALUES '
	  . join(', ', map { "($_, 800, 'kept', 1)" } $here->[6], $east->[6], $west->[6]));

# ---- and one dies in the middle of a COPY ----

my $offset = -s $node{east}->logfile;
$node{east}->safe_psql('postgres', q{
	CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS $$
	BEGIN
		COPY (SELECT 1) TO PROGRAM 'kill -9 $PPID';
		RETURN NEW;
	END $$;
	CREATE TRIGGER die BEFORE INSERT ON purchase_1 FOR EACH ROW WHEN (NEW.item = 'die') EXECUTE FUNCTION die();
});
my $bulk = "COPY purchase FROM stdin;\n"
  . join('', map { my $i = $_; map { "$_\t$i\tbulk\t2\n" } $here->[7], $east->[7], $west->[7] } 1001 .. 1300)
  . "\\.\n";
my ($rc, $out, $err) = $front->psql('postgres', $bulk =~ s/\t1250\tbulk/\t1250\tdie/gr,
	extra_params => $as_art);
isnt($rc, 0, 'COPY fails with the server of a partition');
like($err, qr/ERROR: /, 'and says so');
my $end = time() + $PostgreSQL::Test::Utils::timeout_default;
until (slurp_file($node{east}->logfile, $offset) =~ /all server processes terminated; reinitializing/)
{
	die 'the server does not crash' if time() > $end;
	sleep 0.02;
}
comes_back($node{east}) or BAIL_OUT('the server does not come back');
$node{east}->safe_psql('postgres', 'DROP TRIGGER die ON purchase_1');
compare('after remote backends died');

both($bulk);
compare('after the COPY was made again');

# ---- every index has what its table has ----

foreach my $name (sort keys %node)
{
	my $n = $node{$name};

	all_ready($n, "all indexes of $name are there");
	is( $n->safe_psql('postgres', 'SELECT count(*) FROM artidx_indexes i, artidx_check(i.indexrelid, true)'),
		{ front => 5, east => 3, west => 4 }->{$name}, "each index of $name is what its table is");
	is(join("\n", grep { !/terminated by signal 9/ } server_crashes($n)), '', "nothing else died on $name");
}

done_testing();
