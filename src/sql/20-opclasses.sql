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
		SELECT an.nspname, a.opfname, p.amprocnum,
			pg_catalog.format_type(p.amproclefttype, NULL) AS l,
			pg_catalog.format_type(p.amprocrighttype, NULL) AS r,
			f.proname, pg_catalog.oidvectortypes(f.proargtypes) AS args
		FROM pg_catalog.pg_opfamily a
			JOIN pg_catalog.pg_am aa ON aa.oid = a.opfmethod AND aa.amname = 'art'
			JOIN pg_catalog.pg_namespace an ON an.oid = a.opfnamespace
			JOIN pg_catalog.pg_depend e ON e.objid = a.oid AND e.deptype = 'e'
				AND e.classid = 'pg_catalog.pg_opfamily'::pg_catalog.regclass::pg_catalog.oid
			JOIN pg_catalog.pg_extension x ON x.oid = e.refobjid AND x.extname = 'artidx'
			JOIN pg_catalog.pg_opfamily b ON b.opfname = a.opfname
			JOIN pg_catalog.pg_am ba ON ba.oid = b.opfmethod AND ba.amname = 'btree'
			JOIN pg_catalog.pg_namespace bn ON bn.oid = b.opfnamespace AND bn.nspname = 'pg_catalog'
			JOIN pg_catalog.pg_amproc p ON p.amprocfamily = b.oid
			JOIN pg_catalog.pg_proc f ON f.oid = p.amproc::pg_catalog.oid
		WHERE p.oid < 16384::pg_catalog.oid
			AND NOT EXISTS (SELECT FROM pg_catalog.pg_amproc q
							WHERE q.amprocfamily = a.oid
								AND q.amprocnum = p.amprocnum
								AND q.amproclefttype = p.amproclefttype
								AND q.amprocrighttype = p.amprocrighttype)
		ORDER BY 1, 2, 3, 4, 5
	LOOP
		EXECUTE pg_catalog.format('ALTER OPERATOR FAMILY %I.%I USING art ADD FUNCTION %s (%s, %s) pg_catalog.%I(%s)',
			m.nspname, m.opfname, m.amprocnum, m.l, m.r, m.proname, m.args);
	END LOOP;
END
$$;
