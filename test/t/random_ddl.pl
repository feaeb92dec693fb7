# Whatever happens to indexes, nothing stays behind: hundreds of DDL commands in
# random order, finished in every way there is, in three databases at once.
#
#	DDL_ROUNDS	how many (300)
#	SEED		repeats a run
use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);
use ArtTest;

my $rounds = $ENV{DDL_ROUNDS} || 150;
my $seed = art_seed();

my $node = art_node('ddl',
	max_prepared_transactions => 20,
	max_worker_processes => 20,
	fsync => 'off',
	'artidx.memory' => "'64MB'");
my @dbs = ('one', 'two', 'three');

$node->safe_psql('postgres', q{
	SET allow_in_place_tablespaces = on;
	CREATE TABLESPACE place LOCATION '';
	CREATE DATABASE mould;
});
$node->safe_psql('postgres', "CREATE DATABASE $_") for @dbs;
$node->safe_psql($_, 'CREATE EXTENSION artidx') for @dbs, 'mould';
$node->safe_psql('mould', q{
	CREATE TABLE m (i int);
	INSERT INTO m SELECT generate_series(1, 1000);
});

sub memory
{
	my ($columns) = @_;

	return $node->safe_psql('postgres', "SELECT $columns FROM artidx_memory");
}

my $used = memory('used_bytes');
is(memory('indexes'), '0', 'nothing in the beginning');

# The commands of one round.  $e is the session's table, which is always there,
# with indexes ${e}_i on (i), ${e}_u unique on (u), ${e}_v on (v).
my $serial = 0;
my @kinds = (
	create => q{CREATE TABLE X (i int);
		INSERT INTO X SELECT generate_series(1, 500);
		CREATE INDEX X_i ON X USING art (i);
		CREATE UNIQUE INDEX X_u ON X USING art (i) WHERE i > 10;
		DROP TABLE X;},
	create_rollback => q{BEGIN;
		CREATE TABLE X (i int);
		CREATE INDEX X_i ON X USING art (i);
		INSERT INTO X SELECT generate_series(1, 500);
		ROLLBACK;},
	index_rollback => q{BEGIN; CREATE INDEX X_i ON E USING art (i, u);
		SELECT count(*) FROM E WHERE i = 5; ROLLBACK;},
	index_error => q{BEGIN; CREATE INDEX X_i ON E USING art (i, u);
		SELECT 1 / 0; COMMIT;},
	drop => q{DROP INDEX E_i; CREATE INDEX E_i ON E USING art (i);},
	drop_rollback => q{BEGIN; DROP INDEX E_i; UPDATE E SET i = i + 1 WHERE u < 10; ROLLBACK;},
	drop_and_create => q{BEGIN; DROP INDEX E_i; CREATE INDEX E_i ON E USING art (i); END;},
	truncate => q{TRUNCATE E; INSERT INTO E SELECT g, g, g FROM generate_series(1, 300) g;},
	truncate_rollback => q{BEGIN; TRUNCATE E; INSERT INTO E VALUES (1, 1, 'x'); ROLLBACK;},
	truncate_new => q{BEGIN; CREATE TABLE X (i int); CREATE INDEX X_i ON X USING art (i);
		INSERT INTO X VALUES (1); TRUNCATE X; INSERT INTO X VALUES (2); TRUNCATE X; END; DROP TABLE X;},
	reindex => q{REINDEX INDEX E_i; REINDEX TABLE E;},
	reindex_rollback => q{BEGIN; REINDEX INDEX E_u; INSERT INTO E VALUES (0, -1, 'r'); ROLLBACK;},
	reindex_concurrently => q{REINDEX INDEX CONCURRENTLY E_i; REINDEX TABLE CONCURRENTLY E;},
	concurrently => q{CREATE INDEX CONCURRENTLY X_i ON E USING art (u, i);
		DROP INDEX CONCURRENTLY X_i;},
	savepoints => q{BEGIN; SAVEPOINT a; CREATE INDEX X_1 ON E USING art (i, u); ROLLBACK TO a;
		SAVEPOINT b; REINDEX INDEX E_i; SAVEPOINT c; CREATE INDEX X_2 ON E USING art (u, i);
		RELEASE c; RELEASE b; SAVEPOINT d; TRUNCATE E; ROLLBACK TO d; DROP INDEX X_2; COMMIT;},
	savepoints_rollback => q{BEGIN; SAVEPOINT a; CREATE INDEX X_1 ON E USING art (i, u); RELEASE a;
		SAVEPOINT b; DROP INDEX E_v; ROLLBACK TO b; REINDEX INDEX E_v; ROLLBACK;},
	prepare_create => q{BEGIN; CREATE INDEX X_i ON E USING art (i, u);
		PREPARE TRANSACTION 'X'; COMMIT PREPARED 'X'; DROP INDEX X_i;},
	prepare_create_rollback => q{BEGIN; CREATE TABLE X (i int); CREATE INDEX X_i ON X USING art (i);
		PREPARE TRANSACTION 'X'; ROLLBACK PREPARED 'X';},
	prepare_drop => q{BEGIN; DROP INDEX E_i; PREPARE TRANSACTION 'X'; COMMIT PREPARED 'X';
		CREATE INDEX E_i ON E USING art (i);},
	prepare_drop_rollback => q{BEGIN; DROP INDEX E_u; PREPARE TRANSACTION 'X'; ROLLBACK PREPARED 'X';
		INSERT INTO E SELECT 5, coalesce(max(u), 0) + 1, 'p' FROM E;},
	prepare_truncate => q{BEGIN; TRUNCATE E; INSERT INTO E SELECT g, g, g FROM generate_series(1, 200) g;
		PREPARE TRANSACTION 'X'; COMMIT PREPARED 'X';},
	prepare_reindex => q{BEGIN; REINDEX INDEX E_v; PREPARE TRANSACTION 'X'; ROLLBACK PREPARED 'X';},
	prepare_move => q{BEGIN; ALTER INDEX E_v SET TABLESPACE place; PREPARE TRANSACTION 'X';
		COMMIT PREPARED 'X'; ALTER INDEX E_v SET TABLESPACE pg_default;},
	alter_type_reuse => q{ALTER TABLE E ALTER COLUMN v TYPE varchar(50);
		ALTER TABLE E ALTER COLUMN v TYPE varchar(100); ALTER TABLE E ALTER COLUMN v TYPE text;},
	alter_type_rewrite => q{ALTER TABLE E ALTER COLUMN i TYPE bigint; ALTER TABLE E ALTER COLUMN i TYPE int;},
	alter_type_rollback => q{BEGIN; ALTER TABLE E ALTER COLUMN v TYPE varchar(70);
		ALTER TABLE E ALTER COLUMN i TYPE bigint; ROLLBACK;},
	alter_type_savepoints => q{BEGIN; ALTER TABLE E ALTER COLUMN v TYPE varchar(60); SAVEPOINT a;
		ALTER TABLE E ALTER COLUMN v TYPE varchar(80); INSERT INTO E SELECT 5, coalesce(max(u), 0) + 1, 's' FROM E;
		ROLLBACK TO a; SELECT count(*) FROM E WHERE v > 'a'; DROP INDEX E_v; ROLLBACK;},
	prepare_alter_type => q{BEGIN; ALTER TABLE E ALTER COLUMN v TYPE varchar(90); PREPARE TRANSACTION 'X';
		COMMIT PREPARED 'X'; INSERT INTO E SELECT 5, coalesce(max(u), 0) + 1, 'a' FROM E;},
	prepare_alter_type_rollback => q{BEGIN; ALTER TABLE E ALTER COLUMN v TYPE varchar(95); PREPARE TRANSACTION 'X';
		ROLLBACK PREPARED 'X'; INSERT INTO E SELECT 5, coalesce(max(u), 0) + 1, 'b' FROM E;},
	move => q{ALTER INDEX E_i SET TABLESPACE place; SELECT count(*) FROM E WHERE i = 7;
		ALTER INDEX E_i SET TABLESPACE pg_default; ALTER INDEX E_u SET TABLESPACE place;
		ALTER INDEX E_u SET TABLESPACE pg_default;},
	move_rollback => q{BEGIN; ALTER INDEX E_i SET TABLESPACE place;
		SELECT count(*) FROM E WHERE i = 7; ROLLBACK;},
	move_reindex => q{REINDEX (TABLESPACE place) INDEX E_i; REINDEX (TABLESPACE pg_default) INDEX E_i;},
	options => q{ALTER INDEX E_i SET (max_memory = '32MB'); INSERT INTO E SELECT 5, coalesce(max(u), 0) + 1, 'o' FROM E;
		ALTER INDEX E_i RESET (max_memory);},
	rewrite => q{VACUUM FULL E; INSERT INTO E SELECT 5, coalesce(max(u), 0) + 1, 'f' FROM E;},
	work => q{INSERT INTO E SELECT g, (SELECT coalesce(max(u), 0) FROM E) + g, 'w' FROM generate_series(1, 50) g;
		DELETE FROM E WHERE i < 20; VACUUM E; SELECT count(*) FROM E WHERE i BETWEEN 3 AND 30;},
	schema => q{CREATE SCHEMA X CREATE TABLE t (i int); CREATE INDEX ON X.t USING art (i);
		CREATE MATERIALIZED VIEW X.m AS SELECT i FROM E; CREATE UNIQUE INDEX X_mi ON X.m USING art (i, ctid)
			WHERE false; REFRESH MATERIALIZED VIEW X.m; SET client_min_messages = warning;
		DROP SCHEMA X CASCADE; RESET client_min_messages;},);
my %kinds = @kinds;

# ctid cannot be indexed
$kinds{schema} =~ s/ \(i, ctid\)\s+WHERE false/ (i) WHERE false/;

sub script
{
	my ($session, $n) = @_;
	my $e = "e$session";
	my $sql = '';

	for my $i (1 .. $n)
	{
		my $kind = (sort keys %kinds)[ int rand keys %kinds ];
		my $text = $kinds{$kind};
		my $x = "x$session" . '_' . ++$serial;

		$text =~ s/\bE(?=\b|_)/$e/g;
		$text =~ s/\bX(?=\b|_)/$x/g;
		$sql .= "-- $kind\n$text\n";
		# in between, as a client that comes and goes
		$sql .= "\\c\n" if rand() < 0.05;
	}
	return $sql;
}

sub run_ddl
{
	my ($what, $n) = @_;
	my @runs;

	for my $session (0 .. 5)
	{
		my %r = (
			db => $dbs[ $session % 3 ],
			file => $node->basedir . '/ddl' . ++$serial . '.sql',
			out => '',
			err => '',
			session => $session);

		append_to_file($r{file}, script($session, int($n / 6) + 1));
		$r{h} = IPC::Run::start(
			[ 'psql', '-XAtq', '-d', $node->connstr($r{db}), '-f', $r{file} ],
			'<', \undef, '>', \$r{out}, '2>', \$r{err});
		push @runs, \%r;
	}

	# beside that, databases come and go
	for my $copy (1 .. 1 + $n / 50)
	{
		my $strategy = (qw(wal_log file_copy))[ $copy % 2 ];

		$node->safe_psql('mould', 'DROP INDEX IF EXISTS m_i; CREATE INDEX m_i ON m USING art (i)');
		$node->safe_psql('postgres', "CREATE DATABASE copy TEMPLATE mould STRATEGY $strategy");
		$node->safe_psql('copy', "SET enable_seqscan = off; SELECT * FROM m WHERE i = $copy");
		$node->safe_psql('postgres', 'DROP DATABASE copy');
	}
	for my $r (@runs)
	{
		$r->{h}->finish;
		my @bad = grep {
			     /\S/
			  && !/division by zero|current transaction is aborted/
			  && !/(STATEMENT|LINE \d+):|^\s/
		} split /\n/, $r->{err};
		is(join("\n", @bad), '', "$what: session $r->{session} met no error (SEED=$seed)");
	}
	$node->safe_psql('mould', 'DROP INDEX IF EXISTS m_i');
	return;
}

sub make_tables
{
	for my $session (0 .. 5)
	{
		my $e = "e$session";

		$node->safe_psql($dbs[ $session % 3 ], qq{
			CREATE TABLE $e (i int, u int, v text COLLATE "C");
			INSERT INTO $e SELECT g, g, 'v' || g FROM generate_series(1, 300) g;
			CREATE INDEX ${e}_i ON $e USING art (i);
			CREATE UNIQUE INDEX ${e}_u ON $e USING art (u);
			CREATE INDEX ${e}_v ON $e USING art (v);
		});
	}
	return;
}

# all indexes that are left are right, then nothing is left
sub clean_up
{
	my ($what) = @_;

	for my $db (@dbs)
	{
		my ($rc, $out, $err) = $node->psql($db,
			'SELECT count(*) FROM artidx_indexes i, artidx_check(i.indexrelid, true)');
		is("$rc|$out|$err", '0|6|', "$what: the indexes in $db are right");
	}
	for my $session (0 .. 5)
	{
		$node->safe_psql($dbs[ $session % 3 ], "DROP TABLE e$session");
	}

	# a prepared transaction with DDL in it has its database swept at its end
	for my $db (@dbs)
	{
		$node->safe_psql($db, q{
			CREATE TABLE last (i int);
			CREATE INDEX last_i ON last USING art (i);
			BEGIN;
			DROP TABLE last;
			PREPARE TRANSACTION 'last';
			COMMIT PREPARED 'last';
		});
	}
	memory_returns($node, $used, 0, "$what: used_bytes returns");
	ok($node->poll_query_until('postgres', 'SELECT indexes = 0 FROM artidx_memory'),
		"$what: no structure is left");
	# workers that sweep are gone, and have nothing more to say
	ok( $node->poll_query_until('postgres',
			"SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'artidx builder'"),
		"$what: no worker is busy");
	sleep 1;
	return;
}

make_tables();
run_ddl('first half', $rounds / 2);
clean_up('first half');
my $overhead = memory('overhead_bytes');

make_tables();
run_ddl('second half', $rounds / 2);
clean_up('second half');
# entries are used again: what one half needed at a time is enough for another
cmp_ok(memory('overhead_bytes'), '<=', $overhead + 8 * 4096,
	"overhead_bytes does not grow (from $overhead)");

my $log = slurp_file($node->logfile);
unlike($log, qr/PANIC|TRAP:|terminated by signal/, 'no crash');
$node->stop;
done_testing();
