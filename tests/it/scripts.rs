//! One test for each script.

use crate::{
    script::{each_script, script},
    support::InProcess,
};

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

each_script!(scripts);
