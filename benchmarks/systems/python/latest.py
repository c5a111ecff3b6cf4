from common import rows, write


def run(data, out):
    prices, trades = rows(data / "price.csv"), rows(data / "trade.csv")
    latest, answers = {}, []
    price = next(prices, None)
    for t, stock in trades:
        at = int(t)
        while price is not None and int(price[0]) <= at:
            latest[price[1]] = price[2]
            price = next(prices, None)
        if stock in latest:
            answers.append((t, stock, latest[stock]))
    write(out, ("T", "stock", "price"), answers)
