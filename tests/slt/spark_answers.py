#!/usr/bin/env python3
"""Fills Spark's answers into .slt files of queries over tables: spark_answers.py FILE.slt...

Wants pyspark 4.x and Java 17. A query that Spark refuses becomes `statement error CONDITION`; one whose refusal has no
condition, or whose rows do not fit the format, is left out.
"""
import logging
import re
import sys

from pyspark.sql import SparkSession

logging.disable(logging.CRITICAL)
INTEGERS = ("byte", "short", "integer", "long")
REALS = ("float", "double", "decimal")


def session():
    options = "-Duser.timezone=UTC -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
    spark = spark.config("spark.sql.session.timeZone", "UTC").config("spark.driver.extraJavaOptions", options)
    spark = spark.config("spark.sql.shuffle.partitions", "1").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def condition(error):
    name = getattr(error, "getCondition", lambda: None)()
    if name is None:
        inner = re.findall(r"\[([A-Z_0-9]+(?:\.[A-Z_0-9]+)*)\]", str(error))
        name = inner[0] if inner else None
    return None if name == "INTERNAL_ERROR" else name


def letter(field):
    name = field.dataType.typeName().split("(")[0]
    return "I" if name in INTEGERS else "R" if name in REALS else "T"


def answer(spark, sql):
    """The record of a query, or None where it has no place in an .slt file."""
    try:
        df = spark.sql(sql)
        names = [f"c{i}" for i in range(len(df.columns))]
        rows = df.toDF(*names).selectExpr(*[f"CAST({n} AS STRING) AS {n}" for n in names]).collect()
    except Exception as error:
        name = condition(error)
        return name and f"statement error {name}\n{sql}\n"
    lines = sorted(" ".join("NULL" if v is None else v or "(empty)" for v in row) for row in rows)
    if any(re.search(r"[\x00-\x1f]", line) or line != line.strip() for line in lines):
        return None
    letters = "".join(letter(f) for f in df.schema)
    return "\n".join([f"query {letters} rowsort", sql, "----", *lines, ""])


def fill(spark, path):
    records = []
    for block in re.split(r"\n\s*\n", open(path).read().strip()):
        lines = block.split("\n")
        notes = [line for line in lines if line.startswith("#")]
        head, *sql = [line for line in lines if not line.startswith("#")] or [""]
        sql = "\n".join(sql).split("\n----")[0]
        if head.startswith("query") or head.startswith("statement error"):
            record = answer(spark, sql)
        else:
            create = re.match(r"CREATE TABLE (\w+) \((.*)\)$", sql, re.S)
            insert = re.match(r"INSERT INTO (\w+) (.*)$", sql, re.S)
            if create:
                columns[create[1]] = create[2]
            elif insert:
                # The store assignment's casts, by a view: no catalog is needed.
                fields = re.split(r",\s*(?![^(<]*[)>])", columns[insert[1]])
                names = [f.split(" ", 1) for f in fields]
                casts = ", ".join(f"CAST(col{i + 1} AS {t}) AS {n}" for i, (n, t) in enumerate(names))
                spark.sql(f"SELECT {casts} FROM {insert[2].replace('VALUES', '(VALUES', 1)})").localCheckpoint().createOrReplaceTempView(insert[1])
            record = f"{head}\n{sql}\n"
        if record:
            records.append("\n".join([*notes, record]))
    with open(path, "w") as out:
        out.write("\n".join(records))


columns = {}
if __name__ == "__main__":
    spark = session()
    for path in sys.argv[1:]:
        fill(spark, path)
