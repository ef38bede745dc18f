"""Music: artists, albums and tracks."""

from ..database import Domain, Draw, Question, Rows

GENRES = ("folk", "jazz", "rock")
WORDS = ("Blue", "Echo", "Glass", "Honey", "Iron", "Moon", "Neon", "Paper", "Rain", "Salt", "Sun", "Wolf")


def fill(draw: Draw) -> dict[str, Rows]:
    names = draw.some([f"{first} {second}" for first in WORDS for second in ("Choir", "Quartet", "Trio")], 10)
    artists = [(n, name, draw.pick(GENRES)) for n, name in enumerate(names, start=1)]
    titles = draw.some([f"{first} {second}" for first in WORDS for second in WORDS if first != second], 90)
    albums = [(n, draw(1, 9), titles[n - 1], draw(1990, 2024)) for n in range(1, 21)]
    plays = draw.some(range(5000), 70)
    tracks = [(n, draw(1, 20), titles[19 + n], draw(90, 420), plays[n - 1]) for n in range(1, 71)]
    return {"artists": artists, "albums": albums, "tracks": tracks}


MUSIC = Domain(
    "music",
    {
        "artists": "id INTEGER PRIMARY KEY,\nname TEXT NOT NULL,\ngenre TEXT NOT NULL",
        "albums": "id INTEGER PRIMARY KEY,\nartist_id INTEGER NOT NULL REFERENCES artists (id),\ntitle TEXT NOT NULL,\nyear INTEGER NOT NULL",
        "tracks": "id INTEGER PRIMARY KEY,\nalbum_id INTEGER NOT NULL REFERENCES albums (id),\ntitle TEXT NOT NULL,\n"
        "seconds INTEGER NOT NULL,\nplays INTEGER NOT NULL",
    },
    fill,
    [
        Question(
            "albums-of-the-nineties",
            "easy",
            "Give title and year of all albums from the years 1990 to 1999.",
            "SELECT title, year FROM albums WHERE year BETWEEN 1990 AND 1999",
        ),
        Question(
            "most-played",
            "easy",
            "Give the titles of the three tracks with the most plays, most plays first.",
            "SELECT title FROM tracks ORDER BY plays DESC LIMIT 3",
            ordered=True,
        ),
        Question(
            "moon-titles",
            "easy",
            "Which track titles contain the word Moon?",
            "SELECT title FROM tracks WHERE title LIKE '%Moon%'",
        ),
        Question(
            "album-lengths",
            "medium",
            "How long is each album that has tracks? Give its title and the total number of seconds, longest first and equal lengths by title.",
            "SELECT a.title, SUM(t.seconds) AS total FROM albums a JOIN tracks t ON t.album_id = a.id GROUP BY a.id, a.title "
            "ORDER BY total DESC, a.title",
            ordered=True,
        ),
        Question(
            "artists-without-album",
            "medium",
            "Which artists have no album? Give name and genre.",
            "SELECT name, genre FROM artists WHERE id NOT IN (SELECT artist_id FROM albums)",
        ),
        Question(
            "plays-per-genre",
            "medium",
            "How many plays do the tracks of each genre have in total? Give genre and plays for genres that have tracks.",
            "SELECT r.genre, SUM(t.plays) FROM tracks t JOIN albums a ON a.id = t.album_id JOIN artists r ON r.id = a.artist_id GROUP BY r.genre",
        ),
        Question(
            "first-albums",
            "hard",
            "Give for each artist with albums the name and the title of the artist's earliest album; if there are several of that year, all of them.",
            "SELECT r.name, a.title FROM artists r JOIN albums a ON a.artist_id = r.id "
            "WHERE a.year = (SELECT MIN(b.year) FROM albums b WHERE b.artist_id = r.id)",
        ),
        Question(
            "longer-than-album-mean",
            "hard",
            "Which tracks are longer than the mean length of the tracks of their own album? Give the track's title and its seconds.",
            "SELECT t.title, t.seconds FROM tracks t WHERE t.seconds > (SELECT AVG(s.seconds) FROM tracks s WHERE s.album_id = t.album_id)",
        ),
    ],
    seed=4,
)
