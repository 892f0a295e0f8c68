"""The dates: what is written is the day that the answer says, by the calendar, in one reading only."""

import re
from datetime import date

import pytest

from transformer_np.data import write_date, written_dates
from transformer_np.data.dates import FORMATS, MONTHS, SHORT_FORMATS, WEEKDAYS


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
        day, found = date.fromisoformat(iso), read(text)
        assert iso == day.isoformat() and found[:3] == (day.year, day.month, day.day)
        if found[3] is not None:
            assert found[3] == day.weekday()
            with_weekday += 1
    assert with_weekday > 1000


@pytest.mark.long
def test_every_day_and_every_text_once(pairs):
    assert len(pairs) == len({text for text, _ in pairs}) == len({iso for _, iso in pairs}) == 8000
    assert pairs == written_dates() and written_dates(300) == written_dates(300)
    assert all("1900" <= iso < "2100" for _, iso in pairs) and sum(iso.endswith("02-29") for _, iso in pairs) > 2
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
