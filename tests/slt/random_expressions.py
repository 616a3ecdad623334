#!/usr/bin/env python3
"""Writes an .slt file of random typed expressions: random_expressions.py SEED [HOW_MANY] > FILE.slt

Each record asks for an expression's type and its values over some rows of one table, which has a column of every scalar
type, NULLs and extreme values. The answers are not known here: Spark's are filled in with PySpark (README.md).
"""
import random
import sys

COLUMNS = [
    ("id", "INT"), ("b", "BOOLEAN"), ("i8", "TINYINT"), ("i16", "SMALLINT"), ("i32", "INT"), ("i64", "BIGINT"),
    ("f", "FLOAT"), ("d", "DOUBLE"), ("n5", "DECIMAL(5,2)"), ("n20", "DECIMAL(20,4)"), ("n38", "DECIMAL(38,10)"),
    ("s", "STRING"), ("w", "STRING"), ("dt", "DATE"), ("ts", "TIMESTAMP"), ("a", "ARRAY<INT>"), ("t", "ARRAY<STRING>"),
]
ROWS = [
    "(1, true, 1, 2, 3, 4, 1.5, 2.25, 1.50, 3.1415, 10.0000000001, '12', 'Spark', DATE '2024-02-29', TIMESTAMP '2024-02-29 12:34:56.789', array(1, 2, 3), array('b', 'a', NULL))",
    "(2, false, -7, -300, -70000, -5000000000, -0.5, -1e10, -0.05, -99.9999, -0.5, ' -3 ', '', DATE '1969-12-31', TIMESTAMP '1969-12-31 23:59:59.999999', array(3, NULL, -1, 3), array('', 'éß'))",
    "(3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
    "(4, true, 127, 32767, 2147483647, 9223372036854775807, 3.4e38, 1.7e308, 999.99, 9999999999999999.9999, 9999999999999999999999999999.9999999999, 'x', 'aXbXc', DATE '9999-12-31', TIMESTAMP '9999-12-31 23:59:59', array(), array('x'))",
    "(5, false, -128, -32768, -2147483648, -9223372036854775807, 0.1, 0.1, 0.00, 0.0005, 0.0000000001, '1.5', 'été Ünï', DATE '0001-01-01', TIMESTAMP '1900-01-01 00:00:00', array(2147483647, 0), array('a', 'a'))",
]
INTEGERS = {"TINYINT": "i8", "SMALLINT": "i16", "INT": "i32", "BIGINT": "i64"}
FRACTIONS = {"FLOAT": "f", "DOUBLE": "d"}
DECIMALS = {"DECIMAL(5,2)": "n5", "DECIMAL(20,4)": "n20", "DECIMAL(38,10)": "n38"}
NUMBERS = {**INTEGERS, **FRACTIONS, **DECIMALS}


class Generator:
    """Each method gives the text of an expression of the kind it is named after, `n` levels deep at most."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def pick(self, *choices):
        return self.random.choice(choices)

    def any(self, n):
        return self.pick(self.number, self.number, self.boolean, self.string, self.string, self.date, self.timestamp)(n)

    def same(self, n):
        """Two or three expressions of kinds that have a common type."""
        kind = self.pick(self.number, self.number, self.string, self.date, self.timestamp, self.boolean)
        return [kind(n) for _ in range(self.random.randint(2, 3))]

    def integer(self, n):
        if n <= 0 or self.random.random() < 0.3:
            return self.pick(*INTEGERS.values(), "0", "1", "-2", "100", "3Y", "-5S", "10L")
        e = self.pick
        return e(
            lambda: f"length({self.string(n - 1)})", lambda: f"({self.number(n - 1)} div {self.number(n - 1)})",
            lambda: f"({self.integer(n - 1)} {e('&', '|', '^')} {self.integer(n - 1)})",
            lambda: f"CAST({self.number(n - 1)} AS {e(*INTEGERS)})", lambda: f"TRY_CAST({self.string(n - 1)} AS {e(*INTEGERS)})",
            lambda: f"{e('year', 'month', 'day', 'dayofweek', 'dayofyear', 'weekofyear', 'quarter')}({e(self.date, self.timestamp)(n - 1)})",
            lambda: f"{e('hour', 'minute', 'second')}({self.timestamp(n - 1)})",
            lambda: f"datediff({self.date(n - 1)}, {self.date(n - 1)})", lambda: f"size({self.array(n - 1)})",
            lambda: f"instr({self.string(n - 1)}, {self.string(0)})", lambda: f"locate({self.string(0)}, {self.string(n - 1)}, {e('1', '2', '0')})",
            lambda: f"sign({self.number(n - 1)})", lambda: f"element_at(a, {e('1', '-1', '2', '5')})",
            lambda: f"try_element_at(a, {e('1', '-1', '2', '5')})", lambda: f"array_position(a, {e('3', '1')})",
            lambda: f"shiftleft({self.integer(n - 1)}, {e('1', '33', '-1')})", lambda: f"{e('ceil', 'floor')}({self.number(n - 1)})",
            lambda: f"bit_count({self.integer(n - 1)})", lambda: f"ascii({self.string(n - 1)})",
        )()

    def number(self, n):
        if n <= 0 or self.random.random() < 0.15:
            return self.pick(*NUMBERS.values(), *NUMBERS.values(), "0", "1", "-2", "2.5", "-0.001", "1e3", "CAST('NaN' AS DOUBLE)", "NULL")
        e = self.pick
        return e(
            *[lambda: f"({self.number(n - 1)} {e('+', '-', '*', '/', '%')} {self.number(n - 1)})"] * 5,
            *[lambda: f"{e('try_add', 'try_subtract', 'try_multiply', 'try_divide', 'try_mod')}({self.number(n - 1)}, {self.number(n - 1)})"] * 3,
            lambda: f"(- {self.number(n - 1)})", lambda: f"abs({self.number(n - 1)})", lambda: f"pmod({self.number(n - 1)}, {self.number(n - 1)})",
            lambda: f"{e('round', 'bround', 'ceil', 'floor')}({self.number(n - 1)}, {e('0', '1', '2', '-1', '-3', '10')})",
            lambda: f"{e('greatest', 'least', 'coalesce', 'nvl2')}({self.number(n - 1)}, {self.number(n - 1)}, {self.number(n - 1)})",
            lambda: f"nullif({self.number(n - 1)}, {self.number(n - 1)})", lambda: f"{e('CAST', 'TRY_CAST')}({self.any(n - 1)} AS {e(*NUMBERS)})",
            lambda: f"CASE WHEN {self.boolean(n - 1)} THEN {self.number(n - 1)} ELSE {self.number(n - 1)} END",
            lambda: f"if({self.boolean(n - 1)}, {self.number(n - 1)}, {self.number(n - 1)})", lambda: self.integer(n),
        )()

    def boolean(self, n):
        if n <= 0 or self.random.random() < 0.1:
            return self.pick("b", "true", "false", "NULL", "(i32 > 0)", "(s IS NULL)")
        e = self.pick

        def compare():
            two = self.same(n - 1)
            return f"({two[0]} {e('=', '<>', '<', '<=', '>', '>=', '<=>')} {two[1]})"

        return e(
            compare, compare, compare, lambda: f"({self.boolean(n - 1)} {e('AND', 'OR')} {self.boolean(n - 1)})",
            lambda: f"(NOT {self.boolean(n - 1)})", lambda: f"({self.any(n - 1)} IS {e('', 'NOT ')}NULL)",
            lambda: f"({self.number(n - 1)} {e('', 'NOT ')}IN ({self.number(n - 1)}, {self.number(n - 1)}))",
            lambda: f"({self.number(n - 1)} {e('', 'NOT ')}BETWEEN {self.number(n - 1)} AND {self.number(n - 1)})",
            lambda: f"({self.string(n - 1)} {e('LIKE', 'ILIKE')} {self.pattern()})", lambda: f"{e('startswith', 'endswith', 'contains')}({self.string(n - 1)}, {self.string(0)})",
            lambda: f"array_contains(a, {self.integer(0)})", lambda: f"isnan({self.number(n - 1)})",
            lambda: f"{e('CAST', 'TRY_CAST')}({e(self.number, self.string)(n - 1)} AS BOOLEAN)",
            lambda: f"({self.string(n - 1)} {e('=', '<')} {self.any(n - 1)})",
        )()

    def pattern(self):
        return self.pick("'%a%'", "'_p%'", "'%'", "''", "'S%k'", "'é%'", "'a_b%'")

    def string(self, n):
        if n <= 0 or self.random.random() < 0.15:
            return self.pick("s", "w", "''", "'a'", "'X'", "' 7'", "'2024-01-31'", "'é'", "NULL")
        e = self.pick
        return e(
            lambda: f"{e('upper', 'lower', 'trim', 'ltrim', 'rtrim', 'reverse', 'initcap')}({self.string(n - 1)})",
            lambda: f"concat({self.any(n - 1)}, {self.any(n - 1)})", lambda: f"({self.string(n - 1)} || {self.any(n - 1)})",
            lambda: f"concat_ws({e(chr(39) + ',' + chr(39), 'w')}, {self.string(n - 1)}, {e('t', self.string(0))})",
            lambda: f"substring({self.string(n - 1)}, {self.small()}, {self.small()})", lambda: f"{e('left', 'right')}({self.string(n - 1)}, {self.small()})",
            lambda: f"{e('lpad', 'rpad')}({self.string(n - 1)}, {self.small()}, {e(chr(39) + '*-' + chr(39), 'w')})", lambda: f"repeat({self.string(n - 1)}, {self.small()})",
            lambda: f"replace({self.string(n - 1)}, {self.string(0)}, {self.string(0)})", lambda: f"translate({self.string(n - 1)}, 'aXé', 'bé')",
            lambda: f"split_part({self.string(n - 1)}, 'X', {e('1', '2', '-1', '4')})", lambda: f"substring_index({self.string(n - 1)}, 'X', {self.small()})",
            lambda: f"regexp_replace({self.string(n - 1)}, '[aX]+', '<$0>')", lambda: f"regexp_extract({self.string(n - 1)}, '([a-z])(X)?', {e('0', '1', '2')})",
            *[lambda: f"CAST({self.any(n - 1)} AS STRING)"] * 3, lambda: f"date_format({self.timestamp(n - 1)}, {e(*FORMATS)})",
            lambda: f"format_number({self.number(n - 1)}, {e('0', '2', '4')})", lambda: f"hex({e(self.integer, self.string)(n - 1)})",
            lambda: f"{e('coalesce', 'greatest', 'least')}({self.string(n - 1)}, {self.string(n - 1)})", lambda: f"element_at(t, {e('1', '-1', '2')})",
            lambda: f"array_join({e('t', 'a')}, '|', {e(chr(39) + '?' + chr(39), 'w')})", lambda: f"overlay({self.string(n - 1)} PLACING {self.string(0)} FROM {e('1', '2', '9')})",
            lambda: f"CASE {self.string(n - 1)} WHEN {self.string(0)} THEN {self.string(n - 1)} END", lambda: f"md5({self.string(n - 1)})",
        )()

    def small(self):
        return self.pick("0", "1", "2", "3", "-1", "-2", "8", "i8")

    def date(self, n):
        if n <= 0 or self.random.random() < 0.2:
            return self.pick("dt", "DATE '2024-01-31'", "DATE '2023-12-31'")
        e = self.pick
        return e(
            lambda: f"{e('date_add', 'date_sub')}({self.date(n - 1)}, {e('1', '-40', 'i16', '366')})", lambda: f"add_months({self.date(n - 1)}, {e('1', '-1', '12', '-13')})",
            lambda: f"last_day({self.date(n - 1)})", lambda: f"next_day({self.date(n - 1)}, {e(*DAYS)})", lambda: f"trunc({self.date(n - 1)}, {e(*UNITS)})",
            lambda: f"CAST({self.timestamp(n - 1)} AS DATE)", lambda: f"TRY_CAST({self.string(n - 1)} AS DATE)", lambda: f"coalesce({self.date(n - 1)}, {self.date(n - 1)})",
            lambda: f"({self.date(n - 1)} + INTERVAL {e(*MONTHS)})", lambda: f"make_date({e('2024', '2023')}, {e('2', '12')}, {e('28', '29', '31')})",
        )()

    def timestamp(self, n):
        if n <= 0 or self.random.random() < 0.2:
            return self.pick("ts", "TIMESTAMP '2024-03-10 02:30:00'")
        e = self.pick
        return e(
            lambda: f"date_trunc({e(*UNITS, *HOURS)}, {self.timestamp(n - 1)})", lambda: f"({self.timestamp(n - 1)} {e('+', '-')} INTERVAL {e(*MONTHS, *TIMES)})",
            lambda: f"CAST({self.date(n - 1)} AS TIMESTAMP)", lambda: f"TRY_CAST({self.string(n - 1)} AS TIMESTAMP)",
            lambda: f"timestamp_seconds({self.integer(0)})", lambda: f"least({self.timestamp(n - 1)}, {self.timestamp(n - 1)})",
            lambda: f"to_utc_timestamp({self.timestamp(n - 1)}, {e(*ZONES)})",
        )()

    def array(self, n):
        if n <= 0 or self.random.random() < 0.3:
            return self.pick("a", "t")
        e = self.pick
        return e(
            lambda: f"{e('array_distinct', 'sort_array', 'reverse', 'array_sort', 'array_compact')}({self.array(n - 1)})", lambda: f"slice({self.array(n - 1)}, {e('1', '2', '-2')}, {e('1', '2')})",
            lambda: f"array({', '.join(self.same(n - 1))})", lambda: f"split({self.string(n - 1)}, {e(chr(39) + 'X' + chr(39), chr(39) + chr(39))})",
            lambda: f"array_remove(a, {e('3', '1')})", lambda: f"array_union(a, {e('array(1, 9)', 'a')})", lambda: f"array_repeat({self.any(n - 1)}, {e('0', '2')})",
            lambda: f"transform(a, x -> {e('x + i8', 'x * 2.5', 'x IS NULL', 'CAST(x AS STRING)')})", lambda: "filter(a, x -> x > 1)", lambda: f"sequence(1, {e('3', '-1')})",
        )()


FORMATS = ["'yyyy-MM-dd'", "'HH:mm:ss.SSS'", "'E, d MMM y'", "'DDD QQQ'", "'hh a'"]
DAYS = ["'MON'", "'sunday'", "'xx'"]
UNITS = ["'YEAR'", "'quarter'", "'MM'", "'WEEK'"]
HOURS = ["'HOUR'", "'minute'", "'SECOND'", "'DAY'"]
MONTHS = ["1 MONTH", "-13 MONTHS", "2 YEARS"]
TIMES = ["1 DAY", "90 MINUTES", "-1 SECOND"]
ZONES = ["'America/New_York'", "'Asia/Kolkata'", "'+05:00'"]


def main():
    seed, how_many = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 200
    g = Generator(seed)
    print(f"# Random expressions, seed {seed}\nstatement ok\nCREATE TABLE r ({', '.join(f'{c} {t}' for c, t in COLUMNS)})\n")
    print(f"statement ok\nINSERT INTO r VALUES {', '.join(ROWS)}\n")
    for _ in range(how_many):
        e = g.pick(g.number, g.number, g.boolean, g.string, g.string, g.date, g.timestamp, g.array)(g.random.randint(1, 3))
        rows = g.pick("", "", " WHERE id < 4", " WHERE id = 1", " WHERE id = 1", " WHERE id = 2", " WHERE id = 5")
        print(f"query T rowsort\nSELECT typeof({e}), {e} FROM r{rows}\n----\n")


if __name__ == "__main__":
    main()
