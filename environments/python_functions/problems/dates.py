"""Problems about times and dates."""

from ..problem import problem


@problem(
    "dates",
    "easy",
    [("09:30", "11:05"), ("23:50", "00:10"), ("12:00", "12:00"), ("00:00", "23:59"), ("18:45", "06:15")],
)
def minutes_between(start: str, end: str) -> int:
    """The minutes from one time of day (HH:MM) to the next time that the clock shows the other one; 0 if they are equal.

    >>> minutes_between("22:15", "01:00")
    165
    """
    first, second = (int(time[:2]) * 60 + int(time[3:]) for time in (start, end))
    return (second - first) % (24 * 60)


@problem("dates", "easy", [(2024,), (2023,), (1900,), (2000,), (2100,), (1996,), (4,)])
def is_leap_year(year: int) -> bool:
    """Whether a year of the Gregorian calendar has a 29 February: every fourth year, but not the full centuries unless they are divisible
    by 400.

    >>> is_leap_year(2020)
    True
    >>> is_leap_year(1800)
    False
    """
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


@problem(
    "dates",
    "hard",
    [
        ("2025-01-01",),
        ("2024-02-29",),
        ("2000-01-01",),
        ("1999-12-31",),
        ("1969-07-20",),
        ("2100-03-01",),
        ("1815-06-18",),
    ],
)
def weekday(date: str) -> str:
    """The English name of the weekday of a date of the Gregorian calendar (YYYY-MM-DD).

    >>> weekday("2023-10-15")
    'Sunday'
    """
    year, month, day = map(int, date.split("-"))
    if month < 3:
        year, month = year - 1, month + 12
    number = (day + 13 * (month + 1) // 5 + year + year // 4 - year // 100 + year // 400) % 7
    return ["Saturday", "Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday"][number]


@problem(
    "dates",
    "hard",
    [
        ("2025-01-31", 1),
        ("2024-02-28", 1),
        ("2023-02-28", 1),
        ("2025-12-31", 1),
        ("2025-03-01", -1),
        ("2020-01-01", 366),
        ("2000-02-29", 1461),
        ("2025-06-15", 0),
    ],
)
def add_days(date: str, days: int) -> str:
    """The date (YYYY-MM-DD, Gregorian calendar, years 1 to 9999) that many days later, or earlier if `days` is negative.

    >>> add_days("2025-10-25", 10)
    '2025-11-04'
    """
    from datetime import date as calendar
    from datetime import timedelta

    return str(calendar.fromisoformat(date) + timedelta(days=days))


@problem("dates", "easy", [(0,), (59,), (60,), (3600,), (3661,), (90000,), (7322,)])
def spoken_duration(seconds: int) -> str:
    """A number of seconds as hours, minutes and seconds. Parts that are 0 are left out, but 0 seconds are "0 s".

    >>> spoken_duration(3725)
    '1 h 2 min 5 s'
    >>> spoken_duration(7200)
    '2 h'
    """
    parts = [(seconds // 3600, "h"), (seconds // 60 % 60, "min"), (seconds % 60, "s")]
    return " ".join(f"{value} {unit}" for value, unit in parts if value) or "0 s"


@problem("dates", "medium", [("1h30m",), ("45s",), ("2d",), ("1d2h3m4s",), ("0s",), ("90m",), ("1h5s",)])
def parse_duration(text: str) -> int:
    """The seconds of a duration such as `2h15m`: numbers, each followed by d, h, m or s for days, hours, minutes and seconds.

    >>> parse_duration("2h15m")
    8100
    """
    total, number = 0, ""
    for character in text:
        if character.isdigit():
            number += character
        else:
            total += int(number) * {"d": 86400, "h": 3600, "m": 60, "s": 1}[character]
            number = ""
    return total


@problem(
    "dates",
    "medium",
    [
        ([["09:00", "10:30"], ["12:00", "13:00"]],),
        ([],),
        ([["09:00", "17:00"]],),
        ([["09:00", "09:45"], ["09:45", "11:00"]],),
        ([["15:00", "16:00"], ["10:00", "12:00"]],),
        ([["10:00", "13:00"], ["11:00", "12:00"]],),
    ],
)
def free_slots(busy: list[list[str]]) -> list[list[str]]:
    """The free times between 09:00 and 17:00, in order, for a list of busy times [start, end] within these hours, which may overlap and
    stand in any order.

    >>> free_slots([["10:00", "11:00"], ["10:30", "12:00"], ["16:00", "17:00"]])
    [['09:00', '10:00'], ['12:00', '16:00']]
    """
    slots, now = [], "09:00"
    for start, end in sorted(busy):
        if start > now:
            slots.append([now, start])
        now = max(now, end)
    return slots + ([[now, "17:00"]] if now < "17:00" else [])
