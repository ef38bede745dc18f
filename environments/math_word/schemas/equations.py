"""Unknown numbers: one equation, two equations, squares."""

from fractions import Fraction

from ..problem import Draw, Drawn, Topic

equations = Topic("equations")


@equations(
    "easy",
    "I think of a number, multiply it by {times} and add {plus}. The result is {result}. Which number did I think of?",
)
def think_of_a_number(draw: Draw) -> Drawn:
    number, times, plus = draw(6, 30), draw(3, 9), draw(5, 40)
    return {"times": times, "plus": plus, "result": number * times + plus}, number


@equations(
    "medium",
    "There are goats and hens in a yard. Together they have {heads} heads and {legs} legs. How many goats are there?",
)
def goats_and_hens(draw: Draw) -> Drawn:
    goats, hens = draw(4, 25), draw(5, 30)
    return {"heads": goats + hens, "legs": 4 * goats + 2 * hens}, goats


@equations(
    "hard",
    "{adults_1} adults and {children_1} children pay ${total_1} at the zoo, {adults_2} adults and {children_2} children pay ${total_2}. How many "
    "dollars is a ticket for one adult?",
)
def zoo_tickets(draw: Draw) -> Drawn:
    child, adult = draw.two(4, 19)
    adults_1, children_1, adults_2, children_2 = draw.pick(
        ((2, 3, 3, 1), (2, 5, 3, 4), (4, 3, 3, 5), (2, 1, 5, 6), (3, 2, 4, 7))
    )
    given = {"adults_1": adults_1, "children_1": children_1, "adults_2": adults_2, "children_2": children_2}
    totals = {
        "total_1": adults_1 * adult + children_1 * child,
        "total_2": adults_2 * adult + children_2 * child,
    }
    return given | totals, adult


@equations(
    "hard",
    "A rectangular meadow is {longer} m longer than wide and has an area of {area} m². What is its perimeter in metres?",
)
def meadow(draw: Draw) -> Drawn:
    width, longer = draw(8, 30), draw(3, 15)
    return {"longer": longer, "area": width * (width + longer)}, 2 * (2 * width + longer)


@equations(
    "medium",
    "Two numbers add up to {total}, and their product is {product}. What is the sum of their reciprocals? Give a fraction.",
)
def reciprocals(draw: Draw) -> Drawn:
    first, second = draw.two(3, 14)
    return {"total": first + second, "product": first * second}, Fraction(first + second, first * second)


@equations(
    "medium",
    "A pen, a ruler and a notebook cost {all_three} cents together. The pen and the ruler cost {pen_ruler} cents, the ruler and the notebook "
    "{ruler_notebook} cents. How many cents is the ruler?",
)
def pen_ruler_notebook(draw: Draw) -> Drawn:
    pen, ruler, notebook = draw(80, 250), draw(50, 150), draw(150, 400)
    given = {"all_three": pen + ruler + notebook, "pen_ruler": pen + ruler, "ruler_notebook": ruler + notebook}
    return given, ruler


@equations(
    "hard",
    "The square of a positive number is {more} larger than {times} times the number. Which number is it? Give the exact value.",
)
def its_own_square(draw: Draw) -> Drawn:
    half, root = draw(1, 5), draw.pick((29, 31, 33, 35, 37, 38, 39, 41, 42, 43, 46, 47))
    return {"more": root - half * half, "times": 2 * half}, rf"{half}+\sqrt{{{root}}}"


@equations(
    "easy",
    "A rope of {length} m is cut into two pieces so that one is {longer} m longer than the other. How many metres long is the shorter piece?",
)
def cut_rope(draw: Draw) -> Drawn:
    shorter, longer = draw(4, 20), draw(2, 9)
    return {"length": 2 * shorter + longer, "longer": longer}, shorter


@equations(
    "easy",
    "A thermometer shows {fahrenheit} degrees Fahrenheit. Fahrenheit degrees are 1.8 times the Celsius degrees plus 32. How many degrees Celsius "
    "are these?",
)
def fahrenheit(draw: Draw) -> Drawn:
    celsius = draw(-3, 9) * 5
    return {"fahrenheit": 32 + celsius * 9 // 5}, celsius


@equations("easy", "A recipe needs {cups} cups of milk, and one cup holds 240 ml. How many litres of milk are needed?")
def cups_of_milk(draw: Draw) -> Drawn:
    cups = draw(3, 12)
    return {"cups": cups}, f"{cups * 240 // 1000}.{cups * 240 % 1000:03d}".rstrip("0").rstrip(".")
