//! One test for each script.

use crate::support::{InProcess, script};

macro_rules! scripts {
    ($($name:ident),* $(,)?) => {
        $(#[tokio::test]
        async fn $name() {
            let mut runner = InProcess::new().await;
            let text = include_str!(concat!("scripts/", stringify!($name), ".slt"));
            script(concat!(stringify!($name), ".slt"), text, &mut runner).await;
        })*
    };
}

scripts!(basics, hidden_columns, transactions, definitions, alter_columns, ttl_errors, refused, types, sessions, truncate, expiry);
