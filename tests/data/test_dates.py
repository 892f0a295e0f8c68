"""The dates: what is written is the day that the answer says, by the calendar, in one reading only."""

import re
from calendar import isleap
from datetime import date

import pytest

from transformer_np.data import write_date, written_dates
from transformer_np.data.dates import FORMATS, MONTHS, SHORT_FORMATS, WEEKDAYS

LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def weekday(year, month, day):
    """Zeller's congruence: 0 is Monday."""
    year, month = (year - 1, month + 12) if month < 3 else (year, month)
    return (day + 13 * (month + 1) // 5 + year + year // 4 - year // 100 + year // 400 + 5) % 7


def read(text):
    """The year, month, day and weekday that a reader finds in a date, by rules of his own."""
    names = [word for word in re.findall("[A-Za-z]+", text) if len(word) > 2 and word != "the"]
    named = [m for m, month in enumerate(MONTHS, 1) for name in names if month.startswith(name)]
    day_name = [d for d, day in enumerate(WEEKDAYS) for name in names if day.startswith(name)]
    assert len(named) + len(day_name) == len(names)
    numbers = re.findall(r"\d+", text)
    if len(numbers[0]) == 4:  # the year is first
        numbers = [*numbers[1:][::-1], numbers[0]]
    day, *middle, year = numbers
    month = named[0] if named else int(middle[0])
    if len(year) == 2:
        year = ("19" if int(year) >= 70 else "20") + year
    return int(year), month, int(day), day_name[0] if day_name else None


@pytest.fixture(scope="module")
def pairs():
    return written_dates()


@pytest.mark.long
def test_what_is_written_is_what_is_answered(pairs):
    with_weekday = 0
    for text, iso in pairs:
        assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", iso)
        year, month, day = map(int, iso.split("-"))
        found = read(text)
        assert found[:3] == (year, month, day)
        if found[3] is not None:
            assert found[3] == weekday(year, month, day)
            with_weekday += 1
    assert with_weekday > 1000


@pytest.mark.long
def test_only_days_of_the_calendar(pairs):
    leap_days = 0
    for _, iso in pairs:
        year, month, day = map(int, iso.split("-"))
        leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
        assert 1900 <= year <= 2099 and 1 <= month <= 12 and 1 <= day <= LENGTHS[month - 1] + (month == 2 and leap)
        leap_days += (month, day) == (2, 29)
        assert leap == isleap(year)
    assert leap_days > 2


@pytest.mark.long
def test_every_day_and_every_text_once(pairs):
    assert len(pairs) == len({text for text, _ in pairs}) == len({iso for _, iso in pairs}) == 8000
    assert pairs == written_dates() and written_dates(300) == written_dates(300)
    for month in range(1, 13):
        assert sum(iso[5:7] == f"{month:02}" for _, iso in pairs) > 400


def test_no_two_dates_are_written_alike():
    """In 400 years, which the calendar repeats itself after, every format of every day of a few months."""
    written = {}
    for year in (1904, 1970, 1999, 2000, 2003, 2069):
        for month in (1, 2, 3, 11, 12):
            for day in (1, 2, 3, 11, 12, 28):
                for form in FORMATS + (SHORT_FORMATS if 1970 <= year <= 2069 else ()):
                    that = date(year, month, day)
                    assert written.setdefault(write_date(that, form), that) == that


@pytest.mark.parametrize(
    "form, text",
    [
        ("{day} {Month} {year}", "1 March 2019"), ("{Mon} {day}, {year}", "Mar 1, 2019"),
        ("the {th} of {Month} {year}", "the 1st of March 2019"),
        ("{Weekday}, {Month} {day}, {year}", "Friday, March 1, 2019"),
        ("{Wday} {day} {Mon} {year}", "Fri 1 Mar 2019"), ("{dd}/{mm}/{yy}", "01/03/19"),
        ("{day}.{month}.{year}", "1.3.2019"),
    ],
)  # fmt: skip
def test_formats(form, text):
    assert form in FORMATS + SHORT_FORMATS
    assert write_date(date(2019, 3, 1), form) == text


def test_endings():
    ends = [write_date(date(2019, 1, day), "{th}").removeprefix(str(day)) for day in range(1, 32)]
    assert ends == ["st", "nd", "rd", *["th"] * 17, "st", "nd", "rd", *["th"] * 7, "st"]


def test_what_cannot_be_asked_for():
    with pytest.raises(ValueError, match="1969 cannot be written with two digits"):
        write_date(date(1969, 1, 1), "{day}/{month}/{yy}")
    with pytest.raises(ValueError, match="size must be at most 20000"):
        written_dates(20_001)
