#!/bin/sh
set -e
cd /app
python3 - <<'END'
import csv
from decimal import Decimal
names = {row["id"]: row["name"] for row in csv.DictReader(open("customers.csv"))}
sums, counts, unknown = {}, {}, []
rows = list(csv.reader(open("orders.csv")))
for number, customer, amount, status in rows[1:]:
    if customer not in names:
        unknown.append([number, customer, amount, status])
    elif status == "paid":
        sums[customer] = sums.get(customer, Decimal(0)) + Decimal(amount)
        counts[customer] = counts.get(customer, 0) + 1
with open("totals.csv", "w", newline="") as out:
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["name", "orders", "total"])
    for customer in sorted(sums, key=lambda one: -sums[one]):
        writer.writerow([names[customer], counts[customer], sums[customer]])
with open("unknown.csv", "w", newline="") as out:
    csv.writer(out, lineterminator="\n").writerows([rows[0], *unknown])
END
