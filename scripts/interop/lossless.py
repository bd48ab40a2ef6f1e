"""Values as JSON that loses nothing, alike whoever read them.

boolean, int, string: as they are. long, decimal: text. float, double: a number, or the text NaN, Infinity, -Infinity,
-0.0. date: 2024-02-29. time: 12:00:00.000001. timestamp: 2024-02-29T12:00:00.000001, with Z if it has a zone, with nine
digits if it counts nanoseconds. Years outside 0000 to 9999 have a sign and six digits. uuid: lower case. fixed, binary:
hex. struct: an object. list: an array. map: an array of [key, value].
"""

import decimal
import json
import math
import struct

DAY = 86_400
DIGITS = decimal.Context(prec=60)


def number(value):
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return "-0.0" if value == 0 and math.copysign(1, value) < 0 else float(value)


def single(value):
    """The float itself: py4j sends it as the shortest text that names it, which as a double is another number."""
    return struct.unpack("f", struct.pack("f", value))[0]


def fixed_point(value, scale):
    """With all the digits of its scale: on the way to Python a small one may have got others."""
    return f"{decimal.Decimal(value).quantize(decimal.Decimal(1).scaleb(-scale), context=DIGITS):f}"


def date(days):
    """Days since 1970 in the proleptic Gregorian calendar, of any year: Python's own dates end at 1 and 9999."""
    days += 719_468
    era, day_of_era = divmod(days, 146_097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted + 2) // 5 + 1
    month = shifted + 3 if shifted < 10 else shifted - 9
    year = year_of_era + era * 400 + (1 if month <= 2 else 0)
    years = f"{year:04d}" if 0 <= year <= 9999 else f"{'-' if year < 0 else '+'}{abs(year):06d}"
    return f"{years}-{month:02d}-{day:02d}"


def time(value, digits=6):
    seconds, fraction = divmod(value, 10**digits)
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{fraction:0{digits}d}"


def timestamp(value, zone, digits=6):
    days, rest = divmod(value, DAY * 10**digits)
    return f"{date(days)}T{time(rest, digits)}{'Z' if zone else ''}"


def row_key(row):
    """Rows have no order: they are written down in one of their own."""
    return json.dumps(row, ensure_ascii=True, sort_keys=True)


def rows(values):
    return sorted(values, key=row_key)
