import pyarrow as pa
from common import read, session, write

from benchmarks.programs import risk as shared


def run(data, out):
    payments = read(data, "payment", "T STRING, id BIGINT, euros DOUBLE, country STRING")
    session().sparkContext.addPyFile(shared.__file__)

    def risky(batches):
        from risk import risk

        for batch in batches:
            pairs = zip(batch["euros"].to_pylist(), batch["country"].to_pylist(), strict=True)
            chosen = pa.array([risk(*pair) > 0.9 for pair in pairs], pa.bool_())
            yield batch.select(["T", "id"]).filter(chosen)

    write(payments.mapInArrow(risky, "T STRING, id BIGINT"), out)
