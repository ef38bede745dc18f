"""A company: departments and employees with their managers."""

from ..database import Domain, Draw, Question, Rows

DEPARTMENTS = ("Design", "Finance", "Legal", "Sales", "Support")


def fill(draw: Draw) -> dict[str, Rows]:
    departments = [(n, name, draw(1, 3)) for n, name in enumerate(DEPARTMENTS, start=1)]
    employees = []
    for number, name in enumerate(draw.people(32), start=1):
        manager = None if number == 1 else draw(1, min(number - 1, 9))
        department = None if number % 15 == 0 else draw(1, 4)
        employees.append((number, name, department, manager, draw(30, 99) * 1000, draw.day(draw(2010, 2024))))
    return {"departments": departments, "employees": employees}


COMPANY = Domain(
    "company",
    {
        "departments": "id INTEGER PRIMARY KEY,\nname TEXT NOT NULL,\nfloor INTEGER NOT NULL",
        "employees": "id INTEGER PRIMARY KEY,\nname TEXT NOT NULL,\ndepartment_id INTEGER REFERENCES departments (id), -- NULL: none\n"
        "manager_id INTEGER, -- employees.id, NULL: the head of the company\nsalary INTEGER NOT NULL,\n"
        "hired TEXT NOT NULL -- YYYY-MM-DD",
    },
    fill,
    [
        Question(
            "head",
            "easy",
            "What is the name of the employee without a manager?",
            "SELECT name FROM employees WHERE manager_id IS NULL",
        ),
        Question(
            "well-paid",
            "easy",
            "Give name and salary of everyone who earns more than 80000, highest salary first and equal salaries by name.",
            "SELECT name, salary FROM employees WHERE salary > 80000 ORDER BY salary DESC, name",
            ordered=True,
        ),
        Question(
            "hired-per-year",
            "easy",
            "How many employees were hired in each year in which anyone was? Give the year as a number of four digits and the count.",
            "SELECT CAST(SUBSTR(hired, 1, 4) AS INTEGER), COUNT(*) FROM employees GROUP BY SUBSTR(hired, 1, 4)",
        ),
        Question(
            "department-payroll",
            "medium",
            "What do the employees of each department earn together? Give the name of every department and the sum, 0 where nobody works.",
            "SELECT d.name, COALESCE(SUM(e.salary), 0) FROM departments d LEFT JOIN employees e ON e.department_id = d.id GROUP BY d.id, d.name",
        ),
        Question(
            "reports",
            "medium",
            "How many employees report directly to each manager who has any? Give the manager's name and the number.",
            "SELECT m.name, COUNT(*) FROM employees e JOIN employees m ON m.id = e.manager_id GROUP BY m.id, m.name",
        ),
        Question(
            "on-upper-floors",
            "medium",
            "Who works on a floor above the first? Give name, department and floor, sorted by floor and then by name.",
            "SELECT e.name, d.name, d.floor FROM employees e JOIN departments d ON d.id = e.department_id WHERE d.floor > 1 ORDER BY d.floor, e.name",
            ordered=True,
        ),
        Question(
            "paid-above-manager",
            "hard",
            "Who earns more than their own manager and was also hired before that manager? Give the names of the employee and the manager.",
            "SELECT e.name, m.name FROM employees e JOIN employees m ON m.id = e.manager_id WHERE e.salary > m.salary AND e.hired < m.hired",
        ),
        Question(
            "second-salary",
            "hard",
            "What is the second highest of the different salaries in each department that has at least two different ones? Give the department's name "
            "and that salary.",
            "SELECT d.name, MAX(e.salary) FROM employees e JOIN departments d ON d.id = e.department_id "
            "WHERE e.salary < (SELECT MAX(x.salary) FROM employees x WHERE x.department_id = e.department_id) GROUP BY d.id, d.name",
        ),
    ],
    seed=19,
)
