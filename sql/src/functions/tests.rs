//! Every function through the planner, as a query would call it.

use super::*;
use datafusion::{
    arrow::util::display::{ArrayFormatter, FormatOptions},
    prelude::{SessionConfig, SessionContext},
    sql::sqlparser::{dialect::PostgreSqlDialect, parser::Parser},
};
use ebb_storage::Timestamp;

fn context() -> SessionContext {
    let mut config = SessionConfig::new();
    config.options_mut().extensions.insert(StatementTime("2026-03-04T05:06:07.891234Z".parse::<Timestamp>().unwrap()));
    let mut ctx = SessionContext::new_with_config(config);
    register(&mut ctx).unwrap();
    ctx
}

async fn try_eval(expr: &str) -> Result<String, String> {
    let ctx = context();
    let sql = if expr.starts_with("select") { expr.to_owned() } else { format!("select {expr}") };
    let mut statements = Parser::parse_sql(&PostgreSqlDialect {}, &sql).map_err(|e| e.to_string())?;
    let datafusion::sql::sqlparser::ast::Statement::Query(query) = &mut statements[0] else { panic!("no query") };
    rewrite_query(query);
    let batches = ctx.sql(&query.to_string()).await.map_err(|e| e.to_string())?.collect().await.map_err(|e| e.to_string())?;
    let batch = batches.iter().find(|b| b.num_rows() > 0).expect("a row");
    let options = FormatOptions::default().with_null("NULL");
    Ok(ArrayFormatter::try_new(batch.column(0), &options).unwrap().value(0).to_string())
}

async fn check(cases: &[(&str, &str)]) {
    for (expr, expected) in cases {
        assert_eq!(try_eval(expr).await.as_deref(), Ok(*expected), "{expr}");
    }
}

#[tokio::test]
async fn parts_of_a_time() {
    let t = "timestamp '2024-12-30 23:04:05.5'";
    let cases: Vec<(String, &str)> = [
        ("to_year", "2024"),
        ("to_quarter", "4"),
        ("to_month", "12"),
        ("to_day_of_month", "30"),
        ("to_day_of_week", "1"), // proves T16: Monday is 1
        ("to_day_of_year", "365"),
        ("to_iso_week", "1"),
        ("to_hour", "23"),
        ("to_minute", "4"),
        ("to_second", "5"),
        ("to_YYYYMM", "202412"),
        ("to_yyyymmdd", "20241230"),
        ("to_YYYYMMDDhhmmss", "20241230230405"),
        ("to_unix_timestamp", "1735599845"),
    ]
    .iter()
    .map(|(f, v)| (format!("{f}({t})"), *v))
    .collect();
    for (expr, expected) in &cases {
        assert_eq!(try_eval(expr).await.as_deref(), Ok(*expected), "{expr}");
    }
    check(&[
        ("to_year(date '1969-07-20')", "1969"),
        ("to_hour(timestamp '1969-12-31 23:59:59')", "23"),
        ("to_month(NULL)", "NULL"),
        ("to_day_of_week('2024-01-07')", "7"),
        ("to_hour(arrow_cast('2024-07-01T12:00:00Z', 'Timestamp(Microsecond, Some(\"Europe/Berlin\"))'))", "14"),
    ])
    .await;
}

#[tokio::test]
async fn starts_of_units() {
    check(&[
        ("to_start_of_year(timestamp '2024-05-15 10:20:30')", "2024-01-01"),
        ("to_start_of_quarter(timestamp '2024-05-15 10:20:30')", "2024-04-01"),
        ("to_start_of_month(date '2024-02-29')", "2024-02-01"),
        ("to_start_of_week(date '2024-05-15')", "2024-05-13"),
        ("to_monday(date '2024-05-13')", "2024-05-13"),
        ("to_start_of_day(timestamp '2024-05-15 10:20:30')", "2024-05-15T00:00:00"),
        ("to_start_of_hour(timestamp '1969-12-31 23:20:30')", "1969-12-31T23:00:00"),
        ("to_start_of_minute(timestamp '2024-05-15 10:20:30.5')", "2024-05-15T10:20:00"),
        ("to_start_of_five_minutes(timestamp '2024-05-15 10:24:59')", "2024-05-15T10:20:00"),
        ("to_start_of_ten_minutes(timestamp '2024-05-15 10:29:59')", "2024-05-15T10:20:00"),
        ("to_start_of_fifteen_minutes(timestamp '2024-05-15 10:29:59')", "2024-05-15T10:15:00"),
        ("to_start_of_interval(timestamp '2024-05-15 10:29:59', interval '2 hours')", "2024-05-15T10:00:00"),
        ("time_bucket(interval '3 months', timestamp '2024-05-15 10:29:59')", "2024-04-01T00:00:00"),
        ("time_bucket(interval '7 days', timestamp '2024-05-15 10:29:59')", "2024-05-13T00:00:00"),
        (
            "to_start_of_day(arrow_cast('2024-07-01T23:00:00Z', 'Timestamp(Microsecond, Some(\"Europe/Berlin\"))'))",
            "2024-07-02T00:00:00+02:00",
        ),
    ])
    .await;
    // No rows are no error, and a NULL interval gives NULL.
    let none = "select count(*) from (select time_bucket(interval '1 day', t) from (values (timestamp '2024-05-15 10:29:59')) v(t) where t < timestamp '2000-01-01 00:00:00') x";
    check(&[(none, "0"), ("select time_bucket(i, timestamp '2024-05-15 10:29:59') from (values (cast(null as interval))) v(i)", "NULL")])
        .await;
    assert!(try_eval("select now64(n) from (values (1), (2)) v(n)").await.unwrap_err().contains("constant"));
    assert!(
        try_eval("select date_add(u, 1, date '2024-01-01') from (values ('day'), ('month')) v(u)").await.unwrap_err().contains("constant")
    );
    assert!(try_eval("time_bucket(interval '0 days', timestamp '2024-05-15 10:29:59')").await.unwrap_err().contains("positive"));
}

#[tokio::test]
async fn arithmetic_clamps_and_does_not_wrap() {
    check(&[
        ("add_months(date '2024-01-31', 1)", "2024-02-29"),
        ("add_years(date '2024-02-29', 1)", "2025-02-28"),
        ("subtract_months(timestamp '2024-03-31 10:00:00', 1)", "2024-02-29T10:00:00"),
        ("add_hours(date '2024-01-01', 5)", "2024-01-01T05:00:00"),
        ("add_quarters(date '2024-01-15', 2)", "2024-07-15"),
        ("subtract_weeks(date '2024-01-15', 2)", "2024-01-01"),
        ("add_seconds(timestamp '2024-01-01 00:00:00', -1)", "2023-12-31T23:59:59"),
        ("date_diff('day', timestamp '2024-01-01 23:00:00', timestamp '2024-01-02 01:00:00')", "1"),
        ("date_diff('month', date '2024-01-31', date '2024-03-01')", "2"),
        ("date_diff('week', date '2024-05-12', date '2024-05-13')", "1"),
        ("date_diff('hours', timestamp '2024-01-01 00:59:00', timestamp '2024-01-01 02:00:00')", "2"),
        ("date_add(timestamp '2024-01-31 00:00:00', interval '1 month')", "2024-02-29T00:00:00"),
        ("date_sub('day', 1, timestamp '2024-03-01 00:00:00')", "2024-02-29T00:00:00"),
        ("timestamp '2024-01-31 00:00:00' + to_interval_month(1)", "2024-02-29T00:00:00"),
        // Clocks go forward at 2:00: a day is 23 hours, 24 hours are a day and an hour.
        ("add_days(arrow_cast('2024-03-30T12:00:00', 'Timestamp(Microsecond, Some(\"Europe/Berlin\"))'), 1)", "2024-03-31T12:00:00+02:00"),
        (
            "add_hours(arrow_cast('2024-03-30T12:00:00', 'Timestamp(Microsecond, Some(\"Europe/Berlin\"))'), 24)",
            "2024-03-31T13:00:00+02:00",
        ),
    ])
    .await;
    assert!(try_eval("add_years(date '2024-01-01', 9000000000)").await.unwrap_err().contains("out of range"));
    assert!(try_eval("add_days(date '2024-01-01', 9223372036854775807)").await.unwrap_err().contains("out of range"));
    assert!(try_eval("date_diff('fortnight', date '2024-01-01', date '2024-01-02')").await.unwrap_err().contains("fortnight"));
}

#[tokio::test]
async fn the_clock_is_the_statements() {
    check(&[
        ("now()", "2026-03-04T05:06:07.891234Z"),
        ("NOW64()", "2026-03-04T05:06:07.891Z"),
        ("now64(0)", "2026-03-04T05:06:07Z"),
        ("today()", "2026-03-04"),
        ("current_date", "2026-03-04"),
        ("current_timestamp", "2026-03-04T05:06:07.891234Z"),
        ("yesterday()", "2026-03-03"),
    ])
    .await;
}

#[tokio::test]
async fn texts_and_numbers_become_times_and_back() {
    check(&[
        ("to_datetime('2024-01-02 03:04:05')", "2024-01-02T03:04:05"),
        ("to_datetime(1704164645)", "2024-01-02T03:04:05"),
        ("to_datetime64('2024-01-02 03:04:05.678901', 3)", "2024-01-02T03:04:05.678"),
        ("to_date('2024-01-02')", "2024-01-02"),
        ("to_date(timestamp '2024-01-02 23:00:00')", "2024-01-02"),
        ("from_unix_timestamp(0)", "1970-01-01T00:00:00"),
        ("format_datetime(timestamp '2024-01-02 03:04:05', '%Y/%m/%d %H:%i:%S')", "2024/01/02 03:04:05"),
        ("parse_datetime('02.01.2024 03:04', '%d.%m.%Y %H:%i')", "2024-01-02T03:04:00"),
        ("to_timezone(timestamp '2024-07-01 12:00:00', 'Europe/Berlin')", "2024-07-01T14:00:00+02:00"),
        ("to_hour(to_timezone(timestamp '2024-07-01 12:00:00', 'europe/berlin'))", "14"),
        ("to_unix_timestamp(to_timezone(to_datetime(0), 'Europe/Berlin'))", "0"),
        ("to_datetime('2024-01-01 00:00:00', 'America/New_York')", "2024-01-01T00:00:00-05:00"),
        ("to_unix_timestamp(to_datetime('2024-01-01 00:00:00', 'America/New_York'))", "1704085200"),
        ("to_datetime('2024-01-01 00:00:00+02', 'America/New_York')", "2023-12-31T17:00:00-05:00"),
        ("to_datetime(0, 'Asia/Tokyo')", "1970-01-01T09:00:00+09:00"),
        ("to_datetime64('2024-01-01 00:00:00.123456789', 9)", "2024-01-01T00:00:00.123456789"),
        ("to_datetime64('2024-01-01 00:00:00.123456789', 7, 'UTC')", "2024-01-01T00:00:00.123456700Z"),
        ("to_datetime64('2024-07-01 00:00:00.123456789', 9, 'Europe/Berlin')", "2024-07-01T00:00:00.123456789+02:00"),
        ("to_datetime64(1.5, 3)", "1970-01-01T00:00:01.500"),
        ("to_type_name(now64(9))", "datetime64(9, 'UTC')"),
        ("to_type_name(to_datetime64('2024-01-01 00:00:00', 6))", "datetime64(6)"),
        ("timezone('America/New_York', timestamp '2024-01-01 00:00:00')", "2024-01-01T05:00:00Z"),
    ])
    .await;
    assert!(try_eval("to_timezone(now(), 'Nowhere/City')").await.unwrap_err().contains("Nowhere/City"));
    for (wrong, says) in [
        ("to_datetime('2024-01-01 00:00:00', 'Nowhere/Zone')", "Nowhere/Zone"),
        ("to_datetime('31.01.2024', '%d.%m.%Y')", "parse_datetime"),
        ("to_datetime('garbage')", "'garbage'"),
        ("to_datetime('2024-01-01 00:00:00', 'UTC', 'x')", "1 to 2"),
        ("to_datetime64('2024-01-01 00:00:00', 10)", "0 to 9"),
        ("to_datetime64('3000-01-01 00:00:00', 9)", "3000"),
        ("to_datetime('2024-01-01 00:00:00', concat('U', 'T', chr(67 + 0)))", "constant"),
    ] {
        let got = try_eval(wrong).await;
        assert!(got.as_ref().is_err_and(|e| e.contains(says)), "{wrong}: {got:?}");
    }
    assert!(try_eval("parse_datetime('x', '%d')").await.unwrap_err().contains("'x'"));
}

#[tokio::test]
async fn other_spellings() {
    check(&[
        ("if(1 > 0, 'yes', 'no')", "yes"),
        ("if(true, 1, 1 / 0)", "1"),
        ("multi_if(false, 1, true, 2, 3)", "2"),
        ("if_null(NULL, 5)", "5"),
        ("null_if(5, 5)", "NULL"),
        ("to_int32('42') + 1", "43"),
        ("to_string(1.5)", "1.5"),
        ("to_bool('true')", "true"),
        ("to_type_name(1)", "int64"),
        ("match('abc', '^a')", "true"),
        ("position('hello', 'l')", "3"),
        ("replace_all('aXbX', 'X', '-')", "a-b-"),
        ("starts_with('abc', 'ab')", "true"),
        ("ends_with('abc', 'bc')", "true"),
        ("length_utf8('Zürich')", "6"),
        ("split_by_string(',', 'a,b')", "[a, b]"),
        ("format_readable_size(1572864)", "1.50 MiB"),
    ])
    .await;
}

#[tokio::test]
async fn a_wrong_number_of_arguments_is_said() {
    for (wrong, says) in [("multi_if(true, 'x')", "multi_if takes"), ("to_int32(1, 2)", "to_int32 takes"), ("if(true, 1)", "if takes")] {
        let got = try_eval(wrong).await;
        assert!(got.as_ref().is_err_and(|e| e.contains(says)), "{wrong}: {got:?}");
    }
}

#[tokio::test]
async fn aggregates() {
    let over = |f: &str| format!("select {f} from (values (1, 10.0, 'a'), (2, 30.0, 'b'), (3, 20.0, 'a'), (4, NULL, 'c')) t(n, v, s)");
    for (f, expected) in [
        ("count_if(n > 2)", "2"),
        ("sum_if(n, s = 'a')", "4"),
        ("avg_if(v, n < 3)", "20.0"),
        ("min_if(n, s = 'b')", "2"),
        ("max_if(n, s = 'zz')", "NULL"),
        ("arg_max(s, v)", "b"),
        ("arg_min(s, v)", "a"),
        ("any(n)", "1"),
        ("any_last(n)", "4"),
        ("unique(s)", "3"),
        ("unique_exact(s)", "3"),
        ("median(n)", "2.5"),
        ("top_k(s, 2)", "[a, b]"),
        ("group_array(n)", "[1, 2, 3, 4]"),
    ] {
        let sql = over(f);
        let got = try_eval(&sql).await;
        let same = got.as_deref() == Ok(expected)
            || got.as_ref().ok().and_then(|g| g.parse::<f64>().ok()) == expected.parse::<f64>().ok().filter(|_| got.is_ok());
        assert!(same, "{sql}: {got:?}");
    }
    assert!(try_eval(&over("top_k(s, 0)")).await.unwrap_err().contains("1 to 10000"));
}

#[tokio::test]
async fn intervals_times_numbers() {
    check(&[
        ("timestamp '2024-01-01 00:00:00' + interval '1 day' * 2", "2024-01-03T00:00:00"),
        ("timestamp '2024-01-01 00:00:00' + arrow_cast(2, 'UInt8') * interval '1 month'", "2024-03-01T00:00:00"),
        ("date '2024-01-31' + interval '1 month'", "2024-02-29"),
    ])
    .await;
    assert!(try_eval("interval '1 month' * 9223372036854775807").await.unwrap_err().contains("out of range"));
    // Far times are an error, not a panic.
    assert!(try_eval("timestamp '2262-01-01 00:00:00' + interval '300000 years'").await.unwrap_err().contains("out of range"));
}
