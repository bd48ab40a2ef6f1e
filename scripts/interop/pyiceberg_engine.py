"""PyIceberg: reads tables, and appends and deletes."""

import importlib.metadata
import uuid

import lossless
import pyarrow as pa
from pyiceberg.catalog import load_catalog
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.table import StaticTable


def version():
    return {"pyiceberg": importlib.metadata.version("pyiceberg"), "pyarrow": importlib.metadata.version("pyarrow")}


def inspect(metadata):
    return StaticTable.from_metadata(metadata)


def load(catalog, properties, table):
    return load_catalog(catalog, **properties).load_table(table)


def read(table):
    """Every snapshot, branch and tag under the schema of its snapshot, and the present under the table's."""
    current = table.current_snapshot()
    snapshots = {str(one.snapshot_id): at(table, one.snapshot_id) for one in table.metadata.snapshots}
    refs = {}
    for name, ref in sorted(table.metadata.refs.items()):
        one = {"type": str(ref.snapshot_ref_type.value), "snapshot_id": str(ref.snapshot_id)}
        refs[name] = one | at(table, ref.snapshot_id)
    return {
        "current_snapshot_id": None if current is None else str(current.snapshot_id),
        "schema_id": table.schema().schema_id,
        "rows": rows(table.scan()),
        "snapshots": snapshots,
        "refs": refs,
    }


def at(table, snapshot_id):
    schema_id = table.snapshot_by_id(snapshot_id).schema_id
    schema_id = table.schema().schema_id if schema_id is None else schema_id
    return {"schema_id": schema_id, "rows": rows(table.scan(snapshot_id=snapshot_id))}


def rows(scan):
    kind = scan.projection().as_struct()
    found = scan.to_arrow()
    columns = [found.column(index) for index in range(found.num_columns)]
    fields = kind.fields
    values = []
    for row in range(found.num_rows):
        values.append({one.name: value(one.field_type, column[row]) for one, column in zip(fields, columns)})
    return lossless.rows(values)


def value(kind, scalar):
    if not scalar.is_valid:
        return None
    name = str(kind)
    if kind.is_struct:
        return {one.name: value(one.field_type, scalar[index]) for index, one in enumerate(kind.fields)}
    if name.startswith("list<"):
        return [value(kind.element_type, one) for one in scalar.values]
    if name.startswith("map<"):
        entries = scalar.values
        keys, items = entries.field(0), entries.field(1)
        return [[value(kind.key_type, k), value(kind.value_type, v)] for k, v in zip(keys, items)]
    if name == "long":
        return str(scalar.as_py())
    if name in ("float", "double"):
        return lossless.number(scalar.as_py())
    if name.startswith("decimal"):
        return lossless.fixed_point(scalar.as_py(), kind.scale)
    if name == "date":
        return lossless.date(scalar.cast(pa.int32()).as_py())
    if name == "time":
        return lossless.time(scalar.cast(pa.int64()).as_py())
    if name in ("timestamp", "timestamptz"):
        return lossless.timestamp(scalar.cast(pa.timestamp("us", scalar.type.tz)).value, name.endswith("tz"))
    if name in ("timestamp_ns", "timestamptz_ns"):
        return lossless.timestamp(scalar.value, name.endswith("tz_ns"), 9)
    if name == "uuid":
        raw = scalar.as_py()
        return str(raw if isinstance(raw, uuid.UUID) else uuid.UUID(bytes=raw))
    if name == "binary" or name.startswith("fixed"):
        return scalar.as_py().hex()
    return scalar.as_py()


def append(table, dicts, branch="main"):
    """Rows as Python values, by column name."""
    table.append(pa.Table.from_pylist(dicts, schema=schema_to_pyarrow(table.schema(), include_field_ids=False)), branch=branch)


def delete(table, where, branch="main"):
    table.delete(where, branch=branch)
