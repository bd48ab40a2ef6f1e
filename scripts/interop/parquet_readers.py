"""Reads one Parquet file that was joined of others, with every reader, and compares it with the others.

    readers/bin/python parquet_readers.py joined.parquet input.parquet...

All have an `id` column that grows. Prints one JSON object: for each reader how many rows were equal, whole and by
ranges of ids, and for the joined file how many pages of how many DataFusion skipped by the page index.
"""

import json
import re
import sys

import datafusion
import polars
import pyarrow
import pyarrow.parquet

joined, *inputs = sys.argv[1:]
expected = pyarrow.concat_tables([pyarrow.parquet.read_table(path) for path in inputs])
columns = expected.column_names
rows = expected.to_pylist()
ids = sorted(row["id"] for row in rows)
ranges = [(ids[start], ids[min(start + 24, len(ids) - 1)]) for start in range(0, len(ids), 97)]


def pyarrow_reads(low, high):
    return pyarrow.parquet.read_table(joined, filters=[("id", ">=", low), ("id", "<=", high)])


def polars_reads(low, high):
    wanted = polars.col("id").is_between(low, high)
    return polars.scan_parquet(joined, parallel="prefiltered").filter(wanted).collect().to_arrow()


def context():
    switches = ["enable_page_index", "pushdown_filters", "bloom_filter_on_read"]
    settings = {f"datafusion.execution.parquet.{name}": "true" for name in switches}
    session = datafusion.SessionContext(datafusion.SessionConfig(settings))
    session.register_parquet("t", joined)
    return session


def datafusion_reads(low, high):
    return context().sql(f"select * from t where id between {low} and {high}").to_arrow_table()


def equal_rows(read, low, high):
    table = read(low, high).select(columns).cast(expected.schema)
    found = sorted(table.to_pylist(), key=lambda row: row["id"])
    wanted = sorted((row for row in rows if low <= row["id"] <= high), key=lambda row: row["id"])
    if found != wanted:
        raise SystemExit(f"{read.__name__} reads other rows from {low} to {high}")
    return len(found)


def report(read):
    return {
        "all": equal_rows(read, ids[0], ids[-1]),
        "by ranges": sum(equal_rows(read, low, high) for low, high in ranges),
    }


low, high = ranges[len(ranges) // 2]
plan = context().sql(f"explain analyze select * from t where id between {low} and {high}").to_pydict()
pruned = re.search(r"page_index_pages_pruned=(\d+) total → (\d+) matched", str(plan))
lineage = ["_row_id", "_last_updated_sequence_number"]
held = [name for name in lineage if name in pyarrow.parquet.read_schema(joined).names]
result = {
    "pyarrow": report(pyarrow_reads),
    "polars": report(polars_reads),
    "datafusion": report(datafusion_reads),
    "pages": [int(count) for count in pruned.groups()] if pruned else None,
    "lineage": {
        "pyarrow": [pyarrow.parquet.read_table(joined)[name].to_pylist() for name in held],
        "polars": [polars.read_parquet(joined)[name].to_list() for name in held],
        "datafusion": [context().sql(f"select {name} from t").to_pydict()[name] for name in held],
    },
}
print(json.dumps(result))
