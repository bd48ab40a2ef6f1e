"""Golden tables written by Spark's SQL."""

import gzip
import json
import os

import pyarrow as pa
import pyarrow.parquet as pq

makers = {}


def golden(name):
    def register(maker):
        makers[name] = maker
        return maker

    return register


def metadata_file(g):
    return g.spark.java(g.table).operations().current().metadataFileLocation().removeprefix("file:")


COLUMNS = """id bigint, flag boolean, i int, f float, d double, small decimal(9, 2), medium decimal(18, 6),
  large decimal(38, 10), day date, at timestamp, local timestamp_ntz, s string, b binary,
  place struct<x: double, y: double, label: string>, tags array<string>, scores map<string, double>,
  deep array<struct<name: string, days: array<date>, by_day: map<date, struct<n: bigint, price: decimal(20, 3)>>>>"""

ROWS = """
  (1, true, 2147483647, float('3.4028235E38'), 1.7976931348623157E308d, 9999999.99, 999999999999.999999,
   9999999999999999999999999999.9999999999, date'9999-12-31', timestamp'9999-12-31 23:59:59.999999',
   timestamp_ntz'9999-12-31 23:59:59.999999', 'plain', X'00FF10', struct(1.5d, -0.0d, 'here'), array('a', null, ''),
   map('one', 1.0d, 'none', null), array(struct('n', array(date'2024-02-29', null),
   map(date'1969-12-31', struct(9223372036854775807, 1.125))))),
  (-9223372036854775808, false, -2147483648, float('-0.0'), -0.0d, -9999999.99, -0.000001, -0.0000000001,
   date'0001-01-01', timestamp'0001-01-01 00:00:00', timestamp_ntz'0001-01-01 00:00:00.000001', '', X'',
   struct(null, null, null), array(), map(), array()),
  (3, null, 0, float('NaN'), double('NaN'), 0, 0, 0, date'1582-10-10', timestamp'1969-12-31 23:59:59.999999',
   timestamp_ntz'1969-12-31 23:59:59.999999', concat(repeat('żółw 亀 🐢 ', 60), 'end'), unhex(repeat('FF', 40)), null, null, null,
   null),
  (4, true, 1, float('Infinity'), double('-Infinity'), 0.01, 0.000001, 0.0000000001, date'1970-01-01',
   timestamp'1970-01-01 00:00:00', timestamp_ntz'1970-01-01 00:00:00', 'quote " and \\\\ and \\n line', X'7F', struct(double('NaN'), 0.0d, ''),
   array('ä', 'ß'), map('', double('NaN')), array(null, struct(null, null, null))),
  (5, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null)"""


def types(g, version):
    g.sql(f"create table {{T}} ({COLUMNS}) using iceberg location '{{L}}' tblproperties ('format-version' = '{version}')")
    g.sql(f"insert into {{T}} values {ROWS}")
    g.sql("insert into {T} (id, s) values (6, 'second file'), (7, null)")


@golden("v1-types")
def v1_types(g):
    """Format version 1: every type that Spark writes, with nulls, extremes, NaN, -0.0 and long non-ASCII text."""
    types(g, 1)


@golden("v2-types")
def v2_types(g):
    """Format version 2: every type that Spark writes, with nulls, extremes, NaN, -0.0 and long non-ASCII text."""
    types(g, 2)


@golden("v3-types")
def v3_types(g):
    """Format version 3: every type that Spark writes, with nulls, extremes, NaN, -0.0 and long non-ASCII text."""
    types(g, 3)


@golden("v3-variant")
def v3_variant(g):
    """Format version 3 with a variant column, which we refuse."""
    g.sql("create table {T} (id bigint, v variant) using iceberg location '{L}' tblproperties ('format-version' = '3')")
    g.sql("insert into {T} select 1, parse_json('{\"a\": [1, 2.5, null]}')")


@golden("empty")
def empty(g):
    """A table without a snapshot."""
    g.sql("create table {T} (id bigint not null, s string) using iceberg location '{L}'")


@golden("emptied")
def emptied(g):
    """A table whose rows are all deleted, file by file, and one that was truncated after that."""
    g.sql("create table {T} (id bigint, s string) using iceberg partitioned by (s) location '{L}'")
    g.sql("insert into {T} values (1, 'a'), (2, 'b')")
    g.sql("delete from {T} where s = 'a'")
    g.sql("delete from {T}")
    g.sql("insert into {T} values (3, 'c')")
    g.sql("truncate table {T}")


@golden("identity")
def identity(g):
    """Partitions by the values themselves of every type that may be one, null and strange text among them."""
    g.sql(
        """create table {T} (id bigint, s string, i int, n bigint, day date, m decimal(9, 2), flag boolean, b binary,
        at timestamp, local timestamp_ntz) using iceberg partitioned by (s, i, n, day, m, flag, b, at, local) location '{L}'"""
    )
    g.sql(
        """insert into {T} values
        (1, 'a/b=c d%20ü', 1, 9223372036854775807, date'2024-02-29', 12.34, true, X'00FF', timestamp'2024-02-29 12:00:00.000001',
         timestamp_ntz'1969-12-31 23:59:59.999999'),
        (2, '', -1, -1, date'1969-12-31', -0.01, false, X'', timestamp'1969-12-31 23:59:59', timestamp_ntz'2024-01-01 00:00:00'),
        (3, null, null, null, null, null, null, null, null, null),
        (4, '__HIVE_DEFAULT_PARTITION__', 0, 0, date'1970-01-01', 0, null, X'41', null, null)"""
    )


@golden("identity-floats")
def identity_floats(g):
    """Partitions by floats: NaN, infinity and both zeroes."""
    g.sql("create table {T} (id int, f float, d double) using iceberg partitioned by (f, d) location '{L}'")
    g.sql(
        """insert into {T} values (1, float('NaN'), double('NaN')), (2, float('-0.0'), -0.0d), (3, float('0.0'), 0.0d),
        (4, float('Infinity'), double('-Infinity')), (5, null, 1.5d)"""
    )


@golden("bucket")
def bucket(g):
    """Partitions by bucket of every type that can be hashed."""
    g.sql(
        """create table {T} (id int, n bigint, m decimal(20, 3), day date, at timestamp, local timestamp_ntz, s string, b binary)
        using iceberg partitioned by (bucket(4, id), bucket(4, n), bucket(4, m), bucket(4, day), bucket(4, at), bucket(4, local),
        bucket(4, s), bucket(4, b)) location '{L}'"""
    )
    g.sql(
        """insert into {T} values
        (34, 34, 14.20, date'2017-11-16', timestamp'2017-11-16 22:31:08', timestamp_ntz'2017-11-16 22:31:08', 'iceberg', X'00010203'),
        (-1, -1, -14.20, date'1969-12-31', timestamp'1969-12-31 23:59:59.999999', timestamp_ntz'0001-01-01 00:00:00', 'żółw 🐢', X''),
        (0, 9223372036854775807, 0, date'1970-01-01', timestamp'1970-01-01 00:00:00', timestamp_ntz'1970-01-01 00:00:00', '', X'FF'),
        (null, null, null, null, null, null, null, null)"""
    )


@golden("truncate")
def truncate(g):
    """Partitions by truncated numbers, decimals, text and bytes, negative and non-ASCII ones too."""
    g.sql(
        """create table {T} (id int, n bigint, m decimal(9, 2), s string, b binary) using iceberg
        partitioned by (truncate(10, id), truncate(10, n), truncate(50, m), truncate(3, s), truncate(2, b)) location '{L}'"""
    )
    g.sql(
        """insert into {T} values (1, 1, 10.65, 'iceberg', X'010203'), (-1, -1, -0.05, 'ż🐢ółw', X''), (10, 19, 0.49, 'ab', X'01'),
        (-10, -9223372036854775800, 10.99, '', X'FFFF'), (null, null, null, null, null)"""
    )


@golden("times")
def times(g):
    """Partitions by year, month, day and hour, before 1970 too."""
    g.sql(
        """create table {T} (id int, y date, m date, d date, ty timestamp, tm timestamp_ntz, td timestamp, th timestamp_ntz)
        using iceberg partitioned by (years(y), months(m), days(d), years(ty), months(tm), days(td), hours(th)) location '{L}'"""
    )
    rows = ["2024-02-29 13:14:15.000001", "1969-12-31 23:59:59.999999", "1970-01-01 00:00:00", "0001-01-01 00:00:00", "9999-12-31 23:00:00"]
    values = []
    for index, at in enumerate(rows):
        day = at[:10]
        stamps = f"timestamp'{at}', timestamp_ntz'{at}', timestamp'{at}', timestamp_ntz'{at}'"
        values.append(f"({index}, date'{day}', date'{day}', date'{day}', {stamps})")
    g.sql(f"insert into {{T}} values {', '.join(values)}, (9, null, null, null, null, null, null, null)")


@golden("v1-void")
def v1_void(g):
    """Format version 1: a partition field that was dropped becomes void."""
    g.sql("create table {T} (id int, s string, day date) using iceberg partitioned by (s, days(day)) location '{L}' tblproperties ('format-version' = '1')")
    g.sql("insert into {T} values (1, 'a', date'2024-01-01'), (2, 'b', date'2024-01-02')")
    g.sql("alter table {T} drop partition field s")
    g.sql("insert into {T} values (3, 'a', date'2024-01-01'), (4, null, null)")


@golden("spec-evolution")
def spec_evolution(g):
    """A partition spec that changed four times, with position deletes under each."""
    g.sql("create table {T} (id bigint, s string, at timestamp) using iceberg location '{L}' tblproperties (" + MOR + ")")
    insert = "insert into {{T}} values ({0}, 'a', timestamp'2024-01-01 01:00:00'), ({0}1, 'b', timestamp'2024-01-02 02:00:00'), ({0}2, 'a', null)"
    g.sql(insert.format(1))
    g.sql("alter table {T} add partition field days(at)")
    g.sql(insert.format(2))
    g.sql("alter table {T} add partition field bucket(4, s) as shard")
    g.sql(insert.format(3))
    g.sql("alter table {T} replace partition field days(at) with hours(at) as hour")
    g.sql(insert.format(4))
    g.sql("delete from {T} where id in (1, 21, 32, 42)")
    g.sql("alter table {T} drop partition field shard")
    g.sql("alter table {T} drop partition field hour")
    g.sql(insert.format(5))
    g.sql("update {T} set s = 'c' where id in (11, 51)")


@golden("schema-evolution")
def schema_evolution(g):
    """Columns added, renamed, moved, widened, dropped and made anew, at the top and inside structs, lists and maps."""
    g.sql(
        """create table {T} (id int, f float, m decimal(9, 2), gone string, place struct<x: int, y: float, label: string>,
        list array<struct<a: int, b: string>>, map map<string, struct<k: int>>, numbers array<int>, counts map<int, float>)
        using iceberg location '{L}'"""
    )
    g.sql(
        """insert into {T} values (1, float('1.1'), 1.25, 'old', struct(1, float('-0.0'), 'p'), array(struct(1, 'x'), null),
        map('a', struct(1)), array(1, null), map(1, float('0.5'))), (2, null, null, null, null, null, null, null, null)"""
    )
    for change in [
        "rename column gone to lost",
        "alter column id type bigint",
        "alter column f type double",
        "alter column m type decimal(18, 2)",
        "add column added string after id",
    ]:
        g.sql("alter table {T} " + change)
    g.sql("insert into {T} (id, added, f, m, lost) values (3, 'new', 2.2, 1234567890123.45, 'still')")
    for change in [
        "drop column lost",
        "add column gone int",
        "alter column place.x type bigint",
        "alter column place.y type double",
        "rename column place.label to name",
        "add column place.z int",
        "drop column place.y",
        "alter column place.z first",
        "add column list.element.c date",
        "rename column list.element.b to bee",
        "alter column list.element.a type bigint",
        "add column map.value.v string",
        "alter column map.value.k type bigint",
        "alter column numbers.element type bigint",
        "alter column counts.value type double",
        "alter column m first",
        "alter column f after place",
    ]:
        g.sql("alter table {T} " + change)
    g.sql(
        """insert into {T} (id, gone, place, list, map, numbers, counts) values (4, 7,
        named_struct('z', 1, 'x', 5000000000, 'name', 'q'), array(named_struct('a', 5000000000, 'bee', 'y', 'c', date'2024-01-01')),
        map('b', named_struct('k', 5000000000, 'v', 'v')), array(5000000000), map(2, 0.1d))"""
    )


@golden("names")
def names(g):
    """Columns, and partition fields, whose names have dots, spaces, quotes, capitals and letters of other scripts."""
    g.sql(
        """create table {T} (`a.b` int, `with space` string, `naïve 名前` string, `MiXed` int, `1st` int, `sémi;colon` int,
        `quote"d` int, `st.ruct` struct<`in.ner`: int, `ключ`: string>) using iceberg
        partitioned by (`a.b`, `naïve 名前`, truncate(2, `with space`)) location '{L}' tblproperties (""" + MOR + ")"
    )
    g.sql(
        """insert into {T} values (1, 'one two', '値', 1, 1, 1, 1, struct(1, 'v')),
        (1, 'one more', '値', 2, 2, 2, 2, struct(2, 'w')), (2, null, null, null, null, null, null, null)"""
    )
    g.sql("delete from {T} where `MiXed` = 2")


MOR = "'write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read', 'write.merge.mode' = 'merge-on-read'"


def deletes(g, version, more=""):
    g.sql(
        "create table {T} (id int, part string, s string) using iceberg partitioned by (part) location '{L}' "
        f"tblproperties ('format-version' = '{version}', 'write.distribution-mode' = 'none', {MOR}{more})"
    )
    for start in (0, 10):
        rows = [f"({start + n}, '{'ab'[n % 2]}', 's{start + n}')" for n in range(10)]
        g.sql(f"insert into {{T}} select * from values {', '.join(rows)} as v(id, part, s) order by part, id")
    g.sql("delete from {T} where id in (0, 1, 2, 10, 11)")
    g.sql("insert into {T} values (20, null, 'no part'), (21, null, 'no part either'), (22, 'a', null)")
    g.sql("update {T} set s = 'changed' where id in (3, 12, 20)")
    g.sql("delete from {T} where id in (4, 13, 3)")
    g.sql(
        """merge into {T} t using (select * from values (5, 'm'), (14, 'm'), (99, 'new') as v(id, s)) u on t.id = u.id
        when matched and t.id = 5 then delete when matched then update set s = u.s
        when not matched then insert (id, part, s) values (u.id, 'b', u.s)"""
    )


@golden("position-deletes-by-file")
def position_deletes_by_file(g):
    """Format version 2: merge-on-read delete, update and merge across partitions; each delete file names one data file."""
    deletes(g, 2, ", 'write.delete.granularity' = 'file'")


@golden("position-deletes-by-partition")
def position_deletes_by_partition(g):
    """Format version 2: merge-on-read delete, update and merge; each delete file names the data files of a partition."""
    deletes(g, 2, ", 'write.delete.granularity' = 'partition'")


@golden("deletion-vectors")
def deletion_vectors(g):
    """Format version 3: merge-on-read delete, update and merge; a deletion vector replaces that before it."""
    deletes(g, 3)
    lineage(g)


@golden("upgraded-to-deletion-vectors")
def upgraded(g):
    """Position deletes of format version 2, kept and merged into deletion vectors after an upgrade to version 3."""
    deletes(g, 2, ", 'write.delete.granularity' = 'partition'")
    g.sql("alter table {T} set tblproperties ('format-version' = '3')")
    g.sql("delete from {T} where id in (6, 15)")
    g.sql("insert into {T} values (30, 'a', 'after')")
    lineage(g)


def lineage(g):
    found = g.sql("select id, _row_id, _last_updated_sequence_number from {T} order by id").collect()
    text = lambda value: None if value is None else str(value)
    g.extra["row_lineage"] = [{"id": one[0], "_row_id": text(one[1]), "_last_updated_sequence_number": text(one[2])} for one in found]


@golden("row-lineage")
def row_lineage(g):
    """Format version 3: row ids kept through updates, copy-on-write and merge-on-read, and through compaction."""
    g.sql("create table {T} (id int, s string) using iceberg location '{L}' tblproperties ('format-version' = '3')")
    for start in (0, 10, 20):
        g.sql(f"insert into {{T}} values ({start}, 'a'), ({start + 1}, 'b'), ({start + 2}, 'c')")
    g.sql("update {T} set s = 'cow' where id = 1")
    g.sql("alter table {T} set tblproperties (" + MOR + ")")
    g.sql("update {T} set s = 'mor' where id = 11")
    g.sql(f"call g.system.rewrite_data_files(table => 'n.`{g.name}`', options => map('rewrite-all', 'true'))")
    g.sql("insert into {T} values (30, 'after')")
    lineage(g)


@golden("refs")
def refs(g):
    """Branches and tags with and without retention, writes to a branch, a rollback, a cherry-pick and a staged snapshot."""
    g.sql("create table {T} (id int, s string) using iceberg location '{L}'")
    g.sql("insert into {T} values (1, 'a'), (2, 'b')")
    g.sql("alter table {T} create tag `first tag` retain 30 days")
    g.sql("alter table {T} create branch work retain 7 days with snapshot retention 2 snapshots 3 days")
    g.sql("insert into {T}.branch_work values (3, 'on the branch')")
    g.sql("alter table {T} create branch `zweig-ß`")
    g.sql("delete from {T} where id = 1")
    kept = g.sql("select snapshot_id from {T}.snapshots order by committed_at").collect()[0][0]
    g.sql("alter table {T} add column n int")
    g.sql("insert into {T} values (4, 'lost by the rollback', 1)")
    g.sql(f"call g.system.rollback_to_snapshot('n.`{g.name}`', {kept})")
    g.sql("alter table {T} set tblproperties ('write.wap.enabled' = 'true')")
    g.spark.session.conf.set("spark.wap.id", "staged")
    g.sql("insert into {T} values (5, 'staged', 2)")
    g.spark.session.conf.unset("spark.wap.id")
    g.sql("insert into {T}.branch_work values (6, 'branch again', 3)")
    g.sql("insert into {T} values (7, 'main', 4)")
    staged = g.sql("select snapshot_id from {T}.snapshots where summary['wap.id'] = 'staged'").collect()[0][0]
    g.sql(f"call g.system.cherrypick_snapshot('n.`{g.name}`', {staged})")
    g.sql("alter table {T} create tag last")


@golden("overwrites")
def overwrites(g):
    """Copy-on-write deletes and updates, overwriting by filter and by partition, and a create or replace."""
    create = "table {T} (id int, part string) using iceberg partitioned by (part) location '{L}'"
    g.sql("create " + create)
    g.sql("insert into {T} values (1, 'a'), (2, 'a'), (3, 'b'), (4, 'c')")
    g.sql("delete from {T} where id = 1")
    g.sql("update {T} set id = 30 where id = 3")
    g.spark.session.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    g.sql("insert overwrite {T} values (5, 'c'), (6, 'd')")
    g.spark.session.conf.set("spark.sql.sources.partitionOverwriteMode", "static")
    g.sql("insert overwrite {T} partition (part = 'a') values (7)")
    g.sql("create or replace table {T} (id bigint, part string, extra int) using iceberg location '{L}'")
    g.sql("insert into {T} values (8, 'x', 9)")


@golden("v1-old-metadata")
def v1_old_metadata(g):
    """Format version 1 as it was first written: one schema, one spec, manifests named by the snapshot, no refs or logs.

    Spark wrote the table; the keys that came later were then taken out of its metadata, and Spark read it again.
    """
    g.sql("create table {T} (id int, s string, day date) using iceberg partitioned by (s) location '{L}' tblproperties ('format-version' = '1')")
    g.sql("insert into {T} values (1, 'a', date'2024-01-01'), (2, 'b', null)")
    g.sql("insert into {T} values (3, 'a', date'2024-01-03')")
    handle = g.spark.java(g.table)
    current = metadata_file(g)
    metadata = json.load(open(current))
    io = handle.io()
    manifests = {str(one.snapshotId()): [m.path() for m in one.allManifests(io)] for one in handle.snapshots()}
    for key in ["schemas", "current-schema-id", "partition-specs", "default-spec-id", "last-partition-id", "sort-orders",
                "default-sort-order-id", "refs", "metadata-log", "statistics", "partition-statistics", "table-uuid", "snapshot-log"]:
        metadata.pop(key, None)
    metadata["schema"].pop("schema-id", None)
    for field in metadata["partition-spec"]:
        field.pop("field-id", None)
    for snapshot in metadata["snapshots"]:
        snapshot["manifests"] = manifests[str(snapshot["snapshot-id"])]
        for key in ["manifest-list", "schema-id", "summary", "parent-snapshot-id"]:
            snapshot.pop(key, None)
    for name in os.listdir(os.path.dirname(current)):
        if name.endswith(".metadata.json") or name.startswith("snap-"):
            os.remove(os.path.join(os.path.dirname(current), name))
    g.metadata = os.path.join(os.path.dirname(current), "v3.metadata.json")
    json.dump(metadata, open(g.metadata, "w"))
    crc = os.path.join(os.path.dirname(current), ".v3.metadata.json.crc")
    if os.path.exists(crc):
        os.remove(crc)


@golden("v1-upgraded")
def v1_upgraded(g):
    """A table of format version 1 with its manifests, upgraded to 2 and deleted from."""
    g.sql("create table {T} (id int, s string) using iceberg partitioned by (s) location '{L}' tblproperties ('format-version' = '1')")
    g.sql("insert into {T} values (1, 'a'), (2, 'a'), (3, 'b')")
    g.sql("alter table {T} set tblproperties ('format-version' = '2', " + MOR + ")")
    g.sql("delete from {T} where id = 1")
    g.sql("insert into {T} values (4, 'b')")


@golden("gzip-metadata")
def gzip_metadata(g):
    """Metadata compressed with gzip."""
    g.sql("create table {T} (id int, s string) using iceberg location '{L}' tblproperties ('write.metadata.compression-codec' = 'gzip')")
    g.sql("insert into {T} values (1, 'a')")
    assert gzip.open(metadata_file(g)).read(1) == b"{"


@golden("hadoop")
def hadoop(g):
    """A table of the Hadoop catalog: numbered metadata and a version hint."""
    g.table = f"hadoop.`{g.name}`.numbers"
    g.location = f"{g.location}/numbers"
    g.sql("drop table if exists {T}")
    g.sql("create table {T} (id int, s string) using iceberg")
    g.sql("insert into {T} values (1, 'a')")
    g.sql("insert into {T} values (2, 'b')")


@golden("name-mapping")
def name_mapping(g):
    """Parquet files of others, without field ids, taken in by their names; then columns renamed and added."""
    frame = g.spark.sql(
        """select * from values (1, 'one', date'2024-01-01', struct(1 as x, 'l' as label), array(1, 2), map('k', 1)),
        (2, null, null, null, null, null) as v(id, s, day, place, list, map)"""
    )
    frame.write.parquet(f"{g.location}/data/plain")
    g.spark.sql("select 3 as id, 'three' as s, 'unknown' as extra").write.parquet(f"{g.location}/data/other")
    g.sql(
        """create table {T} (id int, s string, day date, place struct<x: int, label: string>, list array<int>, map map<string, int>)
        using iceberg location '{L}'"""
    )
    for folder in ("plain", "other"):
        source = f"`parquet`.`{g.location}/data/{folder}`"
        g.sql(f"call g.system.add_files(table => 'n.`{g.name}`', source_table => '{source}')")
    g.sql("insert into {T} values (4, 'four', null, null, null, null)")
    g.sql("alter table {T} rename column s to text")
    g.sql("alter table {T} rename column place.label to name")
    g.sql("alter table {T} add column late int")
    g.sql("insert into {T} values (5, 'five', null, struct(5, 'n'), array(5), map('v', 5), 5)")


@golden("name-mapping-partitioned")
def name_mapping_partitioned(g):
    """Partitioned Parquet files of others: the partition's value is in the path and the manifest, not in the file."""
    frame = g.spark.sql("select * from values (1, 'a'), (2, 'b'), (3, null) as v(id, part)")
    frame.write.partitionBy("part").parquet(f"{g.location}/data/hive")
    g.sql("create table {T} (id int, part string) using iceberg partitioned by (part) location '{L}'")
    g.sql(f"call g.system.add_files(table => 'n.`{g.name}`', source_table => '`parquet`.`{g.location}/data/hive`')")
    g.sql("insert into {T} values (4, 'a')")


@golden("int96")
def int96(g):
    """Timestamps as INT96, as Hive, Impala and old Spark have them, taken in: nested, of all years, finer than microseconds."""
    settings = {"outputTimestampType": "INT96", "int96RebaseModeInWrite": "CORRECTED"}
    for key, value in settings.items():
        g.spark.sql(f"set spark.sql.parquet.{key} = {value}")
    g.spark.sql(
        """select id, timestamp(at) as at, array(timestamp(at), null) as times, struct(timestamp(at) as at) as inner from values
        (1, '2024-02-29 13:14:15.123456'), (2, '1969-12-31 23:59:59.999999'), (3, '0001-01-01 00:00:00'), (4, '9999-12-31 23:59:59.999999'),
        (5, '1677-09-21 00:12:43.145224'), (6, '1582-10-10 01:00:00'), (7, null) as v(id, at)"""
    ).coalesce(1).write.parquet(f"{g.location}/data/spark")
    for key in settings:
        g.spark.sql(f"reset spark.sql.parquet.{key}")
    nanos = pa.array([1709212455123456789, -1, None], pa.timestamp("ns"))
    os.makedirs(f"{g.location}/data/arrow")
    table = pa.table({"id": pa.array([11, 12, 13], pa.int32()), "at": nanos})
    pq.write_table(table, f"{g.location}/data/arrow/file.parquet", use_deprecated_int96_timestamps=True)
    g.sql("create table {T} (id int, at timestamp, times array<timestamp>, inner struct<at: timestamp>) using iceberg location '{L}'")
    for folder in ("spark", "arrow"):
        source = f"`parquet`.`{g.location}/data/{folder}`"
        g.sql(f"call g.system.add_files(table => 'n.`{g.name}`', source_table => '{source}')")
    g.sql("insert into {T} values (20, timestamp'2024-01-01 00:00:00', null, null)")


@golden("codecs")
def codecs(g):
    """Parquet with every compression, dictionaries and pages of version 2, and more than one row group."""
    g.sql("create table {T} (id bigint, s string, d double) using iceberg location '{L}'")
    for index, codec in enumerate(["zstd", "gzip", "snappy", "lz4", "uncompressed"]):
        g.sql(f"alter table {{T}} set tblproperties ('write.parquet.compression-codec' = '{codec}')")
        g.sql(f"insert into {{T}} select id + {index * 100}, concat('s', id % 3), id / 3d from range(20)")
    small = "'write.parquet.row-group-size-bytes' = '1000', 'write.parquet.row-group-check-min-record-count' = '10'"
    g.sql(f"alter table {{T}} set tblproperties ({small}, 'write.parquet.row-group-check-max-record-count' = '10', 'write.parquet.page-row-limit' = '7')")
    g.sql("insert into {T} select id + 1000, concat('row groups ', id), id / 3d from range(60)")


@golden("metrics-modes")
def metrics_modes(g):
    """Every mode of column metrics, a sort order, and text whose bounds are cut inside what is not ASCII."""
    g.sql(
        """create table {T} (id int, hidden string, counted string, short string, whole string, bytes binary, nested struct<n: double>)
        using iceberg location '{L}' tblproperties ('write.metadata.metrics.column.hidden' = 'none',
        'write.metadata.metrics.column.counted' = 'counts', 'write.metadata.metrics.column.short' = 'truncate(3)',
        'write.metadata.metrics.column.whole' = 'full')"""
    )
    g.sql("alter table {T} write ordered by whole desc nulls last, id")
    g.sql(
        """insert into {T} values (1, 'h', 'c', 'żółwie', repeat('🐢', 30), unhex(repeat('FF', 20)), struct(double('NaN'))),
        (2, null, null, 'abc', 'b', X'00', struct(-0.0d)), (3, 'x', 'y', null, null, null, struct(0.0d)), (4, '', '', '', '', X'', null)"""
    )


@golden("maintained")
def maintained(g):
    """Compacted, its manifests and deletes rewritten, snapshots expired, with table and partition statistics."""
    deletes(g, 2)
    name = f"n.`{g.name}`"
    g.sql(f"call g.system.rewrite_position_delete_files(table => '{name}', options => map('rewrite-all', 'true'))")
    g.sql(f"call g.system.rewrite_manifests(table => '{name}')")
    g.sql(f"call g.system.rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true', 'remove-dangling-deletes', 'true'))")
    g.sql(f"call g.system.expire_snapshots(table => '{name}', older_than => now(), retain_last => 3)")
    g.sql(f"call g.system.compute_table_stats(table => '{name}')")
    g.sql(f"call g.system.compute_partition_stats(table => '{name}')")
    g.sql("insert into {T} values (200, 'a', 'after')")


@golden("format-orc")
def format_orc(g):
    """Data files in ORC, which we refuse."""
    g.sql("create table {T} (id int, s string) using iceberg location '{L}' tblproperties ('write.format.default' = 'orc')")
    g.sql("insert into {T} values (1, 'a'), (2, null)")


@golden("format-avro")
def format_avro(g):
    """Data files and position deletes in Avro."""
    g.sql("create table {T} (id int, s string) using iceberg location '{L}' tblproperties ('write.format.default' = 'avro', " + MOR + ")")
    g.sql("insert into {T} values (1, 'a'), (2, null)")
    g.sql("delete from {T} where id = 1")
