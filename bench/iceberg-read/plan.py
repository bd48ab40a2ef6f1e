"""Plans a scan of the table with this metadata, `all` of it or `filtered`, and prints what it took."""

import json
import resource
import sys
import time
from datetime import date, timedelta

from pyiceberg.expressions import And, GreaterThanOrEqual, LessThan, StartsWith
from pyiceberg.table import StaticTable

location, scan = sys.argv[1:]
start = time.perf_counter()
table = StaticTable.from_metadata(location)
if scan == "filtered":
    day = (date(1970, 1, 1) + timedelta(days=19_250)).isoformat()
    planned = table.scan(
        row_filter=And(GreaterThanOrEqual("day", day), LessThan("id", 750_500_000), StartsWith("b", "value-"))
    )
else:
    planned = table.scan()
files = sum(1 for _ in planned.plan_files())
seconds = time.perf_counter() - start
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"seconds": seconds, "megabytes": memory, "files": files}))
