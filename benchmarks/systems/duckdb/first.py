from common import copied

COLUMNS = "T: 'BIGINT', code: 'VARCHAR'"


def run(data, out):
    copied("SELECT min(T) AS T, code FROM msg GROUP BY code", data, out, msg=COLUMNS)
