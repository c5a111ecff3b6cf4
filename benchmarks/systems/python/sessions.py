from datetime import datetime, timedelta

from common import rows, write

GAP = timedelta(minutes=30)


def run(data, out):
    running, answers = {}, []
    for text, _, user in rows(data / "click.csv"):
        t = datetime.fromisoformat(text[:-1])
        began, last, last_text, clicks = running.get(user, (text, t, text, 0))
        if t - last > GAP:
            answers.append((last_text, user, began, clicks))
            began, clicks = text, 0
        running[user] = (began, t, text, clicks + 1)
    answers += ((last, user, began, clicks) for user, (began, _, last, clicks) in running.items())
    write(out, ("T", "user", "B", "clicks"), answers)
