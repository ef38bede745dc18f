"""Weather: stations and daily readings."""

from ..database import Domain, Draw, Question, Rows

STATIONS = ("Airport", "Bridge", "Castle", "Dam", "Forest", "Summit", "Harbour")


def fill(draw: Draw) -> dict[str, Rows]:
    altitudes = [300, *draw.some(range(2, 900), len(STATIONS) - 1)]
    stations = [(n, name, altitudes[n - 1]) for n, name in enumerate(draw.some(STATIONS, len(STATIONS)), start=1)]
    readings = []
    for station in range(1, 7):
        for number in range(1, 15):
            if draw(1, 9) > 1:
                low = draw(-12, 14)
                rain = None if draw(1, 10) == 1 else max(0, draw(-12, 20))
                readings.append((station, f"2025-0{1 + number // 8}-{number:02d}", low + draw(2, 14), low, rain))
    return {"stations": stations, "readings": readings}


WEATHER = Domain(
    "weather",
    {
        "stations": "id INTEGER PRIMARY KEY,\nname TEXT NOT NULL,\naltitude INTEGER NOT NULL -- metres",
        "readings": "station_id INTEGER NOT NULL REFERENCES stations (id),\nday TEXT NOT NULL, -- YYYY-MM-DD\n"
        "high INTEGER NOT NULL, -- degrees Celsius\nlow INTEGER NOT NULL,\nrain INTEGER, -- millimetres, NULL if the gauge failed\n"
        "PRIMARY KEY (station_id, day)",
    },
    fill,
    [
        Question(
            "high-stations",
            "easy",
            "List name and altitude of the stations above 300 metres, highest first.",
            "SELECT name, altitude FROM stations WHERE altitude > 300 ORDER BY altitude DESC",
            ordered=True,
        ),
        Question(
            "failed-gauges",
            "easy",
            "For how many readings did the rain gauge fail?",
            "SELECT COUNT(*) FROM readings WHERE rain IS NULL",
        ),
        Question(
            "frost-days",
            "easy",
            "On which days did at least one station measure a low below -8 degrees? Give each day once, in order.",
            "SELECT DISTINCT day FROM readings WHERE low < -8 ORDER BY day",
            ordered=True,
        ),
        Question(
            "rain-per-station",
            "medium",
            "How much rain has each station measured in total? Give the name of every station and the millimetres, 0 where nothing was measured.",
            "SELECT s.name, COALESCE(SUM(r.rain), 0) FROM stations s LEFT JOIN readings r ON r.station_id = s.id GROUP BY s.id, s.name",
        ),
        Question(
            "largest-span",
            "medium",
            "What is the largest difference between high and low of one day at each station with readings? Give name and difference, largest first and "
            "equal ones by name.",
            "SELECT s.name, MAX(r.high - r.low) AS span FROM readings r JOIN stations s ON s.id = r.station_id GROUP BY s.id, s.name "
            "ORDER BY span DESC, s.name",
            ordered=True,
        ),
        Question(
            "dry-february",
            "medium",
            "On how many days of February 2025 did each station measure no rain at all (0 mm)? Give name and number of the stations with such days.",
            "SELECT s.name, COUNT(*) FROM stations s JOIN readings r ON r.station_id = s.id WHERE r.day LIKE '2025-02-%' AND r.rain = 0 "
            "GROUP BY s.id, s.name",
        ),
        Question(
            "warmest-station",
            "hard",
            "For each day with readings: the day and the name of the station with the highest high; if several share it, all of them.",
            "SELECT r.day, s.name FROM readings r JOIN stations s ON s.id = r.station_id "
            "WHERE r.high = (SELECT MAX(x.high) FROM readings x WHERE x.day = r.day)",
        ),
        Question(
            "colder-than-the-day-before",
            "hard",
            "At which stations was it on some day colder (a lower low) than in the same station's reading of the day before? Count only days that follow "
            "each other directly within the same month. Give the station's name and the number of such days.",
            "SELECT s.name, COUNT(*) FROM readings r JOIN readings b ON b.station_id = r.station_id AND SUBSTR(b.day, 1, 7) = SUBSTR(r.day, 1, 7) "
            "AND CAST(SUBSTR(b.day, 9, 2) AS INTEGER) + 1 = CAST(SUBSTR(r.day, 9, 2) AS INTEGER) JOIN stations s ON s.id = r.station_id "
            "WHERE r.low < b.low GROUP BY s.id, s.name",
        ),
    ],
    seed=0,
)
