/*
 * From 0.1.0, whose install script called functions and operators that anybody who may
 * create in its schema could put in the way.  Its views and functions may call those
 * still.  So all of them are made anew below.  Here goes what cannot be replaced.
 */

-- artidx_aborts had its columns from such a function.  With other columns than those of
-- ours it cannot be replaced, and a view that somebody made of it would be wrong.
DO $$
BEGIN
	IF NOT EXISTS (
		SELECT FROM pg_catalog.pg_proc f
		WHERE f.oid = 'artidx_abort_stats(pg_catalog.regclass)'::pg_catalog.regprocedure::pg_catalog.oid
			AND (SELECT pg_catalog.array_agg(a.attname::pg_catalog.text ORDER BY a.attnum)
				 FROM pg_catalog.pg_attribute a
				 WHERE a.attrelid = 'artidx_aborts'::pg_catalog.regclass::pg_catalog.oid
					AND a.attnum > 5::pg_catalog.int2) OPERATOR(pg_catalog.=) f.proargnames[2:]
			AND (SELECT pg_catalog.array_agg(a.atttypid ORDER BY a.attnum)
				 FROM pg_catalog.pg_attribute a
				 WHERE a.attrelid = 'artidx_aborts'::pg_catalog.regclass::pg_catalog.oid
					AND a.attnum > 5::pg_catalog.int2) OPERATOR(pg_catalog.=) f.proallargtypes[2:])
	THEN
		DROP VIEW artidx_aborts;
	END IF;
END
$$;

-- artidx_index_stats() gives more columns, and a function with other columns is another
-- one.  Its view keeps its own meanwhile, for the sake of what is made of the view.
DO $$
BEGIN
	EXECUTE (
		SELECT pg_catalog.format('CREATE OR REPLACE VIEW artidx_indexes AS SELECT %s',
			pg_catalog.string_agg(
				pg_catalog.format('NULL::%s AS %I',
					pg_catalog.format_type(a.atttypid, a.atttypmod), a.attname),
				', ' ORDER BY a.attnum))
		FROM pg_catalog.pg_attribute a
		WHERE a.attrelid = 'artidx_indexes'::pg_catalog.regclass::pg_catalog.oid
			AND a.attnum > 0::pg_catalog.int2);
END
$$;

DROP FUNCTION artidx_index_stats(pg_catalog.oid);

-- What 0.1.0 has not.
CREATE TABLE artidx_trials (
	started timestamptz,
	line int,
	table_name text,
	index_name text,
	measure text,
	unit text,
	btree numeric,
	art numeric,
	gain numeric,
	calls bigint,
	remark text);

GRANT SELECT ON artidx_trials TO PUBLIC;
