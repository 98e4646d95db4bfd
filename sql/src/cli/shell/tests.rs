use super::*;

#[test]
fn a_statement_ends_at_a_semicolon_outside_quotes_and_comments() {
    for complete in [
        "SELECT 1;",
        "SELECT ';';",
        "SELECT 1; -- end",
        "SELECT 1; /* end */ ",
        "SELECT $$;$$;",
        "select $a$ $$ ; $a$;",
        "SELECT 'it''s';",
        "SELECT $1;",
    ] {
        assert!(is_complete(complete), "{complete}");
    }
    for open in ["SELECT 1", "SELECT ';", "SELECT 1 -- ;", "SELECT /* ;", "SELECT $$;", "", "SELECT 1; SELECT 2", "CREATE \"a;"] {
        assert!(!is_complete(open), "{open}");
    }
}

#[test]
fn backslash_commands_are_statements_in_short() {
    assert_eq!(command("\\d"), Command::Sql("SHOW STREAMS".into()));
    assert_eq!(command("\\d weather;"), Command::Sql("DESCRIBE weather".into()));
    assert_eq!((command("\\q"), command("\\timing"), command("\\x")), (Command::Quit, Command::Timing, Command::Unknown));
}
