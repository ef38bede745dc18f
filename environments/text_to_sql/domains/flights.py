"""Air traffic: airports, flights and bookings."""

from ..database import Domain, Draw, Question, Rows

AIRPORTS = {
    "ABX": "Abra", "BQR": "Belport", "CVT": "Corvale", "DLM": "Delmar", "EKS": "Ekston", "FRN": "Fernhill", "GOL": "Goldbay", "HAV": "Havensund",
}  # fmt: skip
COUNTRIES = ("Norland", "Sudria", "Westia")


def fill(draw: Draw) -> dict[str, Rows]:
    codes = draw.some(list(AIRPORTS), len(AIRPORTS))
    airports = [(code, city, draw.pick(COUNTRIES)) for code, city in AIRPORTS.items()]
    flights = []
    for number in range(1, 41):
        origin, destination = draw.some(codes[:7], 2)
        flights.append((number, origin, destination, draw.day(2025), draw(35, 300), draw(4, 9)))
    people = draw.people(25)
    bookings = []
    for number, _, _, _, minutes, seats in flights:
        if number % 9:
            bookings += [(number, name, minutes + draw(10, 120)) for name in draw.some(people, draw(1, seats))]
    return {"airports": airports, "flights": flights, "bookings": bookings}


FLIGHTS = Domain(
    "flights",
    {
        "airports": "code TEXT PRIMARY KEY,\ncity TEXT NOT NULL,\ncountry TEXT NOT NULL",
        "flights": "id INTEGER PRIMARY KEY,\norigin TEXT NOT NULL REFERENCES airports (code),\n"
        "destination TEXT NOT NULL REFERENCES airports (code),\nday TEXT NOT NULL, -- YYYY-MM-DD\nminutes INTEGER NOT NULL,\n"
        "seats INTEGER NOT NULL",
        "bookings": "flight_id INTEGER NOT NULL REFERENCES flights (id),\npassenger TEXT NOT NULL,\nprice INTEGER NOT NULL,\n"
        "PRIMARY KEY (flight_id, passenger)",
    },
    fill,
    [
        Question(
            "short-flights",
            "easy",
            "Give the ids of all flights that take less than an hour and a half.",
            "SELECT id FROM flights WHERE minutes < 90",
        ),
        Question(
            "airports-per-country",
            "easy",
            "How many airports are there in each country? Give country and number, sorted by country.",
            "SELECT country, COUNT(*) FROM airports GROUP BY country ORDER BY country",
            ordered=True,
        ),
        Question(
            "dearest-booking",
            "easy",
            "What is the highest price that was paid for a booking?",
            "SELECT MAX(price) FROM bookings",
        ),
        Question(
            "domestic-flights",
            "medium",
            "Which flights start and land in the same country? Give the id, the city of departure and the city of arrival.",
            "SELECT f.id, o.city, d.city FROM flights f JOIN airports o ON o.code = f.origin JOIN airports d ON d.code = f.destination "
            "WHERE o.country = d.country",
        ),
        Question(
            "cities-without-departures",
            "medium",
            "From which cities does no flight depart?",
            "SELECT a.city FROM airports a LEFT JOIN flights f ON f.origin = a.code WHERE f.id IS NULL",
        ),
        Question(
            "free-seats",
            "medium",
            "How many seats are still free on each flight? Give the flight's id and the number, for every flight, most free seats first and equal "
            "numbers by id.",
            "SELECT f.id, f.seats - COUNT(b.passenger) AS free FROM flights f LEFT JOIN bookings b ON b.flight_id = f.id "
            "GROUP BY f.id, f.seats ORDER BY free DESC, f.id",
            ordered=True,
        ),
        Question(
            "there-and-back",
            "hard",
            "Between which pairs of airports are there flights in both directions? Give both codes, each pair once and the alphabetically first code "
            "first.",
            "SELECT DISTINCT a.origin, a.destination FROM flights a JOIN flights b ON b.origin = a.destination AND b.destination = a.origin "
            "WHERE a.origin < a.destination",
        ),
        Question(
            "above-average-revenue",
            "hard",
            "Consider the sum of the prices of each flight that has bookings. Which flights earn more than the average of these sums? Give the id and "
            "the sum.",
            "WITH revenue AS (SELECT flight_id, SUM(price) AS total FROM bookings GROUP BY flight_id) "
            "SELECT flight_id, total FROM revenue WHERE total > (SELECT AVG(total) FROM revenue)",
        ),
    ],
    seed=4,
)
