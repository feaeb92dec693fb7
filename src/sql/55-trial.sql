/*
 * artidx_trial: an art twin of a btree index, and the index itself, answer the same for a
 * while.  A procedure, since it commits; and so not STRICT.
 *
 * What it finds is in a table, which everybody may read: no row of it has a value of a
 * user's table.
 */

CREATE TABLE artidx_trials (
	started timestamptz,		-- which trial
	line int,
	table_name text,
	index_name text,
	measure text,
	unit text,
	btree numeric,
	art numeric,
	gain numeric,				-- btree / art
	calls bigint,
	remark text);

COMMENT ON TABLE artidx_trials IS
	'what trials of artidx_trial have found, in the order of started and line';

GRANT SELECT ON artidx_trials TO PUBLIC;

CREATE PROCEDURE artidx_trial(index regclass, seconds float8 DEFAULT 10)
AS 'MODULE_PATHNAME', 'artidx_trial'
LANGUAGE C;

COMMENT ON PROCEDURE artidx_trial(regclass, float8) IS
	'try an art twin of a btree index, and put a verdict into artidx_trials';
