\echo Use "CREATE EXTENSION art_bench" to load this file. \quit

-- nanoseconds a look-up: n random keys of the table, by index_rescan and
-- index_getnext_tid, without the heap
CREATE FUNCTION bench_lookup(index regclass, n int, seed bigint DEFAULT 1)
RETURNS float8 AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- nanoseconds an insert: n fresh keys by index_insert, with TIDs behind the
-- table's end; kind is seq or random.  Leaves entries without rows: drop the
-- index afterwards.
CREATE FUNCTION bench_insert(index regclass, n int, kind text,
	seed bigint DEFAULT 1)
RETURNS float8 AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- milliseconds of the index part of a VACUUM that finds one row in one_in
-- dead.  The rows stay: drop the index afterwards.
CREATE FUNCTION bench_vacuum(index regclass, one_in int, seed bigint DEFAULT 1,
	OUT ms float8, OUT removed bigint)
AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- what the loops cost without an index: the generator and the clock
CREATE FUNCTION bench_empty(n int)
RETURNS float8 AS 'MODULE_PATHNAME' LANGUAGE C STRICT;
