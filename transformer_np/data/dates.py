"""Dates as people write them and in ISO 8601, 2019-03-24: a built-in text-to-text task.

Ambiguous dates have one reading. The day comes before the month if both are numbers: 3/4/2019 is the third of April. A
two-digit year lies between 1970 and 2069. The weekday always matches the date.
"""

from datetime import date

import numpy as np

from ..support.checks import check_at_least

FIRST, LAST = date(1900, 1, 1), date(2099, 12, 31)
SHORT_YEARS = range(1970, 2070)  # the years that may be written with two digits
MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
ENDINGS = {1: "st", 2: "nd", 3: "rd", 21: "st", 22: "nd", 23: "rd", 31: "st"}  # "th" for all other days

# {day} 24, {dd} always two digits, {th} 24th; {Month} March, {Mon} Mar, {month} 3, {mm} 03; {year} 2019,
# {yy} 19; {Weekday} Sunday, {Wday} Sun
FORMATS = (
    "{day} {Month} {year}", "{day} {Mon} {year}", "{th} {Month} {year}", "{th} of {Month} {year}",
    "the {th} of {Month} {year}", "{Month} {day}, {year}", "{Mon} {day}, {year}", "{Month} {th}, {year}",
    "{Month} {day} {year}", "{Weekday}, {day} {Month} {year}", "{Weekday}, {Month} {day}, {year}",
    "{Weekday} the {th} of {Month} {year}", "{Wday} {day} {Mon} {year}", "{Wday}, {day} {Mon} {year}",
    "{day}-{Mon}-{year}", "{day}/{month}/{year}", "{dd}/{mm}/{year}", "{day}.{month}.{year}", "{dd}.{mm}.{year}",
    "{year}/{mm}/{dd}", "{year} {Month} {day}",
)  # fmt: skip
SHORT_FORMATS = (
    "{day}/{month}/{yy}", "{dd}/{mm}/{yy}", "{day}.{month}.{yy}", "{day} {Mon} {yy}", "{day} {Month} '{yy}",
    "{Mon} {day} '{yy}",
)  # fmt: skip


def write_date(day, form):
    """A datetime.date in one of the FORMATS or SHORT_FORMATS.

    Raises ValueError for a two-digit year outside 1970 … 2069, which would be read as a different year.
    """
    if "{yy}" in form and day.year not in SHORT_YEARS:
        raise ValueError(f"{day.year} cannot be written with two digits: they stand for 1970 … 2069")
    month, weekday = MONTHS[day.month - 1], WEEKDAYS[day.weekday()]
    values = {"day": day.day, "dd": f"{day.day:02}", "th": f"{day.day}{ENDINGS.get(day.day, 'th')}"}
    values |= {"Month": month, "Mon": month[:3], "month": day.month, "mm": f"{day.month:02}"}
    values |= {"year": day.year, "yy": f"{day.year % 100:02}", "Weekday": weekday, "Wday": weekday[:3]}
    return form.format_map(values)


def written_dates(size=8000):
    """Dates from 1900 to 2099, each once and in a random format: a list of (as written, ISO), always the same.

    size: the number of dates, at most 20,000. No day occurs twice, so a held-out part has only new dates.

    Raises ValueError for another size.
    """
    check_at_least("size", size, 1)
    if size > 20_000:
        raise ValueError(f"size must be at most 20000, got {size}")
    rng = np.random.default_rng(0)
    days = FIRST.toordinal() + rng.choice(LAST.toordinal() - FIRST.toordinal() + 1, size=size, replace=False)
    pairs = []
    for day in map(date.fromordinal, days.tolist()):
        forms = FORMATS + SHORT_FORMATS if day.year in SHORT_YEARS else FORMATS
        pairs.append((write_date(day, forms[rng.integers(len(forms))]), day.isoformat()))
    return pairs
