"""A football league: teams and matches."""

from ..database import Domain, Draw, Question, Rows

TEAMS = ("Albion", "Comets", "Dynamo", "Rovers", "United", "Wanderers")
CITIES = ("Ashford", "Corby", "Dover", "Kendal", "Wick")


def fill(draw: Draw) -> dict[str, Rows]:
    first, second, third, fourth = draw.some(CITIES, 4)
    cities = draw.some((first, first, second, second, third, fourth), len(TEAMS))
    teams = [(n, name, cities[n - 1]) for n, name in enumerate(TEAMS, start=1)]
    pairs = [(home, away) for home in range(1, 7) for away in range(1, 7) if home != away]
    matches = [
        (n, draw.day(2025), home, away, draw(0, 4), draw(0, 3))
        for n, (home, away) in enumerate(draw.some(pairs, 26), start=1)
    ]
    return {"teams": teams, "matches": matches}


_POINTS = (
    "SELECT home_id AS team, home_goals AS own, away_goals AS other FROM matches "
    "UNION ALL SELECT away_id, away_goals, home_goals FROM matches"
)

FOOTBALL = Domain(
    "football",
    {
        "teams": "id INTEGER PRIMARY KEY,\nname TEXT NOT NULL,\ncity TEXT NOT NULL",
        "matches": "id INTEGER PRIMARY KEY,\nday TEXT NOT NULL, -- YYYY-MM-DD\nhome_id INTEGER NOT NULL REFERENCES teams (id),\n"
        "away_id INTEGER NOT NULL REFERENCES teams (id),\nhome_goals INTEGER NOT NULL,\naway_goals INTEGER NOT NULL",
    },
    fill,
    [
        Question(
            "draws",
            "easy",
            "How many matches ended in a draw?",
            "SELECT COUNT(*) FROM matches WHERE home_goals = away_goals",
        ),
        Question(
            "shared-cities",
            "easy",
            "Which cities have more than one team?",
            "SELECT city FROM teams GROUP BY city HAVING COUNT(*) > 1",
        ),
        Question(
            "last-matches",
            "easy",
            "Give day and id of the four latest matches, latest first; on the same day the larger id first.",
            "SELECT day, id FROM matches ORDER BY day DESC, id DESC LIMIT 4",
            ordered=True,
        ),
        Question(
            "home-wins",
            "medium",
            "How many home matches has each team won? Give the name and the number for every team.",
            "SELECT t.name, COUNT(m.id) FROM teams t LEFT JOIN matches m ON m.home_id = t.id AND m.home_goals > m.away_goals GROUP BY t.id, t.name",
        ),
        Question(
            "derbies",
            "medium",
            "Which matches were played between two teams of the same city? Give the day and the names of the home team and the visitors, in the order of "
            "the days and on the same day by the match's id.",
            "SELECT m.day, h.name, a.name FROM matches m JOIN teams h ON h.id = m.home_id JOIN teams a ON a.id = m.away_id WHERE h.city = a.city "
            "ORDER BY m.day, m.id",
            ordered=True,
        ),
        Question(
            "goals-at-home",
            "medium",
            "Which teams have scored at least eight goals in their home matches altogether? Give name and goals.",
            "SELECT t.name, SUM(m.home_goals) FROM matches m JOIN teams t ON t.id = m.home_id GROUP BY t.id, t.name HAVING SUM(m.home_goals) >= 8",
        ),
        Question(
            "league-table",
            "hard",
            "Give the league table: name, matches played, points (3 for a win, 1 for a draw) and goal difference, sorted by points, then goal difference, "
            "both highest first, then by name.",
            f"WITH played AS ({_POINTS}) SELECT t.name, COUNT(*), SUM(CASE WHEN own > other THEN 3 WHEN own = other THEN 1 ELSE 0 END) AS points, "
            "SUM(own - other) AS difference FROM played p JOIN teams t ON t.id = p.team GROUP BY t.id, t.name "
            "ORDER BY points DESC, difference DESC, t.name",
            ordered=True,
        ),
        Question(
            "met-once",
            "hard",
            "Which pairs of teams have met exactly once? Give both names, each pair once and the alphabetically first name first.",
            "SELECT a.name, b.name FROM teams a JOIN teams b ON a.name < b.name JOIN matches m ON (m.home_id = a.id AND m.away_id = b.id) "
            "OR (m.home_id = b.id AND m.away_id = a.id) GROUP BY a.name, b.name HAVING COUNT(*) = 1",
        ),
    ],
    seed=12,
)
