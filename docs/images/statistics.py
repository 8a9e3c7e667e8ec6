"""Write 500 rows of a probe with the keys of five changed: the figures of docs/statistics.md."""

import numpy as np
import pyarrow.parquet as pq

probe = pq.read_table("probes/taxonomy_conjunction/data/test-00000-of-00001.parquet")
random = np.random.default_rng(0)
some = probe.take(np.sort(random.choice(probe.num_rows, 500, replace=False)))
rows = some.to_pylist()
for row in sorted(random.choice(500, 5, replace=False).tolist()):
    count = len(rows[row]["choices"]["text"])
    rows[row]["answer"] = (rows[row]["answer"] + 1 + int(random.integers(count - 1))) % count
    rows[row]["answerKey"] = rows[row]["choices"]["label"][rows[row]["answer"]]
pq.write_table(some.from_pylist(rows, schema=some.schema), "taxonomy.parquet")
