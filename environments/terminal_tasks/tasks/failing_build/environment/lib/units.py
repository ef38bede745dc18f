"""Everything in degrees Celsius."""


def to_celsius(value, unit):
    if unit == "C":
        return value
    if unit == "F":
        return (value - 32) * 9 / 5
    raise ValueError(f"unknown unit {unit}")
