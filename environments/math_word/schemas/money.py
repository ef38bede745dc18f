"""Prices, percentages and interest."""

from fractions import Fraction

from ..problem import Draw, Drawn, Topic, decimal, dollars

money = Topic("money")


@money(
    "easy",
    "A coat costs ${price}. In the sale everything is {percent}% cheaper. How many dollars does the coat cost now?",
)
def discount(draw: Draw) -> Drawn:
    price, percent = draw(3, 12) * 20, draw(2, 9) * 5
    return {"price": price, "percent": percent}, price * (100 - percent) // 100


@money(
    "medium", "After a rise of {percent}% a season ticket costs ${after}. How many dollars did it cost before the rise?"
)
def before_the_rise(draw: Draw) -> Drawn:
    before, percent = draw(4, 15) * 20, draw(1, 8) * 5
    return {"percent": percent, "after": before * (100 + percent) // 100}, before


@money(
    "hard",
    "A shop first raises a price by {up}% and later lowers the new price by {down}%. By how many percent is the final price below "
    "the original one?",
)
def up_and_down(draw: Draw) -> Drawn:
    up, down = draw.pick(((20, 25), (25, 40), (50, 40), (60, 50), (20, 30), (10, 20), (30, 40), (40, 50), (10, 30)))
    return {"up": up, "down": down}, Fraction(100 * 100 - (100 + up) * (100 - down), 100)


@money(
    "hard",
    "{name} puts ${amount} into a savings account that pays {rate}% interest at the end of each year and never withdraws anything. "
    "How many dollars are in the account after {years} years?",
)
def compound_interest(draw: Draw) -> Drawn:
    amount, rate, years = draw(1, 9) * 1000, draw.pick((2, 5, 10, 20)), draw(2, 3)
    return {"name": draw.names()[0], "amount": amount, "rate": rate, "years": years}, decimal(
        amount * Fraction(100 + rate, 100) ** years
    )


@money(
    "easy",
    "{name} buys {count} notebooks at ${each} each and pays with a ${note} note. How many dollars of change are due?",
)
def change_due(draw: Draw) -> Drawn:
    count, cents = draw(2, 6), draw(5, 15) * 25 + 10
    note = 20 if count * cents < 2000 else 50
    given = {"name": draw.names()[0], "count": count, "each": dollars(cents), "note": note}
    return given, dollars(note * 100 - count * cents)


@money(
    "medium",
    "{friends} friends have dinner for ${bill}. They add a tip of {percent}% and share the whole amount equally. How many "
    "dollars does each of them pay?",
)
def dinner(draw: Draw) -> Drawn:
    friends, share, percent = draw(3, 8), draw(4, 9) * 5, draw.pick((10, 15, 20))
    return {"friends": friends, "bill": friends * share, "percent": percent}, decimal(
        Fraction(share * (100 + percent), 100)
    )


@money(
    "medium",
    "{name} has {count} coins in a jar, all of them 10-cent and 25-cent pieces, worth {total} cents in all. How many of them are "
    "25-cent pieces?",
)
def coin_jar(draw: Draw) -> Drawn:
    dimes, quarters = draw(6, 25), draw(5, 20)
    given = {"name": draw.names()[0], "count": dimes + quarters, "total": 10 * dimes + 25 * quarters}
    return given, quarters


@money(
    "hard",
    "Phone plan A costs ${fee_a} a month and {cents_a} cents a minute, plan B costs ${fee_b} a month and {cents_b} cents a minute. "
    "For how many minutes a month do both cost the same?",
)
def phone_plans(draw: Draw) -> Drawn:
    cents_b, cents_a = draw.two(3, 15)
    minutes, fee_a = draw(2, 6) * 100, draw(5, 12)
    fee_b = fee_a + (cents_a - cents_b) * minutes // 100
    return {"fee_a": fee_a, "cents_a": cents_a, "fee_b": fee_b, "cents_b": cents_b}, minutes


@money(
    "medium",
    "A jar of {small} g of honey costs ${price_small}, a jar of {large} g costs ${price_large}. By how many cents is 100 g of honey "
    "cheaper in the large jar?",
)
def honey(draw: Draw) -> Drawn:
    small, large = draw.pick(((200, 500), (250, 500), (250, 1000), (300, 800), (500, 900)))
    cheap, dear = draw.two(50, 120)
    cheap, dear = 2 * cheap, 2 * dear
    prices = {"price_small": dollars(dear * small // 100), "price_large": dollars(cheap * large // 100)}
    return {"small": small, "large": large, **prices}, dear - cheap


@money(
    "easy",
    "{name} has saved ${saved} and puts ${weekly} aside every week. After how many weeks is there enough for a bicycle that "
    "costs ${price}?",
)
def saving_up(draw: Draw) -> Drawn:
    saved, weekly, weeks = draw(20, 90), draw(11, 25), draw(5, 14)
    return {
        "name": draw.names()[0],
        "saved": saved,
        "weekly": weekly,
        "price": saved + weekly * weeks - draw(1, 9),
    }, weeks
