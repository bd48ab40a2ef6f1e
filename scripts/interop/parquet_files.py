"""Writes the Parquet files of packages/iceberg/test/parquet-files: small, with many pages, page indexes and Bloom filters,
which DuckDB does not write.

    .cache/interop/python/bin/python scripts/interop/parquet_files.py
"""

import datetime
import decimal
import pathlib

import pyarrow as pa
import pyarrow.parquet as pq

FOLDER = pathlib.Path(__file__).parents[2] / "packages/iceberg/test/parquet-files"


def field(name, type, id, nullable=True):
    return pa.field(name, type, nullable, {"PARQUET:field_id": str(id)})


SCHEMA = pa.schema(
    # Numbered as Iceberg numbers the fields of a new table.
    [
        field("id", pa.int64(), 1, nullable=False),
        field("name", pa.string(), 2),
        field("price", pa.decimal128(9, 2), 3),
        field("at", pa.timestamp("us", tz="UTC"), 4),
        field("few", pa.string(), 5),
        field("tags", pa.list_(field("element", pa.string(), 8)), 6),
        field("place", pa.struct([field("x", pa.float64(), 9), field("y", pa.float64(), 10)]), 7),
    ]
)


def table(first, rows):
    start = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
    return pa.Table.from_pylist(
        [
            {
                "id": n,
                "name": None if n % 7 == 0 else f"name {n * 7919 % 10007}",
                "price": decimal.Decimal(n * 31 % 100000) / 100,
                "at": start + datetime.timedelta(seconds=n),
                "few": None if n % 11 == 0 else ["red", "green", "blue"][n % 3],
                "tags": None if n % 13 == 0 else [f"t{n % 5}"] * (n % 4),
                "place": None if n % 17 == 0 else {"x": n / 2, "y": None if n % 5 == 0 else -n / 3},
            }
            for n in range(first, first + rows)
        ],
        SCHEMA,
    )


FILES = {
    "a": (0, 900, {"compression": "snappy"}),
    "b": (1_000, 700, {"compression": "none", "data_page_version": "2.0"}),
    "c": (5_000, 1_100, {"compression": "snappy", "use_dictionary": False}),
}

for name, (first, rows, options) in FILES.items():
    pq.write_table(
        table(first, rows),
        FOLDER / f"{name}.parquet",
        row_group_size=400,
        max_rows_per_page=60,
        write_batch_size=20,
        write_page_index=True,
        bloom_filter_options={"id": {"ndv": 400, "fpp": 0.01}, "name": {"ndv": 400, "fpp": 0.01}},
        **options,
    )
