use super::*;
use clap::CommandFactory;

#[test]
fn the_commands_are_well_formed() {
    Args::command().debug_assert();
}

#[test]
fn import_takes_a_stream_and_a_file() {
    let args = Args::try_parse_from(["ebb", "import", "s", "f.csv", "--create", "--time-column", "ts"]).unwrap();
    let Command::Import { import, .. } = args.command else { panic!("not an import") };
    assert_eq!((import.stream.as_str(), import.file.to_str(), import.create), ("s", Some("f.csv"), true));
    assert!(Args::try_parse_from(["ebb", "import", "s"]).is_err());
}
