"""Every gold query is run on SQLite and DuckDB and compared with the same question answered in Python."""

import json
import re
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from functools import cache
from itertools import combinations
from statistics import mean
from types import SimpleNamespace

import duckdb
import pytest
from gymflow.environments.text_to_sql.database import Domain, Question, literal
from gymflow.environments.text_to_sql.tasks import SPLITS, generate

from gymflow.datasets import rendered

DOMAINS = {domain.name: domain for domains in SPLITS.values() for domain in domains}
QUESTIONS = [(domain, question) for domains in SPLITS.values() for domain in domains for question in domain.questions]


class Rows(SimpleNamespace):
    """A database as Python objects: `db.books` is a list with an attribute a column, `db.book[3]` the one with the id 3."""


def load(domain: Domain, seed: int) -> Rows:
    tables = domain.rows(seed)
    db = Rows()
    for name, columns in domain.tables.items():
        names = [line.split()[0] for line in columns.splitlines() if not line.startswith("PRIMARY KEY")]
        rows = [SimpleNamespace(**dict(zip(names, row, strict=True))) for row in tables[name]]
        setattr(db, name, rows)
        if names[0] in ("id", "code"):
            setattr(db, name.removesuffix("s"), {getattr(row, names[0]): row for row in rows})
    return db


def tally(keys: Iterable) -> list[tuple]:
    return [(*key, count) if isinstance(key, tuple) else (key, count) for key, count in Counter(keys).items()]


def sums(pairs: Iterable[tuple]) -> dict:
    total: dict = defaultdict(int)
    for key, value in pairs:
        total[key] += value
    return dict(total)


def best(rows: list, group: Callable, value: Callable, choose: Callable = max) -> list:
    """The rows whose value is the best of their group."""
    values = defaultdict(list)
    for row in rows:
        values[group(row)].append(value(row))
    return [row for row in rows if value(row) == choose(values[group(row)])]


def worth(db: Rows) -> dict[int, int]:
    return sums((item.order_id, db.product[item.product_id].price * item.quantity) for item in db.order_items)


def top_spenders(db: Rows) -> list[tuple]:
    spent = sums((db.order[order].customer_id, amount) for order, amount in worth(db).items())
    rows = [(db.customer[number].city, db.customer[number].name, amount) for number, amount in spent.items()]
    return best(rows, lambda row: row[0], lambda row: row[2])


def bought_together(db: Rows) -> list[tuple]:
    baskets = defaultdict(list)
    for item in db.order_items:
        baskets[item.order_id].append(db.product[item.product_id].name)
    pairs = tally(pair for names in baskets.values() for pair in combinations(sorted(names), 2))
    return [pair for pair in pairs if pair[-1] >= 4]


def taken(db: Rows) -> Counter:
    return Counter(booking.flight_id for booking in db.bookings)


def league(db: Rows) -> list[tuple]:
    table = {team.name: [0, 0, 0] for team in db.teams}
    for match in db.matches:
        home, away = match.home_goals, match.away_goals
        for team, own, other in ((match.home_id, home, away), (match.away_id, away, home)):
            row = table[db.team[team].name]
            row[0] += 1
            row[1] += 3 if own > other else own == other
            row[2] += own - other
    return sorted(((name, *row) for name, row in table.items() if row[0]), key=lambda row: (-row[2], -row[3], row[0]))


def colder(db: Rows) -> list[tuple]:
    low = {(row.station_id, row.day[:7], int(row.day[8:])): row.low for row in db.readings}
    return tally(
        db.station[station].name
        for (station, month, day), value in low.items()
        if value < low.get((station, month, day - 1), -99)
    )


def artist(db: Rows, track) -> SimpleNamespace:
    return db.artist[db.album[track.album_id].artist_id]


def longer_than_mean(db: Rows) -> list[tuple]:
    lengths = defaultdict(list)
    for track in db.tracks:
        lengths[track.album_id].append(track.seconds)
    return [(track.title, track.seconds) for track in db.tracks if track.seconds > mean(lengths[track.album_id])]


def second_salaries(db: Rows) -> list[tuple]:
    salaries = defaultdict(set)
    for one in db.employees:
        salaries[one.department_id].add(one.salary)
    return [(d.name, sorted(salaries[d.id])[-2]) for d in db.departments if len(salaries[d.id]) > 1]


def met(db: Rows) -> Counter:
    return Counter(tuple(sorted((db.team[m.home_id].name, db.team[m.away_id].name))) for m in db.matches)


def lent_per_book(db: Rows) -> Counter:
    return Counter(loan.book_id for loan in db.loans)


def country(db: Rows, book_id: int) -> str:
    return db.author[db.book[book_id].author_id].country


def fields(db: Rows) -> list[tuple]:
    seen = {(visit.patient_id, db.doctor[visit.doctor_id].field) for visit in db.visits}
    return [(db.patient[p].name, count) for p, count in Counter(patient for patient, _ in seen).items() if count >= 2]


def revenue(db: Rows) -> list[tuple]:
    totals = sums((booking.flight_id, booking.price) for booking in db.bookings)
    return [row for row in totals.items() if row[1] > mean(totals.values())]


ANSWERS: dict[str, Callable[[Rows], Iterable]] = {
    "library-long-books": lambda db: [b.title for b in db.books if b.pages > 400],
    "library-newest-books": lambda db: [
        (b.title, b.year) for b in sorted(db.books, key=lambda b: (-b.year, b.title))[:5]
    ],
    "library-loans-out": lambda db: [[loan.back_date for loan in db.loans].count(None)],
    "library-books-per-author": lambda db: [(a.name, sum(b.author_id == a.id for b in db.books)) for a in db.authors],
    "library-never-lent": lambda db: [b.title for b in db.books if b.id not in lent_per_book(db)],
    "library-lent-from-japan": lambda db: {
        loan.member for loan in db.loans if country(db, loan.book_id) in ("Japan", "Norway")
    },
    "library-most-lent-per-country": lambda db: {
        (country(db, b), n)
        for b, n in best(list(lent_per_book(db).items()), lambda x: country(db, x[0]), lambda x: x[1])
    },
    "library-faithful-members": lambda db: [
        (member, db.book[b].title) for member, b, n in tally((loan.member, loan.book_id) for loan in db.loans) if n > 1
    ],
    "shop-cheap-products": lambda db: [
        (name, price) for price, name in sorted((p.price, p.name) for p in db.products if p.price <= 40)
    ],
    "shop-customers-per-city": lambda db: tally(c.city for c in db.customers),
    "shop-orders-in-2024": lambda db: [len([o for o in db.orders if o.day[:4] == "2024"])],
    "shop-order-values": lambda db: worth(db).items(),
    "shop-no-orders": lambda db: [c.name for c in db.customers if c.id not in {o.customer_id for o in db.orders}],
    "shop-category-sales": lambda db: sorted(
        sums((db.product[i.product_id].category, i.quantity) for i in db.order_items).items(),
        key=lambda x: (-x[1], x[0]),
    ),
    "shop-top-spender-per-city": top_spenders,
    "shop-bought-together": bought_together,
    "school-pupils-of-7b": lambda db: [p.name for p in db.pupils if p.__dict__["class"] == "7b"],
    "school-oldest-year": lambda db: [
        (p.name, p.birth_year) for p in best(db.pupils, lambda p: 0, lambda p: p.birth_year, min)
    ],
    "school-failing-marks": lambda db: [sum(m.mark in (5, 6) for m in db.marks)],
    "school-class-sizes": lambda db: [row for row in tally(p.__dict__["class"] for p in db.pupils) if row[1] > 6],
    "school-biology-marks": lambda db: sorted(
        ((db.pupil[m.pupil_id].name, m.mark) for m in db.marks if db.course[m.course_id].title == "Biology"),
        key=lambda row: (row[1], row[0]),
    ),
    "school-teachers-of-several": lambda db: [row for row in tally(c.teacher for c in db.courses) if row[1] > 1],
    "school-best-in-course": lambda db: [
        (db.course[m.course_id].title, db.pupil[m.pupil_id].name)
        for m in best(db.marks, lambda m: m.course_id, lambda m: m.mark, min)
    ],
    "school-only-good-marks": lambda db: [
        p.name
        for p in db.pupils
        if len(marks := [m.mark for m in db.marks if m.pupil_id == p.id]) >= 3 and all(mark < 5 for mark in marks)
    ],
    "flights-short-flights": lambda db: [f.id for f in db.flights if f.minutes < 90],
    "flights-airports-per-country": lambda db: sorted(tally(a.country for a in db.airports)),
    "flights-dearest-booking": lambda db: [sorted(b.price for b in db.bookings)[-1]],
    "flights-domestic-flights": lambda db: [
        (f.id, db.airport[f.origin].city, db.airport[f.destination].city)
        for f in db.flights
        if db.airport[f.origin].country == db.airport[f.destination].country
    ],
    "flights-cities-without-departures": lambda db: [
        a.city for a in db.airports if all(f.origin != a.code for f in db.flights)
    ],
    "flights-free-seats": lambda db: sorted(
        ((f.id, f.seats - taken(db)[f.id]) for f in db.flights), key=lambda row: (-row[1], row[0])
    ),
    "flights-there-and-back": lambda db: {
        (o, d)
        for o, d in {(f.origin, f.destination) for f in db.flights}
        if o < d and any((f.origin, f.destination) == (d, o) for f in db.flights)
    },
    "flights-above-average-revenue": revenue,
    "music-albums-of-the-nineties": lambda db: [(a.title, a.year) for a in db.albums if a.year // 10 == 199],
    "music-most-played": lambda db: [t.title for t in sorted(db.tracks, key=lambda t: t.plays)[:-4:-1]],
    "music-moon-titles": lambda db: [t.title for t in db.tracks if "Moon" in t.title.split()],
    "music-album-lengths": lambda db: sorted(
        ((db.album[a].title, total) for a, total in sums((t.album_id, t.seconds) for t in db.tracks).items()),
        key=lambda row: (-row[1], row[0]),
    ),
    "music-artists-without-album": lambda db: [
        (a.name, a.genre) for a in db.artists if all(album.artist_id != a.id for album in db.albums)
    ],
    "music-plays-per-genre": lambda db: sums((artist(db, t).genre, t.plays) for t in db.tracks).items(),
    "music-first-albums": lambda db: [
        (db.artist[a.artist_id].name, a.title) for a in best(db.albums, lambda a: a.artist_id, lambda a: a.year, min)
    ],
    "music-longer-than-album-mean": longer_than_mean,
    "company-head": lambda db: [e.name for e in db.employees if e.manager_id is None],
    "company-well-paid": lambda db: [
        (e.name, e.salary) for e in sorted(db.employees, key=lambda e: (-e.salary, e.name)) if e.salary > 80000
    ],
    "company-hired-per-year": lambda db: tally(int(e.hired[:4]) for e in db.employees),
    "company-department-payroll": lambda db: [
        (d.name, sum(e.salary for e in db.employees if e.department_id == d.id)) for d in db.departments
    ],
    "company-reports": lambda db: tally(db.employee[e.manager_id].name for e in db.employees if e.manager_id),
    "company-on-upper-floors": lambda db: sorted(
        (
            (e.name, db.department[e.department_id].name, db.department[e.department_id].floor)
            for e in db.employees
            if e.department_id and db.department[e.department_id].floor > 1
        ),
        key=lambda row: (row[2], row[0]),
    ),
    "company-paid-above-manager": lambda db: [
        (e.name, m.name)
        for e in db.employees
        for m in db.employees
        if m.id == e.manager_id and e.salary > m.salary and e.hired < m.hired
    ],
    "company-second-salary": second_salaries,
    "football-draws": lambda db: [len([m for m in db.matches if m.home_goals == m.away_goals])],
    "football-shared-cities": lambda db: [city for city, count in tally(t.city for t in db.teams) if count > 1],
    "football-last-matches": lambda db: sorted(((m.day, m.id) for m in db.matches), reverse=True)[:4],
    "football-home-wins": lambda db: [
        (t.name, sum(m.home_id == t.id and m.home_goals > m.away_goals for m in db.matches)) for t in db.teams
    ],
    "football-derbies": lambda db: [
        (m.day, db.team[m.home_id].name, db.team[m.away_id].name)
        for m in sorted(db.matches, key=lambda m: (m.day, m.id))
        if db.team[m.home_id].city == db.team[m.away_id].city
    ],
    "football-goals-at-home": lambda db: [
        row for row in sums((db.team[m.home_id].name, m.home_goals) for m in db.matches).items() if row[1] >= 8
    ],
    "football-league-table": league,
    "football-met-once": lambda db: [pair for pair, count in met(db).items() if count == 1],
    "weather-high-stations": lambda db: [
        (s.name, s.altitude) for s in sorted(db.stations, key=lambda s: -s.altitude) if s.altitude > 300
    ],
    "weather-failed-gauges": lambda db: [[r.rain for r in db.readings].count(None)],
    "weather-frost-days": lambda db: sorted({r.day for r in db.readings if r.low < -8}),
    "weather-rain-per-station": lambda db: [
        (s.name, sum(r.rain or 0 for r in db.readings if r.station_id == s.id)) for s in db.stations
    ],
    "weather-largest-span": lambda db: sorted(
        {
            (db.station[r.station_id].name, r.high - r.low)
            for r in best(db.readings, lambda r: r.station_id, lambda r: r.high - r.low)
        },
        key=lambda row: (-row[1], row[0]),
    ),
    "weather-dry-february": lambda db: tally(
        db.station[r.station_id].name for r in db.readings if r.day[5:7] == "02" and r.rain == 0
    ),
    "weather-warmest-station": lambda db: [
        (r.day, db.station[r.station_id].name) for r in best(db.readings, lambda r: r.day, lambda r: r.high)
    ],
    "weather-colder-than-the-day-before": colder,
    "clinic-heart-doctors": lambda db: [d.name for d in db.doctors if d.field == "heart"],
    "clinic-youngest": lambda db: [max(p.birth_year for p in db.patients)],
    "clinic-visits-in-may": lambda db: [
        (v.day, v.minutes) for v in sorted(db.visits, key=lambda v: (v.day, v.id)) if v.day[5:7] == "05"
    ],
    "clinic-busy-doctors": lambda db: [(d.name, sum(v.doctor_id == d.id for v in db.visits)) for d in db.doctors],
    "clinic-two-fields": fields,
    "clinic-longest-visit": lambda db: [
        (db.patient[v.patient_id].name, db.doctor[v.doctor_id].name, v.minutes)
        for v in best(db.visits, lambda v: 0, lambda v: v.minutes)
    ],
}


@cache
def sqlite(domain: str, seed: int) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    connection.executescript(DOMAINS[domain].script(seed))
    return connection


@cache
def duck(domain: str, seed: int) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute(DOMAINS[domain].script(seed))
    return connection


def on_duckdb(domain: str, seed: int, sql: str) -> list[tuple]:
    return [
        tuple(value if isinstance(value, str) or value is None else int(value) for value in row)
        for row in duck(domain, seed).execute(sql).fetchall()
    ]


def arranged(rows: Iterable, question: Question) -> list:
    listed = [row if isinstance(row, tuple) else (row,) for row in rows]
    return listed if question.ordered else sorted(listed, key=repr)


@pytest.mark.parametrize(("domain", "question"), QUESTIONS, ids=lambda one: one.name)
def test_gold_queries_answer_their_questions(domain, question) -> None:
    for seed in (domain.seed, domain.seed + 1):
        expected = arranged(ANSWERS[f"{domain.name}-{question.name}"](load(domain, seed)), question)
        assert arranged(sqlite(domain.name, seed).execute(question.sql), question) == expected
        assert arranged(on_duckdb(domain.name, seed, question.sql), question) == expected
        assert expected, "an empty result is found by too many queries"


SLIPS = (
    (r"\bLEFT JOIN\b", "JOIN"),
    (r"\bDISTINCT ", ""),
    (r" >= ", " > "),
    (r" <= ", " < "),
    (r" > ", " >= "),
    (r" < ", " <= "),
    (r"\bMAX\(", "MIN("),
    (r"\bMIN\(", "MAX("),
    (r"\bAVG\(", "MAX("),
    (r"\bSUM\(", "COUNT("),
    (r"\bCOUNT\(\*\)", "COUNT(DISTINCT 1)"),
    (r"\bCOALESCE\((.*?), 0\)", r"\1"),
    (r"\bNOT (IN|EXISTS)\b", r"\1"),
    (r"\bIS NULL\b", "IS NOT NULL"),
    (r" DESC\b", ""),
    (r"\bLIMIT (\d)", r"LIMIT 1\1"),
    (r"\bWHERE [^()]*?(?= GROUP| ORDER| LIMIT|$)", ""),
    (r"\bAND [^()]*?(?= GROUP| ORDER| HAVING|$)", ""),
    (r"\bHAVING .*$", ""),
    (r"(\bORDER BY [^,)]*), [^)]*?( LIMIT \d+)?$", r"\1\2"),
)
"""Typical slips, as a pattern in the right query and what stands there instead."""

HARMLESS = {
    ("bought-together", " < "): "names differ",
    ("there-and-back", " < "): "airports differ",
    ("met-once", " < "): "teams differ",
    ("paid-above-manager", " < "): "nobody was hired on the same day as the manager",
    ("above-average-revenue", " > "): "no sum equals the average",
    ("free-seats", "ORDER BY free DESC, f.id"): "groups come out by id",
    ("derbies", "ORDER BY m.day, m.id"): "no two derbies on one day",
    ("visits-in-may", "ORDER BY day, id"): "visits come out by id",
    ("category-sales", "ORDER BY pieces DESC, p.category"): "no equal numbers",
}
"""Slips that cannot show in the data, and why."""


def slips(question: Question) -> Iterable[tuple[str, str]]:
    """What was replaced, and the query that comes of it."""
    for pattern, replacement in SLIPS:
        for found in re.finditer(pattern, question.sql):
            if (question.name, found[0]) not in HARMLESS:
                yield (
                    found[0],
                    question.sql[: found.start()]
                    + re.sub(pattern, replacement, question.sql[found.start() :], count=1),
                )


@pytest.mark.parametrize(("domain", "question"), QUESTIONS, ids=lambda one: one.name)
def test_queries_with_a_slip_get_another_result(domain, question) -> None:
    database = sqlite(domain.name, domain.seed)
    right = arranged(database.execute(question.sql), question)
    for slip, sql in slips(question):
        try:
            result = arranged(database.execute(sql), question)
        except sqlite3.Error:
            continue
        assert result != right, (slip, sql)


def test_there_are_sixty_questions_of_eight_databases_in_three_difficulties() -> None:
    tasks = list(generate("test"))
    assert len(tasks) >= 60
    assert len({task["tags"][0] for task in tasks}) >= 8
    assert min(sum(level in task["tags"] for task in tasks) for level in ("easy", "medium", "hard")) >= 16


def test_no_two_questions_are_the_same_without_numbers() -> None:
    texts = [re.sub(r"\d+", "#", question.text) for _, question in QUESTIONS]
    assert len(set(texts)) == len(texts)


def test_splits_share_no_database() -> None:
    assert not {task["tables"] for task in generate("test")} & {task["tables"] for task in generate("train")}
    with pytest.raises(ValueError, match="unknown split 'dev'"):
        next(generate("dev"))


def test_values_are_written_as_sql() -> None:
    assert [literal(value) for value in (3, None, "O'Hara")] == ["3", "NULL", "'O''Hara'"]


def answer(sql: str) -> str:
    return f"```sql\n{sql}\n```"


async def test_gold_queries_score_one_and_slips_nothing(bench) -> None:
    environment = bench("text_to_sql")
    for task in environment.tasks()[::16]:
        _, question = next((d, q) for d, q in QUESTIONS if f"{d.name}-{q.name}" == task.task_id)
        assert (await environment.verdict(task, answer(question.sql))).reward == 1.0, task.task_id
        _, wrong = next(iter(slips(question)), ("", "SELECT 1 WHERE 1 = 0"))
        assert (await environment.verdict(task, answer(wrong))).reward == 0.0, wrong


CHEATS = (
    "",
    "I do not know.",
    answer("SELECT 1"),
    answer("SELECT * FROM sqlite_master"),
    answer("SELECT readfile('/work/job.json')"),
    answer("ATTACH '/work/job.json' AS job"),
    answer("DROP TABLE IF EXISTS books; SELECT 1"),
    answer("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n LIMIT 100000"),
)


@pytest.mark.slow
async def test_every_gold_query_scores_one(bench) -> None:
    gold = {f"{domain.name}-{question.name}": answer(question.sql) for domain, question in QUESTIONS}
    for split in SPLITS:
        assert await bench("text_to_sql").mean_reward(lambda task: gold[task.task_id], split) == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("cheat", CHEATS)
async def test_no_query_that_answers_nothing_scores(bench, cheat) -> None:
    environment = bench("text_to_sql")
    for task in environment.tasks()[::4]:
        assert (await environment.verdict(task, cheat)).reward == 0.0, task.task_id


def test_the_prompt_shows_tables_without_rows(bench) -> None:
    environment = bench("text_to_sql")
    for task in environment.tasks():
        text = json.dumps(rendered(task, environment.manifest))
        assert "CREATE TABLE" in text
        assert "INSERT" not in text
