\echo Use "CREATE EXTENSION art_empty" to load this file. \quit

CREATE FUNCTION empty_handler(internal) RETURNS index_am_handler
AS 'MODULE_PATHNAME' LANGUAGE C;

CREATE ACCESS METHOD empty TYPE INDEX HANDLER empty_handler;

-- without operators: the planner has no use for such an index
CREATE OPERATOR CLASS empty_bigint DEFAULT FOR TYPE bigint USING empty AS STORAGE bigint;
CREATE OPERATOR CLASS empty_uuid DEFAULT FOR TYPE uuid USING empty AS STORAGE uuid;
CREATE OPERATOR CLASS empty_text DEFAULT FOR TYPE text USING empty AS STORAGE text;
CREATE OPERATOR CLASS empty_timestamptz DEFAULT FOR TYPE timestamptz USING empty AS STORAGE timestamptz;
