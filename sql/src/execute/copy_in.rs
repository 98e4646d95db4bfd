//! COPY ... FROM STDIN.

use crate::{
    Error, Outcome, Result, Session,
    statement::{CopyOptions, Name, StreamName},
};

pub(super) async fn run(_: &mut Session, _: &StreamName, _: Option<&[Name]>, _: &CopyOptions) -> Result<Outcome> {
    Err(Error::unsupported("COPY FROM: not built yet"))
}
