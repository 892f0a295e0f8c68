"""A deadline and what a late submission costs: the keys `deadline` and `[late]` of a course."""

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo

_DAY = timedelta(days=1)
# {key of [late]: (its range, in words; its largest value)}
KEYS = {
    "grace": ("minutes, 0 or more", math.inf),
    "per_day": ("percent of the points, in 0 … 100", 100),
    "most_days": ("whole days, 0 or more", math.inf),
}


@dataclass(frozen=True)
class Deadline:
    """due: a local time; grace: minutes; per_day: percent of the points that every day begun takes off
    most_days: after so many days a submission gets no points; None: it always gets what per_day leaves
    zone: that in which the course gives the deadline, or None
    """

    due: datetime
    grace: float = 0.0
    per_day: float = 0.0
    most_days: int | None = None
    zone: tzinfo | None = None

    def days_late(self, when):
        """The days begun since the deadline, by the clock on the wall; 0 for a submission in time or within the grace,
        which pass as time does: an hour that comes twice, at the end of summer time, is two hours."""
        late = when.astimezone(UTC) - self.due.astimezone(UTC)
        on_wall = late if self.zone else when - self.due
        return 0 if late <= timedelta(minutes=self.grace) else max(1, math.ceil(on_wall / _DAY))

    def factor(self, days):
        """The part of its points that a submission keeps which is so many days late, in 0 … 1."""
        if self.most_days is not None and days > self.most_days:
            return 0.0
        return max(0.0, 1 - days * self.per_day / 100)


def local(time):
    """A time without a zone: that of this machine."""
    return datetime.fromtimestamp(time.timestamp()) if time.tzinfo else time  # with `fold` in an hour that comes twice


def possible(time):
    """A local time, if a hand-in can have it; OverflowError for one beyond the calendar."""
    if isinstance(time, int | float):
        time = datetime.fromtimestamp(time)
    time = local(time)
    if not 1970 <= time.year < 2200:
        raise OverflowError(f"nobody hands in in the year {time.year}")
    return time


def shown(time):
    """A time to the minute, and to the second if it is not a whole minute: one second can cost a day. With its zone, if
    it has one."""
    seconds = f":{time:%S}" if time.second or time.microsecond else ""
    return f"{time:%Y-%m-%d %H:%M}{seconds} {time:%Z}".rstrip()
