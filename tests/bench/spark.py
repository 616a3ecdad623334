#!/usr/bin/env python3
"""The workloads of compare.py on Spark Structured Streaming: `spark.py WORKLOAD INPUT OUT CHECKPOINT`.

Two local cores, two shuffle partitions, all that is there in one micro-batch, as in the scripts beside. `main` is the README's
main job, examples/temperature_alerts.ssql: a file a micro-batch.
"""
import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

name, source, out, checkpoint = sys.argv[1:]
spark = (SparkSession.builder.master("local[2]").config("spark.sql.shuffle.partitions", "2")
         .config("spark.ui.enabled", "false").config("spark.sql.session.timeZone", "UTC")
         .config("spark.driver.memory", "6g").getOrCreate())
spark.sparkContext.setLogLevel("OFF")
format_in = "parquet" if name in ("w2", "filter") else "json"
reader = spark.readStream.schema("event_time TIMESTAMP, device_id STRING, temperature DOUBLE").format(format_in)
if name == "main":
    reader = reader.option("maxFilesPerTrigger", 1)
readings = reader.load(source).withWatermark("event_time", "2 hours" if name == "main" else "10 minutes")
if name == "main":
    result = (readings.groupBy(F.window("event_time", "6 hours"), "device_id")
              .agg(F.avg("temperature").alias("avg_temp"), F.count("*").alias("readings"))
              .selectExpr("window.start AS window_start", "window.end AS window_end", "device_id", "avg_temp", "readings",
                          "avg_temp > 35.0 AS is_alert"))
elif name in ("w1", "w2"):
    result = (readings.groupBy(F.window("event_time", "5 minutes"), "device_id").agg(F.avg("temperature").alias("avg_temp"))
              .selectExpr("window.start AS window_start", "window.end AS window_end", "device_id", "avg_temp",
                          "avg_temp > 35.0 AS is_alert"))
elif name == "w3":
    result = readings.where("temperature > 30.0").selectExpr("event_time", "device_id", "temperature * 1.8 + 32.0 AS temp_f")
elif name == "w4":
    result = readings.dropDuplicates(["device_id", "event_time"])
else:
    sys.exit(f"{name} has no Spark program")
format_out = "json" if name == "w3" else "parquet"
query = (result.writeStream.format(format_out).option("path", out).option("checkpointLocation", checkpoint)
         .trigger(availableNow=True).start())
query.awaitTermination()
# The JVM is waited for, so that its time counts.
gateway = spark.sparkContext._gateway
spark.stop()
gateway.shutdown()
gateway.proc.stdin.close()
gateway.proc.wait()
