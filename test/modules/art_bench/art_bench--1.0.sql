\echo Use "CREATE EXTENSION art_bench" to load this file. \quit

-- nanoseconds a look-up: n random keys of the table, by index_rescan and
-- index_getnext_tid, without the heap
CREATE FUNCTION bench_lookup(index regclass, n int, seed bigint DEFAULT 1)
RETURNS float8 AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- nanoseconds that the begin and the end of a scan add to a look-up,
-- of n; at least 1,000
CREATE FUNCTION bench_begin(index regclass, n int)
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

-- Several backends that insert a sequence at once: a counter for n keys from
-- base on; what each of them inserts, when so many have come, drawing cache
-- numbers at a time ('-' instead of an index: only draws); the counter's end.
-- Leaves entries without rows, behind those that the table had.
CREATE FUNCTION bench_tail_open(base bigint, n bigint)
RETURNS bigint AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

CREATE FUNCTION bench_tail(index regclass, counter bigint, backends int,
	cache int DEFAULT 1, OUT entries bigint, OUT ms float8)
AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

CREATE FUNCTION bench_tail_close(counter bigint)
RETURNS void AS 'MODULE_PATHNAME' LANGUAGE C STRICT;
