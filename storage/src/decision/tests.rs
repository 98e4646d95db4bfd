use super::*;
use std::future::{pending, ready};
use tokio::sync::oneshot;

#[tokio::test]
async fn a_statement_that_has_written_nothing_is_given_up() {
    assert_eq!(unless(ready(()), pending::<()>()).await, None);
}

#[tokio::test]
async fn one_that_is_decided_is_waited_for() {
    let (limit, reached) = oneshot::channel();
    let (log, durable) = oneshot::channel();
    let work = async move {
        decide().unwrap();
        limit.send(()).unwrap();
        tokio::task::yield_now().await;
        log.send(()).unwrap();
        durable.await.unwrap();
        "written"
    };
    assert_eq!(unless(async { reached.await.unwrap() }, work).await, Some("written"));
}

#[tokio::test]
async fn one_that_is_reopened_is_given_up_then() {
    let work = async {
        reopening(async {
            decide().unwrap();
            tokio::task::yield_now().await;
        })
        .await;
        pending::<()>().await;
    };
    assert_eq!(unless(tokio::task::yield_now(), work).await, None);
}

#[tokio::test]
async fn nothing_is_written_for_a_statement_that_was_given_up() {
    let decision = Arc::new(Decision::default());
    decision.over(reopening(async { decide().unwrap() })).await;
    decision.give_up().await;
    let error = decision.over(async { decide() }).await.unwrap_err();
    assert!(error.to_string().contains("cancelled"), "{error}");
}

#[tokio::test]
async fn outside_a_statement_nothing_is_asked() {
    reopening(async { decide().unwrap() }).await;
}

#[tokio::test]
async fn work_on_layout_reopens_nothing_that_was_decided_before_it() {
    let work = async {
        decide().unwrap();
        reopening(async {
            tokio::task::yield_now().await;
            decide().unwrap();
        })
        .await;
        tokio::task::yield_now().await;
        "told of"
    };
    assert_eq!(unless(tokio::task::yield_now(), work).await, Some("told of"));
}

#[tokio::test]
async fn work_on_layout_within_such_work_ends_with_the_outer() {
    let decision = Arc::new(Decision::default());
    let work = async {
        reopening(async { decide().unwrap() }).await;
        decide().unwrap();
        assert_eq!(*decision.state.lock(), State::Decided);
    };
    decision.over(reopening(work)).await;
    assert_eq!(*decision.state.lock(), State::Open);
}
