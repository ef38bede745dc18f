"""Speed, distance and time."""

from fractions import Fraction

from ..problem import Draw, Drawn, Topic

motion = Topic("motion")


@motion(
    "easy", "A cyclist rides at a steady {speed} km/h. How many kilometres are covered in {hours} hours and 30 minutes?"
)
def cyclist(draw: Draw) -> Drawn:
    half, hours = draw(6, 12), draw(2, 5)
    return {"speed": 2 * half, "hours": hours}, 2 * half * hours + half


@motion(
    "medium",
    "Two trains leave cities that are {distance} km apart at the same time and drive towards each other, one at {first} km/h "
    "and the other at {second} km/h. After how many hours do they meet?",
)
def trains_meeting(draw: Draw) -> Drawn:
    first, second, hours = draw(60, 90), draw(95, 130), draw(2, 5)
    return {"distance": (first + second) * hours, "first": first, "second": second}, hours


@motion(
    "medium",
    "{name} sets out on foot at {slow} metres a minute. {lead} minutes later a friend runs after {name} on the same path at "
    "{fast} metres a minute. For how many minutes does the friend run before catching up?",
)
def catching_up(draw: Draw) -> Drawn:
    gain, times, lead = draw(4, 9) * 10, draw(2, 3), draw(3, 8)
    given = {"name": draw.names()[0], "slow": gain * times, "lead": lead, "fast": gain * times + gain}
    return given, times * lead


@motion(
    "hard",
    "{name} drives to the lake at {out} km/h and returns by the same road at {back} km/h. What is the average speed over the "
    "whole way there and back, in km/h?",
)
def average_speed(draw: Draw) -> Drawn:
    out, back = draw.pick(((60, 40), (60, 90), (30, 60), (80, 120), (45, 90), (120, 60), (70, 30), (84, 60), (36, 45)))
    return {"name": draw.names()[0], "out": out, "back": back}, Fraction(2 * out * back, out + back)


@motion(
    "hard",
    "A boat needs {down} hours for {distance} km downstream and {up} hours for the same stretch upstream, with the engine "
    "running evenly. How fast does the river flow, in km/h?",
)
def river(draw: Draw) -> Drawn:
    current = draw(2, 5)
    down, up, ratio = draw.pick(((2, 3, 5), (3, 5, 4), (3, 4, 7), (1, 2, 3)))
    return {"down": down, "up": up, "distance": (ratio + 1) * current * down}, current


@motion(
    "hard",
    "A clock with hands shows {hour}:00. After how many minutes do the minute hand and the hour hand lie exactly on top of "
    "each other for the first time? Give the exact value.",
)
def clock_hands(draw: Draw) -> Drawn:
    hour = draw(2, 10)
    return {"hour": hour}, Fraction(60 * hour, 11)


@motion("medium", "A sprinter runs {metres} metres in {seconds} seconds. What is the average speed in km/h?")
def sprinter(draw: Draw) -> Drawn:
    speed, seconds = draw(5, 9) * 5, draw(2, 6) * 18
    return {"metres": speed * seconds * 5 // 18, "seconds": seconds}, speed


@motion(
    "easy",
    "A train leaves at {departure} and arrives at {arrival} on the same day. How many minutes does the journey take?",
)
def timetable(draw: Draw) -> Drawn:
    start, minutes = draw(7, 13) * 60 + draw(31, 59), draw(6, 20) * 11
    end = start + minutes
    clock = {"departure": f"{start // 60}:{start % 60:02d}", "arrival": f"{end // 60}:{end % 60:02d}"}
    return clock, minutes
