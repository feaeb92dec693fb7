/* artidx--0.1.0.sql: generated from src/sql, do not edit */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION artidx" to load this file. \quit

-- The access method.  Its operator classes follow in the next parts.

CREATE FUNCTION arthandler(internal)
RETURNS index_am_handler
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT;

COMMENT ON FUNCTION arthandler(internal) IS
	'handler of the index access method art';

CREATE ACCESS METHOD art TYPE INDEX HANDLER arthandler;

COMMENT ON ACCESS METHOD art IS
	'adaptive radix tree in shared memory, rebuilt from the table when needed';

/*
 * Operator families and classes: nbtree's for the types that have an encoding,
 * member by member (sql/opclass.sql compares them), with nbtree's operators,
 * strategies, support functions and defaults.
 */

CREATE OPERATOR FAMILY integer_ops USING art;

CREATE OPERATOR CLASS int2_ops
	DEFAULT FOR TYPE smallint USING art FAMILY integer_ops AS
		OPERATOR 1 pg_catalog.< (smallint, smallint),
		OPERATOR 2 pg_catalog.<= (smallint, smallint),
		OPERATOR 3 pg_catalog.= (smallint, smallint),
		OPERATOR 4 pg_catalog.>= (smallint, smallint),
		OPERATOR 5 pg_catalog.> (smallint, smallint),
		FUNCTION 1 (smallint, smallint) pg_catalog.btint2cmp(smallint,smallint),
		FUNCTION 2 (smallint, smallint) pg_catalog.btint2sortsupport(internal),
		FUNCTION 3 (smallint, smallint) pg_catalog.in_range(smallint,smallint,smallint,boolean,boolean),
		FUNCTION 4 (smallint, smallint) pg_catalog.btequalimage(oid);

CREATE OPERATOR CLASS int4_ops
	DEFAULT FOR TYPE integer USING art FAMILY integer_ops AS
		OPERATOR 1 pg_catalog.< (integer, integer),
		OPERATOR 2 pg_catalog.<= (integer, integer),
		OPERATOR 3 pg_catalog.= (integer, integer),
		OPERATOR 4 pg_catalog.>= (integer, integer),
		OPERATOR 5 pg_catalog.> (integer, integer),
		FUNCTION 1 (integer, integer) pg_catalog.btint4cmp(integer,integer),
		FUNCTION 2 (integer, integer) pg_catalog.btint4sortsupport(internal),
		FUNCTION 3 (integer, integer) pg_catalog.in_range(integer,integer,integer,boolean,boolean),
		FUNCTION 4 (integer, integer) pg_catalog.btequalimage(oid);

CREATE OPERATOR CLASS int8_ops
	DEFAULT FOR TYPE bigint USING art FAMILY integer_ops AS
		OPERATOR 1 pg_catalog.< (bigint, bigint),
		OPERATOR 2 pg_catalog.<= (bigint, bigint),
		OPERATOR 3 pg_catalog.= (bigint, bigint),
		OPERATOR 4 pg_catalog.>= (bigint, bigint),
		OPERATOR 5 pg_catalog.> (bigint, bigint),
		FUNCTION 1 (bigint, bigint) pg_catalog.btint8cmp(bigint,bigint),
		FUNCTION 2 (bigint, bigint) pg_catalog.btint8sortsupport(internal),
		FUNCTION 3 (bigint, bigint) pg_catalog.in_range(bigint,bigint,bigint,boolean,boolean),
		FUNCTION 4 (bigint, bigint) pg_catalog.btequalimage(oid);

ALTER OPERATOR FAMILY integer_ops USING art ADD
		OPERATOR 1 pg_catalog.< (bigint, integer),
		OPERATOR 2 pg_catalog.<= (bigint, integer),
		OPERATOR 3 pg_catalog.= (bigint, integer),
		OPERATOR 4 pg_catalog.>= (bigint, integer),
		OPERATOR 5 pg_catalog.> (bigint, integer),
		FUNCTION 1 (bigint, integer) pg_catalog.btint84cmp(bigint,integer),
		OPERATOR 1 pg_catalog.< (bigint, smallint),
		OPERATOR 2 pg_catalog.<= (bigint, smallint),
		OPERATOR 3 pg_catalog.= (bigint, smallint),
		OPERATOR 4 pg_catalog.>= (bigint, smallint),
		OPERATOR 5 pg_catalog.> (bigint, smallint),
		FUNCTION 1 (bigint, smallint) pg_catalog.btint82cmp(bigint,smallint),
		OPERATOR 1 pg_catalog.< (integer, bigint),
		OPERATOR 2 pg_catalog.<= (integer, bigint),
		OPERATOR 3 pg_catalog.= (integer, bigint),
		OPERATOR 4 pg_catalog.>= (integer, bigint),
		OPERATOR 5 pg_catalog.> (integer, bigint),
		FUNCTION 1 (integer, bigint) pg_catalog.btint48cmp(integer,bigint),
		FUNCTION 3 (integer, bigint) pg_catalog.in_range(integer,integer,bigint,boolean,boolean),
		OPERATOR 1 pg_catalog.< (integer, smallint),
		OPERATOR 2 pg_catalog.<= (integer, smallint),
		OPERATOR 3 pg_catalog.= (integer, smallint),
		OPERATOR 4 pg_catalog.>= (integer, smallint),
		OPERATOR 5 pg_catalog.> (integer, smallint),
		FUNCTION 1 (integer, smallint) pg_catalog.btint42cmp(integer,smallint),
		FUNCTION 3 (integer, smallint) pg_catalog.in_range(integer,integer,smallint,boolean,boolean),
		OPERATOR 1 pg_catalog.< (smallint, bigint),
		OPERATOR 2 pg_catalog.<= (smallint, bigint),
		OPERATOR 3 pg_catalog.= (smallint, bigint),
		OPERATOR 4 pg_catalog.>= (smallint, bigint),
		OPERATOR 5 pg_catalog.> (smallint, bigint),
		FUNCTION 1 (smallint, bigint) pg_catalog.btint28cmp(smallint,bigint),
		FUNCTION 3 (smallint, bigint) pg_catalog.in_range(smallint,smallint,bigint,boolean,boolean),
		OPERATOR 1 pg_catalog.< (smallint, integer),
		OPERATOR 2 pg_catalog.<= (smallint, integer),
		OPERATOR 3 pg_catalog.= (smallint, integer),
		OPERATOR 4 pg_catalog.>= (smallint, integer),
		OPERATOR 5 pg_catalog.> (smallint, integer),
		FUNCTION 1 (smallint, integer) pg_catalog.btint24cmp(smallint,integer),
		FUNCTION 3 (smallint, integer) pg_catalog.in_range(smallint,smallint,integer,boolean,boolean);

CREATE OPERATOR FAMILY oid_ops USING art;

CREATE OPERATOR CLASS oid_ops
	DEFAULT FOR TYPE oid USING art FAMILY oid_ops AS
		OPERATOR 1 pg_catalog.< (oid, oid),
		OPERATOR 2 pg_catalog.<= (oid, oid),
		OPERATOR 3 pg_catalog.= (oid, oid),
		OPERATOR 4 pg_catalog.>= (oid, oid),
		OPERATOR 5 pg_catalog.> (oid, oid),
		FUNCTION 1 (oid, oid) pg_catalog.btoidcmp(oid,oid),
		FUNCTION 2 (oid, oid) pg_catalog.btoidsortsupport(internal),
		FUNCTION 4 (oid, oid) pg_catalog.btequalimage(oid);

CREATE OPERATOR FAMILY bool_ops USING art;

CREATE OPERATOR CLASS bool_ops
	DEFAULT FOR TYPE boolean USING art FAMILY bool_ops AS
		OPERATOR 1 pg_catalog.< (boolean, boolean),
		OPERATOR 2 pg_catalog.<= (boolean, boolean),
		OPERATOR 3 pg_catalog.= (boolean, boolean),
		OPERATOR 4 pg_catalog.>= (boolean, boolean),
		OPERATOR 5 pg_catalog.> (boolean, boolean),
		FUNCTION 1 (boolean, boolean) pg_catalog.btboolcmp(boolean,boolean),
		FUNCTION 4 (boolean, boolean) pg_catalog.btequalimage(oid);

CREATE OPERATOR FAMILY datetime_ops USING art;

CREATE OPERATOR CLASS date_ops
	DEFAULT FOR TYPE date USING art FAMILY datetime_ops AS
		OPERATOR 1 pg_catalog.< (date, date),
		OPERATOR 2 pg_catalog.<= (date, date),
		OPERATOR 3 pg_catalog.= (date, date),
		OPERATOR 4 pg_catalog.>= (date, date),
		OPERATOR 5 pg_catalog.> (date, date),
		FUNCTION 1 (date, date) pg_catalog.date_cmp(date,date),
		FUNCTION 2 (date, date) pg_catalog.date_sortsupport(internal),
		FUNCTION 4 (date, date) pg_catalog.btequalimage(oid);

CREATE OPERATOR CLASS timestamp_ops
	DEFAULT FOR TYPE timestamp without time zone USING art FAMILY datetime_ops AS
		OPERATOR 1 pg_catalog.< (timestamp without time zone, timestamp without time zone),
		OPERATOR 2 pg_catalog.<= (timestamp without time zone, timestamp without time zone),
		OPERATOR 3 pg_catalog.= (timestamp without time zone, timestamp without time zone),
		OPERATOR 4 pg_catalog.>= (timestamp without time zone, timestamp without time zone),
		OPERATOR 5 pg_catalog.> (timestamp without time zone, timestamp without time zone),
		FUNCTION 1 (timestamp without time zone, timestamp without time zone) pg_catalog.timestamp_cmp(timestamp without time zone,timestamp without time zone),
		FUNCTION 2 (timestamp without time zone, timestamp without time zone) pg_catalog.timestamp_sortsupport(internal),
		FUNCTION 4 (timestamp without time zone, timestamp without time zone) pg_catalog.btequalimage(oid);

CREATE OPERATOR CLASS timestamptz_ops
	DEFAULT FOR TYPE timestamp with time zone USING art FAMILY datetime_ops AS
		OPERATOR 1 pg_catalog.< (timestamp with time zone, timestamp with time zone),
		OPERATOR 2 pg_catalog.<= (timestamp with time zone, timestamp with time zone),
		OPERATOR 3 pg_catalog.= (timestamp with time zone, timestamp with time zone),
		OPERATOR 4 pg_catalog.>= (timestamp with time zone, timestamp with time zone),
		OPERATOR 5 pg_catalog.> (timestamp with time zone, timestamp with time zone),
		FUNCTION 1 (timestamp with time zone, timestamp with time zone) pg_catalog.timestamptz_cmp(timestamp with time zone,timestamp with time zone),
		FUNCTION 2 (timestamp with time zone, timestamp with time zone) pg_catalog.timestamp_sortsupport(internal),
		FUNCTION 4 (timestamp with time zone, timestamp with time zone) pg_catalog.btequalimage(oid);

ALTER OPERATOR FAMILY datetime_ops USING art ADD
		FUNCTION 3 (date, interval) pg_catalog.in_range(date,date,interval,boolean,boolean),
		OPERATOR 1 pg_catalog.< (date, timestamp with time zone),
		OPERATOR 2 pg_catalog.<= (date, timestamp with time zone),
		OPERATOR 3 pg_catalog.= (date, timestamp with time zone),
		OPERATOR 4 pg_catalog.>= (date, timestamp with time zone),
		OPERATOR 5 pg_catalog.> (date, timestamp with time zone),
		FUNCTION 1 (date, timestamp with time zone) pg_catalog.date_cmp_timestamptz(date,timestamp with time zone),
		OPERATOR 1 pg_catalog.< (date, timestamp without time zone),
		OPERATOR 2 pg_catalog.<= (date, timestamp without time zone),
		OPERATOR 3 pg_catalog.= (date, timestamp without time zone),
		OPERATOR 4 pg_catalog.>= (date, timestamp without time zone),
		OPERATOR 5 pg_catalog.> (date, timestamp without time zone),
		FUNCTION 1 (date, timestamp without time zone) pg_catalog.date_cmp_timestamp(date,timestamp without time zone),
		OPERATOR 1 pg_catalog.< (timestamp with time zone, date),
		OPERATOR 2 pg_catalog.<= (timestamp with time zone, date),
		OPERATOR 3 pg_catalog.= (timestamp with time zone, date),
		OPERATOR 4 pg_catalog.>= (timestamp with time zone, date),
		OPERATOR 5 pg_catalog.> (timestamp with time zone, date),
		FUNCTION 1 (timestamp with time zone, date) pg_catalog.timestamptz_cmp_date(timestamp with time zone,date),
		FUNCTION 3 (timestamp with time zone, interval) pg_catalog.in_range(timestamp with time zone,timestamp with time zone,interval,boolean,boolean),
		OPERATOR 1 pg_catalog.< (timestamp with time zone, timestamp without time zone),
		OPERATOR 2 pg_catalog.<= (timestamp with time zone, timestamp without time zone),
		OPERATOR 3 pg_catalog.= (timestamp with time zone, timestamp without time zone),
		OPERATOR 4 pg_catalog.>= (timestamp with time zone, timestamp without time zone),
		OPERATOR 5 pg_catalog.> (timestamp with time zone, timestamp without time zone),
		FUNCTION 1 (timestamp with time zone, timestamp without time zone) pg_catalog.timestamptz_cmp_timestamp(timestamp with time zone,timestamp without time zone),
		OPERATOR 1 pg_catalog.< (timestamp without time zone, date),
		OPERATOR 2 pg_catalog.<= (timestamp without time zone, date),
		OPERATOR 3 pg_catalog.= (timestamp without time zone, date),
		OPERATOR 4 pg_catalog.>= (timestamp without time zone, date),
		OPERATOR 5 pg_catalog.> (timestamp without time zone, date),
		FUNCTION 1 (timestamp without time zone, date) pg_catalog.timestamp_cmp_date(timestamp without time zone,date),
		FUNCTION 3 (timestamp without time zone, interval) pg_catalog.in_range(timestamp without time zone,timestamp without time zone,interval,boolean,boolean),
		OPERATOR 1 pg_catalog.< (timestamp without time zone, timestamp with time zone),
		OPERATOR 2 pg_catalog.<= (timestamp without time zone, timestamp with time zone),
		OPERATOR 3 pg_catalog.= (timestamp without time zone, timestamp with time zone),
		OPERATOR 4 pg_catalog.>= (timestamp without time zone, timestamp with time zone),
		OPERATOR 5 pg_catalog.> (timestamp without time zone, timestamp with time zone),
		FUNCTION 1 (timestamp without time zone, timestamp with time zone) pg_catalog.timestamp_cmp_timestamptz(timestamp without time zone,timestamp with time zone);

CREATE OPERATOR FAMILY uuid_ops USING art;

CREATE OPERATOR CLASS uuid_ops
	DEFAULT FOR TYPE uuid USING art FAMILY uuid_ops AS
		OPERATOR 1 pg_catalog.< (uuid, uuid),
		OPERATOR 2 pg_catalog.<= (uuid, uuid),
		OPERATOR 3 pg_catalog.= (uuid, uuid),
		OPERATOR 4 pg_catalog.>= (uuid, uuid),
		OPERATOR 5 pg_catalog.> (uuid, uuid),
		FUNCTION 1 (uuid, uuid) pg_catalog.uuid_cmp(uuid,uuid),
		FUNCTION 2 (uuid, uuid) pg_catalog.uuid_sortsupport(internal),
		FUNCTION 4 (uuid, uuid) pg_catalog.btequalimage(oid);

CREATE OPERATOR FAMILY bytea_ops USING art;

CREATE OPERATOR CLASS bytea_ops
	DEFAULT FOR TYPE bytea USING art FAMILY bytea_ops AS
		OPERATOR 1 pg_catalog.< (bytea, bytea),
		OPERATOR 2 pg_catalog.<= (bytea, bytea),
		OPERATOR 3 pg_catalog.= (bytea, bytea),
		OPERATOR 4 pg_catalog.>= (bytea, bytea),
		OPERATOR 5 pg_catalog.> (bytea, bytea),
		FUNCTION 1 (bytea, bytea) pg_catalog.byteacmp(bytea,bytea),
		FUNCTION 2 (bytea, bytea) pg_catalog.bytea_sortsupport(internal),
		FUNCTION 4 (bytea, bytea) pg_catalog.btequalimage(oid);

CREATE OPERATOR FAMILY text_ops USING art;

CREATE OPERATOR CLASS name_ops
	DEFAULT FOR TYPE name USING art FAMILY text_ops AS
		OPERATOR 1 pg_catalog.< (name, name),
		OPERATOR 2 pg_catalog.<= (name, name),
		OPERATOR 3 pg_catalog.= (name, name),
		OPERATOR 4 pg_catalog.>= (name, name),
		OPERATOR 5 pg_catalog.> (name, name),
		FUNCTION 1 (name, name) pg_catalog.btnamecmp(name,name),
		FUNCTION 2 (name, name) pg_catalog.btnamesortsupport(internal),
		FUNCTION 4 (name, name) pg_catalog.btvarstrequalimage(oid);

CREATE OPERATOR CLASS text_ops
	DEFAULT FOR TYPE text USING art FAMILY text_ops AS
		OPERATOR 1 pg_catalog.< (text, text),
		OPERATOR 2 pg_catalog.<= (text, text),
		OPERATOR 3 pg_catalog.= (text, text),
		OPERATOR 4 pg_catalog.>= (text, text),
		OPERATOR 5 pg_catalog.> (text, text),
		FUNCTION 1 (text, text) pg_catalog.bttextcmp(text,text),
		FUNCTION 2 (text, text) pg_catalog.bttextsortsupport(internal),
		FUNCTION 4 (text, text) pg_catalog.btvarstrequalimage(oid);

CREATE OPERATOR CLASS varchar_ops
	FOR TYPE text USING art FAMILY text_ops AS
		STORAGE text;

ALTER OPERATOR FAMILY text_ops USING art ADD
		OPERATOR 1 pg_catalog.< (name, text),
		OPERATOR 2 pg_catalog.<= (name, text),
		OPERATOR 3 pg_catalog.= (name, text),
		OPERATOR 4 pg_catalog.>= (name, text),
		OPERATOR 5 pg_catalog.> (name, text),
		FUNCTION 1 (name, text) pg_catalog.btnametextcmp(name,text),
		OPERATOR 1 pg_catalog.< (text, name),
		OPERATOR 2 pg_catalog.<= (text, name),
		OPERATOR 3 pg_catalog.= (text, name),
		OPERATOR 4 pg_catalog.>= (text, name),
		OPERATOR 5 pg_catalog.> (text, name),
		FUNCTION 1 (text, name) pg_catalog.bttextnamecmp(text,name);

CREATE OPERATOR FAMILY text_pattern_ops USING art;

CREATE OPERATOR CLASS text_pattern_ops
	FOR TYPE text USING art FAMILY text_pattern_ops AS
		OPERATOR 1 pg_catalog.~<~ (text, text),
		OPERATOR 2 pg_catalog.~<=~ (text, text),
		OPERATOR 3 pg_catalog.= (text, text),
		OPERATOR 4 pg_catalog.~>=~ (text, text),
		OPERATOR 5 pg_catalog.~>~ (text, text),
		FUNCTION 1 (text, text) pg_catalog.bttext_pattern_cmp(text,text),
		FUNCTION 2 (text, text) pg_catalog.bttext_pattern_sortsupport(internal),
		FUNCTION 4 (text, text) pg_catalog.btequalimage(oid);

CREATE OPERATOR CLASS varchar_pattern_ops
	FOR TYPE text USING art FAMILY text_pattern_ops AS
		STORAGE text;

/*
 * What nbtree's families of a newer server have beyond those of 15 (skip
 * support, from 18 on).  Built-in members only: others may come and go.
 */
DO $$
DECLARE
	m record;
BEGIN
	FOR m IN
		SELECT b.opfname, p.amprocnum,
			pg_catalog.format_type(p.amproclefttype, NULL) AS l,
			pg_catalog.format_type(p.amprocrighttype, NULL) AS r,
			p.amproc::pg_catalog.regprocedure::pg_catalog.text AS f
		FROM pg_catalog.pg_opfamily a
			JOIN pg_catalog.pg_am aa ON aa.oid = a.opfmethod AND aa.amname = 'art'
			JOIN pg_catalog.pg_opfamily b ON b.opfname = a.opfname
			JOIN pg_catalog.pg_am ba ON ba.oid = b.opfmethod AND ba.amname = 'btree'
			JOIN pg_catalog.pg_amproc p ON p.amprocfamily = b.oid
		WHERE b.opfnamespace = 'pg_catalog'::pg_catalog.regnamespace
			AND p.oid < 16384
			AND NOT EXISTS (SELECT FROM pg_catalog.pg_amproc q
							WHERE q.amprocfamily = a.oid
								AND q.amprocnum = p.amprocnum
								AND q.amproclefttype = p.amproclefttype
								AND q.amprocrighttype = p.amprocrighttype)
		ORDER BY 1, 2, 3, 4
	LOOP
		EXECUTE pg_catalog.format('ALTER OPERATOR FAMILY %I USING art ADD FUNCTION %s (%s, %s) %s',
			m.opfname, m.amprocnum, m.l, m.r, m.f);
	END LOOP;
END
$$;

/*
 * The other operator classes of btree, as they are in this version of
 * PostgreSQL: their keys are compared unless they have an encoding.
 */

CREATE FUNCTION artidx_mirror_opclass(opclass text) RETURNS oid
	AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

COMMENT ON FUNCTION artidx_mirror_opclass(text) IS
	'make an operator class of access method art from one of btree';

SELECT artidx_mirror_opclass('pg_catalog.' || pg_catalog.quote_ident(c.opcname))
FROM (SELECT opcname FROM pg_catalog.pg_opclass b
	  WHERE opcmethod = (SELECT oid FROM pg_catalog.pg_am WHERE amname = 'btree')
		AND opcnamespace = 'pg_catalog'::regnamespace
		AND NOT EXISTS (SELECT FROM pg_catalog.pg_opclass a
						WHERE a.opcname = b.opcname AND a.opcmethod =
							(SELECT oid FROM pg_catalog.pg_am WHERE amname = 'art'))
	  ORDER BY opcname) c;

-- Views and functions for looking at the indexes and at the memory they share.

CREATE FUNCTION artidx_index_stats(
	index oid,
	OUT structure text, OUT sync text, OUT tail_buffer text, OUT elision text,
	OUT state text, OUT reason text, OUT build_fraction float8,
	OUT entries bigint, OUT bytes bigint, OUT bytes_per_entry float8,
	OUT max_memory bigint, OUT height int, OUT inner_nodes bigint,
	OUT leaf_nodes bigint, OUT nodes jsonb, OUT builds bigint,
	OUT last_build timestamptz, OUT last_build_source text,
	OUT last_build_ms float8, OUT seals bigint)
RETURNS record
AS 'MODULE_PATHNAME', 'artidx_index_stats'
LANGUAGE C STRICT VOLATILE PARALLEL SAFE;

CREATE VIEW artidx_indexes AS
	SELECT i.indrelid AS relid, i.indexrelid, n.nspname AS schemaname,
		   t.relname, c.relname AS indexrelname, s.*
	FROM pg_catalog.pg_index i
		JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
		JOIN pg_catalog.pg_class t ON t.oid = i.indrelid
		JOIN pg_catalog.pg_namespace n ON n.oid = t.relnamespace
		JOIN pg_catalog.pg_am a ON a.oid = c.relam AND a.amname = 'art',
		LATERAL artidx_index_stats(i.indexrelid) s
	WHERE c.relkind = 'i' AND s.state IS NOT NULL;

COMMENT ON VIEW artidx_indexes IS
	'every art index of this database, absent ones too';

CREATE FUNCTION artidx_contention_stats(
	index oid,
	OUT restarts bigint, OUT pessimistic bigint, OUT latch_waits bigint,
	OUT parks bigint, OUT handovers bigint, OUT abandoned bigint,
	OUT opportunistic_reads bigint, OUT opportunistic_failed bigint,
	OUT expansions bigint,
	OUT tail_mode text, OUT tail_inserts bigint, OUT tail_bypassed bigint,
	OUT tail_flushes bigint, OUT tail_flushed bigint,
	OUT tail_flush_ms float8,
	OUT search_lag bigint, OUT search_applied bigint,
	OUT walks bigint, OUT walk_steps bigint,
	OUT longest_walk bigint,
	OUT version_commits bigint, OUT versions_passed bigint,
	OUT commits_helped bigint, OUT stats_reset timestamptz)
RETURNS record
AS 'MODULE_PATHNAME', 'artidx_contention_stats'
LANGUAGE C STRICT VOLATILE PARALLEL SAFE;

CREATE VIEW artidx_contention AS
	SELECT i.indrelid AS relid, i.indexrelid, n.nspname AS schemaname,
		   t.relname, c.relname AS indexrelname, s.*
	FROM pg_catalog.pg_index i
		JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
		JOIN pg_catalog.pg_class t ON t.oid = i.indrelid
		JOIN pg_catalog.pg_namespace n ON n.oid = t.relnamespace
		JOIN pg_catalog.pg_am a ON a.oid = c.relam AND a.amname = 'art',
		LATERAL artidx_contention_stats(i.indexrelid) s
	WHERE c.relkind = 'i' AND s.restarts IS NOT NULL;

COMMENT ON VIEW artidx_contention IS
	'what processes met of one another in every art index of this database';

CREATE FUNCTION artidx_abort_stats(
	index regclass DEFAULT NULL,
	OUT site text, OUT mode text, OUT sections bigint, OUT attempts bigint,
	OUT commits bigint, OUT conflict bigint, OUT capacity bigint,
	OUT explicit bigint, OUT lock_busy bigint, OUT nested bigint,
	OUT zero bigint, OUT other bigint, OUT retry_hint bigint,
	OUT fallbacks bigint, OUT switch_offs bigint, OUT switch_ons bigint,
	OUT stats_reset timestamptz)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'artidx_abort_stats'
LANGUAGE C CALLED ON NULL INPUT VOLATILE PARALLEL SAFE ROWS 8;

COMMENT ON FUNCTION artidx_abort_stats(regclass) IS
	'how elided sections of an art index fared, or of all of this database together';

CREATE VIEW artidx_aborts AS
	SELECT i.indrelid AS relid, i.indexrelid, n.nspname AS schemaname,
		   t.relname, c.relname AS indexrelname, s.*
	FROM pg_catalog.pg_index i
		JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
		JOIN pg_catalog.pg_class t ON t.oid = i.indrelid
		JOIN pg_catalog.pg_namespace n ON n.oid = t.relnamespace
		JOIN pg_catalog.pg_am a ON a.oid = c.relam AND a.amname = 'art',
		LATERAL artidx_abort_stats(i.indexrelid) s
	WHERE c.relkind = 'i';

COMMENT ON VIEW artidx_aborts IS
	'how the elided sections of every art index of this database fared, by site';

CREATE FUNCTION artidx_hardware(
	OUT rtm_cpuid boolean, OUT rtm_always_abort boolean,
	OUT rtm_usable boolean, OUT probe_attempts int, OUT probe_commits int,
	OUT elision text, OUT reason text, OUT cpus int, OUT simd text,
	OUT huge_pages text)
RETURNS record
AS 'MODULE_PATHNAME', 'artidx_hardware'
LANGUAGE C STRICT VOLATILE PARALLEL SAFE;

COMMENT ON FUNCTION artidx_hardware() IS
	'what art indexes have to work with on this machine, and why nothing is elided';

CREATE FUNCTION artidx_memory_stats(
	OUT area_bytes bigint, OUT used_bytes bigint, OUT free_bytes bigint,
	OUT largest_free_bytes bigint, OUT reserve_bytes bigint,
	OUT retired_bytes bigint, OUT overhead_bytes bigint,
	OUT touched_bytes bigint, OUT indexes int, OUT sealed int)
RETURNS record
AS 'MODULE_PATHNAME', 'artidx_memory_stats'
LANGUAGE C STRICT VOLATILE PARALLEL SAFE;

CREATE VIEW artidx_memory AS
	SELECT * FROM artidx_memory_stats();

COMMENT ON VIEW artidx_memory IS
	'the shared memory in which the art indexes of all databases live';

CREATE FUNCTION artidx_usage_stats(
	OUT database name, OUT owner name, OUT kind text, OUT indexes int,
	OUT sealed int, OUT bytes bigint, OUT limited_by text,
	OUT limit_bytes bigint, OUT limit_used_bytes bigint)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'artidx_usage_stats'
LANGUAGE C STRICT VOLATILE PARALLEL SAFE;

CREATE VIEW artidx_usage AS
	SELECT * FROM artidx_usage_stats();

COMMENT ON VIEW artidx_usage IS
	'what the art indexes of all databases take, by database, owner and kind';

CREATE FUNCTION artidx_memory_class_stats(
	OUT size_class int, OUT spans bigint, OUT bytes bigint, OUT live bigint,
	OUT free bigint)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'artidx_memory_class_stats'
LANGUAGE C STRICT VOLATILE PARALLEL SAFE;

CREATE VIEW artidx_memory_classes AS
	SELECT * FROM artidx_memory_class_stats();

COMMENT ON VIEW artidx_memory_classes IS
	'the same memory by size of object';

CREATE FUNCTION artidx_epoch_stats(
	OUT slot int, OUT pid int, OUT pinned_epoch bigint, OUT lag bigint,
	OUT global_epoch bigint, OUT retired_objects bigint,
	OUT retired_bytes bigint, OUT adopted_bytes bigint)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'artidx_epoch_stats'
LANGUAGE C STRICT VOLATILE PARALLEL SAFE;

CREATE VIEW artidx_epochs AS
	SELECT e.slot, e.pid, a.backend_type, e.pinned_epoch, e.lag,
		   e.global_epoch, e.retired_objects, e.retired_bytes, e.adopted_bytes
	FROM artidx_epoch_stats() e
		LEFT JOIN pg_catalog.pg_stat_get_activity(NULL) a ON a.pid = e.pid;

COMMENT ON VIEW artidx_epochs IS
	'every process that is attached to the memory of the art indexes';

CREATE FUNCTION artidx_index_size(index regclass)
RETURNS bigint
AS 'MODULE_PATHNAME', 'artidx_index_size'
LANGUAGE C STRICT VOLATILE PARALLEL SAFE;

COMMENT ON FUNCTION artidx_index_size(regclass) IS
	'bytes of shared memory that an art index takes';

CREATE FUNCTION artidx_build(index regclass)
RETURNS void
AS 'MODULE_PATHNAME', 'artidx_build'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION artidx_build(regclass) IS
	'build an absent art index now';

CREATE FUNCTION artidx_wait(timeout interval DEFAULT NULL)
RETURNS boolean
AS 'MODULE_PATHNAME', 'artidx_wait'
LANGUAGE C CALLED ON NULL INPUT VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION artidx_wait(interval) IS
	'wait until every valid art index of this database is in memory; false when some are not, which a NOTICE names';

CREATE FUNCTION artidx_unload(index regclass)
RETURNS void
AS 'MODULE_PATHNAME', 'artidx_unload'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION artidx_unload(regclass) IS
	'free the memory of an art index until artidx_build, a restart or a unique insert';

CREATE FUNCTION artidx_reset_stats(index regclass DEFAULT NULL)
RETURNS void
AS 'MODULE_PATHNAME', 'artidx_reset_stats'
LANGUAGE C CALLED ON NULL INPUT VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION artidx_reset_stats(regclass) IS
	'set the counters of artidx_contention and artidx_aborts to zero, of one index or of all of this database';

REVOKE ALL ON artidx_indexes, artidx_contention, artidx_aborts,
	artidx_memory, artidx_usage, artidx_memory_classes, artidx_epochs FROM PUBLIC;
GRANT SELECT ON artidx_indexes, artidx_contention, artidx_aborts,
	artidx_memory, artidx_usage, artidx_memory_classes, artidx_epochs TO pg_monitor;

REVOKE ALL ON FUNCTION artidx_index_stats(oid), artidx_contention_stats(oid),
	artidx_abort_stats(regclass), artidx_memory_stats(), artidx_usage_stats(), artidx_memory_class_stats(), artidx_epoch_stats()
	FROM PUBLIC;
GRANT EXECUTE ON FUNCTION artidx_index_stats(oid), artidx_contention_stats(oid),
	artidx_abort_stats(regclass), artidx_memory_stats(), artidx_usage_stats(), artidx_memory_class_stats(), artidx_epoch_stats()
	TO pg_monitor;
REVOKE ALL ON FUNCTION artidx_build(regclass), artidx_unload(regclass),
	artidx_reset_stats(regclass) FROM PUBLIC;

-- artidx_estimate: the size of an index that is not there yet.  It checks the
-- caller's privileges on the table itself, reads with them and changes nothing,
-- so everybody may call it.

CREATE FUNCTION artidx_estimate(relation regclass, columns text[])
RETURNS bigint
AS 'MODULE_PATHNAME', 'artidx_estimate'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION artidx_estimate(regclass, text[]) IS
	'bytes of shared memory that an art index on these columns or (expressions) would take';

CREATE FUNCTION artidx_estimate(index regclass)
RETURNS bigint
AS 'MODULE_PATHNAME', 'artidx_estimate_index'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION artidx_estimate(regclass) IS
	'bytes of shared memory that this btree index would take as an art index, or this art index if it were built now';

-- Of every btree index of this database that art could take the place of and whose
-- table the caller may read.  An unlogged table is empty on a standby.
CREATE FUNCTION artidx_estimate_database(
	OUT indrelid regclass, OUT indexrelid regclass, OUT btree_bytes bigint,
	OUT art_bytes bigint)
RETURNS SETOF record
LANGUAGE sql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog
BEGIN ATOMIC
	SELECT t.oid::regclass, c.oid::regclass, pg_relation_size(c.oid),
		   artidx_estimate(c.oid::regclass)
	FROM pg_index i
		JOIN pg_class c ON c.oid = i.indexrelid
		JOIN pg_class t ON t.oid = i.indrelid
		JOIN pg_am h ON h.oid = t.relam AND h.amhandler = 'heap_tableam_handler'::regproc
		JOIN pg_am a ON a.oid = c.relam AND a.amname = 'btree'
	WHERE t.relkind IN ('r', 'm') AND c.relkind = 'i'
		AND t.relpersistence <> 't' AND t.oid >= 16384
		AND NOT (t.relpersistence = 'u' AND pg_is_in_recovery())
		AND i.indisvalid
		AND has_table_privilege(t.oid, 'SELECT') AND NOT row_security_active(t.oid)
		AND NOT EXISTS (
			SELECT FROM unnest(i.indclass::oid[]) k JOIN pg_opclass o ON o.oid = k
			WHERE NOT EXISTS (
				SELECT FROM pg_opclass p JOIN pg_am pa ON pa.oid = p.opcmethod
				WHERE pa.amname = 'art' AND p.opcname = o.opcname
					AND p.opcintype = o.opcintype))
	ORDER BY 3 DESC, 2;
END;

COMMENT ON FUNCTION artidx_estimate_database() IS
	'what every btree index of this database takes, and about what it would take as an art index';

-- The followers that keep art indexes on a standby.

CREATE FUNCTION artidx_standby_stats(
	OUT database name, OUT follower_pid int, OUT follower_lsn pg_lsn,
	OUT replay_lsn pg_lsn, OUT lag_bytes bigint, OUT lag_ms float8,
	OUT entries_added bigint, OUT dead_waiting bigint, OUT sweeps bigint,
	OUT entries_swept bigint, OUT sweep_ms float8, OUT waits bigint,
	OUT wait_ms float8, OUT given_up bigint)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'artidx_standby_stats'
LANGUAGE C STRICT VOLATILE PARALLEL SAFE ROWS 4;

CREATE VIEW artidx_standby AS
	SELECT * FROM artidx_standby_stats();

COMMENT ON VIEW artidx_standby IS
	'the processes that keep art indexes in memory on this standby, one a database';

REVOKE ALL ON artidx_standby FROM PUBLIC;
GRANT SELECT ON artidx_standby TO pg_monitor;
REVOKE ALL ON FUNCTION artidx_standby_stats() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION artidx_standby_stats() TO pg_monitor;

-- artidx_check: one row when the structure is sound, else an error (XX002).

CREATE FUNCTION artidx_check(index regclass, heapallindexed boolean DEFAULT false)
RETURNS TABLE (entries bigint, heap_tuples bigint, nodes bigint, bytes bigint)
AS 'MODULE_PATHNAME', 'artidx_check'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;

REVOKE ALL ON FUNCTION artidx_check(regclass, boolean) FROM PUBLIC;

COMMENT ON FUNCTION artidx_check(regclass, boolean)
IS 'verify an art index, with heapallindexed also against its table';

-- From art to btree and back.  Procedures, since they commit after each step
-- when they are called by themselves; and so not STRICT.

CREATE PROCEDURE artidx_to_btree(index regclass, concurrently boolean DEFAULT true)
AS 'MODULE_PATHNAME', 'artidx_to_btree'
LANGUAGE C;

COMMENT ON PROCEDURE artidx_to_btree(regclass, boolean)
IS 'make an art index one of btree, with its constraint and all that depends on it';

CREATE PROCEDURE artidx_to_btree()
AS 'MODULE_PATHNAME', 'artidx_to_btree_all'
LANGUAGE C;

COMMENT ON PROCEDURE artidx_to_btree()
IS 'make all art indexes of the database, as far as one owns them, ones of btree';

CREATE PROCEDURE artidx_from_btree(index regclass, concurrently boolean DEFAULT true)
AS 'MODULE_PATHNAME', 'artidx_from_btree'
LANGUAGE C;

COMMENT ON PROCEDURE artidx_from_btree(regclass, boolean)
IS 'make a btree index one of art, with its constraint and all that depends on it';
