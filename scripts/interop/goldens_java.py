"""Golden tables that SQL cannot write: made with Iceberg's Java API inside Spark's JVM, and Spark's SQL for the rest.

py4j hands a small number over as an Integer, whatever the column: so what is written here as a record has no long, float
or double.
"""

import json
import uuid

makers = {}


def golden(name):
    def register(maker):
        makers[name] = maker
        return maker

    return register


def schema_of(g, *fields):
    """Each field is (id, name, type[, more keys])."""
    parts = [{"id": one[0], "name": one[1], "type": one[2], "required": False, **(one[3] if len(one) > 3 else {})} for one in fields]
    return g.spark.jvm.org.apache.iceberg.SchemaParser.fromJson(json.dumps({"type": "struct", "schema-id": 0, "fields": parts}))


def create(g, schema, spec=None, **properties):
    jvm = g.spark.jvm
    catalog = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergCatalog(g.spark.session._jsparkSession, "g")
    builder = catalog.buildTable(jvm.org.apache.iceberg.catalog.TableIdentifier.parse(f"n.{g.name}"), schema)
    builder = builder.withLocation(g.location)
    if spec is not None:
        builder = builder.withPartitionSpec(spec)
    for name, value in properties.items():
        builder = builder.withProperty(name.replace("_", "-"), value)
    return builder.create()


def writer_of(g, table, schema=None, ids=None):
    jvm = g.spark.jvm
    builder = getattr(jvm.org.apache.iceberg.data, "GenericFileWriterFactory$Builder")(table)
    parquet = jvm.org.apache.iceberg.FileFormat.PARQUET
    builder = builder.dataFileFormat(parquet).deleteFileFormat(parquet)
    if ids is not None:
        array = g.spark.session.sparkContext._gateway.new_array(jvm.int, len(ids))
        for index, one in enumerate(ids):
            array[index] = one
        builder = builder.equalityFieldIds(array).equalityDeleteRowSchema(schema)
    return builder.build()


def write(g, table, make, schema, rows, partition):
    jvm = g.spark.jvm
    spec = table.spec()
    task = uuid.uuid4().int % 10**6
    files = jvm.org.apache.iceberg.io.OutputFileFactory.builderFor(table, task, task).format(jvm.org.apache.iceberg.FileFormat.PARQUET).build()
    key = None if partition is None else record(g, spec.partitionType(), partition)
    out = files.newOutputFile() if key is None else files.newOutputFile(spec, key)
    writer = make(out, spec, key)
    for row in rows:
        writer.write(record(g, schema, row))
    writer.close()
    return writer


def record(g, schema, values):
    made = g.spark.jvm.org.apache.iceberg.data.GenericRecord.create(schema)
    for name, value in values.items():
        made.setField(name, value)
    return made


def append(g, table, rows, partition=None):
    factory = writer_of(g, table)
    written = write(g, table, factory.newDataWriter, table.schema(), rows, partition)
    table.newAppend().appendFile(written.toDataFile()).commit()


def delete_equal(g, table, names, rows, partition=None):
    """Deletes the rows whose values under these names are equal to those of one of the rows given."""
    schema = table.schema().select(list_of(g, names))
    ids = [table.schema().findField(name).fieldId() for name in names]
    factory = writer_of(g, table, schema, ids)
    written = write(g, table, factory.newEqualityDeleteWriter, schema, rows, partition)
    table.newRowDelta().addDeletes(written.toDeleteFile()).commit()


def list_of(g, values):
    made = g.spark.jvm.java.util.ArrayList()
    for one in values:
        made.add(one)
    return made


def equality(g, version):
    g.sql(f"create table {{T}} (id int, s string, day date) using iceberg location '{{L}}' tblproperties ('format-version' = '{version}')")
    g.sql("insert into {T} values (1, 'a', date'2024-01-01'), (2, 'b', null), (3, null, date'2024-01-03'), (4, 'd', null), (null, 'n', null)")
    delete_equal(g, g.spark.java(g.table), ["id"], [{"id": 1}, {"id": 9}])
    g.sql("insert into {T} values (1, 'again', null), (5, null, null), (6, 'f', null)")
    delete_equal(g, g.spark.java(g.table), ["id"], [{"id": None}, {"id": 2}])
    delete_equal(g, g.spark.java(g.table), ["s", "day"], [{"s": None, "day": None}, {"s": "d", "day": None}])
    g.sql("alter table {T} rename column s to text")
    g.sql("alter table {T} drop column day")
    g.sql("insert into {T} values (2, 'back'), (7, null)")


@golden("equality-deletes")
def equality_deletes(g):
    """Format version 2: equality deletes by one and two columns, null among the keys, rows inserted again, a column dropped since."""
    equality(g, 2)


@golden("v3-equality-deletes")
def v3_equality_deletes(g):
    """Format version 3: equality deletes by one and two columns, and a deletion vector beside them."""
    equality(g, 3)
    g.sql("alter table {T} set tblproperties ('write.delete.mode' = 'merge-on-read')")
    g.sql("insert into {T} values (8, 'h'), (9, 'i'), (10, 'j')")
    g.sql("delete from {T} where id = 9")
    delete_equal(g, g.spark.java(g.table), ["id"], [{"id": 10}, {"id": 9}])


@golden("equality-deletes-partitioned")
def equality_deletes_partitioned(g):
    """Equality deletes that bind in their own partition, global ones of an earlier unpartitioned spec, and position deletes beside."""
    g.sql(
        """create table {T} (id int, part string) using iceberg location '{L}'
        tblproperties ('write.delete.mode' = 'merge-on-read', 'write.distribution-mode' = 'none')"""
    )
    g.sql("insert into {T} values (1, 'a'), (2, 'a'), (3, 'b')")
    delete_equal(g, g.spark.java(g.table), ["id"], [{"id": 3}])
    g.sql("alter table {T} add partition field part")
    g.sql("insert into {T} values (4, 'a'), (5, 'a'), (6, 'a')")
    g.sql("insert into {T} values (4, 'b'), (5, 'b'), (3, 'b')")
    delete_equal(g, g.spark.java(g.table), ["id"], [{"id": 4}, {"id": 1}], {"part": "a"})
    g.sql("delete from {T} where id = 5 and part = 'b'")
    g.sql("insert into {T} values (4, 'a'), (7, null)")
    delete_equal(g, g.spark.java(g.table), ["id"], [{"id": 7}], {"part": None})
    # A global one, written while the default spec has no field.
    g.sql("alter table {T} drop partition field part")
    delete_equal(g, g.spark.java(g.table), ["id"], [{"id": 6}, {"id": 2}])
    g.sql("insert into {T} values (6, 'z')")


@golden("v3-defaults")
def v3_defaults(g):
    """Format version 3: columns added with a default, also required and nested ones; the write default changed since."""
    jvm = g.spark.jvm
    g.sql(
        """create table {T} (id int, place struct<x: int>) using iceberg location '{L}'
        tblproperties ('format-version' = '3', 'write.delete.mode' = 'merge-on-read')"""
    )
    g.sql("insert into {T} values (1, struct(1)), (2, null)")
    types, literal = jvm.org.apache.iceberg.types.Types, jvm.org.apache.iceberg.expressions.Literal
    of = lambda name: getattr(types, name).get()
    change = g.spark.java(g.table).updateSchema()
    text = lambda value, kind: literal.of(value).to(kind)
    change = change.addColumn("n", of("IntegerType"), literal.of(7))
    change = change.addColumn("big", of("LongType"), literal.of(9007199254740993))
    change = change.addColumn("s", of("StringType"), literal.of("żółw"))
    change = change.addColumn("flag", of("BooleanType"), literal.of(True))
    change = change.addColumn("d", of("DoubleType"), literal.of(0.1))
    change = change.addColumn("day", of("DateType"), text("2024-02-29", of("DateType")))
    decimal = types.DecimalType.of(9, 2)
    change = change.addColumn("m", decimal, text("12.30", decimal))
    stamp = types.TimestampType.withoutZone()
    change = change.addColumn("local", stamp, text("2024-02-29T12:00:00.000001", stamp))
    zoned = types.TimestampType.withZone()
    change = change.addColumn("at", zoned, text("2024-02-29T12:00:00.000001+00:00", zoned))
    change = change.addColumn("place", "y", of("IntegerType"), literal.of(-1))
    change.addRequiredColumn("must", of("StringType"), literal.of("")).commit()
    g.sql("insert into {T} (id, place, n, must) values (3, struct(3, 3), null, 'given')")
    g.spark.java(g.table).updateSchema().updateColumnDefault("n", literal.of(8)).renameColumn("s", "text").commit()
    g.sql("insert into {T} (id, must) values (4, 'given too')")
    g.sql("delete from {T} where id = 1")


@golden("void")
def void(g):
    """Format version 2: a partition field that is void from the start, beside a real one."""
    jvm = g.spark.jvm
    schema = schema_of(g, (1, "id", "int"), (2, "s", "string"))
    spec = jvm.org.apache.iceberg.PartitionSpec.builderFor(schema).alwaysNull("s", "nothing").bucket("id", 2, "half").build()
    create(g, schema, spec)
    g.sql("insert into {T} values (1, 'a'), (2, 'b'), (null, null)")
    g.sql("delete from {T} where id = 1")


def moment(g, kind, text):
    return getattr(g.spark.jvm.java.time, kind).parse(text)


@golden("java-types")
def java_types(g):
    """Format version 2: uuid, fixed, time, a list of uuids and a required column; partitioned by bucket of the uuid."""
    jvm = g.spark.jvm
    schema = schema_of(
        g, (1, "id", "int", {"required": True}), (2, "u", "uuid"), (3, "f", "fixed[4]"), (4, "t", "time"),
        (5, "us", {"type": "list", "element-id": 6, "element": "uuid", "element-required": True}),
    )
    spec = jvm.org.apache.iceberg.PartitionSpec.builderFor(schema).bucket("u", 4, "u_bucket").build()
    table = create(g, schema, spec)
    one = jvm.java.util.UUID.fromString("f79c3e09-677c-4bbd-a479-3f349cb785e7")
    some = {"id": 1, "u": one, "f": b"\x00\xff\x10\x80", "t": moment(g, "LocalTime", "23:59:59.999999"), "us": jvm.java.util.Collections.singletonList(one)}
    # Its bucket of 4, by the hash of Iceberg's own.
    append(g, table, [some], {"u_bucket": bucket_of(g, one, 4)})
    append(g, table, [{"id": 2, "t": moment(g, "LocalTime", "00:00:00")}, {"id": 3}], {"u_bucket": None})
    g.readers = ["java", "pyiceberg"]


def bucket_of(g, value, count):
    jvm = g.spark.jvm
    kind = jvm.org.apache.iceberg.types.Types.UUIDType.get()
    return jvm.org.apache.iceberg.transforms.Transforms.bucket(count).bind(kind).apply(value)


@golden("uuid-and-fixed")
def uuid_and_fixed(g):
    """Format version 2: uuid and fixed columns written by Spark, with position deletes."""
    schema = schema_of(g, (1, "id", "int"), (2, "u", "uuid"), (3, "f", "fixed[3]"))
    create(g, schema)
    g.sql("alter table {T} set tblproperties ('write.delete.mode' = 'merge-on-read')")
    g.sql("insert into {T} values (1, 'f79c3e09-677c-4bbd-a479-3f349cb785e7', X'00FF10'), (2, null, null), (3, '00000000-0000-0000-0000-000000000000', X'000000')")
    g.sql("delete from {T} where id = 1")


@golden("uuid")
def uuid_only(g):
    """Format version 2: a uuid column written by Spark, partitioned by itself."""
    schema = schema_of(g, (1, "id", "int"), (2, "u", "uuid"))
    create(g, schema, g.spark.jvm.org.apache.iceberg.PartitionSpec.builderFor(schema).identity("u").build())
    g.sql("insert into {T} values (1, 'f79c3e09-677c-4bbd-a479-3f349cb785e7'), (2, null), (3, 'ffffffff-ffff-ffff-ffff-ffffffffffff')")


@golden("v3-nanoseconds")
def v3_nanoseconds(g):
    """Format version 3: timestamps that count nanoseconds, without a zone and, which we refuse to write, with one."""
    schema = schema_of(g, (1, "id", "int"), (2, "local", "timestamp_ns"), (3, "at", "timestamptz_ns"), (4, "t", "time"))
    table = create(g, schema, format_version="3")
    local, at = "2024-02-29T12:00:00.123456789", "2024-02-29T12:00:00.000000001Z"
    append(g, table, [
        {"id": 1, "local": moment(g, "LocalDateTime", local), "at": moment(g, "OffsetDateTime", at), "t": moment(g, "LocalTime", "12:00:00.000001")},
        {"id": 2, "local": moment(g, "LocalDateTime", "1677-09-21T00:12:43.145224193"), "at": moment(g, "OffsetDateTime", "1969-12-31T23:59:59.999999999Z")},
        {"id": 3},
    ])
    g.readers = ["java", "pyiceberg"]


@golden("v3-unknown")
def v3_unknown(g):
    """Format version 3: a column of type unknown, which is null everywhere and in no file."""
    create(g, schema_of(g, (1, "id", "int"), (2, "nothing", "unknown")), format_version="3")
    g.sql("insert into {T} (id) values (1), (2)")
