/* test/modules/art_keytest/art_keytest--1.0.sql */

-- Encodes the key of every row of the index's table; ERROR unless each decodes
-- to the same datums and each pair compares as the operator classes do.
-- Returns the number of pairs.
CREATE FUNCTION art_keytest_order(index regclass)
RETURNS bigint
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT;

-- Makes sets of random scan keys, with constants from the columns of pool (any
-- type for which the operator family has operators); ERROR unless the range
-- and the residual conditions of each select the rows that its operators do.
CREATE FUNCTION art_keytest_scan(index regclass, pool regclass, rounds int,
	seed int, arrays bool, OUT plans bigint, OUT impossible bigint, OUT points bigint,
	OUT residual bigint, OUT operator_tests bigint, OUT matches bigint)
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT;
CREATE FUNCTION art_keytest_scan(index regclass, pool regclass, rounds int,
	seed int, OUT plans bigint, OUT impossible bigint, OUT points bigint,
	OUT residual bigint, OUT operator_tests bigint, OUT matches bigint)
LANGUAGE sql AS 'SELECT * FROM art_keytest_scan($1, $2, $3, $4, false)';

-- Nanoseconds of one encode, and of one plan for "first column = constant".
CREATE FUNCTION art_keytest_speed(index regclass, rounds int,
	OUT encode_ns float8, OUT plan_ns float8)
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT;

-- The encoded key of the first row of the index's table.
CREATE FUNCTION art_keytest_encode(index regclass)
RETURNS bytea
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT;
