"""Prints `ok NAME` for each check; the first that fails ends it."""
import asyncio
import datetime as dt
import decimal
import ipaddress
import sys
import uuid

import asyncpg
import psycopg
import psycopg.types.json
import sqlalchemy as sa

port = int(sys.argv[1])
url = f"host=127.0.0.1 port={port} user=ebb dbname=default"
when = dt.datetime(2025, 6, 15, 10, 0, tzinfo=dt.timezone.utc)

with psycopg.connect(url, autocommit=True) as c:
    c.execute("CREATE STREAM p (ts timestamptz, d string, v float64 DEFAULT 1.5, n decimal(12,3), b bool, i int64 NULL) ORDER BY (d, ts)")
    c.execute("INSERT INTO p VALUES (%s, %s, %s, %s, %s, %s)", (when, "a", 2.5, decimal.Decimal("1.250"), True, None))
    for binary in (False, True):
        row = c.cursor(binary=binary).execute("SELECT ts, d, v, n, b, i FROM p").fetchone()
        assert row == (when, "a", 2.5, decimal.Decimal("1.250"), True, None), row
    print("ok psycopg values")
    c.execute("CREATE STREAM nested (k int64, a array(array(string)), m map(string, int64), u uuid, e enum8('x' = 1), j json, i ipv6) ORDER BY k")
    c.execute("INSERT INTO nested (k, a, m) VALUES (1, '{{a,b},{}}', '{\"k\": 1}')")
    rows = [c.cursor(binary=b).execute("SELECT a, m, u, e, j, i, k, k FROM nested").fetchone() for b in (False, True)]
    assert rows[0] == rows[1] and rows[0][0] == [["a", "b"], []] and rows[0][1] == {"k": 1}, rows
    import uuid
    known = uuid.UUID("12345678-1234-1234-1234-123456789abc")
    c.execute("INSERT INTO nested (k, u) VALUES (2, %s)", (known,))
    for binary in (False, True):
        found = c.cursor(binary=binary).execute("SELECT k FROM nested WHERE u = any(%s)", ([known],)).fetchall()
        assert found == [(2,)], found
    c.execute("DROP STREAM nested")
    print("ok psycopg nested")
    with c.cursor().copy("COPY p (ts, d, n, b) FROM STDIN") as copy:
        copy.write_row((when, "b", "2", "t"))
    assert c.execute("SELECT count(*) FROM p").fetchone() == (2,)
    print("ok psycopg copy")
    types = "a int32, b int64, c float64, d decimal(20, 4), e string, f bool, g timestamptz, h date, i uuid, j array(int32), k bytea, l ipv4, m json, n uint64, o enum8('x' = 1), q fixed_string(2)"
    c.execute(f"CREATE STREAM bin ({types}) ORDER BY a")
    oids = ["int4", "int8", "float8", "numeric", "text", "bool", "timestamptz", "date", "uuid", "int4[]", "bytea", "inet", "json", "numeric", "text", "text"]
    row = (1, 2**40, 1.5, decimal.Decimal("1234567890123456.7891"), "ü\t", True, when, when.date(), uuid.UUID(int=7), [1, 2], b"\x00\xff", ipaddress.ip_address("10.0.0.1"), {"k": [1]}, decimal.Decimal(2**64 - 1), "x", "ab")
    with c.cursor().copy("COPY bin FROM STDIN WITH (FORMAT binary)") as copy:
        copy.set_types(oids)
        for n in range(3):
            copy.write_row([psycopg.types.json.Json(v) if isinstance(v, dict) else v + n if v is row[0] else v for v in row])
    assert c.execute("SELECT * FROM bin WHERE a = 1").fetchone() == row, c.execute("SELECT * FROM bin WHERE a = 1").fetchone()
    with c.cursor().copy("COPY (SELECT * FROM bin ORDER BY a) TO STDOUT WITH (FORMAT binary)") as copy:
        copy.set_types(oids)
        rows = list(copy.rows())
    assert [r[0] for r in rows] == [1, 2, 3] and tuple(rows[0]) == row, rows
    with c.cursor().copy("COPY bin TO STDOUT (FORMAT binary)") as copy:
        data = b"".join(bytes(piece) for piece in copy)
    c.execute("CREATE STREAM again AS SELECT * FROM bin LIMIT 0")
    with c.cursor().copy("COPY again FROM STDIN (FORMAT binary)") as copy:
        copy.write(data)
    assert c.execute("SELECT count(*) FROM (SELECT a, e, k FROM bin EXCEPT SELECT a, e, k FROM again) t").fetchone() == (0,)
    c.execute("DROP STREAM bin")
    c.execute("DROP STREAM again")
    print("ok psycopg binary copy")
    try:
        c.execute("SELECT nothing FROM p")
        raise SystemExit("no error")
    except psycopg.errors.UndefinedColumn:
        print("ok psycopg errors")
    with c.transaction():
        c.execute("INSERT INTO p (ts, d, n, b) VALUES (%s, 'c', 3, false)", (when,))
    print("ok psycopg transaction")


async def with_asyncpg():
    c = await asyncpg.connect(host="127.0.0.1", port=port, user="ebb", database="default")
    row = await c.fetchrow("SELECT ts, d, v, n, b, i FROM p WHERE d = $1 AND ts = $2", "a", when)
    assert tuple(row) == (when, "a", 2.5, decimal.Decimal("1.250"), True, None), row
    print("ok asyncpg values")
    async with c.transaction():
        assert [r["d"] async for r in c.cursor("SELECT d FROM p ORDER BY d", prefetch=1)] == ["a", "b", "c"]
    print("ok asyncpg cursor")
    await c.execute("CREATE STREAM arr (k int64, a array(int32), t array(string), f array(float64), u array(uuid), w array(timestamptz), n array(decimal(10, 2)), i array(ipv4), aa array(array(string)), id uuid, ip ipv4) ORDER BY k")
    uuid, address = asyncpg.pgproto.pgproto.UUID("12345678-1234-1234-1234-123456789abc"), ipaddress.ip_address("10.0.0.1")
    row = (1, [1, None, 2], ["x", 'y"z'], [1.5], [uuid], [when], [decimal.Decimal("1.25")], [address], '[["a"],[]]', uuid, address)
    row = tuple([v for v in x if v is not None] if isinstance(x, list) else x for x in row)
    await c.execute("INSERT INTO arr VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)", *row)
    got = tuple(await c.fetchrow("SELECT * FROM arr"))
    got = tuple([getattr(v, "ip", v) for v in x] if isinstance(x, list) else getattr(x, "ip", x) for x in got)
    assert got == row, (got, row)
    assert await c.fetchval("SELECT k FROM arr WHERE k = any($1::int8[])", [1, 5]) == 1
    assert await c.fetchval("SELECT k FROM arr WHERE k = any($1)", [1, 5]) == 1
    assert await c.fetchval("SELECT k FROM arr WHERE id = $1 AND ip = $2", uuid, address) == 1
    assert await c.fetchval("SELECT $1::int4 + 1", 4) == 5
    assert (await c.fetchrow("SELECT count(*), 1, 1 FROM arr"))["count"] == 1
    await c.execute("DROP STREAM arr")
    print("ok asyncpg arrays")
    await c.close()


asyncio.run(with_asyncpg())

# SQLAlchemy as it comes: a transaction around everything, savepoints while it connects and for nested blocks.
engine = sa.create_engine(f"postgresql+psycopg://ebb@127.0.0.1:{port}/default")


def count():
    with engine.connect() as c:
        return c.execute(sa.text("SELECT count(*) FROM p")).scalar()


assert count() == 3
print("ok sqlalchemy query")
p = sa.Table("p", sa.MetaData(), autoload_with=engine)
row = {"ts": when, "d": "d", "v": 0.5, "n": decimal.Decimal("4.000"), "b": True, "i": 7}
with engine.connect() as c:
    c.execute(p.insert(), row)
    assert c.execute(sa.select(sa.func.count()).select_from(p)).scalar() == 4
    c.rollback()
assert count() == 3
with engine.begin() as c:
    c.execute(p.insert(), [row, dict(row, d="e", i=None)])
    assert count() == 3
assert count() == 5
with engine.connect() as c:
    got = c.execute(sa.select(p).where(p.c.d == "d")).one()
    assert got._asdict() == row, got
print("ok sqlalchemy commit and rollback")
with engine.begin() as c:
    c.execute(p.insert(), dict(row, d="f"))
    try:
        with c.begin_nested():
            c.execute(p.insert(), dict(row, d="g"))
            c.execute(sa.text("SELECT nothing FROM p"))
    except sa.exc.ProgrammingError as e:
        assert isinstance(e.orig, psycopg.errors.UndefinedColumn), e
    with c.begin_nested():
        c.execute(p.insert(), dict(row, d="h"))
with engine.connect() as c:
    assert list(c.execute(sa.select(p.c.d).order_by(p.c.d)).scalars()) == ["a", "b", "c", "d", "e", "f", "h"]
print("ok sqlalchemy savepoints")
with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as c:
    assert c.execute(sa.text("SELECT count(*) FROM p")).scalar() == 7
print("ok sqlalchemy autocommit")
inspector = sa.inspect(engine)
assert inspector.get_table_names() == ["p"], inspector.get_table_names()
columns = {c["name"]: str(c["type"]) for c in inspector.get_columns("p")}
assert columns["ts"] == "TIMESTAMP" and columns["n"] == "NUMERIC(12, 3)" and columns["v"] == "DOUBLE PRECISION", columns
sa.MetaData().reflect(engine)
print("ok sqlalchemy reflection")
