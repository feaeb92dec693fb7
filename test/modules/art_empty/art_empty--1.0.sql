\echo Use "CREATE EXTENSION art_empty" to load this file. \quit

CREATE FUNCTION empty_handler(internal) RETURNS index_am_handler
AS 'MODULE_PATHNAME' LANGUAGE C;

CREATE ACCESS METHOD empty TYPE INDEX HANDLER empty_handler;

-- From now on each scan of the index finds the next so many of these rows, whose keys these are,
-- in this session, whatever it looks for.
CREATE FUNCTION empty_answers(index regclass, found tid[], keys bigint[], each int)
RETURNS void AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

CREATE OPERATOR CLASS empty_bigint DEFAULT FOR TYPE bigint USING empty AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, STORAGE bigint;
-- without operators: the planner has no use for such an index
CREATE OPERATOR CLASS empty_uuid DEFAULT FOR TYPE uuid USING empty AS STORAGE uuid;
CREATE OPERATOR CLASS empty_text DEFAULT FOR TYPE text USING empty AS STORAGE text;
CREATE OPERATOR CLASS empty_timestamptz DEFAULT FOR TYPE timestamptz USING empty AS STORAGE timestamptz;
