"""Golden tables written by PyIceberg, in a catalog on SQLite."""

import datetime as dt
import decimal
import os
import uuid

import pyarrow as pa
import pyiceberg_engine
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform, TruncateTransform
from pyiceberg.types import (
    BinaryType, BooleanType, DateType, DecimalType, DoubleType, FixedType, FloatType, IntegerType, ListType, LongType,
    MapType, NestedField, StringType, StructType, TimestampType, TimestamptzType, TimeType, UUIDType,
)

makers = {}


def golden(name):
    def register(maker):
        def run(g):
            g.readers = ["pyiceberg"]
            table = maker(g)
            g.metadata = table.metadata_location

        run.__doc__, run.__module__ = maker.__doc__, __name__
        makers[name] = run
        return run

    return register


def catalog(folder, warehouse):
    made = SqlCatalog("g", uri=f"sqlite:///{os.path.join(folder, 'pyiceberg.db')}", warehouse=f"file://{warehouse}")
    made.create_namespace_if_not_exists("n")
    return made


def create(g, schema, spec=PartitionSpec(), **properties):
    if g.pyiceberg.table_exists(f"n.{g.name}"):
        g.pyiceberg.drop_table(f"n.{g.name}")
    properties = {name.replace("_", "-"): value for name, value in properties.items()}
    return g.pyiceberg.create_table(f"n.{g.name}", schema, location=f"file://{g.location}", partition_spec=spec, properties=properties)


def field(field_id, name, kind, required=False):
    return NestedField(field_id, name, kind, required=required)


TYPES = Schema(
    field(1, "id", LongType(), True), field(2, "flag", BooleanType()), field(3, "i", IntegerType()), field(4, "f", FloatType()),
    field(5, "d", DoubleType()), field(6, "small", DecimalType(9, 2)), field(7, "large", DecimalType(38, 10)),
    field(8, "day", DateType()), field(9, "t", TimeType()), field(10, "local", TimestampType()), field(11, "at", TimestamptzType()),
    field(12, "s", StringType()), field(13, "b", BinaryType()), field(14, "u", UUIDType()), field(15, "fix", FixedType(4)),
    field(16, "tags", ListType(20, StringType(), False)), field(17, "scores", MapType(21, StringType(), 22, DoubleType(), False)),
    field(18, "place", StructType(field(23, "x", IntegerType()), field(24, "label", StringType()))),
)


def types(g, version):
    table = create(g, TYPES, format_version=version)
    utc = dt.timezone.utc
    pyiceberg_engine.append(table, [
        {
            "id": 9223372036854775807, "flag": True, "i": -2147483648, "f": -0.0, "d": float("nan"), "small": decimal.Decimal("-9999999.99"),
            "large": decimal.Decimal("9999999999999999999999999999.9999999999"), "day": dt.date(9999, 12, 31), "t": dt.time(23, 59, 59, 999999),
            "local": dt.datetime(9999, 12, 31, 23, 59, 59, 999999), "at": dt.datetime(1969, 12, 31, 23, 59, 59, 999999, utc),
            "s": "żółw 亀 🐢 " * 60, "b": b"\x00\xff", "u": uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7").bytes, "fix": b"\x00\x01\xfe\xff",
            "tags": ["a", None, ""], "scores": [("one", 1.0), ("none", None)], "place": {"x": 1, "label": None},
        },
        {"id": 1, "f": float("inf"), "d": -0.0, "day": dt.date(1, 1, 1), "local": dt.datetime(1, 1, 1), "s": "", "b": b"", "tags": [], "scores": []},
    ])
    pyiceberg_engine.append(table, [{"id": 2}])
    return table


@golden("pyiceberg-v1-types")
def v1_types(g):
    """Format version 1: every type that PyIceberg writes."""
    return types(g, "1")


@golden("pyiceberg-v2-types")
def v2_types(g):
    """Format version 2: every type that PyIceberg writes."""
    return types(g, "2")


@golden("pyiceberg-partitioned")
def partitioned(g):
    """Partitions by identity, day, bucket and truncate; copy-on-write deletes, overwriting by filter and by partition."""
    schema = Schema(field(1, "id", IntegerType()), field(2, "part s", StringType()), field(3, "at", TimestamptzType()), field(4, "n", LongType()))
    spec = PartitionSpec(
        PartitionField(2, 1000, IdentityTransform(), "part s"), PartitionField(3, 1001, DayTransform(), "at_day"),
        PartitionField(4, 1002, BucketTransform(4), "n_bucket"), PartitionField(1, 1003, TruncateTransform(10), "id_trunc"),
    )
    table = create(g, schema, spec)
    at = lambda day: dt.datetime(2024, 1, day, 12, tzinfo=dt.timezone.utc)
    pyiceberg_engine.append(table, [
        {"id": 1, "part s": "a/b", "at": at(1), "n": 1}, {"id": 2, "part s": "a/b", "at": at(1), "n": 1},
        {"id": -3, "part s": "ü x", "at": at(2), "n": 2}, {"id": None, "part s": None, "at": None, "n": None},
    ])
    table.delete("id = 1")
    rows = [{"id": 4, "part s": "a/b", "at": at(3), "n": 3}]
    arrow = schema_to_pyarrow(schema, include_field_ids=False)
    table.overwrite(pa.Table.from_pylist(rows, schema=arrow), overwrite_filter="id = -3")
    table.append(pa.Table.from_pylist([{"id": 5, "part s": "a/b", "at": at(3), "n": 9}], schema=arrow))
    return table


@golden("pyiceberg-evolution")
def evolution(g):
    """Schema and partition spec changed between appends; tags, a branch; metadata compressed with gzip since."""
    schema = Schema(
        field(1, "id", IntegerType()), field(2, "s", StringType()), field(3, "f", FloatType()),
        field(4, "place", StructType(field(5, "x", IntegerType()), field(6, "gone", StringType()))),
    )
    table = create(g, schema)
    pyiceberg_engine.append(table, [{"id": 1, "s": "a", "f": 1.5, "place": {"x": 1, "gone": "g"}}, {"id": 2}])
    table.manage_snapshots().create_tag(table.current_snapshot().snapshot_id, "first").commit()
    with table.update_schema() as change:
        change.update_column("id", LongType())
        change.update_column("f", DoubleType())
        change.rename_column("s", "text")
        change.add_column(("place", "z"), StringType())
        change.delete_column(("place", "gone"))
        change.add_column("late", DateType())
        change.move_first("late")
    with table.update_spec() as change:
        change.add_identity("text")
    table = g.pyiceberg.load_table(f"n.{g.name}")
    pyiceberg_engine.append(table, [{"id": 5000000000, "text": "b", "place": {"x": 2, "z": "z"}, "late": dt.date(2024, 1, 1)}, {"id": 3, "text": "a"}])
    table.manage_snapshots().create_branch(table.current_snapshot().snapshot_id, "work").commit()
    pyiceberg_engine.append(table, [{"id": 4, "text": "on the branch"}], branch="work")
    with table.update_spec() as change:
        change.remove_field("text")
        change.add_field("id", BucketTransform(2), "id_bucket")
    table = g.pyiceberg.load_table(f"n.{g.name}")
    pyiceberg_engine.append(table, [{"id": 6, "text": "c"}])
    with table.transaction() as change:
        change.set_properties({"write.metadata.compression-codec": "gzip"})
    # By a column that was not widened: PyIceberg cannot read the bounds of one that was.
    table.delete("text = 'c'")
    return g.pyiceberg.load_table(f"n.{g.name}")
