"""Lengths, areas, volumes and angles."""

from fractions import Fraction

from ..problem import Draw, Drawn, Topic, decimal

geometry = Topic("geometry")


@geometry(
    "easy",
    "A rectangular garden is {length} m long and {width} m wide. It gets a fence all round except for a gate {gate} m wide. How many "
    "metres of fence are needed?",
)
def garden_fence(draw: Draw) -> Drawn:
    width, length = draw.two(9, 40)
    gate = draw(2, 4)
    return {"length": length, "width": width, "gate": gate}, 2 * (length + width) - gate


@geometry(
    "medium",
    "A swimming pool of {length} m by {width} m is surrounded by a paved path that is {path} m wide everywhere and meets at square "
    "corners. How many square metres are paved?",
)
def pool_path(draw: Draw) -> Drawn:
    width, length = draw.two(6, 25)
    path = draw(1, 3)
    area = (length + 2 * path) * (width + 2 * path) - length * width
    return {"length": length, "width": width, "path": path}, area


@geometry(
    "medium",
    "A ladder {ladder} dm long leans against a vertical wall; its foot stands {foot} dm away from the wall. How many decimetres up the "
    "wall does it reach?",
)
def ladder(draw: Draw) -> Drawn:
    foot, height, length = draw.pick(((3, 4, 5), (5, 12, 13), (8, 15, 17), (7, 24, 25), (20, 21, 29)))
    times = draw(2, 4)
    return {"ladder": length * times, "foot": foot * times}, height * times


@geometry(
    "medium",
    "A square tile has an area of {area} cm². How many centimetres long is its diagonal? Give the exact value.",
)
def tile_diagonal(draw: Draw) -> Drawn:
    side = draw(3, 15)
    return {"area": side * side}, rf"{side}\sqrt{{2}}"


@geometry(
    "hard",
    "A flower bed has the shape of an equilateral triangle with a perimeter of {perimeter} m. What is its area in square metres? Give the "
    "exact value.",
)
def flower_bed(draw: Draw) -> Drawn:
    half = draw(2, 9)
    return {"perimeter": 6 * half}, rf"{half * half}\sqrt{{3}}"


@geometry(
    "medium",
    "A cylindrical tin is {height} cm high and has a base radius of {radius} cm. What is its volume in cubic centimetres, as an exact "
    "multiple of π?",
)
def tin(draw: Draw) -> Drawn:
    radius, height = draw(2, 7), draw(8, 20)
    return {"radius": radius, "height": height}, rf"{radius * radius * height}\pi"


@geometry(
    "hard",
    "A wooden cube with edges of {edge} cm is painted red on all sides and then sawn into cubes with edges of 1 cm. How many of the small "
    "cubes have exactly two red faces?",
)
def painted_cube(draw: Draw) -> Drawn:
    edge = draw(4, 12)
    return {"edge": edge}, 12 * (edge - 2)


@geometry(
    "medium",
    "On a plan at a scale of 1:{scale} a rectangular room measures {a} cm by {b} cm. What is the floor area of the real room in square "
    "metres?",
)
def floor_plan(draw: Draw) -> Drawn:
    scale, a, b = draw.pick((50, 100, 200)), draw(3, 9), draw(4, 11)
    return {"scale": scale, "a": a, "b": b}, decimal(Fraction(a * b * scale * scale, 10000))


@geometry("easy", "Two angles of a triangle measure {a}° and {b}°. How many degrees does the third angle measure?")
def third_angle(draw: Draw) -> Drawn:
    a, b = draw(25, 80), draw(25, 80)
    return {"a": a, "b": b}, 180 - a - b


@geometry("medium", "Every interior angle of a regular polygon measures {angle}°. How many sides does it have?")
def polygon(draw: Draw) -> Drawn:
    sides = draw.pick((5, 8, 9, 10, 12, 15, 18, 20, 24, 30, 36))
    return {"angle": 180 - 360 // sides}, sides


@geometry(
    "hard",
    "A crate is {a} dm long, {b} dm wide and {c} dm high on the inside. What is the length in decimetres of the longest straight rod that "
    "fits in it?",
)
def crate(draw: Draw) -> Drawn:
    edges = draw.pick(((1, 2, 2, 3), (2, 3, 6, 7), (1, 4, 8, 9), (4, 4, 7, 9), (2, 6, 9, 11), (6, 6, 7, 11)))
    times = draw(2, 4)
    a, b, c, rod = (edge * times for edge in edges)
    return {"a": a, "b": b, "c": c}, rod


@geometry(
    "easy",
    "A post {post} dm high casts a shadow {post_shadow} dm long. At the same time the shadow of a tree is {tree_shadow} dm long. How many "
    "decimetres high is the tree?",
)
def tree_shadow(draw: Draw) -> Drawn:
    post, shadow, times = draw(8, 15), draw(5, 12), draw(4, 9)
    return {"post": post, "post_shadow": shadow, "tree_shadow": shadow * times}, post * times


@geometry(
    "medium",
    "{rain} mm of rain fall on a flat roof of {length} m by {width} m, and all of it is collected. How many litres are that?",
)
def rain_on_roof(draw: Draw) -> Drawn:
    rain, length, width = draw(3, 25), draw(8, 20), draw(5, 12)
    return {"rain": rain, "length": length, "width": width}, rain * length * width
