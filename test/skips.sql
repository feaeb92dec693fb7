-- Included after rows.sql by regress "skip" and by t/skips: its random queries get conditions that
-- leave leading columns of the index open, so that scans skip.
CREATE OR REPLACE FUNCTION rows.cond(cols text[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	conds text[] := '{}';
	c text;
	x float8;
BEGIN
	FOR i IN 1 .. cardinality(cols) LOOP
		c := cols[i];
		x := CASE WHEN i = 1 THEN random() * 2 WHEN i = 2 THEN random() ELSE random() * 1.3 END;
		conds := conds || CASE
			WHEN x < 0.35 THEN format('%s = %s', c, rows.val(c))
			WHEN x < 0.5 THEN format('%s %s %s', c, rows.one('{<,<=,>,>=}'::text[]), rows.val(c))
			WHEN x < 0.65 THEN format('%s >= %s AND %1$s <= %3$s', c, rows.val(c), rows.val(c))
			WHEN x < 0.9 THEN coalesce((SELECT format('%s = ANY (ARRAY[%L, %L, %L, NULL]::%s[])', col, rows.one(vals), rows.one(vals), rows.one(vals), types[1])
				FROM rows.types WHERE col = c AND col <> 'v'), c || ' IS NULL')
			WHEN x < 1 THEN c || rows.one('{" IS NULL"," IS NOT NULL"}'::text[])
			END;
	END LOOP;
	RETURN array_to_string(conds, ' AND ');	-- without the NULLs
END $$;
