"""Spark with Iceberg's runtime: starts it, and reads tables with it and with Iceberg's Java API in its JVM."""

import os
import uuid

import lossless
from pyspark.sql import SparkSession
from pyspark.sql import types as t

EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"


def start(jars, folder, cores=1, memory="2g"):
    """A session in UTC, everything it keeps in `folder`."""
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    builder = SparkSession.builder.appName("fencepost-interop").master(f"local[{cores}]")
    # One core has no use for a collector beside it.
    collector = "-XX:+UseSerialGC" if cores == 1 else "-XX:+UseParallelGC"
    settings = {
        "spark.driver.extraClassPath": os.path.join(jars, "*"),
        "spark.driver.memory": memory,
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": f"-Duser.timezone=UTC -Dderby.system.home={folder} {collector}",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": folder,
        "spark.sql.warehouse.dir": os.path.join(folder, "warehouse"),
        "spark.sql.shuffle.partitions": str(cores),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.extensions": EXTENSIONS,
        "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
        "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
        "spark.log.level": "ERROR",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    return Spark(builder.getOrCreate(), folder)


class Spark:
    def __init__(self, session, folder):
        self.session = session
        self.jvm = session._jvm
        # Tables that are only looked at, by their metadata file.
        self.catalog("inspect", local_catalog(folder, "inspect", "/nowhere"))
        self.sql("create namespace if not exists inspect.t")

    def version(self):
        iceberg = self.jvm.org.apache.iceberg.IcebergBuild
        return {"spark": self.session.version, "iceberg": iceberg.version()}

    def catalog(self, name, properties):
        self.session.conf.set(f"spark.sql.catalog.{name}", "org.apache.iceberg.spark.SparkCatalog")
        for key, value in {"cache-enabled": "false", **properties}.items():
            self.session.conf.set(f"spark.sql.catalog.{name}.{key}", value)

    def sql(self, statement):
        return self.session.sql(statement)

    def java(self, table):
        """The table as Iceberg's Java API has it."""
        return self.jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(self.session._jsparkSession, table)

    def inspect(self, metadata):
        name = f"t.t{uuid.uuid4().hex}"
        # Spark's procedure for this wants a summary in the snapshot, which old tables lack.
        catalog = self.jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergCatalog(self.session._jsparkSession, "inspect")
        catalog.registerTable(self.jvm.org.apache.iceberg.catalog.TableIdentifier.parse(name), metadata)
        return f"inspect.{name}"

    def read(self, table, engine="spark"):
        """Every snapshot under its own schema, every branch and tag, and the present, under the table's."""
        handle = self.java(table)
        read = self.rows if engine == "spark" else self.java_rows
        now = {"schema_id": handle.schema().schemaId(), "rows": read(table, handle.schema(), None)}
        snapshots, refs = {}, {}
        for one in handle.snapshots():
            schema = self.jvm.org.apache.iceberg.util.SnapshotUtil.schemaFor(handle, one.snapshotId())
            snapshots[str(one.snapshotId())] = {"schema_id": schema.schemaId(), "rows": read(table, schema, one.snapshotId())}
        for name, ref in sorted(dict(handle.refs()).items()):
            # A branch is read under the schema of the table, a tag under that of its snapshot.
            schema = self.jvm.org.apache.iceberg.util.SnapshotUtil.schemaFor(handle, name)
            one = {"type": str(ref.type()).lower(), "snapshot_id": str(ref.snapshotId()), "schema_id": schema.schemaId()}
            refs[name] = one | {"rows": read(table, schema, name)}
        current = handle.currentSnapshot()
        head = {"current_snapshot_id": None if current is None else str(current.snapshotId())}
        return head | now | {"snapshots": snapshots, "refs": refs}

    def rows(self, table, schema, version):
        at = "" if version is None else f" version as of {version if isinstance(version, int) else repr(version)}"
        frame = self.sql(f"select * from {table}{at}")
        names = [one.name() for one in schema.columns()]
        if frame.columns != names:
            raise AssertionError(f"{table}{at} has the columns {frame.columns}, its schema {names}")
        return self.collect(frame)

    def java_rows(self, table, schema, version):
        handle = self.java(table)
        scan = self.jvm.org.apache.iceberg.data.IcebergGenerics.read(handle)
        if version is not None:
            scan = scan.useSnapshot(version if isinstance(version, int) else handle.refs()[version].snapshotId())
        records = scan.project(schema).build()
        try:
            # A CloseableIterable is no collection to py4j.
            listed = self.jvm.org.apache.iceberg.relocated.com.google.common.collect.Lists.newArrayList(records)
            return lossless.rows([java_value(schema.asStruct(), record) for record in listed])
        finally:
            records.close()

    def collect(self, frame):
        columns = [f"{plain(quote(one.name), one.dataType)} as {quote(one.name)}" for one in frame.schema.fields]
        collected = frame.selectExpr(*columns).collect()
        return lossless.rows([struct(frame.schema, row) for row in collected])


def local_catalog(folder, name, warehouse):
    """A JDBC catalog of its own, on SQLite."""
    file = os.path.join(folder, f"{name}.db")
    return {"type": "jdbc", "uri": f"jdbc:sqlite:{file}", "jdbc.schema-version": "V1", "warehouse": warehouse}


def quote(name):
    return "`" + name.replace("`", "``") + "`"


def plain(expression, kind, depth=0):
    """Dates and timestamps as numbers and maps as entries, inside lists and structs too: Python's have less room."""
    item = f"x{depth}"
    if isinstance(kind, t.DateType):
        return f"unix_date({expression})"
    if isinstance(kind, (t.TimestampType, t.TimestampNTZType)):
        return f"unix_micros(cast({expression} as timestamp))"
    if isinstance(kind, t.VariantType):
        return f"to_json({expression})"
    if isinstance(kind, t.ArrayType):
        return f"transform({expression}, {item} -> {plain(item, kind.elementType, depth + 1)})"
    if isinstance(kind, t.MapType):
        key, value = plain(f"{item}.key", kind.keyType, depth + 1), plain(f"{item}.value", kind.valueType, depth + 1)
        return f"transform(map_entries({expression}), {item} -> struct({key} as key, {value} as value))"
    if isinstance(kind, t.StructType):
        parts = [f"{plain(f'{expression}.{quote(one.name)}', one.dataType, depth + 1)} as {quote(one.name)}" for one in kind.fields]
        return f"if({expression} is null, null, struct({', '.join(parts)}))"
    return expression


def struct(kind, row):
    return {one.name: spark_value(one.dataType, row[index]) for index, one in enumerate(kind.fields)}


def spark_value(kind, value):
    if value is None:
        return None
    if isinstance(kind, t.LongType):
        return str(value)
    if isinstance(kind, (t.FloatType, t.DoubleType)):
        return lossless.number(value)
    if isinstance(kind, t.DecimalType):
        return lossless.fixed_point(value, kind.scale)
    if isinstance(kind, t.DateType):
        return lossless.date(value)
    if isinstance(kind, (t.TimestampType, t.TimestampNTZType)):
        return lossless.timestamp(value, isinstance(kind, t.TimestampType))
    if isinstance(kind, t.BinaryType):
        return bytes(value).hex()
    if isinstance(kind, t.ArrayType):
        return [spark_value(kind.elementType, one) for one in value]
    if isinstance(kind, t.MapType):
        return [[spark_value(kind.keyType, one[0]), spark_value(kind.valueType, one[1])] for one in value]
    if isinstance(kind, t.StructType):
        return struct(kind, value)
    return value


def java_value(kind, value):
    if value is None:
        return None
    name = str(kind.typeId()).lower()
    if name == "struct":
        fields = list(kind.fields())
        return {one.name(): java_value(one.type(), value.getField(one.name())) for one in fields}
    if name == "list":
        return [java_value(kind.elementType(), one) for one in value]
    if name == "map":
        entries = value.entrySet()
        return [[java_value(kind.keyType(), one.getKey()), java_value(kind.valueType(), one.getValue())] for one in entries]
    if name == "long":
        return str(value)
    if name == "float":
        return lossless.number(lossless.single(value))
    if name == "double":
        return lossless.number(value)
    if name == "decimal":
        return lossless.fixed_point(value, kind.scale())
    if name == "date":
        return lossless.date(value.toEpochDay())
    if name == "time":
        return lossless.time(value.toNanoOfDay() // 1000)
    if name in ("timestamp", "timestamp_nano"):
        zone = kind.shouldAdjustToUTC()
        local = value.toLocalDateTime() if zone else value
        nanos = (local.toLocalDate().toEpochDay() * lossless.DAY * 10**9) + local.toLocalTime().toNanoOfDay()
        return lossless.timestamp(nanos // 1000, zone) if name == "timestamp" else lossless.timestamp(nanos, zone, 9)
    if name == "uuid":
        return value.toString()
    if name == "fixed":
        return bytes(value).hex()
    if name == "binary":
        return bytes(value.array()).hex()
    return value
