"""Queries with batched joins and without: the same answers, and the time of both.

test/plans/run.sh says what it is for.  A set has tables, keys and queries.  Prints a line
for each query whose plan has a batched join, then the sums; the exit status is 1 when an
answer differs, or when no plan had a batched join at all.
"""

import argparse
import collections
import math
import re
import statistics
import sys

import duckdb
import psycopg

# both ways to plan: as the planner likes it, and where only nested loops are left
WAYS = {
    "free": "",
    "loops": "SET enable_hashjoin = off; SET enable_mergejoin = off;",
}
NODE = "Batched Nested Loop"

Result = collections.namedtuple("Result", "set query way joins off on rows")


class Bench:
    """A set of queries over a schema of its own."""

    def __init__(self, args, name):
        self.args = args
        self.name = name
        self.db = psycopg.connect("", autocommit=True)
        self.db.execute(f"CREATE SCHEMA {name}; SET search_path = {name}, public")
        self.db.execute(f"SET statement_timeout = '{args.limit}s'")
        self.unfit = []     # what is not PostgreSQL's SQL, or takes too long
        self.differ = []
        self.results = []

    def generate(self, call, key):
        """Tables as a generator of DuckDB's makes them, with an index on each key column."""
        duck = duckdb.connect()
        duck.execute(f"LOAD {self.name}")
        duck.execute(call.format(scale=self.args.scale / 100))
        for (table,) in duck.execute("SELECT table_name FROM duckdb_tables()").fetchall():
            columns = [(c[0], c[1]) for c in duck.execute(f"DESCRIBE {table}").fetchall()]
            self.db.execute(
                f"CREATE TABLE {table} ({', '.join(f'{c} {t}' for c, t in columns)})"
            )
            with self.db.cursor() as cursor, cursor.copy(f"COPY {table} FROM STDIN") as copy:
                rows = duck.execute(f"SELECT * FROM {table}")
                while batch := rows.fetchmany(10000):
                    for row in batch:
                        copy.write_row(row)
            for column, _ in columns:
                if re.search(key, column):
                    self.db.execute(f"CREATE INDEX ON {table} USING art ({column})")
        queries = duck.execute(f"SELECT query_nr, query FROM {self.name}_queries()").fetchall()
        return {f"q{number}": text for number, text in queries}

    def made(self, file):
        """Tables and queries of a file: statements, then "-- name" and a query each."""
        setup, *queries = re.split(r"^-- (q\w+)$", open(file).read(), flags=re.M)
        self.db.execute("SET statement_timeout = 0")
        self.db.execute(setup.replace(":rows", str(self.args.scale * 10000)))
        self.db.execute(f"SET statement_timeout = '{self.args.limit}s'")
        return dict(zip(queries[::2], queries[1::2]))

    def load(self):
        if self.name == "tpch":
            queries = self.generate("CALL dbgen(sf={scale})", r"key$")
        elif self.name == "tpcds":
            queries = self.generate("CALL dsdgen(sf={scale})", r"_sk$")
        else:
            queries = self.made(self.args.job)
        self.db.execute("VACUUM ANALYZE")
        return {name: text.strip().rstrip(";") for name, text in queries.items()}

    def joins(self, query):
        """How many nodes of the plan are batched joins."""
        lines = [row[0] for row in self.db.execute("EXPLAIN (COSTS off) " + query)]
        return sum(NODE in line for line in lines)

    def answer(self, query):
        return self.db.execute(query).fetchall()

    def cpu(self):
        return self.db.execute(
            "SELECT split_part(pg_read_file('/proc/self/schedstat'), ' ', 1)::bigint"
        ).fetchone()[0]

    def set(self, on):
        self.db.execute(f"SET artidx.batched_joins = {'on' if on else 'off'}")

    def times(self, query):
        """Medians of the processor time, ns, off and on in turn."""
        took = {False: [], True: []}
        for _ in range(self.args.reps):
            for on in (False, True):
                self.set(on)
                began = self.cpu()
                self.answer(query)
                took[on].append(self.cpu() - began)
        return [statistics.median(took[on]) for on in (False, True)]

    def compare(self, name, query, way):
        self.set(True)
        joins = self.joins(query)
        if joins == 0:
            return
        # with LIMIT, rows that are equal to the order may be others
        whole = re.sub(r"\bLIMIT\s+\d+\s*$", "", query, flags=re.I)
        with_joins = sorted(map(repr, self.answer(whole)))
        self.set(False)
        without = sorted(map(repr, self.answer(whole)))
        if with_joins != without:
            self.differ.append(f"{self.name} {name} ({way})")
            return
        off, on = self.times(query)
        result = Result(self.name, name, way, joins, off, on, len(without))
        self.results.append(result)
        print(
            f"{self.name:6} {name:5} {way:6} {joins:2} joins {off / 1e6:10.1f} ms"
            f" {on / 1e6:10.1f} ms {on / off:6.2f}  {len(without)} rows",
            flush=True,
        )

    def run(self):
        for name, query in self.load().items():
            for way, settings in WAYS.items():
                self.db.execute("RESET enable_hashjoin; RESET enable_mergejoin;" + settings)
                try:
                    self.compare(name, query, way)
                except psycopg.errors.QueryCanceled:
                    self.unfit.append(f"{name} ({way}): more than {self.args.limit} s")
                except psycopg.Error as error:
                    self.unfit.append(f"{name} ({way}): {error.diag.message_primary}")


def mean(ratios):
    return math.exp(statistics.mean(map(math.log, ratios)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--scale", type=int, required=True)
    parser.add_argument("--reps", type=int, required=True)
    parser.add_argument("--limit", type=int, required=True)
    parser.add_argument("--results", required=True)
    parser.add_argument("--job", required=True)
    parser.add_argument("sets", nargs="+", choices=["tpch", "tpcds", "job"])
    args = parser.parse_args()

    results, differ = [], []
    for name in args.sets:
        bench = Bench(args, name)
        bench.run()
        for line in bench.unfit:
            print(f"# {name}: not compared: {line}")
        results += bench.results
        differ += bench.differ
    with open(args.results, "w") as out:
        print(*Result._fields, sep="\t", file=out)
        for result in results:
            print(*result, sep="\t", file=out)
    for way in WAYS:
        ratios = [r.on / r.off for r in results if r.way == way]
        if ratios:
            print(
                f"{way}: {len(ratios)} plans with batched joins, geometric mean {mean(ratios):.2f},"
                f" best {min(ratios):.2f}, worst {max(ratios):.2f}, above 1.05: {sum(r > 1.05 for r in ratios)}"
            )
    print(f"{len(differ)} differences {' '.join(differ)}")
    return 1 if differ or not results else 0


sys.exit(main())
