"""Lines such as `12.5 C` or `50 F`; `#` begins a comment, blank lines do not count."""


def readings(text):
    for line in text.splitlines():
        value, unit = line.split()
        yield float(value), unit
