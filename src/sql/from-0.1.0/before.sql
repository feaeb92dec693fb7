/*
 * From 0.1.0, whose install script called functions and operators that anybody who may
 * create in its schema could put in the way.  Its views and functions may call those
 * still.  So all of them are made anew below.  Here goes what cannot be replaced.
 */

-- What artidx_debug has from this version on, and artidx_contention, which has fewer columns.
DO $$
DECLARE
	gone pg_catalog.text;
	dependents pg_catalog.text;
BEGIN
	FOREACH gone IN ARRAY ARRAY['VIEW artidx_contention', 'VIEW artidx_aborts',
		'FUNCTION artidx_abort_stats(pg_catalog.regclass)', 'FUNCTION artidx_hardware()',
		'VIEW artidx_memory_classes', 'FUNCTION artidx_memory_class_stats()',
		'VIEW artidx_epochs', 'FUNCTION artidx_epoch_stats()']
	LOOP
		EXECUTE pg_catalog.format('DROP %s', gone);
	END LOOP;
EXCEPTION WHEN dependent_objects_still_exist THEN
	GET STACKED DIAGNOSTICS dependents = PG_EXCEPTION_DETAIL;
	RAISE EXCEPTION USING
		ERRCODE = 'dependent_objects_still_exist',
		MESSAGE = pg_catalog.format('cannot update extension "artidx" because other objects depend on what it gives up: %s', gone),
		DETAIL = dependents,
		HINT = 'Drop these objects and update. Extension "artidx_debug" has the view or function then; of artidx_contention all columns, as artidx_contention_details.';
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
