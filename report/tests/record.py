"""record.py DSN FILE: what a server says now, for the tests that have none."""

import json
import sys
from decimal import Decimal

from artidx_report.server import look


def plain(x):
    return float(x) if isinstance(x, Decimal) else str(x)


if __name__ == "__main__":
    shot = look(sys.argv[1])
    with open(sys.argv[2], "w") as out:
        rows = {name: rows for name, rows in shot.rows.items() if isinstance(rows, list)}
        json.dump({"server": shot.server, "rows": rows}, out, default=plain, indent=1)
        out.write("\n")
