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
    c.execute("CREATE STREAM h (k int64, v string) ORDER BY k")
    c.execute("INSERT INTO h VALUES (1, 'a'), (2, 'b')")
    c.execute("INSERT INTO h VALUES (3, 'c')")
    c.execute("ALTER STREAM h CREATE TAG two AS OF VERSION 1")
    now = dt.datetime.fromtimestamp(1_750_000_000, dt.timezone.utc)
    for binary in (False, True):
        cursor = c.cursor(binary=binary)
        for version, rows in ((1, 2), (2, 3), ("two", 2), ("main", 3), ("1", 2)):
            assert cursor.execute("SELECT count(*) FROM h VERSION AS OF %s", (version,)).fetchone() == (rows,), version
        for moment in (now, now.isoformat(), now.replace(tzinfo=None)):
            assert cursor.execute("SELECT count(*) FROM h TIMESTAMP AS OF %s AS x", (moment,)).fetchone() == (3,), moment
        cuts = "SELECT a.k FROM h VERSION AS OF %s a LEFT JOIN h VERSION AS OF %s b ON a.k = b.k WHERE b.k IS NULL"
        assert cursor.execute(cuts, (2, "two")).fetchall() == [(3,)]
        assert cursor.execute("SELECT k FROM changes('h', %s, %s)", (1, 2)).fetchall() == [(3,)]
        assert cursor.execute("SELECT max(sn) FROM snapshots(%s)", ("h",)).fetchone() == (2,)
        for prepare in (False, True):
            found = cursor.execute("SELECT * FROM changes(%s, %s, %s)", ("h", 1, 2), prepare=prepare)
            assert (found.fetchall(), [d.name for d in cursor.description]) == ([(3, "c", 2)], ["k", "v", "_tp_sn"]), prepare
    for refused in (when, 99, "nothing"):
        word = "TIMESTAMP" if refused is when else "VERSION"
        try:
            c.execute(f"SELECT count(*) FROM h {word} AS OF %s", (refused,))
            raise SystemExit("no error")
        except psycopg.errors.UndefinedObject:
            pass
    print("ok psycopg cuts")
    with psycopg.connect(url) as d:
        assert d.execute("DELETE FROM h WHERE k >= %s", (2,)).rowcount == 2
        d.execute("INSERT INTO h VALUES (4, 'd'), (5, 'd')")
        assert d.execute("DELETE FROM h WHERE v = %s AND k = %s", ("d", 4)).rowcount == 1
        assert d.execute("SELECT k FROM h ORDER BY k").fetchall() == [(1,), (5,)]
        assert c.execute("SELECT count(*) FROM h").fetchone() == (3,)
        d.rollback()
        assert d.execute("SELECT count(*) FROM h").fetchone() == (3,)
        with d.transaction():
            d.execute("DELETE FROM h WHERE k = any(%s)", ([1, 2],))
            try:
                with d.transaction():
                    d.execute("DELETE FROM h")
                    raise ZeroDivisionError
            except ZeroDivisionError:
                pass
            assert d.execute("SELECT k FROM h").fetchall() == [(3,)]
    assert c.execute("SELECT k FROM h").fetchall() == [(3,)]
    assert c.execute("CALL rollback_to_snapshot(%s, %s)", ("h", 2)).fetchone() == (3, 2, 4)
    assert c.execute("SELECT count(*) FROM h").fetchone() == (3,)
    print("ok psycopg deletes")


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
    at_version = await c.prepare("SELECT count(*) FROM h VERSION AS OF $1")
    for version, rows in ((1, 2), (2, 3)):
        assert await at_version.fetchval(version) == rows, version
    at_name = await c.prepare("SELECT count(*) FROM h VERSION AS OF $1::text")
    for version, rows in (("two", 2), ("main", 3)):
        assert await at_name.fetchval(version) == rows, version
    try:
        await at_name.fetchval("1")
        raise SystemExit("a text is a name")
    except asyncpg.exceptions.UndefinedObjectError as e:
        assert "no tag or branch '1'" in str(e), e
    try:
        # It wants the columns before it gives the name.
        await c.fetch("SELECT * FROM changes($1, $2, $3)", "h", 1, 2)
        raise SystemExit("no error")
    except asyncpg.exceptions.IndeterminateDatatypeError as e:
        assert "write the name" in str(e), e
    assert await c.fetchval("SELECT count(*) FROM h VERSION AS OF $1::int8 WHERE k > $2", 3, 2) == 1
    assert await c.fetchval("SELECT count(*) FROM h TIMESTAMP AS OF $1", now) == 3
    assert [r["k"] for r in await c.fetch("SELECT k FROM changes('h', $1, $2, deletes => $3)", 2, 3, True)] == [1, 2]
    transaction = c.transaction()
    await transaction.start()
    assert await c.execute("DELETE FROM h WHERE k = $1 OR v IN (SELECT v FROM h VERSION AS OF $2 WHERE k = 2)", 3, 1) == "DELETE 2"
    assert await c.fetchval("SELECT count(*) FROM h") == 1
    await transaction.rollback()
    assert await c.fetchval("SELECT count(*) FROM h") == 3
    row = await c.fetchrow("CALL expire_snapshots($1, retain_last => $2, older_than => $3, dry_run => $4)", "h", 1, now, True)
    assert row["snapshots_removed"] == 0, row
    await c.execute("DROP STREAM h")
    print("ok asyncpg cuts and deletes")
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
with engine.begin() as c:
    assert c.execute(sa.delete(p).where(p.c.d == "f")).rowcount == 1
    assert c.execute(sa.text("SELECT count(*) FROM p VERSION AS OF :v"), {"v": 1}).scalar() == 1
with engine.connect() as c:
    assert "f" not in list(c.execute(sa.select(p.c.d)).scalars())
with engine.begin() as c:
    c.execute(p.insert(), dict(row, d="f"))
print("ok sqlalchemy deletes")
with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as c:
    assert c.execute(sa.text("SELECT count(*) FROM p")).scalar() == 7
print("ok sqlalchemy autocommit")
inspector = sa.inspect(engine)
assert inspector.get_table_names() == ["p"], inspector.get_table_names()
columns = {c["name"]: str(c["type"]) for c in inspector.get_columns("p")}
assert columns["ts"] == "TIMESTAMP" and columns["n"] == "NUMERIC(12, 3)" and columns["v"] == "DOUBLE PRECISION", columns
sa.MetaData().reflect(engine)
print("ok sqlalchemy reflection")
