#!/usr/bin/env python3
"""Dates as people write them, and as ISO 8601 has them: "Tuesday, 3rd of March 1998" is 1998-03-03.

    dates.py --split train|validation|test --count N --seed S [-o FILE]

A line is source<TAB>target. Days are drawn evenly from 1900-01-01 to 2099-12-31; a day belongs to one split only. Every form has
one reading: years have four digits, numbers alone stand year first, or day first with dots.
"""

import datetime
import random

import splits
from command_line import Parser

FIRST, LAST = datetime.date(1900, 1, 1), datetime.date(2099, 12, 31)
MONTHS = "January February March April May June July August September October November December".split()
WEEKDAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
ROMAN = "I II III IV V VI VII VIII IX X XI XII".split()
ONES = "first second third fourth fifth sixth seventh eighth ninth".split()
TEENS = "tenth eleventh twelfth thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth".split()
ORDINALS = [*ONES, *TEENS, "twentieth", *("twenty-" + word for word in ONES), "thirtieth", "thirty-first"]
SUFFIXES = {1: "st", 2: "nd", 3: "rd", 21: "st", 22: "nd", 23: "rd", 31: "st"}
FORMS = (
    "{weekday}, {day} {month} {year}",
    "{weekday}, {month} {day}, {year}",
    "{weekday} the {nth} of {month} {year}",
    "{wkd} {day} {mon} {year}",
    "{wkd}. {mon}. {day} {year}",
    "{day} {month} {year}",
    "{day}. {mon} {year}",
    "{day}-{mon}-{year}",
    "{day2}{mon}{year}",
    "{nth} {month}, {year}",
    "{nth} of {mon} {year}",
    "{month} {day}, {year}",
    "{month} {nth} {year}",
    "{mon}/{day2}/{year}",
    "the {ordinal} of {month} {year}",
    "the {ordinal} day of {month} in {year}",
    "{month} the {ordinal}, {year}",
    "{year}, {month} {ordinal}",
    "{year} {mon} {day2}",
    "{year}/{number2}/{day2}",
    "{year}.{number}.{day}",
    "{year}{number2}{day2}",
    "{day}.{number}.{year}",
    "{day2}.{number2}.{year}",
    "{day} {roman} {year}",
    "{day}/{roman}/{year}",
)
CASES = (str, str, str.lower, str.upper)


def source(date, generator):
    month, weekday = MONTHS[date.month - 1], WEEKDAYS[date.weekday()]
    text = splits.pick(generator, FORMS).format(
        year=date.year,
        month=month,
        mon=month[:3],
        number=date.month,
        number2=f"{date.month:02}",
        roman=ROMAN[date.month - 1],
        day=date.day,
        day2=f"{date.day:02}",
        nth=f"{date.day}{SUFFIXES.get(date.day, 'th')}",
        ordinal=ORDINALS[date.day - 1],
        weekday=weekday,
        wkd=weekday[:3],
    )
    return splits.pick(generator, CASES)(text)


def lines(split, count, seed):
    """(source, target) of one split."""
    generator = random.Random(f"dates {split} {seed}")
    days = [day for day in map(datetime.date.fromordinal, range(FIRST.toordinal(), LAST.toordinal() + 1))]
    days = [day for day in days if splits.owner(day.isoformat()) == split]
    for _ in range(count):
        day = splits.pick(generator, days)
        yield source(day, generator), day.isoformat()


def main():
    splits.write(lines, splits.parse(Parser(__doc__)))


if __name__ == "__main__":
    main()
