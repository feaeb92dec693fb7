# Nobody runs code as another.  mallory has every right that a plain role can have: she owns
# the database and another table, may create in public and in a schema of every path, may create
# temporary objects, reads and writes the tables, and may call artidx's functions.  The indexes
# of alice and of the superuser have functions with names for her to catch: a function, an
# operator, a table, a type.  Whatever she puts there writes to the log as whom it runs, and so do
# the functions themselves.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);
use ArtTest;

my $node = PostgreSQL::Test::Cluster->new('primary');
$node->init(allows_streaming => 1);
art_conf($node, jit => 'off', restart_after_crash => 'on', max_worker_processes => 16,
	enable_seqscan => 'off', enable_bitmapscan => 'off',
	# one process after the other, which would build for all of them
	'artidx.build_workers' => 1,
	crash_often(), log_line_prefix => $ArtTest::LOG_PREFIX);
$node->start;

my $db = 'shop';
my $at = 0;

# As a role, in the database, with a search_path, or with the database's.
sub as
{
	my ($role, $sql, $path) = @_;
	local $ENV{PGOPTIONS} = defined $path ? "-c search_path=$path" : '';

	return [ $node->psql($db, $sql, extra_params => [ '-U', $role, '-v', 'VERBOSITY=verbose' ]) ];
}

sub does
{
	my ($role, $sql, $path) = @_;
	my ($rc, $out, $err) = @{ as($role, $sql, $path) };

	die "$role: $sql: $err" if $rc != 0;
	return $out;
}

# The superuser, with a path of his own.
sub super { return does('postgres', $_[0], 'pg_catalog,public'); }

# What was written since the last call: nothing of mallory's ran as another, nothing of the
# owners' as another than its owner.  "evaluated": whose functions ran at all; "herself": she called them.
sub nobody
{
	my ($what, %o) = @_;
	my $server = $o{server} // $node;
	my $log = slurp_file($server->logfile, $o{server} ? 0 : $at);
	my (%caught, %wrong, %ran);

	$at = -s $node->logfile unless $o{server};
	$caught{"$1 as $2"}++ while $log =~ /CAUGHT (\w+) as (?!mallory\b)(\w+)/g;
	while ($log =~ /EVALUATED of (\w+) as (\w+)/g)
	{
		if ($1 eq $2) { $ran{$1}++; }
		elsif (!$o{herself}) { $wrong{"of $1 as $2"}++; }
	}
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is(join(', ', sort keys %caught), '', "$what: nothing of mallory's ran as another");
	is(join(', ', sort keys %wrong), '', "$what: nothing of the owners' ran as another");
	is(join(' ', sort keys %ran), $o{evaluated}, "$what: what evaluated did so as its owner") if defined $o{evaluated};
	return;
}

sub all_there
{
	my ($name) = @_;
	my $end = time() + $PostgreSQL::Test::Utils::timeout_default;
	my $left;

	do
	{
		$left = super(q{SELECT string_agg(indexrelname || ' ' || state || coalesce(' ' || reason, ''), ', ')
			FROM artidx_indexes WHERE state <> 'ready' AND indexrelname ~ '^x_'});
		sleep 0.1 if $left ne '';
	} while ($left ne '' && time() < $end);
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return is($left, '', "$name: all indexes are in memory");
}

sub setting
{
	my ($name, $value) = @_;

	$node->append_conf('postgresql.conf', "$name = $value");
	$node->reload;
	return;
}

# ---- who is there ----
$node->safe_psql('postgres', q{
	CREATE ROLE alice LOGIN;
	CREATE ROLE mallory LOGIN;
	CREATE ROLE carol LOGIN;
	CREATE DATABASE shop;
});
super(q{
	CREATE EXTENSION artidx SCHEMA public;
	ALTER DATABASE shop OWNER TO mallory;
	CREATE SCHEMA alice AUTHORIZATION alice;
	CREATE SCHEMA carol AUTHORIZATION carol;
	CREATE SCHEMA root;
	GRANT USAGE ON SCHEMA alice, root, carol TO PUBLIC;
	GRANT CREATE ON SCHEMA public TO mallory;
	GRANT EXECUTE ON FUNCTION artidx_build(regclass), artidx_check(regclass, boolean), artidx_unload(regclass) TO mallory, alice;
});

# On 17 and 18 CREATE INDEX finds no names but pg_catalog's, so the functions do without.
sub owned
{
	my ($schema, $owner) = @_;

	return qq{
		CREATE FUNCTION $schema.f(v int) RETURNS int IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql AS \$\$
		DECLARE
			-- "text" is a name to look up, once in a session
			t text;
			rate int;
		BEGIN
			t := v::pg_catalog.text;
			IF v OPERATOR(pg_catalog.=) 1 THEN
				RAISE LOG 'EVALUATED of $owner as %', current_user;
			END IF;
			IF pg_catalog.to_regclass('rates') IS NOT NULL THEN
				EXECUTE 'SELECT rate FROM rates' INTO rate;
			END IF;
			RETURN abs(v) * 2;
		END \$\$;
		CREATE TABLE $schema.x (v int, u int, w text);
		INSERT INTO $schema.x SELECT i, i, 'w' || i FROM pg_catalog.generate_series(1, 300) i;
		GRANT SELECT, INSERT ON $schema.x TO mallory;
		CREATE INDEX x_f ON $schema.x USING art ($schema.f(v));
		CREATE UNIQUE INDEX x_u ON $schema.x USING art ($schema.f(u));
		CREATE INDEX x_p ON $schema.x USING art (v) WHERE $schema.f(v) > 0;
		CREATE INDEX x_low ON $schema.x USING art (lower(w)) WHERE w IS NOT NULL;
		CREATE INDEX b_f ON $schema.x USING btree ($schema.f(v));
		CREATE INDEX b_low ON $schema.x USING btree (lower(w)) WHERE w IS NOT NULL;
		ANALYZE $schema.x};
}
my @owners = ([ 'alice', 'alice' ], [ 'root', 'postgres' ]);
does($_->[1], owned(@$_), 'pg_catalog') foreach @owners;
nobody('CREATE INDEX', evaluated => 'alice postgres');

# Her traps.  The database's path has her schema before pg_catalog.
does('mallory', q{
	CREATE TABLE public.hers (v int);
	CREATE SCHEMA mallory;
	GRANT USAGE ON SCHEMA mallory TO PUBLIC;
	CREATE FUNCTION mallory.caught(how name) RETURNS int LANGUAGE plpgsql AS $$
	BEGIN
		RAISE LOG 'CAUGHT % as %', how, current_user;
		RETURN 1;
	END $$;
	CREATE FUNCTION mallory.abs(v int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
	BEGIN
		PERFORM mallory.caught('function');
		RETURN pg_catalog.abs(v);
	END $$;
	CREATE FUNCTION mallory.times(a int, b int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
	BEGIN
		PERFORM mallory.caught('operator');
		RETURN a OPERATOR(pg_catalog.*) b;
	END $$;
	CREATE OPERATOR mallory.* (LEFTARG = int, RIGHTARG = int, FUNCTION = mallory.times);
	CREATE DOMAIN mallory.text AS pg_catalog.text CHECK (mallory.caught('type') = 1);
	CREATE VIEW public.rates AS SELECT mallory.caught('table') AS rate;
	CREATE VIEW mallory.rates AS SELECT mallory.caught('table') AS rate;
	GRANT SELECT ON public.rates, mallory.rates TO PUBLIC;
	-- What a worker looks up for her it is not to know for others.
	CREATE FUNCTION mallory.spoil(v int) RETURNS int IMMUTABLE LANGUAGE plpgsql
	SET search_path = mallory, pg_catalog AS $$
	BEGIN
		PERFORM alice.f(2), root.f(2);
		RETURN v;
	END $$;
	INSERT INTO public.hers VALUES (1);
	CREATE UNIQUE INDEX a_hers ON public.hers USING art (mallory.spoil(v));
	ALTER DATABASE shop SET search_path = mallory, pg_catalog, public;
}, 'pg_catalog,public');
like(as('mallory', 'SELECT alice.f(1)')->[2], qr/^$/, 'a function of the owner runs');
like(slurp_file($node->logfile, $at), qr/CAUGHT $_ as mallory/, "there is a trap for a $_")
  foreach ('function', 'operator', 'table', 'type');
nobody('mallory herself', herself => 1);

# ---- nobody's session: the workers ----
$node->stop('immediate');
$node->start;
all_there('after a restart');
nobody('after a restart', evaluated => 'alice postgres');

super(q{ALTER INDEX alice.x_f SET (structure = btree); ALTER INDEX root.x_u SET (structure = btree)});
all_there('another structure');
nobody('another structure', evaluated => 'alice postgres');

super("ALTER INDEX $_->[0].x_f SET (max_memory = '64kB')") foreach @owners;
does($_->[1], "INSERT INTO $_->[0].x SELECT 1000 + i, 1000 + i FROM generate_series(1, 5000) i", 'pg_catalog') foreach @owners;
is(super(q{SELECT count(*) FROM artidx_indexes WHERE indexrelname = 'x_f' AND state <> 'ready'}), 2, 'two are sealed');
nobody('an insert by the owner');
super("ALTER INDEX $_->[0].x_f RESET (max_memory)") foreach @owners;
all_there('after a seal');
nobody('after a seal', evaluated => 'alice postgres');

# a process crashes, and what was kept is checked
{
	my $s = $node->background_psql($db, extra_params => [ '-U', 'postgres' ]);
	my $pid = $s->query_safe('SELECT pg_backend_pid()');
	my $from = -s $node->logfile;
	my $end = time() + $PostgreSQL::Test::Utils::timeout_default;
	my $n = 0;

	kill 'KILL', $pid;
	eval { $s->{run}->finish };
	sleep 0.05 while slurp_file($node->logfile, $from) !~ /all server processes terminated; reinitializing/;
	comes_back($node) or BAIL_OUT('the server does not come back');
	while ($n < 9 && time() < $end)
	{
		my $log = slurp_file($node->logfile, $from);

		$n = 0;
		$n += $1 while $log =~ /artidx: checked (\d+) indexes of database "shop" that outlived a crash in [\d.]+ s, 0 differ/g;
		sleep 0.1;
	}
	is($n, 9, 'what outlived a crash was checked');
}
nobody('the check after a crash', evaluated => 'alice postgres');

# ---- a superuser's session, with the database's path ----
foreach (@owners)
{
	my ($schema, $owner) = @$_;

	does('postgres', "SELECT * FROM public.artidx_check('$schema.x_f', true)");
	nobody("artidx_check of $schema.x_f", evaluated => $owner);
	does('postgres', "SELECT public.artidx_unload('$schema.x_$_'), public.artidx_build('$schema.x_$_')") foreach ('f', 'p');
	nobody("artidx_build of $schema.x_f", evaluated => $owner);
	does('postgres', "SELECT public.artidx_estimate('$schema.b_f'), public.artidx_estimate('$schema.x_p')");
	nobody("artidx_estimate of $schema.b_f", evaluated => $owner);
}
does('postgres', 'SELECT * FROM public.artidx_estimate_database()');
nobody('artidx_estimate_database', evaluated => 'alice postgres');
does('postgres', 'VACUUM alice.x');
does('postgres', q{UPDATE root.x SET w = 'w' WHERE v > 1000; UPDATE root.x SET w = 'v' WHERE v > 1000}, 'pg_catalog');
does('postgres', 'VACUUM root.x');
nobody('VACUUM');

# ---- her own session ----
my $setup = q{
	CREATE TEMP VIEW rates AS SELECT mallory.caught('table') AS rate;
	GRANT SELECT ON rates TO PUBLIC;
	DO $$ BEGIN PERFORM alice.f(2), root.f(2); END $$;
};
foreach (@owners)
{
	my ($schema) = @$_;

	foreach my $call ("artidx_estimate('$schema.b_f')", "artidx_estimate('$schema.x_f')",
		"artidx_estimate('$schema.x_p')", "artidx_check('$schema.x_f', true)")
	{
		my $err = as('mallory', "$setup SELECT * FROM public.$call")->[2];

		like($err, qr/ERROR:\s+42501: permission denied to (estimate|check) index "[xb]_[fp]"/, "not for mallory: $call");
	}
	cmp_ok(does('mallory', "SELECT public.artidx_estimate('$schema.b_low')"), '>', 0,
		'she sizes an index with functions of pg_catalog');
	does('mallory', "SELECT * FROM public.artidx_check('$schema.x_low', true)");
	nobody("estimates and checks of $schema.x by mallory", evaluated => '');
}
{
	my ($rc, $out, $err) = @{ as('mallory', "$setup SELECT indexrelid, art_bytes > 0 FROM public.artidx_estimate_database() ORDER BY 1") };

	is($out, "alice.b_f|\nalice.b_low|t\nroot.b_f|\nroot.b_low|t", 'artidx_estimate_database reports the others') or diag($err);
	is(() = $err =~ /WARNING:  42501: could not estimate index "b_f": permission denied/g, 2, 'and why not these');
	nobody('artidx_estimate_database by mallory', evaluated => '');
}

# nor where she has become the owner for a moment, since the session is hers
does('alice', q{CREATE FUNCTION alice.size() RETURNS bigint SECURITY DEFINER LANGUAGE sql AS
	$$ SELECT public.artidx_estimate('alice.b_f') $$}, 'pg_catalog');
like(as('mallory', "$setup SELECT alice.size()")->[2], qr/ERROR:\s+42501: permission denied to estimate index "b_f"/,
	'not for the owner in a session of mallory');
nobody('SECURITY DEFINER', evaluated => '');
cmp_ok(does('alice', 'SELECT alice.size()', 'pg_catalog'), '>', 0, 'but in her own');
nobody('SECURITY DEFINER, her own', evaluated => 'alice');

# A build that her insert needs is a worker's.
$at = -s $node->logfile;
foreach (@owners)
{
	my ($schema, $owner) = @$_;

	super("SELECT artidx_unload('$schema.x_u'), artidx_unload('$schema.x_f')");
	does('mallory', "$setup INSERT INTO $schema.x VALUES (-50001, -50001)");
	is(super("SELECT state FROM artidx_indexes WHERE indexrelid = '$schema.x_u'::regclass"), 'ready',
		"her insert had $schema.x_u built");
	nobody("the build of $schema.x_u", evaluated => $owner);
	does('mallory', "$setup SELECT public.artidx_build('$schema.x_f')");
	is(super("SELECT state FROM artidx_indexes WHERE indexrelid = '$schema.x_f'::regclass"), 'ready',
		"her artidx_build had $schema.x_f built");
	nobody("the build of $schema.x_f", evaluated => $owner);
	like(as('mallory', "$setup INSERT INTO $schema.x VALUES (-50002, 5)")->[2], qr/ERROR:\s+23505:/, 'a duplicate is one');
	nobody('a duplicate');
}
# and there may be none: not hers, then, either
setting('artidx.build_workers', 0);
$node->stop('immediate');
$node->start;
$at = -s $node->logfile;
like(as('mallory', "$setup INSERT INTO alice.x VALUES (-50007, -50007)")->[2],
	qr/ERROR:\s+55000: art index "x_u" is not in memory, and no background worker has built it/, 'no worker, no insert');
nobody('no worker', evaluated => '');
does('alice', 'INSERT INTO alice.x VALUES (-50007, -50007)', 'pg_catalog');
nobody('an insert by alice', evaluated => 'alice');
setting('artidx.build_workers', 1);
all_there('workers again');
$at = -s $node->logfile;

# A scan whose structure goes away under it reads the table, if it may.
foreach my $case ([ 'mallory', 'f', 'alice.f(v) > 0 ORDER BY alice.f(v)' ], [ 'mallory', 'p', 'alice.f(v) > 0 ORDER BY v' ],
	[ 'mallory', 'low', 'w IS NOT NULL ORDER BY lower(w)' ], [ 'postgres', 'f', 'alice.f(v) > 0 ORDER BY alice.f(v)' ])
{
	my ($role, $index, $query) = @$case;
	my $s = $node->background_psql($db, extra_params => [ '-U', $role ], on_error_stop => 0);
	my $err;

	$s->query_safe($setup) if $role eq 'mallory';
	$s->query_safe('SET search_path = pg_catalog') if $role ne 'mallory';
	$s->query_safe('BEGIN; SET LOCAL enable_sort = off');
	$s->query_safe("DECLARE c CURSOR FOR SELECT v FROM alice.x WHERE $query");
	like($s->query_safe("EXPLAIN (COSTS OFF) SELECT v FROM alice.x WHERE $query"), qr/using x_$index/, "a scan of x_$index");
	$s->query_safe('FETCH 1 FROM c');
	super("SELECT artidx_unload('alice.x_$index')");
	$at = -s $node->logfile;
	my $rows = $s->query('FETCH FORWARD ALL FROM c') =~ tr/\n//;
	$err = $s->{stderr};
	$s->{stderr} = '';
	if ($index eq 'low' || $role eq 'postgres')
	{
		cmp_ok($rows, '>', 290, "the scan of x_$index by $role goes on");
	}
	else
	{
		like($err, qr/art index "x_$index" is not in memory/, "the scan of x_$index by $role ends");
	}
	$s->query('ROLLBACK');
	$s->quit;
	nobody("a scan of x_$index by $role", evaluated => $role eq 'postgres' ? 'alice' : '');
	super("SELECT artidx_build('alice.x_$index')");
	$at = -s $node->logfile;
}

# ---- several processes, and core's ways ----
does('alice', q{SET min_parallel_table_scan_size = 0; SET max_parallel_maintenance_workers = 2;
	ALTER TABLE alice.x SET (parallel_workers = 2); REINDEX INDEX alice.x_f}, 'pg_catalog');
nobody('a parallel REINDEX by alice', evaluated => 'alice');
does('postgres', "CALL public.artidx_$_('alice.x_f')", 'pg_catalog') foreach ('to_btree', 'from_btree');
nobody('the way out and in', evaluated => 'alice');

# ---- a standby ----
$node->backup('b');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'b', has_streaming => 1);
$standby->start;
# mallory's index runs the functions of the others: it is kept, or those are
ok($standby->poll_query_until($db, q{SELECT count(*) FILTER (WHERE indexrelname = 'x_low' AND state = 'ready') = 2
		AND bool_and(state = 'ready' OR reason LIKE '%SQLSTATE 55000%') AND count(*) FILTER (WHERE state <> 'ready') > 0
		FROM public.artidx_indexes}), 'the follower runs a function for one owner only')
	or diag($standby->safe_psql($db, 'SELECT indexrelid, state, reason FROM public.artidx_indexes'));
does('mallory', 'DROP INDEX public.a_hers');
does('alice', 'INSERT INTO alice.x VALUES (1, -50008)', 'pg_catalog');
all_replayed($node, $standby);
# another follower, and all is well
$standby->restart;
ok($standby->poll_query_until($db,
		q{SELECT count(*) = 8 FROM public.artidx_indexes WHERE indexrelname ~ '^x_' AND state = 'ready'}),
	'the follower has built all');
nobody('the follower', server => $standby, evaluated => 'alice postgres');
$standby->stop;
$at = -s $node->logfile;

# ---- names that are not found ----
SKIP:
{
	skip 'CREATE INDEX itself does not find them from 17 on', 7 if $node->pg_version >= 17;
	does('alice', q{
		CREATE FUNCTION alice.half(v int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT v / 2';
		CREATE FUNCTION alice.lost(v int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN half(v); END';
		CREATE TABLE alice.z (v int);
		INSERT INTO alice.z SELECT i FROM generate_series(1, 100) i;
		CREATE INDEX z_lost ON alice.z USING art (alice.lost(v))}, 'pg_catalog,alice');
	# a worker is not to end at each error
	does('mallory', 'ALTER DATABASE shop SET exit_on_error = on');
	$node->stop('immediate');
	$node->start;
	all_there('beside one that cannot be');
	ok($node->poll_query_until($db, q{SELECT state || ' ' || reason = 'absent error: SQLSTATE 42883, see the server''s log'
		FROM public.artidx_indexes WHERE indexrelname = 'z_lost'}), 'a name that is not found is an error of the index');
	does('mallory', 'ALTER DATABASE shop RESET exit_on_error');
	is(does('alice', 'SELECT v FROM alice.z WHERE alice.lost(v) = 50 ORDER BY v', 'pg_catalog,alice'), "100", 'queries do without');
	like(as('alice', q{SELECT public.artidx_build('alice.z_lost')}, 'pg_catalog,alice')->[2],
		qr/42883: function half\(integer\) does not exist/, 'also in a session of the owner');
	does('alice', 'ALTER FUNCTION alice.lost(int) SET search_path = alice', 'pg_catalog');
	does('alice', q{SELECT public.artidx_build('alice.z_lost')}, 'pg_catalog,alice');
	is(super(q{SELECT state FROM artidx_indexes WHERE indexrelname = 'z_lost'}), 'ready', 'the function has its own path: it is built');
	is(does('alice', q{SELECT entries FROM public.artidx_check('alice.z_lost', true)}, 'pg_catalog,alice'), 100, 'and is right');
}

# ---- rows in errors, and one bad expression ----
does('carol', q{
	CREATE TABLE carol.switch (bad boolean);
	INSERT INTO carol.switch VALUES (false);
	CREATE FUNCTION carol.g(v text) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
	BEGIN
		IF (SELECT bad FROM carol.switch) THEN
			RETURN v::int;
		END IF;
		RETURN length(v);
	END $$;
	CREATE TABLE carol.y (v text);
	INSERT INTO carol.y VALUES ('my-secret-key');
	CREATE INDEX y_g ON carol.y USING art (carol.g(v));
	CREATE INDEX y_b ON carol.y USING btree (carol.g(v));
	ALTER TABLE carol.y ENABLE ROW LEVEL SECURITY;
	UPDATE carol.switch SET bad = true}, 'pg_catalog');
super('GRANT EXECUTE ON FUNCTION artidx_check(regclass, boolean), artidx_build(regclass) TO carol');
like(as('carol', q{SELECT * FROM public.artidx_check('carol.y_g', true)}, 'pg_catalog')->[2],
	qr/22P02: invalid input syntax for type integer: "my-secret-key"/, 'who may read the row sees what its error says');
does('carol', 'ALTER TABLE carol.y FORCE ROW LEVEL SECURITY', 'pg_catalog');
foreach my $call ('artidx_check(%s, true)', 'artidx_build(%s)')
{
	super("SELECT artidx_unload('carol.y_g')") if $call =~ /build/;
	my $err = as('carol', sprintf("SELECT * FROM public.$call", "'carol.y_g'"), 'pg_catalog')->[2];

	like($err, qr/22P02: could not evaluate the rows of art index "y_g"/, "who may not, does not: $call");
	unlike($err, qr/secret/, "$call: no row");
}
{
	my ($rc, $out, $err) = @{ as('postgres', 'SELECT indexrelid, art_bytes > 0 FROM artidx_estimate_database() ORDER BY 1', 'pg_catalog,public') };

	is($out, "alice.b_f|t\nalice.b_low|t\nroot.b_f|t\nroot.b_low|t\ncarol.y_b|", 'one bad expression, and the others have their estimates');
	like($err, qr/WARNING:  22P02: could not estimate index "y_b"/, 'which says so');
}

is(super(q{SELECT string_agg(rolname, ' ') FROM pg_roles WHERE rolsuper}), 'postgres', 'nobody has become a superuser');
is(join("\n", server_crashes($node, 0)), '', 'nothing crashed');
$node->stop;
done_testing();
