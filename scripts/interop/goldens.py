"""Writes the golden tables of packages/iceberg/test/goldens with the engines that are not ours.

  .cache/interop/python/bin/python scripts/interop/goldens.py [name ...]

Every table is made at /tmp/fencepost-goldens/<name>, which is what its metadata says for ever, and then copied to
packages/iceberg/test/goldens/<name> together with expected.json: who wrote it, and its rows at every snapshot, branch
and tag as the engine that wrote it reads them (see lossless.py). A golden is made afresh only when it is named or missing.
"""

import json
import os
import shutil
import sys
import tempfile

import goldens_java
import goldens_pyiceberg
import goldens_spark
import pyiceberg_engine
import spark_engine

ROOT = "/tmp/fencepost-goldens"
WITH_ALL_METADATA = ("hadoop", "refs")
HERE = os.path.dirname(os.path.abspath(__file__))
REPOSITORY = os.path.dirname(os.path.dirname(HERE))
TARGET = os.path.join(REPOSITORY, "packages/iceberg/test/goldens")
CACHE = os.environ.get("FENCEPOST_INTEROP_CACHE", os.path.join(REPOSITORY, ".cache/interop"))


def main(names):
    os.makedirs(ROOT, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        spark = spark_engine.start(os.path.join(CACHE, "spark"), folder)
        failed = make_all(spark, folder, names)
    sys.exit(1 if failed else 0)


def make_all(spark, folder, names):
    shop = Workshop(spark, folder)
    makers = {**goldens_spark.makers, **goldens_java.makers, **goldens_pyiceberg.makers}
    failed = []
    for name, maker in makers.items():
        if name in names or (not names and not os.path.exists(os.path.join(TARGET, name, "expected.json"))):
            try:
                shop.make(name, maker)
            except Exception as error:  # the others are still worth making
                failed.append(name)
                print(f"!! {name}: {type(error).__name__}: {short(error)}", flush=True)
    return failed


class Workshop:
    """What a maker has at hand: `spark`, `sql`, a place and a name for its table, and a PyIceberg catalog."""

    def __init__(self, spark, folder):
        self.spark = spark
        self.folder = folder
        spark.catalog("g", spark_engine.local_catalog(folder, "g", ROOT))
        spark.catalog("hadoop", {"type": "hadoop", "warehouse": ROOT})
        spark.sql("create namespace if not exists g.n")
        self.pyiceberg = goldens_pyiceberg.catalog(folder, ROOT)

    def sql(self, statement):
        """`T` stands for the table and `L` for its location."""
        return self.spark.sql(statement.replace("{T}", self.table).replace("{L}", self.location))

    def make(self, name, maker):
        self.name, self.location = name, f"{ROOT}/{name}"
        self.table = f"g.n.`{name}`"
        self.readers = ["spark", "java", "pyiceberg"]
        self.extra = {}
        self.metadata = None
        shutil.rmtree(self.location, ignore_errors=True)
        print(f"{name}: {about(maker)}", flush=True)
        maker(self)
        metadata = self.metadata or self.spark.java(self.table).operations().current().metadataFileLocation()
        metadata = metadata.removeprefix("file://").removeprefix("file:")
        self.write_down(maker, metadata)

    def write_down(self, maker, metadata):
        handle = self.spark.inspect(metadata)
        read, disagree = {}, {}
        for reader in ["spark", "java", "pyiceberg"]:
            try:
                read[reader] = self.read(reader, handle, metadata)
            except Exception as error:
                disagree[reader] = f"{type(error).__name__}: {short(error)[:200]}"
        self.spark.sql(f"drop table {handle}")
        judge = next((one for one in self.readers if one in read), None)
        if judge is None:
            raise AssertionError(f"nobody could read {metadata}: {disagree}")
        for reader, found in read.items():
            if found["rows"] != read[judge]["rows"] or found["snapshots"] != read[judge]["snapshots"]:
                disagree[reader] = "reads other rows"
        writer = "pyiceberg" if maker.__module__ == "goldens_pyiceberg" else "spark"
        expected = {
            "about": about(maker),
            "writer": writer,
            "versions": pyiceberg_engine.version() if writer == "pyiceberg" else self.spark.version(),
            "location": self.location,
            "metadata": os.path.relpath(metadata, self.location),
            "read_by": judge,
            "agreed_by": sorted(one for one in read if one not in disagree and one != judge),
            "not_read_by": disagree,
            **self.extra,
            **read[judge],
        }
        target = os.path.join(TARGET, self.name)
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(self.location, target, ignore=shutil.ignore_patterns(".*.crc"))
        if self.name not in WITH_ALL_METADATA:
            remove_older_metadata(os.path.join(target, expected["metadata"]))
        with open(os.path.join(target, "expected.json"), "w") as file:
            file.write(laid_out(expected) + "\n")
        if disagree:
            print(f"   not by {disagree}", flush=True)

    def read(self, reader, handle, metadata):
        if reader == "pyiceberg":
            return pyiceberg_engine.read(pyiceberg_engine.inspect(metadata))
        return self.spark.read(handle, reader)


def remove_older_metadata(newest):
    """Each commit writes the whole metadata again: the newest is enough, though its log names the others."""
    folder, keep = os.path.split(newest)
    for name in os.listdir(folder):
        if name.endswith(".metadata.json") and name != keep:
            os.remove(os.path.join(folder, name))


def about(maker):
    return " ".join(maker.__doc__.split())


def short(error):
    """What happened, without where: a Java stack is long."""
    lines = [one for one in str(error).strip().splitlines() if not one.startswith("\tat ") and not one.startswith("\t...")]
    return " | ".join(lines)[:600]


def laid_out(value, indent=0):
    """JSON with one line to a row."""
    pad = "  " * indent
    if isinstance(value, dict) and value:
        lines = [f"{pad}  {json.dumps(key, ensure_ascii=False)}: {laid_out(one, indent + 1)}" for key, one in value.items()]
        return "{\n" + ",\n".join(lines) + f"\n{pad}}}"
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(f"{pad}  {json.dumps(one, ensure_ascii=False)}" for one in value) + f"\n{pad}]"
    return json.dumps(value, ensure_ascii=False)


if __name__ == "__main__":
    main(sys.argv[1:])
