# Foreign keys that reference a key of art: each row is checked by a look-up of ours, or by
# core, and the outcome is that of the same statements on a key of btree.
use strict;
use warnings;

use File::Temp;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use ArtTest;

my $node = art_node('keys', jit => 'off', max_prepared_transactions => 2, deadlock_timeout => "'100ms'");
if ($node->pg_version < 18)
{
	# the key becomes one of btree, and core checks
	$node->safe_psql('postgres', q{
		CREATE TABLE p (id int NOT NULL);
		INSERT INTO p SELECT generate_series(1, 100);
		CREATE UNIQUE INDEX p_id ON p USING art (id);
		ALTER TABLE p ADD CONSTRAINT p_key UNIQUE USING INDEX p_id;
		CREATE TABLE c (id int REFERENCES p (id));
		INSERT INTO c SELECT generate_series(1, 100);
	});
	is($node->safe_psql('postgres', q{SELECT amname FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE relname = 'p_key'}),
		'btree', 'before 18 a foreign key references keys of btree');
	fails_with($node, 'INSERT INTO c VALUES (101)', '23503', qr/is not present in table "p"/, 'a row that references none');
	$node->stop;
	done_testing();
	exit 0;
}

my %am = (a => 'art', b => 'btree');
my $look = qr/foreign keys are looked up in art index/;

# Runs a script in one of the schemas: what it says, without the name of the method.
sub answer
{
	my ($schema, $sql, %options) = @_;
	local $ENV{PGOPTIONS} = "-c search_path=$schema,public " . ($options{with} // '');
	my ($rc, $out, $err) = $node->psql('postgres', $sql =~ s/\bAM\b/$am{$schema}/gr, on_error_stop => 0,
		extra_params => [ '-a', '-v', 'VERBOSITY=verbose' ]);
	$err =~ s/^psql:<stdin>:\d+: //mg;
	$err =~ s/\b[ab]\././g;
	$err =~ s/"[ab]"\.//g;
	return (($out =~ s/\b(art|btree)\b/AM/gr) . "\n$err", $err);
}

# The same script on both.  Returns what it said.
sub both
{
	my ($sql, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my ($art) = answer('a', $sql);
	my ($btree) = answer('b', $sql);
	$_ =~ s/^(LOCATION|SCHEMA NAME):.*\n//mg foreach $art, $btree;
	is($art, $btree, "$name: as btree");
	return $art;
}

# So many of the statement's keys are opened, in the first way and in the second.
sub looks_up
{
	my ($sql, $first, $second, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	answer('b', $sql);
	my (undef, $err) = answer('a', $sql, with => '-c client_min_messages=debug1');
	my @all = $err =~ /($look.*)/g;
	my $n = grep { /for a query/ } $err =~ /($look.*)/g;
	is((scalar(@all) - $n) . " $n", "$first $second", "$name: looked up") or diag($err);
	unlike($err, qr/ERROR|WARNING/, "$name: nothing else");
}

$node->safe_psql('postgres', 'CREATE SCHEMA a; CREATE SCHEMA b');

# ---- every statement that references ----
both(q{
	CREATE TABLE p (id int NOT NULL, t text);
	INSERT INTO p SELECT i, 'p' || i FROM generate_series(1, 1000) i;
	CREATE UNIQUE INDEX p_id ON p USING AM (id);
	CREATE TABLE c (k int, id int CONSTRAINT c_id REFERENCES p (id));
	CREATE TABLE d (k int, id int CONSTRAINT d_id REFERENCES p (id) DEFERRABLE INITIALLY DEFERRED);
	CREATE TABLE r (k int, id int CONSTRAINT r_id REFERENCES p (id)) PARTITION BY RANGE (k);
	CREATE TABLE r1 PARTITION OF r FOR VALUES FROM (0) TO (100);
	CREATE TABLE r2 PARTITION OF r FOR VALUES FROM (100) TO (1000);
	CREATE UNIQUE INDEX c_k ON c (k);
}, 'tables');
my $copied = "COPY c FROM STDIN;\n2001\t7\n2002\t8\n2003\t\\N\n\\.\n";

looks_up('INSERT INTO c SELECT i, i FROM generate_series(1, 500) i', 1, 0, 'INSERT');
looks_up('UPDATE c SET id = id + 1', 1, 0, 'UPDATE');
looks_up('UPDATE c SET k = -k', 0, 0, 'UPDATE of another column');
looks_up('INSERT INTO c VALUES (-1, 3) ON CONFLICT (k) DO UPDATE SET id = 5', 1, 0, 'ON CONFLICT');
looks_up('MERGE INTO c USING (VALUES (-2), (3000)) v (k) ON c.k = v.k
	WHEN MATCHED THEN UPDATE SET id = 9 WHEN NOT MATCHED THEN INSERT VALUES (v.k, 10)', 1, 0, 'MERGE');
looks_up('WITH w AS (INSERT INTO c VALUES (3001, 1) RETURNING k) SELECT count(*) FROM w', 1, 0, 'WITH');
looks_up('INSERT INTO r SELECT i, i FROM generate_series(1, 200) i', 0, 1, 'partitions');
looks_up('UPDATE r SET k = k + 50 WHERE k BETWEEN 20 AND 80', 0, 1, 'rows that go to another partition');
looks_up('DO $$ BEGIN FOR i IN 1..5 LOOP INSERT INTO c VALUES (4000 + i, i); END LOOP; END $$', 1, 0, 'DO opens it once');

# after five rows core keeps its plan
my $plan = 'INSERT INTO d SELECT i, i FROM generate_series(1, 6) i;';
looks_up("$plan INSERT INTO d SELECT i, i FROM generate_series(1, 50) i", 0, 2, 'deferred, at the end of each transaction');
looks_up("BEGIN; $plan SET CONSTRAINTS ALL IMMEDIATE; COMMIT", 0, 1, 'SET CONSTRAINTS');
my $rows = join '', map { "$_\t$_\n" } 5001 .. 5010;
looks_up("COPY c FROM STDIN;\n" . join('', map { "500$_\t$_\n" } 1 .. 9) . "\\.\n", 0, 1, 'COPY');

# as many scans as rows, however they were looked up
my $scans = q{SELECT pg_stat_force_next_flush(); SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelid = 'a.p_id'::regclass};
my $before = (split /\n/, $node->safe_psql('postgres', $scans))[-1];
$node->safe_psql('postgres', q{SET search_path = a; INSERT INTO c SELECT i, 1 + i % 1000 FROM generate_series(10001, 10300) i; SELECT pg_stat_force_next_flush()});
my $after = (split /\n/, $node->safe_psql('postgres', $scans))[-1];
is($after - $before, 300, 'each is counted');

# whom the executor hears of: auto_explain sees what core runs, and nothing of ours
SKIP:
{
	my (undef, $err) = answer('a', q{LOAD 'auto_explain'});
	skip 'no auto_explain here', 3 if $err =~ /ERROR/;
	my $explain = q{LOAD 'auto_explain'; SET auto_explain.log_min_duration = 0; SET auto_explain.log_nested_statements = on;
		SET auto_explain.log_level = notice; SET client_min_messages = notice; };
	(undef, $err) = answer('a', $explain . 'INSERT INTO c SELECT i, 1 + i % 1000 FROM generate_series(20001, 20100) i');
	like($err, qr/Query Text: INSERT INTO c/, 'auto_explain');
	unlike($err, qr/SELECT 1 FROM ONLY/, 'no row of a statement was checked by a query');
	(undef, $err) = answer('a', $explain . $plan);
	is(scalar(() = $err =~ /Query Text: SELECT 1 FROM ONLY/g), 6, 'around a hook of another core checks');
}

# ---- what is refused ----
my $said = both(q{
	INSERT INTO c VALUES (6001, 1001);
	INSERT INTO c VALUES (6001, 1), (6002, NULL), (6003, 5000);
	UPDATE c SET id = 7777 WHERE k = 3001;
	INSERT INTO r VALUES (7, 7777);
	INSERT INTO d VALUES (1, 7777);
	BEGIN;
	INSERT INTO d VALUES (1, 7777);
	INSERT INTO p VALUES (7777, 'late');
	COMMIT;
	DELETE FROM p WHERE id = 7777;
	BEGIN;
	INSERT INTO d VALUES (1, 8888);
	SAVEPOINT s;
	SET CONSTRAINTS ALL IMMEDIATE;
	ROLLBACK TO s;
	DELETE FROM d WHERE id = 8888;
	COMMIT;
	SELECT count(*) FROM d WHERE id = 7777;
}, 'violations');
like($said, qr/23503: insert or update on table "c" violates foreign key constraint "c_id"\nDETAIL:  Key \(id\)=\(1001\) is not present in table "p"/,
	'core says so');

# ---- keys of several columns, and of other types ----
both(q{
	CREATE TABLE p2 (x int NOT NULL, y text NOT NULL, z date NOT NULL);
	INSERT INTO p2 SELECT i, 'y' || i, date '2020-01-01' + i FROM generate_series(1, 100) i;
	CREATE UNIQUE INDEX p2_k ON p2 USING AM (z, x, y);
	CREATE TABLE c2 (a text, b bigint, c date, CONSTRAINT c2_simple FOREIGN KEY (b, a, c) REFERENCES p2 (x, y, z));
	CREATE TABLE f2 (a varchar(10), b smallint, c date, CONSTRAINT c2_full FOREIGN KEY (a, c, b) REFERENCES p2 (y, z, x) MATCH FULL);
}, 'three columns');
looks_up(q{INSERT INTO c2 SELECT 'y' || i, i, date '2020-01-01' + i FROM generate_series(1, 100) i}, 1, 0, 'three columns, another order, int8');
looks_up(q{INSERT INTO f2 SELECT 'y' || i, i, date '2020-01-01' + i FROM generate_series(1, 100) i}, 1, 0, 'MATCH FULL, varchar, int2');
$rows = join '', map { "y$_\t$_\t2020-01-0" . ($_ + 1) . "\n" } 1 .. 8;
looks_up("COPY c2 FROM STDIN;\n$rows\\.\n", 0, 1, 'COPY, three columns');
both(q{
	INSERT INTO c2 VALUES ('y1', NULL, '2020-01-02'), (NULL, NULL, NULL), ('none', NULL, NULL);
	INSERT INTO c2 VALUES ('y1', 1, '2020-01-03');
	INSERT INTO c2 VALUES ('y1', 3000000000, '2020-01-02');
	INSERT INTO f2 VALUES (NULL, NULL, NULL);
	INSERT INTO f2 VALUES ('y1', NULL, '2020-01-02');
	INSERT INTO f2 VALUES ('y1', 1, '2020-01-03');
	INSERT INTO f2 VALUES ('y1 ', 1, '2020-01-02');
}, 'nulls and others');

foreach my $t ([ 'int', 'bigint', 1 ], [ 'bigint', 'int', 1 ], [ 'text', 'varchar(20)', 1 ], [ 'varchar(20)', 'text', 1 ],
	[ 'numeric', 'numeric(10,3)', 1 ], [ 'numeric', 'int', 0 ], [ 'float8', 'float4', 1 ], [ 'uuid', 'uuid', 1 ],
	[ 'timestamptz', 'timestamptz', 1 ], [ 'date', 'timestamp', 1 ], [ 'int', 'small', 1 ], [ 'mood', 'mood', 0 ],
	[ 'int[]', 'int[]', 0 ], [ 'bytea', 'bytea', 1 ], [ 'char(5)', 'char(5)', 1 ])
{
	my ($to, $from, $looked) = @$t;
	my $value = $to eq 'uuid' ? 'md5(i::text)::uuid' : $to =~ /timestamp/ ? "timestamptz '2020-01-01 UTC' + i * interval '1 hour'"
	  : $to eq 'date' ? "date '2020-01-01' + i" : $to eq 'mood' ? "(enum_range(NULL::mood))[i]" : $to eq 'int[]' ? "ARRAY[i, i + 1]"
	  : $to eq 'bytea' ? "decode(md5(i::text), 'hex')" : $to =~ /text|char/ ? "'v' || i" : 'i';
	both(qq{
		DO 'BEGIN CREATE TYPE mood AS ENUM (''a'', ''b'', ''c'', ''d'', ''e''); EXCEPTION WHEN duplicate_object THEN END';
		DO 'BEGIN CREATE DOMAIN small AS int CHECK (VALUE < 1000); EXCEPTION WHEN duplicate_object THEN END';
		DROP TABLE IF EXISTS ct, pt;
		CREATE TABLE pt (v $to NOT NULL);
		INSERT INTO pt SELECT $value FROM generate_series(1, 4) i;
		CREATE UNIQUE INDEX pt_v ON pt USING AM (v);
		CREATE TABLE ct (v $from REFERENCES pt (v));
		INSERT INTO ct SELECT $value FROM generate_series(1, 4) i;
		INSERT INTO ct SELECT $value FROM generate_series(5, 5) i;
	}, "$from references $to");
	looks_up("INSERT INTO ct SELECT $value FROM generate_series(1, 4) i", $looked, 0, "$from references $to");
}
both(q{
	DROP TABLE ct, pt;
	CREATE TABLE pt (v text NOT NULL);
	CREATE UNIQUE INDEX pt_v ON pt USING AM (v);
	INSERT INTO pt SELECT repeat(md5(i::text), 30) FROM generate_series(1, 4) i;
	CREATE TABLE ct (v text REFERENCES pt (v));
	INSERT INTO ct SELECT repeat(md5(i::text), 30) FROM generate_series(1, 4) i;
	INSERT INTO ct SELECT repeat(md5(i::text), 30) || 'x' FROM generate_series(1, 4) i;
}, 'long values');

# ---- what is left to core altogether ----
both(q{
	CREATE TABLE pp (id int NOT NULL) PARTITION BY RANGE (id);
	CREATE TABLE pp1 PARTITION OF pp FOR VALUES FROM (0) TO (100);
	CREATE TABLE pp2 PARTITION OF pp FOR VALUES FROM (100) TO (200);
	CREATE UNIQUE INDEX pp_id ON pp USING AM (id);
	INSERT INTO pp SELECT generate_series(1, 150);
	CREATE TABLE cp (id int REFERENCES pp (id));
	INSERT INTO cp SELECT generate_series(1, 150);
	INSERT INTO cp VALUES (151);
}, 'a partitioned table is referenced');
looks_up('INSERT INTO cp VALUES (1)', 0, 0, 'a partitioned table');

# a table references itself, and rows that the statement inserts
both(q{
	CREATE TABLE s (id int NOT NULL, up int);
	CREATE UNIQUE INDEX s_id ON s USING AM (id);
	ALTER TABLE s ADD CONSTRAINT s_up FOREIGN KEY (up) REFERENCES s (id) ON UPDATE CASCADE;
	INSERT INTO s SELECT i, i + 1 FROM generate_series(1, 99) i;
	INSERT INTO s SELECT i, i % 100 + 1 FROM generate_series(1, 100) i;
	UPDATE s SET id = id + 1000;
	SELECT sum(up) FROM s;
	DELETE FROM s WHERE id = 1050;
}, 'itself');

# ---- commands, and what fails, in the middle ----
both(q{
	CREATE FUNCTION after_c() RETURNS trigger LANGUAGE plpgsql AS $$
	BEGIN
		IF NEW.k = 900000 THEN
			EXECUTE 'ALTER TABLE p ADD COLUMN more int';
		ELSIF NEW.k = 900001 THEN
			EXECUTE 'ALTER TABLE p DROP COLUMN more; REINDEX INDEX p_id; CLUSTER p USING p_t; ANALYZE p';
		ELSIF NEW.k = 900002 THEN
			BEGIN
				UPDATE p SET id = NULL WHERE id = 1;
			EXCEPTION WHEN not_null_violation THEN
				RAISE NOTICE 'not null';
			END;
		ELSIF NEW.k = 900003 THEN
			DELETE FROM p WHERE id = 999;
		END IF;
		RETURN NULL;
	END $$;
	CREATE INDEX p_t ON p (t);
	CREATE TRIGGER after_c AFTER INSERT ON c FOR EACH ROW EXECUTE FUNCTION after_c();
	DELETE FROM c; DELETE FROM d; DELETE FROM r;
	INSERT INTO c VALUES (1, 1), (900000, 2), (3, 3), (4, NULL), (900001, 5), (6, 6);
	INSERT INTO c VALUES (11, 1), (900002, 2), (13, 3);
	INSERT INTO c VALUES (21, 1), (900003, 2), (23, 999);
	INSERT INTO c VALUES (31, 1), (32, 999);
	DROP TRIGGER after_c ON c;
	SELECT k, id FROM c ORDER BY 1;
	DO $$
	BEGIN
		FOR i IN 1..20 LOOP
			BEGIN
				INSERT INTO c VALUES (100 + i, i);
				IF i % 3 = 0 THEN
					INSERT INTO c VALUES (200 + i, 5000 + i);
				END IF;
			EXCEPTION WHEN foreign_key_violation THEN
				RAISE NOTICE '%', SQLERRM;
			END;
			INSERT INTO c VALUES (300 + i, i);
			IF i = 10 THEN
				EXECUTE 'TRUNCATE d; ALTER TABLE p ALTER id SET STATISTICS 10';
			END IF;
		END LOOP;
	END $$;
	SELECT count(*), sum(k) FROM c;
	BEGIN;
	INSERT INTO c VALUES (401, 1);
	SAVEPOINT s;
	INSERT INTO c VALUES (402, 2);
	ROLLBACK TO s;
	INSERT INTO c VALUES (403, 3);
	DELETE FROM p WHERE id = 2;
	DELETE FROM p WHERE id = 900;
	INSERT INTO c VALUES (404, 900);
	ROLLBACK;
	CREATE PROCEDURE many() LANGUAGE plpgsql AS $$
	BEGIN
		FOR i IN 1..10 LOOP
			INSERT INTO c VALUES (500 + i, i);
			COMMIT;
		END LOOP;
	END $$;
	CALL many();
	BEGIN;
	INSERT INTO c VALUES (600, 6), (601, 7);
	DROP TABLE p;
	DROP TABLE p CASCADE;
	INSERT INTO c VALUES (602, 70000);
	ROLLBACK;
	SELECT count(*) FROM c WHERE k >= 500;
	BEGIN;
	INSERT INTO c VALUES (700, 1);
	ALTER TABLE c DROP CONSTRAINT c_id;
	INSERT INTO c VALUES (701, 70000);
	ROLLBACK;
	INSERT INTO c VALUES (701, 70000);
}, 'commands');

# ---- no structure ----
foreach my $way ([ 'c', 2, 0 ], [ 'd', 0, 2 ])
{
	my ($table, @looks) = @$way;
	my @sql = map { "INSERT INTO $table SELECT i, i % 500 + 1 FROM generate_series(${_}1, ${_}9) i" } 3001 .. 3003;
	looks_up("$sql[0]; SELECT artidx_unload('a.p_id'); $sql[1]; SELECT artidx_build('a.p_id'); $sql[2]", @looks,
		"$table: core checks while there is no structure");
	is($node->safe_psql('postgres', "SELECT count(*) FROM a.$table WHERE k BETWEEN 30000 AND 40000"), '27', 'all rows are there');
	$node->safe_psql('postgres', "DELETE FROM a.$table WHERE k BETWEEN 30000 AND 40000");
}
$node->safe_psql('postgres', q{SET search_path = a, public;
	CREATE FUNCTION unload() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM artidx_unload('a.p_id'); RETURN NULL; END $$;
	CREATE TRIGGER unload AFTER INSERT ON c FOR EACH ROW WHEN (NEW.k % 7 = 0) EXECUTE FUNCTION unload();
	INSERT INTO c SELECT i, i % 500 + 1 FROM generate_series(30001, 30100) i;
	DROP TRIGGER unload ON c;
	DELETE FROM c WHERE k > 30000});
check_exact($node, 'a.p', 'a.p_id');

# ---- rights are the owner's of the table that is referenced ----
$node->safe_psql('postgres', q{
	CREATE ROLE owner; CREATE ROLE writer; CREATE SCHEMA o AUTHORIZATION owner; GRANT USAGE ON SCHEMA o TO writer;
	SET ROLE owner;
	CREATE TABLE o.p (id int NOT NULL);
	INSERT INTO o.p SELECT generate_series(1, 100);
	CREATE UNIQUE INDEX op_id ON o.p USING art (id);
	CREATE TABLE o.c (id int REFERENCES o.p (id));
	GRANT INSERT ON o.c TO writer;
	ALTER TABLE o.p ENABLE ROW LEVEL SECURITY;
	ALTER TABLE o.p FORCE ROW LEVEL SECURITY;
});
looks_up('SET ROLE writer; INSERT INTO o.c VALUES (1)', 1, 0, 'who may not read the table, and its policies');
my $session = $node->background_psql('postgres', on_error_stop => 0);
$session->query_safe('SET ROLE writer; INSERT INTO o.c VALUES (1)');
foreach my $way ([ 'ALL ON o.p', 'table p' ], [ 'UPDATE ON o.p', 'table p' ], [ 'USAGE ON SCHEMA o', 'schema o' ])
{
	$node->safe_psql('postgres', "SET ROLE owner; REVOKE $way->[0] FROM owner");
	$session->query('INSERT INTO o.c VALUES (2)');
	like($session->{stderr}, qr/permission denied for $way->[1]/, "without $way->[0]");
	$session->{stderr} = '';
	$node->safe_psql('postgres', "SET ROLE owner; GRANT $way->[0] TO owner") if $way->[1] =~ /table/;
	$node->safe_psql('postgres', 'GRANT ALL ON SCHEMA o TO owner') if $way->[1] =~ /schema/;
	$session->query('INSERT INTO o.c VALUES (3)');
	is($session->{stderr}, '', 'and with it');
	$session->{stderr} = '';
}
$session->quit;

# ---- others ----
sub one_waits
{
	my ($first, $second, $end, $code, $name, $with) = @_;
	my $one = $node->background_psql('postgres');
	my $two = $node->background_psql('postgres', on_error_stop => 0);

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$one->query_safe("SET search_path = a; BEGIN; $first");
	$two->query_safe("SET search_path = a; " . ($with // '') . '; SELECT 1');
	$two->query_until(qr/begun/, "\\echo begun\n$second;\n");
	ok($node->poll_query_until('postgres',
			"SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"), "$name: waits");
	$one->query_safe($end);
	$two->query_safe('SELECT 1') if $code eq '';
	$two->query('SELECT 1') if $code ne '';
	$code eq '' ? is($two->{stderr}, '', "$name: goes on") : like($two->{stderr}, qr/$code/, "$name: fails");
	$two->query('ROLLBACK');
	$_->quit foreach $one, $two;
}
my $child = 'INSERT INTO c VALUES (50001, 700)';
one_waits('DELETE FROM p WHERE id = 700', $child, 'ROLLBACK', '', 'a deletion that is undone');
one_waits('UPDATE p SET id = 70000 WHERE id = 701', 'INSERT INTO c VALUES (50002, 701)', 'ROLLBACK', '', 'another key, undone');
one_waits('UPDATE p SET id = 70000 WHERE id = 702', 'INSERT INTO c VALUES (50003, 702)', 'COMMIT', 'is not present in table "p"', 'another key');
one_waits('DELETE FROM p WHERE id = 703', 'INSERT INTO c VALUES (50004, 703)', 'COMMIT', 'is not present in table "p"', 'a deletion');
one_waits($child =~ s/50001, 700/50005, 704/r, 'DELETE FROM p WHERE id = 704', 'COMMIT', 'is still referenced', 'the row is locked for');
one_waits('INSERT INTO d SELECT i, 705 FROM generate_series(1, 9) i; SET CONSTRAINTS ALL IMMEDIATE', 'DELETE FROM p WHERE id = 705', 'COMMIT',
	'is still referenced', 'and by a query that is answered');
one_waits('DELETE FROM p WHERE id = 706', 'INSERT INTO c VALUES (50006, 706)', 'COMMIT', 'could not serialize access due to concurrent',
	'REPEATABLE READ', 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM p');
$node->safe_psql('postgres', 'BEGIN; UPDATE a.p SET t = t WHERE id = 707; SET search_path = a; INSERT INTO c VALUES (50007, 707); COMMIT');

my ($one, $two) = map { $node->background_psql('postgres', on_error_stop => 0) } 1 .. 2;
$_->query_safe('SET search_path = a') foreach $one, $two;
# an update of no key lets a check by, and is there when it ends
$one->query_safe('BEGIN; UPDATE p SET t = \'x\' WHERE id = 708');
$two->query_safe('BEGIN; INSERT INTO c VALUES (50008, 708)');
$one->query_safe('COMMIT; BEGIN');
$one->query_safe("SET lock_timeout = '100ms'");
$one->query('DELETE FROM p WHERE id = 708');
like($one->{stderr}, qr/lock timeout/, 'the row that came of an update is locked, too');
$one->{stderr} = '';
$one->query('ROLLBACK');
$two->query_safe('COMMIT');

# what is committed later is seen in READ COMMITTED, within one statement, too
$node->safe_psql('postgres', q{
	CREATE FUNCTION a.wait_for_key() RETURNS trigger LANGUAGE plpgsql AS $$
	BEGIN PERFORM pg_advisory_lock(1); PERFORM pg_advisory_unlock(1); RETURN NULL; END $$;
	CREATE TRIGGER aa AFTER INSERT ON a.c FOR EACH ROW WHEN (NEW.k = 51000) EXECUTE FUNCTION a.wait_for_key()});
$one->query_safe('SELECT pg_advisory_lock(1)');
$two->query_until(qr/begun/, "\\echo begun\nINSERT INTO c VALUES (50999, 1), (51000, 2), (51001, 9001);\n");
$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'advisory'});
$one->query_safe(q{INSERT INTO p VALUES (9001, 'late'); SELECT pg_advisory_unlock(1)});
$two->query('SELECT 1');
is($two->{stderr}, '', 'a key that came meanwhile');
$node->safe_psql('postgres', 'DROP TRIGGER aa ON a.c');

# serializable: who read that there is no row, and who makes it
$one->query_safe('BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT count(*) FROM c WHERE id = 800');
$two->query_safe('BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT count(*) FROM p WHERE t = \'none\'');
$one->query_safe('INSERT INTO c VALUES (52000, 800)');
$two->query_safe("INSERT INTO c VALUES (52001, 800); COMMIT");
$one->query("UPDATE p SET t = 'none' WHERE id = 1");
$one->query('COMMIT');
like($one->{stderr}, qr/could not serialize access/, 'SERIALIZABLE');
$one->{stderr} = '';

# prepared, and two-phase
$one->query_safe(q{BEGIN; INSERT INTO c VALUES (53000, 801); INSERT INTO d VALUES (1, 802); PREPARE TRANSACTION 'x'});
$two->query_safe("SET lock_timeout = '100ms'");
$two->query('DELETE FROM p WHERE id = 801');
like($two->{stderr}, qr/lock timeout/, 'a prepared transaction keeps the row');
$two->{stderr} = '';
$two->query_safe(q{COMMIT PREPARED 'x'});
$_->quit foreach $one, $two;

# ---- many at once: no row is left that references none ----
$node->safe_psql('postgres', q{
	CREATE TABLE many_p (id int PRIMARY KEY, n int DEFAULT 0);
	ALTER TABLE many_p DROP CONSTRAINT many_p_pkey;
	CREATE UNIQUE INDEX many_id ON many_p USING art (id);
	INSERT INTO many_p SELECT generate_series(1, 60);
	CREATE TABLE many_c (id int REFERENCES many_p (id));
	CREATE TABLE many_d (id int REFERENCES many_p (id) DEFERRABLE INITIALLY DEFERRED);
	CREATE INDEX ON many_c (id);
	CREATE INDEX ON many_d (id);
	CREATE TABLE outcome (what text);
	CREATE FUNCTION try(what text, sql text) RETURNS void LANGUAGE plpgsql AS $$
	BEGIN
		EXECUTE sql;
		SET CONSTRAINTS ALL IMMEDIATE;
		INSERT INTO outcome VALUES (what);
	EXCEPTION WHEN foreign_key_violation OR unique_violation OR serialization_failure OR deadlock_detected THEN
		INSERT INTO outcome VALUES (what || ' ' || SQLSTATE);
	END $$;
});
my $files = File::Temp->newdir;
my @scripts;
foreach my $sql ('INSERT INTO many_c VALUES (:a), (:b), (:a)', 'INSERT INTO many_d VALUES (:a), (:b)',
	'UPDATE many_c SET id = :a WHERE id = :b', 'DELETE FROM many_c WHERE id = :a', 'DELETE FROM many_d WHERE id IN (:a, :b)',
	'DELETE FROM many_p WHERE id = :a', 'INSERT INTO many_p VALUES (:a), (:b) ON CONFLICT DO NOTHING',
	'UPDATE many_p SET n = n + 1 WHERE id IN (:a, :b)', 'UPDATE many_p SET id = :b WHERE id = :a')
{
	my $what = join ' ', (split / /, $sql)[ 0 .. 2 ];
	my $file = "$files/" . @scripts;

	append_to_file($file, "\\set a random(1, 60)\n\\set b random(1, 60)\nSELECT try('$what', '$sql');\n");
	push @scripts, '-f', $file;
}
append_to_file("$files/unload", "SELECT artidx_unload('many_id'), artidx_build('many_id') WHERE random() < 0.05;\n");
foreach my $isolation ('read\\ committed', 'repeatable\\ read')
{
	local $ENV{PGOPTIONS} = "-c default_transaction_isolation=$isolation";
	$node->command_ok([ 'pgbench', '-n', '-c', '6', '-T', '4', '--max-tries=10', @scripts, '-f', "$files/unload",
		$node->connstr('postgres') ], "clients in $isolation");
}
is($node->safe_psql('postgres', q{SELECT count(*) FROM (TABLE many_c UNION ALL TABLE many_d) c
	WHERE NOT EXISTS (SELECT 1 FROM many_p p WHERE p.id = c.id)}), '0', 'each row references one');
cmp_ok($node->safe_psql('postgres', q{SELECT count(*) FROM outcome WHERE what LIKE 'INSERT INTO many\_c'}), '>', 20, 'and some do');
check_exact($node, 'many_p', 'many_id');

check_exact($node, 'a.p', 'a.p_id');
is(scalar(server_crashes($node)), 0, 'nothing crashed');
unlike(slurp_file($node->logfile), qr/leak|was not closed/, 'and nothing was left open');
$node->stop;
done_testing();
