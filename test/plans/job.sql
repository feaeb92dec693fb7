-- Tables of a film database, and queries of the shapes of the Join Order Benchmark: a few
-- conditions on names, and joins over link tables to many rows.  :rows is the number of titles.
CREATE TABLE kind (id int, name text);
CREATE TABLE title (id int, kind int, year int, name text);
CREATE TABLE person (id int, gender "char", name text);
CREATE TABLE keyword (id int, word text);
CREATE TABLE company (id int, country text, name text);
CREATE TABLE movie_cast (id int, person int, movie int, role smallint, note text);
CREATE TABLE movie_keyword (movie int, keyword int);
CREATE TABLE movie_company (movie int, company int, since int);
CREATE TABLE movie_info (movie int, kind int, info text);
INSERT INTO kind SELECT i, 'kind ' || i FROM generate_series(1, 7) i;
-- skew: most links lead to few
CREATE FUNCTION skewed(i bigint, n bigint) RETURNS int LANGUAGE sql IMMUTABLE
	RETURN 1 + floor(n * power((hashint8extended(i, 7) & 1048575) / 1048576.0, 3))::int;
INSERT INTO title SELECT i, 1 + i % 7, 1900 + skewed(i, 120), 'title ' || md5(i::text) FROM generate_series(1, :rows) i;
INSERT INTO person SELECT i, CASE WHEN i % 3 = 0 THEN 'f' ELSE 'm' END, 'name ' || md5(i::text) FROM generate_series(1, :rows) i;
INSERT INTO keyword SELECT i, 'word ' || i FROM generate_series(1, :rows / 20) i;
INSERT INTO company SELECT i, '[' || chr(97 + i % 26) || chr(97 + i % 7) || ']', 'company ' || i FROM generate_series(1, :rows / 50) i;
INSERT INTO movie_cast SELECT i, skewed(i, :rows), skewed(i * 31, :rows), i % 12, CASE WHEN i % 5 = 0 THEN '(voice)' END
	FROM generate_series(1, :rows * 4) i;
INSERT INTO movie_keyword SELECT skewed(i * 17, :rows), skewed(i * 13, :rows / 20) FROM generate_series(1, :rows * 2) i;
INSERT INTO movie_company SELECT skewed(i * 19, :rows), skewed(i * 23, :rows / 50), 1900 + i % 120 FROM generate_series(1, :rows) i;
INSERT INTO movie_info SELECT i % :rows + 1, 1 + i % 110, 'info ' || i % 977 FROM generate_series(1, :rows * 3) i;
CREATE INDEX ON title USING art (id);
CREATE INDEX ON title USING art (kind);
CREATE INDEX ON person USING art (id);
CREATE INDEX ON keyword USING art (id);
CREATE INDEX ON keyword USING art (word);
CREATE INDEX ON company USING art (id);
CREATE INDEX ON company USING art (country);
CREATE INDEX ON movie_cast USING art (movie);
CREATE INDEX ON movie_cast USING art (person);
CREATE INDEX ON movie_keyword USING art (movie);
CREATE INDEX ON movie_keyword USING art (keyword);
CREATE INDEX ON movie_keyword USING art (keyword, movie);
CREATE INDEX ON movie_company USING art (movie);
CREATE INDEX ON movie_company USING art (company);
CREATE INDEX ON movie_info USING art (movie);
CREATE INDEX ON movie_info USING art (kind, movie);
-- q1
SELECT min(t.name), min(t.year) FROM company c, movie_company mc, title t
WHERE c.country = '[ba]' AND mc.company = c.id AND t.id = mc.movie AND t.year > 1950
-- q2
SELECT min(t.name) FROM company c, keyword k, movie_company mc, movie_keyword mk, title t
WHERE c.country = '[de]' AND k.word = 'word 7' AND c.id = mc.company AND mc.movie = t.id
AND t.id = mk.movie AND mk.keyword = k.id AND mc.movie = mk.movie
-- q3
SELECT min(t.name) FROM keyword k, movie_info mi, movie_keyword mk, title t
WHERE k.word LIKE 'word 11%' AND mi.info IN ('info 1', 'info 2', 'info 3', 'info 500') AND t.year > 2000
AND t.id = mi.movie AND t.id = mk.movie AND mk.movie = mi.movie AND k.id = mk.keyword
-- q4
SELECT min(p.name), min(t.name) FROM movie_cast ci, person p, title t, movie_keyword mk, keyword k
WHERE k.word = 'word 3' AND mk.keyword = k.id AND t.id = mk.movie AND ci.movie = t.id AND p.id = ci.person
AND p.gender = 'f' AND ci.note IS NOT NULL
-- q5
SELECT t.year, count(*), min(p.name) FROM movie_cast ci JOIN person p ON p.id = ci.person
JOIN title t ON t.id = ci.movie WHERE t.kind = 3 AND t.year BETWEEN 1990 AND 1993 AND ci.role = 2 GROUP BY t.year ORDER BY t.year
-- q6
SELECT count(*) FROM title t WHERE t.year = 1984 AND EXISTS (SELECT FROM movie_company mc WHERE mc.movie = t.id AND mc.since > 1950)
-- q7
SELECT count(*) FROM title t WHERE t.year = 1984 AND NOT EXISTS (SELECT FROM movie_keyword mk WHERE mk.movie = t.id)
-- q8
SELECT t.id, t.name, c.name FROM title t LEFT JOIN movie_company mc ON mc.movie = t.id
LEFT JOIN company c ON c.id = mc.company WHERE t.year = 1977 ORDER BY t.id, c.name, t.name
-- q9
SELECT k.word, count(*) FROM movie_keyword mk JOIN keyword k ON k.id = mk.keyword
WHERE mk.movie IN (SELECT mc.movie FROM movie_company mc WHERE mc.company BETWEEN 20 AND 24) GROUP BY k.word ORDER BY 2 DESC, 1 LIMIT 10
-- q10
SELECT a.name, b.name FROM movie_cast x JOIN movie_cast y ON y.movie = x.movie AND y.person > x.person
JOIN person a ON a.id = x.person JOIN person b ON b.id = y.person WHERE x.id BETWEEN 100 AND 150 AND y.role = 1 ORDER BY 1, 2 LIMIT 100
-- q11
SELECT avg(t.year)::numeric(10, 3), count(DISTINCT ci.person) FROM movie_info mi JOIN title t ON t.id = mi.movie
JOIN movie_cast ci ON ci.movie = t.id WHERE mi.kind = 42 AND mi.info > 'info 9'
-- q12
SELECT t.id, t.name FROM title t JOIN movie_keyword mk ON mk.movie = t.id JOIN keyword k ON k.id = mk.keyword
WHERE t.kind = 2 ORDER BY t.id, t.name LIMIT 20
-- q13
SELECT count(*) FROM movie_cast ci JOIN title t ON t.id = ci.movie JOIN person p ON p.id = ci.person
WHERE t.year < 1903 AND p.name LIKE 'name a%'
