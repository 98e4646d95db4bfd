"""Reads parts as files: arguments are paths. Of each prints rows, sum of k and what both readers agree on."""
import sys

import duckdb
import pyarrow.parquet as pq

for path in sys.argv[1:]:
    table = pq.read_table(path)
    arrow = (table.num_rows, sum(table["k"].to_pylist()), sorted(set(table["host"].to_pylist())), round(sum(x for x in table["x"].to_pylist() if x is not None), 6))
    c = duckdb.connect()
    rows, total, hosts, x = c.execute("select count(*), sum(k), list(distinct host order by host), sum(x) from read_parquet(?)", [path]).fetchone()
    duck = (rows, int(total), hosts, round(x, 6))
    assert arrow == duck, (path, arrow, duck)
    # By its pages and its filter, too.
    few = c.execute("select count(*) from read_parquet(?) where host = ? and k between 1000 and 2000", [path, hosts[0]]).fetchone()[0]
    print(f"ok {rows} {total} {few}")
