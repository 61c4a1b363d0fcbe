//! Lets the conformance kit judge lib.rs; docs/conformance.md says how.
use std::time::Duration;

use futures::StreamExt;
use llmbus_examples::{Failure, Reading, ask, new_id, stream};
use serde_json::{Value, json};

async fn carry_out(nats: &async_nats::Client, task: &Value) -> Value {
    let millis = |name: &str| Duration::from_millis(task[name].as_u64().unwrap_or_default());
    let (feature, request) = (task["feature"].as_str().unwrap_or_default(), json!({"prompt": task["prompt"]}));
    let (mut shown, mut shows, id) = (String::new(), 0, new_id());
    let cancel = format!("llm.cancel.{id}");
    let result = match task["do"].as_str() {
        Some("complete") => ask(nats, feature, request, millis("timeout_ms")).await,
        Some(way @ ("stream" | "stream_reply")) => {
            let how = Reading { id, time: millis("timeout_ms"), silence: millis("silence_ms"), reply_only: way == "stream_reply" };
            let show = |text: &str| {
                shown = text.into();
                shows += 1;
                if task["cancel_after"] == shows {
                    let (nats, cancel) = (nats.clone(), cancel.clone());
                    tokio::spawn(async move { nats.publish(cancel, "".into()).await });
                }
            };
            stream(nats, feature, request, &how, show).await
        }
        _ => return json!({"outcome": "unsupported"}),
    };
    match result {
        Ok(answer) => json!({"outcome": "answer", "text": answer["content"]}),
        Err(Failure::Failed { code, retry_after, .. }) => {
            json!({"outcome": "error", "code": code, "text": shown, "retry_after_ms": retry_after.as_millis() as u64})
        }
        Err(Failure::NoResponders) => json!({"outcome": "no_responders"}),
        Err(_) => json!({"outcome": "broken", "text": shown}),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), async_nats::Error> {
    let nats = async_nats::connect(std::env::var("NATS_URL")?).await?;
    let mut tasks = nats.subscribe("conformance.client").await?;
    while let Some(message) = tasks.next().await {
        let task: Value = serde_json::from_slice(&message.payload)?;
        if task["do"] == "end" {
            break;
        }
        if let Some(reply) = message.reply {
            nats.publish(reply, carry_out(&nats, &task).await.to_string().into()).await?;
        }
    }
    nats.flush().await?;
    Ok(())
}
