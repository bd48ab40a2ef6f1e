"""Runs Iceberg's procedures in one warm Spark: one JSON request to a line of stdin, one JSON answer to a line of stdout.

  {"warehouse": "/lake", "statement": "call w0.system.expire_snapshots(...)"}
  {"seconds": 1.5, "megabytes": 3300, "done": {...}}

The memory is the most that the JVM and this process have ever had, since Spark was started.
"""

import json
import os
import resource
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
INTEROP = os.path.join(HERE, "../../scripts/interop")
CACHE = os.environ.get("FENCEPOST_INTEROP_CACHE", os.path.join(HERE, "../../.cache/interop"))
sys.path.insert(0, INTEROP)

import spark_engine  # noqa: E402


def peak_megabytes(pid):
    with open(f"/proc/{pid}/status") as file:
        for line in file:
            if line.startswith("VmHWM"):
                return int(line.split()[1]) / 1024
    return 0


def main():
    started = time.time()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        spark = spark_engine.start(os.path.join(CACHE, "spark"), folder, cores=2, memory="4g")
        jvm = spark.jvm.java.lang.ProcessHandle.current().pid()
        spark.catalog("w", {"type": "hadoop", "warehouse": sys.argv[1]})
        answers.write(json.dumps({"seconds": time.time() - started, "megabytes": peak_megabytes(jvm), "done": 0}) + "\n")
        answers.flush()
        for line in sys.stdin:
            request = json.loads(line)
            begun = time.time()
            try:
                rows = spark.sql(request["statement"]).collect()
                answer = {"seconds": time.time() - begun, "done": rows[0].asDict() if rows else {}, "rows": len(rows)}
                own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
                answer["megabytes"] = peak_megabytes(jvm) + own
            except Exception as error:
                answer = {"error": str(error)[:2000]}
            answers.write(json.dumps(answer, default=str) + "\n")
            answers.flush()
        spark.session.stop()


main()
