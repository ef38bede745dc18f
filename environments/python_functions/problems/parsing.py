"""Problems about reading small languages."""

from ..problem import problem


@problem("parsing", "medium", [("a=1&b=2",), ("",), ("x=1&x=2&x=3",), ("flag",), ("a=&b=c=d",), ("q=black+cat&n=7",)])
def parse_query(text: str) -> dict[str, list[str]]:
    """Read a query such as `a=1&b=2`: for each name the list of its values in order. A plus sign in a value stands for a space, the first
    equals sign ends the name, and a name without one has an empty value.

    >>> parse_query("tag=new&tag=in+stock&max=20")
    {'tag': ['new', 'in stock'], 'max': ['20']}
    """
    values: dict[str, list[str]] = {}
    for part in text.split("&") if text else []:
        name, _, value = part.partition("=")
        values.setdefault(name, []).append(value.replace("+", " "))
    return values


@problem(
    "parsing",
    "hard",
    [
        ("1+2*3",),
        ("(1+2)*3",),
        ("10-4-3",),
        ("2*(3+(4-1))*2",),
        ("7",),
        ("-3+5",),
        ("-(2+3)*4",),
        (" 12 * ( 2 - 5 ) ",),
    ],
)
def evaluate(expression: str) -> int:
    """The value of an expression of whole numbers, +, -, * and brackets, with the usual precedence. A minus sign may also stand before a
    number or a bracket. Spaces do not matter.

    >>> evaluate("2 * (3 + 4) - 5")
    9
    >>> evaluate("4 - -1")
    5
    """
    text = expression.replace(" ", "")
    place = 0

    def total() -> int:
        nonlocal place
        value = product()
        while place < len(text) and text[place] in "+-":
            sign = 1 if text[place] == "+" else -1
            place += 1
            value += sign * product()
        return value

    def product() -> int:
        nonlocal place
        value = factor()
        while place < len(text) and text[place] == "*":
            place += 1
            value *= factor()
        return value

    def factor() -> int:
        nonlocal place
        if text[place] == "-":
            place += 1
            return -factor()
        if text[place] == "(":
            place += 1
            value = total()
            place += 1
            return value
        start = place
        while place < len(text) and text[place].isdigit():
            place += 1
        return int(text[start:place])

    return total()


@problem(
    "parsing",
    "hard",
    [("a,b,c",), ('"x, y",z',), ('"say ""hi""",2',), ("",), (",",), ('"",a',), ('one,"two\nlines",three',)],
)
def split_csv(line: str) -> list[str]:
    """Split a CSV record at its commas. A field in quotation marks may contain commas and line breaks, and two quotation marks in it stand
    for one.

    >>> split_csv('7,"Lamp, red","5"" wide"')
    ['7', 'Lamp, red', '5" wide']
    """
    fields, field, quoted, place = [], "", False, 0
    while place < len(line):
        character = line[place]
        if quoted and line[place : place + 2] == '""':
            field += '"'
            place += 1
        elif character == '"':
            quoted = not quoted
        elif character == "," and not quoted:
            fields.append(field)
            field = ""
        else:
            field += character
        place += 1
    return [*fields, field]


@problem(
    "parsing",
    "medium",
    [("3 4 +",), ("5 1 2 + 4 * + 3 -",), ("7",), ("2 3 * 4 5 * +",), ("10 2 -",), ("1 2 3 4 5 + + + +",), ("0 5 -",)],
)
def reverse_polish(text: str) -> int:
    """The value of an expression in reverse Polish notation: numbers and the signs +, - and *, separated by spaces, where a sign joins the
    two values before it.

    >>> reverse_polish("8 3 - 2 *")
    10
    """
    stack: list[int] = []
    for token in text.split():
        if token in ("+", "-", "*"):
            right, left = stack.pop(), stack.pop()
            stack.append({"+": left + right, "-": left - right, "*": left * right}[token])
        else:
            stack.append(int(token))
    return stack[0]


@problem(
    "parsing",
    "hard",
    [
        ("*.txt", "notes.txt"),
        ("*.txt", "notes.md"),
        ("a?c", "abc"),
        ("a?c", "ac"),
        ("*", ""),
        ("a*b*c", "aXXbYYbc"),
        ("a*b*c", "acb"),
        ("[x]", "[x]"),
        ("??", "abc"),
    ],
)
def matches(pattern: str, name: str) -> bool:
    """Whether a name fits a pattern as a whole, where `*` stands for any characters (also none) and `?` for exactly one. All other characters
    stand for themselves.

    >>> matches("img_??.*", "img_07.png")
    True
    >>> matches("img_??.*", "img_7.png")
    False
    """
    fits = [True] + [False] * len(name)
    for sign in pattern:
        if sign == "*":
            for place in range(len(name)):
                fits[place + 1] = fits[place + 1] or fits[place]
        else:
            fits = [False] + [fits[place] and sign in ("?", name[place]) for place in range(len(name))]
    return fits[-1]


@problem(
    "parsing",
    "medium",
    [
        ("1.2.3", "1.2.4"),
        ("1.10", "1.9"),
        ("2.0", "2"),
        ("1.0.1", "1"),
        ("0.9.9", "1.0"),
        ("3.4.0.0", "3.4"),
        ("10", "9.9.9"),
    ],
)
def compare_versions(first: str, second: str) -> int:
    """Compare two version numbers part by part as numbers: -1 if the first is older, 1 if it is newer, 0 if they are the same. Missing parts
    count as 0.

    >>> compare_versions("2.4.10", "2.4.9")
    1
    """
    parts = [[int(part) for part in version.split(".")] for version in (first, second)]
    length = max(map(len, parts))
    left, right = (part + [0] * (length - len(part)) for part in parts)
    return (left > right) - (left < right)


@problem(
    "parsing",
    "medium",
    [
        ("Hi {name}!", {"name": "Ada"}),
        ("{a}{b}{a}", {"a": "1", "b": "2"}),
        ("{{x}}", {"x": "no"}),
        ("none", {}),
        ("{gone}?", {}),
        ("{{{a}}}", {"a": "z"}),
    ],
)
def fill_in(template: str, values: dict[str, str]) -> str:
    """Replace each `{name}` in a template by its value. A name without a value stays as it is, and `{{` and `}}` stand for single braces. All
    braces of the template are part of one of these.

    >>> fill_in("{greeting}, {who}! {{ok}}", {"greeting": "Hello"})
    'Hello, {who}! {ok}'
    """
    result, place = "", 0
    while place < len(template):
        if template[place : place + 2] in ("{{", "}}"):
            result += template[place]
            place += 2
        elif template[place] == "{":
            end = template.index("}", place)
            name = template[place + 1 : end]
            result += values.get(name, f"{{{name}}}")
            place = end + 1
        else:
            result += template[place]
            place += 1
    return result
