//! Every part of llmbus from Rust. NATS_URL and the rest come from examples/run.
use std::time::Duration;

use async_nats::{Client, HeaderMap, jetstream};
use futures::StreamExt;
use llmbus_examples::{Failure, Reading, ask, new_id, read, stream};
use serde_json::{Value, json};

const TIME: Duration = Duration::from_secs(30);

async fn connect(variable: &str) -> Client {
    async_nats::connect(std::env::var(variable).expect(variable)).await.unwrap()
}

fn hello() -> Value {
    json!({"prompt": "hello"})
}

/// The code of the error that asking for the feature ends in.
async fn code_of(nats: &Client, feature: &str) -> Option<String> {
    ask(nats, feature, hello(), TIME).await.err().and_then(|failure| failure.code().map(String::from))
}

#[tokio::test]
async fn a_request_and_its_reply() {
    let nats = connect("NATS_URL").await;
    let answer = ask(&nats, "support", hello(), TIME).await.unwrap();
    assert_eq!(answer["served_by"], "model");
    assert!(!answer["content"].as_str().unwrap().is_empty());
}

async fn streamed(reply_only: bool) {
    let nats = connect("NATS_URL").await;
    let mut shown = vec![];
    let how = Reading { id: new_id(), time: TIME, silence: TIME, reply_only };
    let answer = stream(&nats, "support", hello(), &how, |text| shown.push(text.to_string())).await.unwrap();
    assert!(shown.len() > 5);
    assert_eq!(*shown.last().unwrap(), answer["content"]);
}

#[tokio::test]
async fn a_stream_on_its_own_subject() {
    streamed(false).await;
}

#[tokio::test]
async fn a_stream_on_the_inbox() {
    streamed(true).await;
}

#[tokio::test]
async fn cancel() {
    let nats = connect("NATS_URL").await;
    // [cancel]
    let how = Reading { id: new_id(), time: TIME, silence: TIME, reply_only: false };
    let show = |_: &str| {
        let (nats, subject) = (nats.clone(), format!("llm.cancel.{}", how.id));
        tokio::spawn(async move { nats.publish(subject, "".into()).await });
    };
    let failure = stream(&nats, "slow", hello(), &how, show).await.unwrap_err();
    assert_eq!(failure.code(), Some("cancelled"));
    // [end]
}

#[tokio::test]
async fn an_error_and_when_to_come_back() {
    let nats = connect("NATS_URL").await;
    // [error]
    match ask(&nats, "limited", hello(), TIME).await.unwrap_err() {
        Failure::Failed { code, retry_after, .. } => assert!(code == "rate_limited" && !retry_after.is_zero()),
        other => panic!("{other:?}"),
    }
    let message = nats.request("llm.complete.limited", hello().to_string().into()).await.unwrap();
    let headers = message.headers.unwrap();
    assert_eq!(headers.get("Nats-Service-Error-Code").unwrap().as_str(), "429");
    assert!(headers.get("Retry-After").unwrap().as_str().parse::<u64>().unwrap() > 0); // seconds
    // [end]
}

#[tokio::test]
async fn no_responders() {
    // [no_responders]
    let empty = connect("NATS_EMPTY_URL").await;
    let failure = ask(&empty, "support", hello(), TIME).await.unwrap_err();
    assert!(matches!(failure, Failure::NoResponders));
    // [end]
}

#[tokio::test]
async fn a_job_and_its_result() {
    let nats = connect("NATS_URL").await;
    // [job]
    let id = new_id();
    let mut results = nats.subscribe(format!("llm.results.{id}")).await.unwrap();
    let mut headers = HeaderMap::new();
    headers.insert("Llm-Request-Id", id);
    let stored = jetstream::new(nats.clone()).publish_with_headers("llm.jobs.support", headers, hello().to_string().into()).await.unwrap();
    stored.await.unwrap();
    let message = results.next().await.unwrap(); // it also stays in the stream LLM_RESULTS for a day
    // [end]
    assert!(!read(&message).unwrap()["content"].as_str().unwrap().is_empty());
}

#[tokio::test]
async fn breakers() {
    let nats = connect("NATS_URL").await;
    // [breakers]
    let mut changes = nats.subscribe("llm.kv.breakers.>").await.unwrap(); // each change, on plain NATS
    let bucket = jetstream::new(nats.clone()).get_key_value("llm_breakers").await.unwrap();
    let mut watch = bucket.watch_with_history(">").await.unwrap(); // what is stored, then each change
    // [end]
    let change = loop {
        assert!(code_of(&nats, "failing").await.is_some());
        if let Ok(change) = tokio::time::timeout(Duration::from_millis(20), changes.next()).await {
            break change.unwrap();
        }
    };
    assert_eq!(change.subject.as_str(), "llm.kv.breakers.sim.sim-status-503");
    while watch.next().await.unwrap().unwrap().key != "sim.sim-status-503" {}
}

#[tokio::test]
async fn a_kill_switch() {
    let nats = connect("NATS_URL").await;
    // [kill_switch]
    let flags = jetstream::new(nats.clone()).get_key_value("llm_flags").await.unwrap();
    flags.put("feature.switched", "off @ann a drill".into()).await.unwrap();
    while code_of(&nats, "switched").await.as_deref() != Some("switched_off") {}
    flags.put("feature.switched", "on".into()).await.unwrap();
    while code_of(&nats, "switched").await.is_some() {}
    // [end]
}
