"""Spark and PyIceberg behind one pipe: one JSON request to a line of stdin, one JSON answer to a line of stdout.

  {"id": 1, "do": "read", "engine": "spark", "metadata": "/lake/t/metadata/v3.metadata.json"}
  {"id": 2, "do": "catalog", "name": "lake", "spark": {...}, "pyiceberg": {...}}
  {"id": 3, "do": "read", "engine": "pyiceberg", "catalog": "lake", "table": "ns.t"}
  {"id": 4, "do": "sql", "statement": "delete from lake.ns.t where id = 1"}
  {"id": 5, "do": "append", "catalog": "lake", "table": "ns.t", "rows": [{"id": 7}]}     by PyIceberg
  {"id": 6, "do": "delete", "catalog": "lake", "table": "ns.t", "where": "id = 7"}       by PyIceberg
  {"id": 7, "do": "versions"}

The engines are spark (its SQL), java (Iceberg's Java API in Spark's JVM, for types that Spark lacks) and pyiceberg.
Rows are as in lossless.py. Spark starts when it is first needed, which takes seconds; this process ends with its stdin.
"""

import json
import os
import sys
import tempfile
import traceback

import pyiceberg_engine

HERE = os.path.dirname(os.path.abspath(__file__))
CACHE = os.environ.get("FENCEPOST_INTEROP_CACHE", os.path.join(HERE, "../../.cache/interop"))


class Engines:
    def __init__(self, folder):
        self.folder = folder
        self.started = None
        self.catalogs = {}

    def spark(self):
        if self.started is None:
            import spark_engine

            self.started = spark_engine.start(os.path.join(CACHE, "spark"), self.folder)
        return self.started

    def versions(self, request):
        return {**self.spark().version(), **pyiceberg_engine.version()}

    def catalog(self, request):
        name = request["name"]
        if "spark" in request:
            self.spark().catalog(name, request["spark"])
        self.catalogs[name] = request.get("pyiceberg")

    def read(self, request):
        if request["engine"] == "pyiceberg":
            table = pyiceberg_engine.inspect(request["metadata"]) if "metadata" in request else self.table(request)
            return pyiceberg_engine.read(table)
        spark = self.spark()
        if "metadata" not in request:
            return spark.read(f"{request['catalog']}.{request['table']}", request["engine"])
        table = spark.inspect(request["metadata"])
        try:
            return spark.read(table, request["engine"])
        finally:
            spark.sql(f"drop table {table}")

    def sql(self, request):
        return self.spark().collect(self.spark().sql(request["statement"]))

    def append(self, request):
        pyiceberg_engine.append(self.table(request), request["rows"], request.get("branch", "main"))

    def delete(self, request):
        pyiceberg_engine.delete(self.table(request), request["where"], request.get("branch", "main"))

    def table(self, request):
        return pyiceberg_engine.load(request["catalog"], self.catalogs[request["catalog"]], request["table"])


def main():
    # Java and Python libraries print as they like: what is answered goes out by a way of its own.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        engines = Engines(folder)
        for line in sys.stdin:
            request = json.loads(line)
            try:
                answer = {"result": getattr(engines, request["do"])(request)}
            except Exception as error:
                traceback.print_exc()
                answer = {"error": f"{type(error).__name__}: {str(error)[:4000]}"}
            answers.write(json.dumps({"id": request["id"], **answer}) + "\n")
            answers.flush()
        if engines.started is not None:
            engines.started.session.stop()


if __name__ == "__main__":
    main()
