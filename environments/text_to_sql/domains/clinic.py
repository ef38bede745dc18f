"""A clinic: doctors, patients and visits."""

from ..database import Domain, Draw, Question, Rows

FIELDS = ("eyes", "heart", "skin")


def fill(draw: Draw) -> dict[str, Rows]:
    names = draw.people(26)
    doctors = [(n, name, FIELDS[n % 3]) for n, name in enumerate(names[:6], start=1)]
    patients = [(n, name, draw(1940, 2015)) for n, name in enumerate(names[6:], start=1)]
    visits = [(n, draw(1, 5), draw(1, 18), draw.day(2025), draw(5, 60)) for n in range(1, 61)]
    return {"doctors": doctors, "patients": patients, "visits": visits}


CLINIC = Domain(
    "clinic",
    {
        "doctors": "id INTEGER PRIMARY KEY,\nname TEXT NOT NULL,\nfield TEXT NOT NULL",
        "patients": "id INTEGER PRIMARY KEY,\nname TEXT NOT NULL,\nbirth_year INTEGER NOT NULL",
        "visits": "id INTEGER PRIMARY KEY,\ndoctor_id INTEGER NOT NULL REFERENCES doctors (id),\n"
        "patient_id INTEGER NOT NULL REFERENCES patients (id),\nday TEXT NOT NULL, -- YYYY-MM-DD\nminutes INTEGER NOT NULL",
    },
    fill,
    [
        Question(
            "heart-doctors",
            "easy",
            "Give the names of the doctors for the heart.",
            "SELECT name FROM doctors WHERE field = 'heart'",
        ),
        Question(
            "youngest", "easy", "In which year was the youngest patient born?", "SELECT MAX(birth_year) FROM patients"
        ),
        Question(
            "visits-in-may",
            "easy",
            "Give day and minutes of all visits in May 2025, in the order of the days and on the same day by id.",
            "SELECT day, minutes FROM visits WHERE day LIKE '2025-05-%' ORDER BY day, id",
            ordered=True,
        ),
        Question(
            "busy-doctors",
            "medium",
            "How many visits has every doctor had, also those without any? Give name and number.",
            "SELECT d.name, COUNT(v.id) FROM doctors d LEFT JOIN visits v ON v.doctor_id = d.id GROUP BY d.id, d.name",
        ),
        Question(
            "two-fields",
            "hard",
            "Which patients have been treated in at least two different fields? Give name and number of fields.",
            "SELECT p.name, COUNT(DISTINCT d.field) FROM visits v JOIN patients p ON p.id = v.patient_id JOIN doctors d ON d.id = v.doctor_id "
            "GROUP BY p.id, p.name HAVING COUNT(DISTINCT d.field) >= 2",
        ),
        Question(
            "longest-visit",
            "medium",
            "Give the name of the patient, the name of the doctor and the minutes of the longest visits (all that share the greatest length).",
            "SELECT p.name, d.name, v.minutes FROM visits v JOIN patients p ON p.id = v.patient_id JOIN doctors d ON d.id = v.doctor_id "
            "WHERE v.minutes = (SELECT MAX(minutes) FROM visits)",
        ),
    ],
    seed=0,
)
