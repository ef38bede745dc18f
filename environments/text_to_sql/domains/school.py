"""A school: pupils, courses and marks."""

from ..database import Domain, Draw, Question, Rows

COURSES = ("Algebra", "Biology", "Chemistry", "Drama", "English", "French", "Latin")
CLASSES = ("7a", "7b", "8a")


def fill(draw: Draw) -> dict[str, Rows]:
    names = draw.people(30)
    pupils = [(n, name, draw.pick(CLASSES), draw(2010, 2013)) for n, name in enumerate(names[:24], start=1)]
    courses = [(n, title, draw.pick(names[24:28])) for n, title in enumerate(COURSES, start=1)]
    marks = []
    for pupil, _, _, _ in pupils:
        if pupil % 8:
            marks += [(pupil, course, draw(1, 6)) for course in draw.some(range(1, 7), draw(2, 5))]
    return {"pupils": pupils, "courses": courses, "marks": marks}


SCHOOL = Domain(
    "school",
    {
        "pupils": "id INTEGER PRIMARY KEY,\nname TEXT NOT NULL,\nclass TEXT NOT NULL,\nbirth_year INTEGER NOT NULL",
        "courses": "id INTEGER PRIMARY KEY,\ntitle TEXT NOT NULL,\nteacher TEXT NOT NULL",
        "marks": "pupil_id INTEGER NOT NULL REFERENCES pupils (id),\ncourse_id INTEGER NOT NULL REFERENCES courses (id),\n"
        "mark INTEGER NOT NULL, -- 1 is the best, 6 the worst\nPRIMARY KEY (pupil_id, course_id)",
    },
    fill,
    [
        Question(
            "pupils-of-7b",
            "easy",
            "Give the names of the pupils in class 7b.",
            "SELECT name FROM pupils WHERE class = '7b'",
        ),
        Question(
            "oldest-year",
            "easy",
            "Give name and birth year of the pupils who were born in the earliest year that occurs.",
            "SELECT name, birth_year FROM pupils WHERE birth_year = (SELECT MIN(birth_year) FROM pupils)",
        ),
        Question(
            "failing-marks",
            "easy",
            "How many marks are 5 or 6?",
            "SELECT COUNT(*) FROM marks WHERE mark >= 5",
        ),
        Question(
            "class-sizes",
            "medium",
            "Which classes have more than six pupils? Give the class and the number of its pupils.",
            "SELECT class, COUNT(*) FROM pupils GROUP BY class HAVING COUNT(*) > 6",
        ),
        Question(
            "biology-marks",
            "medium",
            "List the names of the pupils with a mark in Biology together with that mark, best marks first and equal marks by name.",
            "SELECT p.name, m.mark FROM marks m JOIN pupils p ON p.id = m.pupil_id JOIN courses c ON c.id = m.course_id "
            "WHERE c.title = 'Biology' ORDER BY m.mark, p.name",
            ordered=True,
        ),
        Question(
            "teachers-of-several",
            "medium",
            "Which teachers teach more than one course? Give the teacher and the number of courses.",
            "SELECT teacher, COUNT(*) FROM courses GROUP BY teacher HAVING COUNT(*) > 1",
        ),
        Question(
            "best-in-course",
            "hard",
            "For each course with marks: the title and the name of every pupil who has the best mark in it.",
            "SELECT c.title, p.name FROM marks m JOIN courses c ON c.id = m.course_id JOIN pupils p ON p.id = m.pupil_id "
            "WHERE m.mark = (SELECT MIN(x.mark) FROM marks x WHERE x.course_id = m.course_id)",
        ),
        Question(
            "only-good-marks",
            "hard",
            "Give the names of the pupils who have at least three marks and none that is worse than 4.",
            "SELECT p.name FROM pupils p JOIN marks m ON m.pupil_id = p.id GROUP BY p.id, p.name HAVING COUNT(*) >= 3 AND MAX(m.mark) <= 4",
        ),
    ],
    seed=3,
)
