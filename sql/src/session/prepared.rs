//! Statements that PREPARE named.

use crate::outcome::Prepared;

pub(crate) struct Named {
    pub prepared: Prepared,
}
