--
-- Elision: settings, artidx_hardware, and artidx_aborts after scripted runs,
-- count by count.  One process, so every count is exact.
--
CREATE SCHEMA elide;
SET search_path = elide, public;
SET client_min_messages = warning;
CREATE EXTENSION artidx_debug SCHEMA public;
-- sections of a script, and such as are undone by hand
\getenv tree PG_ABS_SRCDIR
\set module :tree '/test/modules/art_elidetest/art_elidetest'
LOAD :'module';
-- whatever the server was started with
ALTER SYSTEM SET artidx.elision = on;
SELECT pg_reload_conf();
SELECT pg_sleep(CASE current_setting('artidx.elision') WHEN 'on' THEN 0 ELSE 2 END);
SET art_elidetest.provider = rtm;

-- ---- what is there, and why not ----

SELECT string_agg(attname || ' ' || format_type(atttypid, NULL), ', ' ORDER BY attnum)
FROM pg_attribute WHERE attrelid = 'artidx_aborts'::regclass AND attnum > 0;
SELECT pg_get_function_arguments('artidx_abort_stats'::regproc);
SELECT pg_get_function_result('artidx_hardware'::regproc);

CREATE TABLE t (k bigint) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i * 66 FROM generate_series(1, 3000) i;
CREATE INDEX t_k ON t USING art (k) WITH (structure = btree, sync = olc, page_size = 16384, fillfactor = 10);

-- (with room in the pages, so that no insert splits one)
-- this machine may have RTM or not
SELECT rtm_usable OR (rtm_cpuid IS FALSE OR rtm_always_abort OR probe_commits < probe_attempts) AS told,
	rtm_cpuid OR probe_attempts = 0 AS not_tried, elision = CASE WHEN rtm_usable THEN 'on' ELSE 'off' END AS elision,
	reason IS NULL = rtm_usable AS reason, cpus > 0 AS cpus, simd IN ('sse2', 'none') AS simd,
	huge_pages IN ('on', 'off', 'transparent', 'unknown') AS huge_pages
FROM artidx_hardware();
INSERT INTO t VALUES (500);
SELECT a.site, rtm_usable OR mode = 'no-rtm' AS mode,
	rtm_usable OR sections + attempts + commits + conflict + capacity + explicit + lock_busy + nested
		+ zero + other + retry_hint + fallbacks + switch_offs + switch_ons = 0 AS zeros, stats_reset
FROM artidx_aborts a, artidx_hardware() WHERE indexrelid = 't_k'::regclass AND relid = 't'::regclass
	AND schemaname = 'elide' AND relname = 't' AND indexrelname = 't_k';

-- ---- settings ----

SHOW artidx.elision;
SET artidx.elision = off;
SET art_elidetest.provider = emulate;
-- what is no script
SET art_elidetest.script = 'abort';
SET art_elidetest.script = 'commit*0';
SET art_elidetest.script = 'leaf: commit';
SET art_elidetest.script = 'loop conflict';
SET art_elidetest.script = 'commit conflict; zero';
SET art_elidetest.script = '0x100000000';

-- ---- scripts ----

SET art_elidetest.provider = inject;
SELECT elision, reason FROM artidx_hardware();

CREATE VIEW seen AS
	SELECT site, mode, sections, attempts, commits, conflict, capacity, explicit, lock_busy, nested,
		zero, other, retry_hint, fallbacks, switch_offs AS offs, switch_ons AS ons
	FROM artidx_aborts WHERE indexrelname = 't_k' AND sections > 0;

-- Run the script over n inserts and say what was counted.
CREATE FUNCTION run(what text, n int) RETURNS SETOF seen LANGUAGE plpgsql AS $$
BEGIN
	PERFORM artidx_reset_stats('t_k');
	PERFORM set_config('art_elidetest.script', what, false);
	FOR i IN 1..n LOOP
		INSERT INTO elide.t VALUES (100000 + nextval('elide.s') * 7919 % 100000);
	END LOOP;
	PERFORM set_config('art_elidetest.script', '', false);
	RETURN QUERY SELECT * FROM elide.seen;
END $$;
CREATE SEQUENCE s;

-- nothing aborts
SELECT * FROM run('', 4);
-- each cause, once
SELECT * FROM run('conflict', 1);
SELECT * FROM run('capacity', 1);
SELECT * FROM run('explicit', 1);
SELECT * FROM run('busy', 1);
SELECT * FROM run('nested', 1);
SELECT * FROM run('zero', 1);
SELECT * FROM run('other', 1);
-- the hint beside the cause
SELECT * FROM run('conflict+retry*2 other+retry zero', 1);
-- one cause an abort, the first of lock_busy, explicit, capacity, conflict, nested, zero, other
SELECT * FROM run('0xff00003f', 1);
SELECT * FROM run('0x0100003f', 1);
SELECT * FROM run('0x0000003e', 1);
SELECT * FROM run('0x00000036', 1);
SELECT * FROM run('0x00000032', 1);
SELECT * FROM run('0x00000012', 1);
-- how often one tries: all attempts, and those that capacity ends
SELECT * FROM run('conflict*100', 1);
SELECT * FROM run('capacity*100', 1);
SELECT * FROM run('busy*100', 1);
-- a script goes on from section to section, and begins anew when it says so
SELECT * FROM run('conflict commit conflict*2 commit', 4);
SELECT * FROM run('conflict commit zero commit loop', 10);
-- by site: this is for others
SELECT * FROM run('leaf_delete: conflict*100; split: zero*100', 3);
SELECT * FROM run('leaf_insert: nested; zero loop', 3);

-- what the sections did is there
SELECT count(*) = (SELECT entries FROM artidx_check('t_k', true)) FROM t;

-- ---- the counters are the index's ----

SELECT * FROM run('conflict', 3);
SELECT artidx_unload('t_k');
SELECT site, mode, sections, attempts, conflict FROM seen;
SELECT artidx_build('t_k');
SELECT site, sections, attempts, conflict FROM seen WHERE site = 'leaf_insert';
REINDEX INDEX t_k;
SELECT site, sections, attempts, conflict FROM seen WHERE site = 'leaf_insert';
ALTER INDEX t_k SET (sync = coarse);
SELECT artidx_build('t_k');
SELECT site, sections, attempts, conflict FROM seen WHERE site = 'leaf_insert';

-- ---- one latch for the index: reads, too ----

SELECT artidx_reset_stats('t_k');
SET art_elidetest.script = 'coarse_read: conflict commit; coarse_write: capacity*3';
SET enable_seqscan = off;
SELECT count(*) FROM t WHERE k = 660;
INSERT INTO t VALUES (1001);
INSERT INTO t VALUES (1002);
SELECT * FROM seen;

-- ---- auto, by the index's option or by the setting, tries nothing between latches, ----
-- ---- and whole calls under a coarse latch only while others want it ----

ALTER SYSTEM SET artidx.elision = auto;
SELECT pg_reload_conf();
SELECT pg_sleep(CASE current_setting('artidx.elision') WHEN 'auto' THEN 0 ELSE 2 END);
SELECT * FROM run('', 3);
SELECT string_agg(site || ' ' || mode, ', ' ORDER BY site) FROM artidx_aborts WHERE indexrelname = 't_k';
ALTER INDEX t_k SET (sync = olc);
SELECT artidx_build('t_k');
SELECT * FROM run('', 3);
SELECT DISTINCT mode FROM artidx_aborts WHERE indexrelname = 't_k';
ALTER INDEX t_k SET (elision = on);
SELECT * FROM run('', 3);
ALTER INDEX t_k RESET (elision);
ALTER SYSTEM SET artidx.elision = on;
SELECT pg_reload_conf();
SELECT pg_sleep(CASE current_setting('artidx.elision') WHEN 'on' THEN 0 ELSE 2 END);

-- ---- all indexes of the database, together ----

CREATE INDEX t_k2 ON t USING art (k);
SET art_elidetest.script = 'conflict';
INSERT INTO t VALUES (1003);
SELECT count(*) AS sites, count(*) FILTER (WHERE t.sections = s.sections AND t.attempts = s.attempts
	AND t.commits = s.commits AND t.conflict = s.conflict) AS alike
FROM artidx_abort_stats() t
	JOIN (SELECT site, sum(sections) AS sections, sum(attempts) AS attempts, sum(commits) AS commits,
		sum(conflict) AS conflict FROM artidx_aborts GROUP BY 1) s USING (site);
SELECT artidx_reset_stats();
SELECT sum(sections), count(stats_reset) FROM artidx_abort_stats();
SELECT artidx_abort_stats('t');
SELECT count(*) FROM artidx_abort_stats(0);

-- ---- sections that are really undone ----

SET art_elidetest.provider = software;
SET art_elidetest.script = 'conflict*3 commit*2 capacity*3 zero*2 commit explicit*3 commit loop';
SELECT elision, reason FROM artidx_hardware();
CREATE FUNCTION churn(structure text, sync text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	said text;
BEGIN
	DROP INDEX elide.t_k, elide.t_k2;
	TRUNCATE elide.t;
	EXECUTE format('CREATE INDEX t_k ON elide.t USING art (k) WITH (structure = %s, sync = %s)', structure, sync);
	EXECUTE format('CREATE UNIQUE INDEX t_k2 ON elide.t USING art ((k * 3 %% 100003), k) WITH (structure = %s, sync = %s)', structure, sync);
	INSERT INTO elide.t SELECT i * 7919 % 100000 FROM generate_series(1, 6000) i;
	DELETE FROM elide.t WHERE k % 3 = 0;
	SELECT string_agg(format('%s %s', indexrelname, bool_or), ', ' ORDER BY indexrelname) INTO said
		FROM (SELECT indexrelname, bool_or(conflict > 0 AND capacity > 0 AND zero > 0 AND commits > 0 AND fallbacks > 0)
			FROM artidx_aborts WHERE indexrelname IN ('t_k', 't_k2') GROUP BY 1) x;
	RETURN said;
END $$;
CREATE VIEW clean AS
	SELECT a.entries = n AS t_k, b.entries = n AS t_k2
	FROM (SELECT count(*) AS n FROM t) t, artidx_check('elide.t_k'::text::regclass, true) a,
		artidx_check('elide.t_k2'::text::regclass, true) b;
SELECT churn('art', 'olc');
VACUUM t;
SELECT * FROM clean;
SELECT churn('art', 'rowex');
VACUUM t;
SELECT * FROM clean;
SELECT churn('art', 'optiql');
VACUUM t;
SELECT * FROM clean;
SELECT churn('art', 'coarse');
VACUUM t;
SELECT * FROM clean;
SELECT churn('btree', 'olc');
VACUUM t;
SELECT * FROM clean;
SELECT churn('btree', 'optiql');
VACUUM t;
SELECT * FROM clean;
SELECT churn('btree', 'coarse');
VACUUM t;
SELECT * FROM clean;

-- ---- who may ----

CREATE ROLE regress_artidx_user;
CREATE ROLE regress_artidx_monitor IN ROLE pg_monitor;
SET ROLE regress_artidx_user;
SELECT count(*) FROM artidx_aborts;
SELECT count(*) FROM artidx_abort_stats();
SELECT count(*) FROM artidx_hardware();
SET art_elidetest.provider = rtm;
SET art_elidetest.script = '';
SET ROLE regress_artidx_monitor;
SELECT count(*) > 0 FROM artidx_aborts;
RESET ROLE;
RESET art_elidetest.provider;
RESET art_elidetest.script;
ALTER SYSTEM RESET artidx.elision;
SELECT pg_reload_conf();
DROP ROLE regress_artidx_user, regress_artidx_monitor;
DROP SCHEMA elide CASCADE;
DROP EXTENSION artidx_debug;
