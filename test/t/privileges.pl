# Who may do and see what: an index expression runs as the owner of its table,
# in a security-restricted operation, whoever's statement it is that builds the
# index, or when nobody's does; the views are for pg_monitor, show nobody's
# keys, and what changes state is for whom it is granted to.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use ArtTest;

my $node = art_node(
	'privileges',
	jit => 'off',
	'artidx.build_workers' => 0,
	log_line_prefix => $ArtTest::LOG_PREFIX);

$node->safe_psql('postgres', q{
	CREATE ROLE alice LOGIN;
	CREATE ROLE bob LOGIN;
	CREATE ROLE mon LOGIN IN ROLE pg_monitor;
	CREATE SCHEMA alice AUTHORIZATION alice;
	GRANT USAGE ON SCHEMA alice TO PUBLIC;
	CREATE TABLE treasure (v text);
	CREATE TABLE t (id int);
	INSERT INTO t SELECT generate_series(1, 100);
	CREATE INDEX t_id ON t USING art (id);
});

# alice's function records whom it runs as, and tries what it should not do
$node->safe_psql('postgres', q{
	SET SESSION AUTHORIZATION alice;
	CREATE TABLE alice.rec (who text, what text, result text);
	GRANT INSERT ON alice.rec TO PUBLIC;
	CREATE FUNCTION alice.attempt(what text) RETURNS text LANGUAGE plpgsql AS $$
	BEGIN
		EXECUTE what;
		RETURN 'done';
	EXCEPTION WHEN OTHERS THEN
		RETURN SQLSTATE;
	END $$;
	CREATE FUNCTION alice.note() RETURNS void LANGUAGE plpgsql AS $$
	BEGIN
		INSERT INTO alice.rec VALUES
			(current_user, 'SET ROLE postgres', alice.attempt('SET ROLE postgres')),
			(current_user, 'RESET SESSION AUTHORIZATION', alice.attempt('RESET SESSION AUTHORIZATION')),
			(current_user, 'temp table', alice.attempt('CREATE TEMP TABLE trap (x int)')),
			(current_user, 'treasure', alice.attempt($i$INSERT INTO public.treasure VALUES ('stolen')$i$)),
			(current_user, 'superuser', alice.attempt('ALTER ROLE alice SUPERUSER'));
	END $$;
	CREATE FUNCTION alice.f(v int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
	BEGIN
		-- once a build is enough
		IF v = 1 THEN
			PERFORM alice.note();
		END IF;
		RETURN v * 2;
	END $$;
	CREATE TABLE alice.x (v int, u int);
	INSERT INTO alice.x SELECT i, i FROM generate_series(1, 200) i;
	CREATE INDEX x_f ON alice.x USING art (alice.f(v));
	CREATE UNIQUE INDEX x_u ON alice.x USING art (alice.f(u));
	CREATE INDEX x_p ON alice.x USING art (v) WHERE alice.f(v) > 5;
	GRANT ALL ON alice.x TO PUBLIC;
	ANALYZE alice.x;
});

# Every attempt was refused, and made as alice: since the last call.
sub as_owner
{
	my ($what) = @_;
	my $ran = $node->safe_psql('postgres', 'SELECT count(*) FROM alice.rec');
	my $wrong = $node->safe_psql('postgres', q{
		SELECT DISTINCT who, what, result FROM alice.rec
		WHERE who <> 'alice' OR result = 'done' ORDER BY 1, 2, 3});

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	cmp_ok($ran, '>', 0, "$what: the function ran");
	is($wrong, '', "$what: as the owner, and every attempt was refused");
	$node->safe_psql('postgres', 'TRUNCATE alice.rec');
	return;
}

as_owner('CREATE INDEX');

# from now on every build runs the function: nothing may come from a file
$node->stop('immediate');
$node->start;
$node->safe_psql('postgres', q{SELECT artidx_build('alice.x_f'); SELECT artidx_build('alice.x_p')});
as_owner('artidx_build by a superuser');

# a superuser's insert builds the unique index first; the row itself is indexed
# as whoever inserts it, with every access method
$node->stop('immediate');
$node->start;
$node->safe_psql('postgres', 'INSERT INTO alice.x VALUES (1001, 1001)');
is($node->safe_psql('postgres', "SELECT state FROM artidx_indexes WHERE indexrelname = 'x_u'"),
	'ready', 'the insert built the unique index');
as_owner('INSERT by a superuser');

# and so does one of bob, by a worker
$node->append_conf('postgresql.conf', 'artidx.build_workers = 2');
$node->restart;
all_ready($node, 'the indexes are there');
$node->safe_psql('postgres', q{TRUNCATE alice.rec; SELECT artidx_unload('alice.x_u')});
$node->safe_psql('postgres', 'INSERT INTO alice.x VALUES (1002, 1002)', extra_params => [ '-U', 'bob' ]);
as_owner('INSERT by somebody else');

# A name in an expression is not bob's to find: the function runs as its table's
# owner, and there is no name but pg_catalog's to find.
my $names = q{
	CREATE SCHEMA bob AUTHORIZATION bob;
	CREATE FUNCTION half(v int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT v / 2';
	CREATE FUNCTION path_f(v int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
		$$ BEGIN RETURN public.half(abs(v)) * 2; END $$;
	CREATE TABLE path_t (v int);
	INSERT INTO path_t SELECT 2 * i FROM generate_series(1, 50) i;
	CREATE UNIQUE INDEX path_u ON path_t USING art (path_f(v));
	GRANT INSERT ON path_t TO bob;
	SET SESSION AUTHORIZATION bob;
	CREATE FUNCTION bob.abs(v int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
	BEGIN
		IF current_user <> 'bob' THEN
			EXECUTE 'ALTER ROLE bob SUPERUSER';
		END IF;
		RETURN pg_catalog.abs(v);
	END $$};
$node->safe_psql('postgres', $names);
$node->safe_psql('postgres', q{SELECT artidx_unload('path_u')});
$node->safe_psql('postgres',
	'SET search_path = bob, pg_catalog, public; INSERT INTO path_t VALUES (1002)',
	extra_params => [ '-U', 'bob' ]);
is( $node->safe_psql('postgres', q{
		SELECT state, rolsuper FROM artidx_indexes, pg_roles
		WHERE indexrelname = 'path_u' AND rolname = 'bob'}),
	'ready|f', 'an insert of bob built an index with names of the owner only');

# in the background nobody asks
$node->stop('immediate');
$node->start;
all_ready($node, 'built in the background');
as_owner('in the background');

$node->safe_psql('postgres', 'REINDEX TABLE alice.x');
as_owner('REINDEX by a superuser');
$node->safe_psql('postgres', q{SELECT count(*) FROM artidx_check('alice.x_f', true)});
as_owner('artidx_check by a superuser');

# a scan that must read the heap itself
$node->safe_psql('postgres', q{
	BEGIN;
	SET LOCAL enable_seqscan = off;
	SET LOCAL enable_bitmapscan = off;
	DECLARE c CURSOR FOR SELECT v FROM alice.x WHERE alice.f(v) > 5 ORDER BY alice.f(v);
	FETCH 2 FROM c;
	TRUNCATE alice.rec;
	COMMIT});
my $s = $node->background_psql('postgres');
$s->query_safe('BEGIN; SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off');
$s->query_safe('DECLARE c CURSOR FOR SELECT v FROM alice.x WHERE alice.f(v) > 5 ORDER BY alice.f(v)');
is($s->query_safe('FETCH 1 FROM c'), '3', 'a cursor on the index');
$node->safe_psql('postgres', q{DELETE FROM alice.rec; SELECT artidx_unload('alice.x_f')});
is($s->query_safe('FETCH FORWARD ALL FROM c') =~ tr/\n//, 198, 'the cursor goes on, unloaded under it');
$s->query_safe('COMMIT');
$s->quit;
is( $node->safe_psql('postgres', q{SELECT DISTINCT who, what, result FROM alice.rec WHERE who <> 'alice' OR result = 'done'}),
	'', 'and ran nothing as anybody but the owner');
$node->safe_psql('postgres', q{SELECT artidx_build('alice.x_f')});

is($node->safe_psql('postgres', 'SELECT count(*) FROM treasure'), '0',
	'nothing was stolen');
is($node->safe_psql('postgres', "SELECT rolsuper FROM pg_roles WHERE rolname = 'alice'"),
	'f', 'and nobody promoted');

# ---- who may call and see what ----
sub refused
{
	my ($role, $sql) = @_;
	my ($rc, $out, $err) = $node->psql('postgres', $sql,
		extra_params => [ '-U', $role, '-v', 'VERBOSITY=verbose' ]);

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return like($err, qr/ERROR:\s+42501:/, "$role may not: $sql");
}

my @views = split /\n/, $node->safe_psql('postgres', q{
	SELECT c.oid::regclass FROM pg_class c JOIN pg_depend d
		ON d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e'
		JOIN pg_extension e ON e.oid = d.refobjid AND e.extname = 'artidx'
	WHERE c.relkind = 'v' ORDER BY 1::text});
cmp_ok(scalar @views, '>=', 4, 'the views: ' . join(', ', @views));
for my $view (@views)
{
	refused('bob', "SELECT * FROM $view");
	my ($rc, $out, $err) = $node->psql('postgres', "SELECT * FROM $view",
		extra_params => [ '-U', 'mon' ]);
	is("$rc$err", '0', "pg_monitor may: SELECT * FROM $view");
}
my @functions = split /\n/, $node->safe_psql('postgres', q{
	SELECT p.oid::regprocedure FROM pg_proc p JOIN pg_depend d
		ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
		JOIN pg_extension e ON e.oid = d.refobjid AND e.extname = 'artidx'
	WHERE has_function_privilege('bob', p.oid, 'EXECUTE') ORDER BY 1::text});
# what tells the version, sizes, advice (sql/advise.sql), what the hardware can, what waits, what the system calls
# itself, and the
# procedures, which ask for the owner of the table (sql/convert.sql)
my @open = grep { !/^(arthandler|art_?handler|artidx_(version|index_size|estimate|estimate_database|estimate_stats|advise|advise(?:_\w+)?_stats|hardware|mirror_opclass|wait|to_btree|from_btree|trial)\(|art\w*(cmp|opt|support|equalimage|skip)\w*\()/ } @functions;
is(join(' ', @open), '', 'everything else is revoked from public');
refused('bob', "CALL artidx_to_btree('alice.x_f')");
refused('bob', "CALL artidx_to_btree('alice.x_f', false)");

# a conversion builds the index, as its owner
for my $call ("artidx_to_btree('alice.x_f')", "artidx_from_btree('alice.x_f')",
	"artidx_to_btree('alice.x_f', false)", "artidx_from_btree('alice.x_f', false)")
{
	$node->safe_psql('postgres', "CALL $call");
	as_owner("$call by a superuser");
}
# and so does the estimate of its size, which reads the table
$node->safe_psql('postgres', 'CREATE INDEX b_f ON alice.x (alice.f(v)); CREATE INDEX b_p ON alice.x (u) WHERE alice.f(v) > 5');
$node->safe_psql('postgres', 'TRUNCATE alice.rec');
for my $call ('* FROM artidx_estimate_database()', "artidx_estimate('alice.b_f')", "artidx_estimate('alice.b_p')")
{
	$node->safe_psql('postgres', "SELECT $call");
	as_owner("$call by a superuser");
}
$node->safe_psql('postgres', 'REVOKE ALL ON alice.x FROM PUBLIC');
refused('bob', "SELECT artidx_estimate('alice.b_f')");
$node->safe_psql('postgres', 'GRANT ALL ON alice.x TO PUBLIC; DROP INDEX alice.b_f, alice.b_p');
# how large an index would be tells of what is in the table
refused('bob', "SELECT artidx_estimate('alice.rec', '{who}')");
refused('bob', $_) for
  "SELECT artidx_build('t_id')",
  "SELECT artidx_unload('t_id')",
  "SELECT * FROM artidx_check('t_id')",
  "SELECT artidx_build('alice.x_f')";
# the owner of the table is nobody special here, either
refused('alice', "SELECT artidx_unload('alice.x_f')");
$node->safe_psql('postgres', q{GRANT EXECUTE ON FUNCTION artidx_build(regclass), artidx_unload(regclass) TO mon});

# ---- no key in what others see ----
$node->safe_psql('postgres', q{
	SET SESSION AUTHORIZATION alice;
	CREATE TABLE alice.switch (bad boolean);
	INSERT INTO alice.switch VALUES (false);
	CREATE FUNCTION alice.bad() RETURNS boolean STABLE LANGUAGE sql AS 'SELECT bad FROM alice.switch';
	CREATE FUNCTION alice.g(v text) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
	BEGIN
		IF alice.bad() THEN
			RETURN v::int;
		END IF;
		RETURN length(v);
	END $$;
	CREATE TABLE alice.y (v text);
	INSERT INTO alice.y VALUES ('my-secret-key');
	CREATE INDEX y_g ON alice.y USING art (alice.g(v));
	UPDATE alice.switch SET bad = true;
	GRANT SELECT, INSERT ON alice.y TO bob;
});
$node->stop('immediate');
$node->start;
my ($rc, $out, $err) = $node->psql('postgres', q{SELECT artidx_build('alice.y_g')});
isnt($rc, 0, 'a build whose expression errs');
$node->poll_query_until('postgres',
	"SELECT state = 'absent' FROM artidx_indexes WHERE indexrelname = 'y_g'");
my $seen = $node->safe_psql('postgres', "SELECT state, reason FROM artidx_indexes WHERE indexrelname = 'y_g'",
	extra_params => [ '-U', 'mon' ]);
like($seen, qr/^absent\|error/, "the view says that there was an error: $seen");
unlike($seen, qr/secret/, 'but not of which key');
for my $view (@views)
{
	unlike($node->safe_psql('postgres', "SELECT * FROM $view", extra_params => [ '-U', 'mon' ]),
		qr/secret/, "nor does $view");
}
is($node->safe_psql('postgres', 'SET enable_seqscan = off; SELECT v FROM alice.y', extra_params => [ '-U', 'bob' ]),
	'my-secret-key', 'who may read the table does so without the index');
$node->safe_psql('postgres', "SET SESSION AUTHORIZATION alice; UPDATE alice.switch SET bad = false");
$node->safe_psql('postgres', q{SELECT artidx_build('alice.y_g')});
check_clean($node, 'alice.y_g', 'and the index can be built when the error is gone');

# What is constant in a predicate is evaluated where the relation cache makes it:
# statements of a superuser look at alice's indexes without that.
$node->safe_psql('postgres', q{
	SET SESSION AUTHORIZATION alice;
	CREATE FUNCTION alice.constant(v int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
	BEGIN
		RAISE WARNING 'evaluated as %', current_user;
		RETURN v;
	END $$;
	CREATE MATERIALIZED VIEW alice.mv AS SELECT 1 AS c;
	CREATE UNIQUE INDEX mv_c ON alice.mv USING btree (c) WHERE alice.constant(1) > 0;
	CREATE TABLE alice.k (id int PRIMARY KEY, c int NOT NULL);
	CREATE UNIQUE INDEX k_c ON alice.k USING art (c) WHERE alice.constant(1) > 0;
});
for my $statement ('REFRESH MATERIALIZED VIEW CONCURRENTLY alice.mv', 'CREATE TABLE r (c int REFERENCES alice.k (c))')
{
	($rc, $out, $err) = $node->psql('postgres', $statement);
	unlike($err, qr/evaluated as (?!alice)/, "no predicate is evaluated as the user of the statement: $statement");
}

is(join("\n", server_crashes($node, 0)), '', 'nothing crashed');
$node->stop;
done_testing();
