"""A library: authors, books and loans."""

from ..database import Domain, Draw, Question, Rows

COUNTRIES = ("Chile", "Egypt", "India", "Japan", "Norway")
NOUNS = (
    "Garden",
    "River",
    "Clock",
    "Island",
    "Mirror",
    "Winter",
    "Letter",
    "Stone",
    "Voyage",
    "Orchard",
    "Lantern",
    "Storm",
)


def fill(draw: Draw) -> dict[str, Rows]:
    names = draw.people(22)
    authors = [(number, name, draw.pick(COUNTRIES)) for number, name in enumerate(names[:9], start=1)]
    titles = draw.some([f"The {first} {second}" for first in ("Silent", "Broken", "Hidden") for second in NOUNS], 28)
    books = [(n, title, draw(1, 8), draw(1950, 2023), draw(80, 700)) for n, title in enumerate(titles, start=1)]
    loans = []
    for number in range(1, 71):
        out = draw.day(2024)
        back = None if draw(1, 5) == 1 else f"2025-{draw(1, 12):02d}-{draw(1, 28):02d}"
        loans.append((number, draw(1, 24), draw.pick(names[9:]), out, back))
    return {"authors": authors, "books": books, "loans": loans}


LIBRARY = Domain(
    "library",
    {
        "authors": "id INTEGER PRIMARY KEY,\nname TEXT NOT NULL,\ncountry TEXT NOT NULL",
        "books": "id INTEGER PRIMARY KEY,\ntitle TEXT NOT NULL,\nauthor_id INTEGER NOT NULL REFERENCES authors (id),\n"
        "year INTEGER NOT NULL,\npages INTEGER NOT NULL",
        "loans": "id INTEGER PRIMARY KEY,\nbook_id INTEGER NOT NULL REFERENCES books (id),\nmember TEXT NOT NULL,\n"
        "out_date TEXT NOT NULL, -- YYYY-MM-DD\nback_date TEXT -- NULL while the book is out",
    },
    fill,
    [
        Question(
            "long-books",
            "easy",
            "Give the titles of all books with more than 400 pages.",
            "SELECT title FROM books WHERE pages > 400",
        ),
        Question(
            "newest-books",
            "easy",
            "Give title and year of the five newest books, newest first. Books of the same year are sorted by title.",
            "SELECT title, year FROM books ORDER BY year DESC, title LIMIT 5",
            ordered=True,
        ),
        Question(
            "loans-out",
            "easy",
            "How many loans have not come back yet?",
            "SELECT COUNT(*) FROM loans WHERE back_date IS NULL",
        ),
        Question(
            "books-per-author",
            "medium",
            "How many books does the library have of each author? Give the author's name and the number, also for authors without a book.",
            "SELECT a.name, COUNT(b.id) FROM authors a LEFT JOIN books b ON b.author_id = a.id GROUP BY a.id, a.name",
        ),
        Question(
            "never-lent",
            "medium",
            "Give the titles of the books that were never lent.",
            "SELECT title FROM books WHERE id NOT IN (SELECT book_id FROM loans)",
        ),
        Question(
            "lent-from-japan",
            "medium",
            "Which members have borrowed at least one book by an author from Japan or Norway? Give each name once.",
            "SELECT DISTINCT l.member FROM loans l JOIN books b ON b.id = l.book_id JOIN authors a ON a.id = b.author_id "
            "WHERE a.country IN ('Japan', 'Norway')",
        ),
        Question(
            "most-lent-per-country",
            "hard",
            "For each country of an author whose books were lent: the country and the highest number of loans that a single book by an author "
            "of that country has.",
            "SELECT country, MAX(n) FROM (SELECT a.country AS country, b.id, COUNT(*) AS n FROM loans l JOIN books b ON b.id = l.book_id "
            "JOIN authors a ON a.id = b.author_id GROUP BY a.country, b.id) AS lent GROUP BY country",
        ),
        Question(
            "faithful-members",
            "hard",
            "Which members have borrowed some book more than once? Give the member and the title of that book.",
            "SELECT l.member, b.title FROM loans l JOIN books b ON b.id = l.book_id GROUP BY l.member, b.id, b.title HAVING COUNT(*) > 1",
        ),
    ],
    seed=11,
)
