"""A shop: customers, products and orders."""

from ..database import Domain, Draw, Question, Rows

CITIES = ("Oslo", "Porto", "Riga", "Graz")
CATEGORIES = ("kitchen", "garden", "office", "toys")
PRODUCTS = (
    "kettle",
    "knife",
    "pan",
    "rake",
    "hose",
    "spade",
    "stapler",
    "lamp",
    "pen set",
    "kite",
    "puzzle",
    "robot",
    "tray",
    "vase",
)


def fill(draw: Draw) -> dict[str, Rows]:
    customers = [(n, name, draw.pick(CITIES)) for n, name in enumerate(draw.people(14), start=1)]
    products = [
        (n, name, CATEGORIES[(n - 1) * 4 // len(PRODUCTS)], draw(2, 16) * 5) for n, name in enumerate(PRODUCTS, start=1)
    ]
    orders = [(n, draw(1, 12), draw.day(draw(2023, 2024))) for n in range(1, 46)]
    items = []
    for order, _, _ in orders:
        items += [(order, product, draw(1, 5)) for product in draw.some(range(1, 14), draw(1, 4))]
    return {"customers": customers, "products": products, "orders": orders, "order_items": items}


SHOP = Domain(
    "shop",
    {
        "customers": "id INTEGER PRIMARY KEY,\nname TEXT NOT NULL,\ncity TEXT NOT NULL",
        "products": "id INTEGER PRIMARY KEY,\nname TEXT NOT NULL,\ncategory TEXT NOT NULL,\nprice INTEGER NOT NULL -- whole dollars",
        "orders": "id INTEGER PRIMARY KEY,\ncustomer_id INTEGER NOT NULL REFERENCES customers (id),\nday TEXT NOT NULL -- YYYY-MM-DD",
        "order_items": "order_id INTEGER NOT NULL REFERENCES orders (id),\nproduct_id INTEGER NOT NULL REFERENCES products (id),\n"
        "quantity INTEGER NOT NULL,\nPRIMARY KEY (order_id, product_id)",
    },
    fill,
    [
        Question(
            "cheap-products",
            "easy",
            "List name and price of the products that cost at most 40 dollars, cheapest first; equal prices are sorted by name.",
            "SELECT name, price FROM products WHERE price <= 40 ORDER BY price, name",
            ordered=True,
        ),
        Question(
            "customers-per-city",
            "easy",
            "How many customers live in each city? Give the city and the number.",
            "SELECT city, COUNT(*) FROM customers GROUP BY city",
        ),
        Question(
            "orders-in-2024",
            "easy",
            "How many orders were placed in the year 2024?",
            "SELECT COUNT(*) FROM orders WHERE day LIKE '2024-%'",
        ),
        Question(
            "order-values",
            "medium",
            "What is each order worth, that is price times quantity summed over its items? Give the order's id and its worth.",
            "SELECT i.order_id, SUM(p.price * i.quantity) FROM order_items i JOIN products p ON p.id = i.product_id GROUP BY i.order_id",
        ),
        Question(
            "no-orders",
            "medium",
            "Give the names of the customers who have never ordered anything.",
            "SELECT name FROM customers c WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.id)",
        ),
        Question(
            "category-sales",
            "medium",
            "For each category of which something was sold: the category and the number of pieces sold, most pieces first; equal numbers are "
            "sorted by category.",
            "SELECT p.category, SUM(i.quantity) AS pieces FROM order_items i JOIN products p ON p.id = i.product_id GROUP BY p.category "
            "ORDER BY pieces DESC, p.category",
            ordered=True,
        ),
        Question(
            "top-spender-per-city",
            "hard",
            "In each city whose customers have ordered something, who has spent the most over all orders? Give city, name and the amount spent; if "
            "several share the first place, all of them.",
            "WITH spent AS (SELECT c.id, c.city, c.name, SUM(p.price * i.quantity) AS amount FROM customers c JOIN orders o ON o.customer_id = c.id "
            "JOIN order_items i ON i.order_id = o.id JOIN products p ON p.id = i.product_id GROUP BY c.id, c.city, c.name) "
            "SELECT city, name, amount FROM spent s WHERE amount = (SELECT MAX(amount) FROM spent t WHERE t.city = s.city)",
        ),
        Question(
            "bought-together",
            "hard",
            "Which two products were ordered together in at least four orders? Give both names, the alphabetically first one first, and the number of "
            "orders.",
            "SELECT CASE WHEN p.name < q.name THEN p.name ELSE q.name END, CASE WHEN p.name < q.name THEN q.name ELSE p.name END, COUNT(*) FROM order_items a JOIN order_items b ON a.order_id = b.order_id "
            "AND a.product_id < b.product_id JOIN products p ON p.id = a.product_id JOIN products q ON q.id = b.product_id "
            "GROUP BY a.product_id, b.product_id, p.name, q.name HAVING COUNT(*) >= 4",
        ),
    ],
    seed=4,
)
