/*
 * artidx_advise: which btree indexes of this database would gain from art.
 *
 * It reads catalogs and statistics, and of the tables their lengths only.  What other
 * extensions know, C asks for by name, with nothing but pg_catalog in the path.
 */

CREATE FUNCTION artidx_advise_stats(
	index oid,
	OUT obstacle text, OUT remark text, OUT keys text, OUT compared boolean,
	OUT key_bytes float8, OUT first_bytes float8, OUT key_values float8,
	OUT correlation float8, OUT entries float8, OUT index_bytes bigint, OUT table_bytes bigint)
RETURNS record
AS 'MODULE_PATHNAME', 'artidx_advise_stats'
LANGUAGE C STRICT VOLATILE PARALLEL SAFE;

COMMENT ON FUNCTION artidx_advise_stats(oid) IS
	'what the catalogs say of a btree index, for artidx_advise';

-- What only C can ask for: checkpoints since the statistics began, under the names of
-- this version.
CREATE FUNCTION artidx_advise_checkpoint_stats()
RETURNS float8
AS 'MODULE_PATHNAME', 'artidx_advise_checkpoint_stats'
LANGUAGE C STRICT VOLATILE PARALLEL SAFE;

COMMENT ON FUNCTION artidx_advise_checkpoint_stats() IS
	'checkpoints since the statistics began, for artidx_advise';

-- Full-page images in the last 4 MB of WAL, by file.  No row where pg_walinspect is not
-- installed, or not for the caller.
CREATE FUNCTION artidx_advise_image_stats(OUT filenode oid, OUT images bigint)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'artidx_advise_image_stats'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE ROWS 100
SET search_path = pg_catalog, pg_temp;

COMMENT ON FUNCTION artidx_advise_image_stats() IS
	'full-page images in the last 4 MB of WAL, for artidx_advise';

-- The hundred statements of this database that are called most often and may use an index.
-- No row where pg_stat_statements is not installed, or not loaded.
CREATE FUNCTION artidx_advise_statement_stats(OUT query text, OUT calls bigint)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'artidx_advise_statement_stats'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE ROWS 100
SET search_path = pg_catalog, pg_temp;

COMMENT ON FUNCTION artidx_advise_statement_stats() IS
	'the statements that are called most often, for artidx_advise';

-- The numbers are those of doc/figures.md; doc/advice.md says which.
CREATE FUNCTION artidx_advise(
	OUT indrelid regclass, OUT indexrelid regclass, OUT verdict text,
	OUT score numeric, OUT share numeric, OUT reason text, OUT command text,
	OUT keys text, OUT kept text, OUT entries bigint, OUT index_bytes bigint,
	OUT table_bytes bigint, OUT of_buffers numeric, OUT art_bytes bigint,
	OUT of_memory numeric, OUT scans bigint, OUT tuples bigint, OUT written bigint,
	OUT hot numeric, OUT page_images bigint, OUT lookup_ms numeric,
	OUT join_ms numeric, OUT range_ms numeric, OUT insert_ms numeric,
	OUT wal_bytes bigint, OUT rebuild_ms numeric)
RETURNS SETOF record
LANGUAGE sql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
	WITH RECURSIVE artidx_server AS MATERIALIZED (
		SELECT pg_catalog.pg_size_bytes(pg_catalog.current_setting('shared_buffers')) AS buffers,
			   pg_catalog.pg_size_bytes(pg_catalog.current_setting('artidx.memory', true)) AS memory,
			   pg_catalog.current_setting('full_page_writes') = 'on' AS images,
			   1::pg_catalog.float8 + artidx_advise_checkpoint_stats() AS cycles,
			   pg_catalog.pg_stat_get_db_active_time(d.oid) AS active,
			   (SELECT pg_catalog.quote_ident(n.nspname::pg_catalog.text) FROM pg_catalog.pg_extension e
					JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace
				WHERE e.extname = 'artidx') AS home
		FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database()),
	-- the indexes that are told of, and the parts of those that are partitioned
	artidx_part AS (
		SELECT c.oid AS root, c.oid AS part, t.oid AS tab, c.relfilenode AS file, c.relpersistence AS kind
		FROM pg_catalog.pg_index i
			JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
			JOIN pg_catalog.pg_class t ON t.oid = i.indrelid
			JOIN pg_catalog.pg_am a ON a.oid = c.relam AND a.amname = 'btree'
		WHERE t.relkind IN ('r', 'm', 'p') AND t.oid >= 16384::pg_catalog.oid
			AND NOT c.relispartition
			AND NOT pg_catalog.pg_is_other_temp_schema(t.relnamespace)
			AND NOT (t.relpersistence = 'u' AND pg_catalog.pg_is_in_recovery())
			AND (pg_catalog.pg_has_role('pg_read_all_stats'::pg_catalog.name, 'USAGE')
				 OR pg_catalog.has_any_column_privilege(t.oid, 'SELECT'))
		UNION ALL
		SELECT p.root, c.oid, i.indrelid, c.relfilenode, c.relpersistence
		FROM artidx_part p
			JOIN pg_catalog.pg_inherits h ON h.inhparent = p.part
			JOIN pg_catalog.pg_class c ON c.oid = h.inhrelid
			JOIN pg_catalog.pg_index i ON i.indexrelid = c.oid),
	artidx_image AS MATERIALIZED (
		SELECT w.filenode, w.images FROM artidx_advise_image_stats() w),
	artidx_statement AS MATERIALIZED (
		SELECT q.query, q.calls FROM artidx_advise_statement_stats() q),
	-- of each table the share of its scans that no statement began: those of a join's inner side
	artidx_table AS MATERIALIZED (
		SELECT t.oid AS tab,
			   CASE WHEN t.calls IS NULL OR t.scans <= t.calls THEN 0::pg_catalog.float8
					ELSE (t.scans - t.calls) / t.scans END AS joined
		FROM (SELECT c.oid,
					 (SELECT pg_catalog.sum(pg_catalog.pg_stat_get_numscans(i.indexrelid))::pg_catalog.float8
					  FROM pg_catalog.pg_index i WHERE i.indrelid = c.oid) AS scans,
					 (SELECT pg_catalog.sum(q.calls)::pg_catalog.float8 FROM artidx_statement q
					  WHERE pg_catalog.strpos(q.query, pg_catalog.lower(c.relname::pg_catalog.text)) > 0) AS calls
			  FROM pg_catalog.pg_class c
			  WHERE c.oid IN (SELECT p.tab FROM artidx_part p)) t),
	artidx_fact AS MATERIALIZED (
		SELECT f.*,
			   -- what the different keys are to the 10,000,000 of which the time is known
			   CASE WHEN f.key_values > 10::pg_catalog.float8
					THEN 0.155::pg_catalog.float8 * pg_catalog.log(f.key_values) - 0.085::pg_catalog.float8
					ELSE 0.07::pg_catalog.float8 END AS gain,
			   -- comparing short keys is what takes the time, with art, too
			   CASE WHEN f.compared AND f.key_bytes < 100::pg_catalog.float8
					THEN f.key_bytes / 100::pg_catalog.float8 ELSE 1::pg_catalog.float8 END AS longer,
			   -- pages that random keys come to
			   CASE WHEN f.key_values < f.index_bytes::pg_catalog.float8 / 8192::pg_catalog.float8 THEN f.key_values
					ELSE f.index_bytes::pg_catalog.float8 / 8192::pg_catalog.float8 END * f.random AS pages
		FROM (
			SELECT p.root, p.part, p.tab, p.kind, s.obstacle, s.remark, s.keys, s.compared,
				   s.key_bytes, s.first_bytes, s.index_bytes, s.table_bytes, s.entries, j.joined,
				   CASE WHEN s.key_values > 0::pg_catalog.float8 AND s.key_values < s.entries
						THEN s.key_values ELSE s.entries END AS key_values,
				   1::pg_catalog.float8 - s.correlation AS random,
				   pg_catalog.pg_stat_get_numscans(p.part)::pg_catalog.float8 AS scans,
				   pg_catalog.pg_stat_get_tuples_returned(p.part)::pg_catalog.float8 AS tuples,
				   pg_catalog.pg_stat_get_tuples_fetched(p.part)::pg_catalog.float8 AS fetched,
				   (pg_catalog.pg_stat_get_tuples_inserted(p.tab) + pg_catalog.pg_stat_get_tuples_updated(p.tab)
					- pg_catalog.pg_stat_get_tuples_hot_updated(p.tab))::pg_catalog.float8
				   -- a partial index gets its share
				   * CASE WHEN c.reltuples > s.entries::pg_catalog.float4 AND i.indpred IS NOT NULL
						THEN s.entries / c.reltuples::pg_catalog.float8 ELSE 1::pg_catalog.float8 END AS written,
				   pg_catalog.pg_stat_get_tuples_updated(p.tab)::pg_catalog.float8 AS updated,
				   pg_catalog.pg_stat_get_tuples_hot_updated(p.tab)::pg_catalog.float8 AS hot,
				   m.images
			FROM artidx_part p
				JOIN artidx_table j ON j.tab = p.tab
				JOIN pg_catalog.pg_class c ON c.oid = p.tab
				JOIN pg_catalog.pg_index i ON i.indexrelid = p.part
				LEFT JOIN artidx_image m ON m.filenode = p.file,
				LATERAL artidx_advise_stats(p.part) s) f),
	artidx_expected AS (
		SELECT f.*,
			   f.scans * (1::pg_catalog.float8 - f.joined) * f.gain * f.longer * 2299::pg_catalog.float8 AS lookup_ns,
			   f.scans * f.joined * f.gain * f.longer
			   * CASE WHEN f.compared THEN 2299::pg_catalog.float8 ELSE 3469::pg_catalog.float8 END AS join_ns,
			   -- what follows the first row of a scan, with the row of the table and without
			   CASE WHEN f.compared OR f.tuples <= f.scans THEN 0::pg_catalog.float8
					ELSE (f.tuples - f.scans) *
						(35.1::pg_catalog.float8 - 78.3::pg_catalog.float8 * f.random * f.fetched / f.tuples) END AS range_ns,
			   f.written * f.gain * (811::pg_catalog.float8 + 2834::pg_catalog.float8 * f.random)
			   * CASE WHEN f.compared THEN 0.7::pg_catalog.float8 ELSE 1::pg_catalog.float8 END AS insert_ns,
			   CASE WHEN f.kind <> 'p' THEN 0::pg_catalog.float8
					WHEN v.images AND f.pages > 0::pg_catalog.float8
					-- each of those pages once between two checkpoints
					THEN 97::pg_catalog.float8 * f.written + 6183::pg_catalog.float8 * v.cycles * f.pages
						* (1::pg_catalog.float8 - pg_catalog.exp(
							- CASE WHEN f.written / v.cycles / f.pages < 100::pg_catalog.float8
								THEN f.written / v.cycles / f.pages ELSE 100::pg_catalog.float8 END))
					ELSE 97::pg_catalog.float8 * f.written
					END AS wal,
			   CASE WHEN f.compared THEN f.entries * (f.key_bytes + 10::pg_catalog.float8) / 0.85::pg_catalog.float8
					-- keys in the order of the table share most of their first column's bytes
					ELSE f.entries * 6.4::pg_catalog.float8 + f.key_values * (f.key_bytes - f.first_bytes
						+ (f.first_bytes + 5.8::pg_catalog.float8)
						* (0.14::pg_catalog.float8 + 0.86::pg_catalog.float8 * f.random)) END
			   + 4096::pg_catalog.float8 AS art,
			   f.entries * (126::pg_catalog.float8 + f.random * 44::pg_catalog.float8
				+ CASE WHEN f.key_bytes > 8::pg_catalog.float8 THEN 90::pg_catalog.float8 ELSE 0::pg_catalog.float8 END) AS rebuild_ns
		FROM artidx_fact f, artidx_server v),
	artidx_sum AS (
		SELECT e.root,
			   pg_catalog.max(CASE WHEN e.part = e.root THEN e.obstacle END) AS obstacle,
			   pg_catalog.max(CASE WHEN e.part = e.root THEN e.remark END) AS remark,
			   pg_catalog.max(CASE WHEN e.part = e.root THEN e.keys END) AS keys,
			   pg_catalog.bool_or(e.compared) AS compared,
			   pg_catalog.sum(e.entries) AS entries,
			   pg_catalog.sum(e.index_bytes) AS index_bytes,
			   pg_catalog.sum(e.table_bytes) AS table_bytes,
			   pg_catalog.sum(CASE WHEN e.index_bytes > 0 THEN e.art ELSE 0::pg_catalog.float8 END) AS art,
			   pg_catalog.sum(e.scans) AS scans, pg_catalog.sum(e.tuples) AS tuples,
			   pg_catalog.sum(e.written) AS written, pg_catalog.sum(e.updated) AS updated,
			   pg_catalog.sum(e.hot) AS hot, pg_catalog.sum(e.images) AS images,
			   pg_catalog.sum(e.lookup_ns) / 1e6::pg_catalog.float8 AS lookup_ms,
			   pg_catalog.sum(e.join_ns) / 1e6::pg_catalog.float8 AS join_ms,
			   pg_catalog.sum(e.range_ns) / 1e6::pg_catalog.float8 AS range_ms,
			   pg_catalog.sum(e.insert_ns) / 1e6::pg_catalog.float8 AS insert_ms,
			   pg_catalog.sum(e.wal) AS wal,
			   pg_catalog.sum(e.rebuild_ns) / 1e6::pg_catalog.float8 AS rebuild_ms
		FROM artidx_expected e GROUP BY e.root),
	artidx_score AS (
		SELECT s.*, v.active, v.buffers, v.memory, v.home, i.indrelid AS tab,
			   (SELECT pg_catalog.count(*) > 0 FROM artidx_image m) AS inspected,
			   -- a byte of WAL at a nanosecond
			   s.lookup_ms + s.join_ms + s.range_ms + s.insert_ms + s.wal / 1e6::pg_catalog.float8 AS points,
			   CASE WHEN s.obstacle IS NOT NULL THEN 5
					WHEN s.art > v.memory::pg_catalog.float8 THEN 4
					WHEN s.scans + s.written < 1000::pg_catalog.float8 THEN 3
					WHEN s.lookup_ms + s.join_ms + s.range_ms + s.insert_ms + s.wal / 1e6::pg_catalog.float8
						<= 0::pg_catalog.float8 THEN 2
					ELSE 1 END AS rank
		FROM artidx_sum s JOIN pg_catalog.pg_index i ON i.indexrelid = s.root, artidx_server v)
	SELECT s.tab::pg_catalog.regclass, s.root::pg_catalog.regclass,
		   CASE s.rank WHEN 1 THEN 'convert' WHEN 2 THEN 'no gain' WHEN 3 THEN 'little used'
				WHEN 4 THEN 'too large' ELSE 'not possible' END,
		   pg_catalog.round(s.points::pg_catalog.numeric, 1),
		   CASE WHEN s.active > 0::pg_catalog.float8
				THEN pg_catalog.round((100::pg_catalog.float8 * s.points / s.active)::pg_catalog.numeric, 2) END,
		   CASE WHEN s.obstacle IS NOT NULL THEN s.obstacle
				WHEN s.rank = 4 AND s.remark IS NULL THEN 'It does not fit in artidx.memory.'
				WHEN s.rank = 4 THEN 'It does not fit in artidx.memory. ' || s.remark
				ELSE s.remark END,
		   CASE WHEN s.rank <= 3
				THEN 'CALL ' || s.home || '.artidx_from_btree('
					|| pg_catalog.quote_literal(s.root::pg_catalog.regclass::pg_catalog.text) || ')' END,
		   s.keys, CASE WHEN s.compared THEN 'compared' WHEN NOT s.compared THEN 'bytes' END,
		   s.entries::pg_catalog.int8, s.index_bytes::pg_catalog.int8, s.table_bytes::pg_catalog.int8,
		   pg_catalog.round((s.index_bytes + s.table_bytes) / s.buffers::pg_catalog.numeric, 3),
		   s.art::pg_catalog.int8,
		   pg_catalog.round(s.art::pg_catalog.numeric / s.memory::pg_catalog.numeric, 3),
		   s.scans::pg_catalog.int8, s.tuples::pg_catalog.int8, s.written::pg_catalog.int8,
		   CASE WHEN s.updated > 0::pg_catalog.float8
				THEN pg_catalog.round((s.hot / s.updated)::pg_catalog.numeric, 2) END,
		   CASE WHEN s.images IS NOT NULL THEN s.images::pg_catalog.int8
				WHEN s.inspected THEN 0::pg_catalog.int8 END,
		   pg_catalog.round(s.lookup_ms::pg_catalog.numeric, 1), pg_catalog.round(s.join_ms::pg_catalog.numeric, 1),
		   pg_catalog.round(s.range_ms::pg_catalog.numeric, 1), pg_catalog.round(s.insert_ms::pg_catalog.numeric, 1),
		   s.wal::pg_catalog.int8, pg_catalog.round(s.rebuild_ms::pg_catalog.numeric, 1)
	FROM artidx_score s
	ORDER BY s.rank, s.points DESC NULLS LAST, s.root;
END;

COMMENT ON FUNCTION artidx_advise() IS
	'which btree indexes of this database would gain from art, and what forbids it';
