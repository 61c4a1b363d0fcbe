//! llmbus over async-nats: what an application may copy. docs/clients.md tells more.
use std::time::Duration;

use async_nats::{Client, HeaderMap, Message, Request, RequestErrorKind, StatusCode};
use futures::StreamExt;
use serde_json::{Value, json};
use tokio::time::timeout;

#[derive(Debug)]
pub enum Failure {
    /// The error that a worker answered with.
    Failed {
        code: String,
        message: String,
        retry_after: Duration,
    },
    /// The answer is not whole: a gap, no end, or silence.
    Broken(&'static str),
    /// Nobody serves.
    NoResponders,
    Nats(async_nats::Error),
}

impl<E: Into<async_nats::Error>> From<E> for Failure {
    fn from(err: E) -> Self {
        Failure::Nats(err.into())
    }
}

impl Failure {
    fn of(error: &Value) -> Self {
        Failure::Failed {
            code: error["code"].as_str().unwrap_or_default().into(),
            message: error["message"].as_str().unwrap_or_default().into(),
            retry_after: Duration::from_millis(error["retry_after_ms"].as_u64().unwrap_or_default()), // 0 is unknown
        }
    }

    pub fn code(&self) -> Option<&str> {
        match self {
            Failure::Failed { code, .. } => Some(code),
            _ => None,
        }
    }
}

pub fn new_id() -> String {
    uuid::Uuid::new_v4().simple().to_string()
}

/// The answer of a reply, or its error.
pub fn read(message: &Message) -> Result<Value, Failure> {
    let reply: Value = serde_json::from_slice(&message.payload).map_err(|_| Failure::Broken("the message is no reply"))?;
    if !reply["error"].is_null() {
        return Err(Failure::of(&reply["error"]));
    }
    if reply["served_by"].is_null() {
        return Err(Failure::Broken("the message is no reply"));
    }
    Ok(reply)
}

fn headers(id: &str, time: Duration) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert("Llm-Request-Id", id);
    headers.insert("Llm-Timeout-Ms", (time.as_millis() * 9 / 10).to_string());
    headers
}

// [ask]
pub async fn ask(nats: &Client, feature: &str, request: Value, time: Duration) -> Result<Value, Failure> {
    let request = Request::new().payload(request.to_string().into()).headers(headers(&new_id(), time)).timeout(Some(time));
    match nats.send_request(format!("llm.complete.{feature}"), request).await {
        Ok(message) => read(&message),
        Err(err) if err.kind() == RequestErrorKind::NoResponders => Err(Failure::NoResponders),
        Err(err) if err.kind() == RequestErrorKind::TimedOut => Err(Failure::Broken("no reply")),
        Err(err) => Err(err.into()),
    }
}
// [end]

/// How a stream is read.
pub struct Reading {
    pub id: String,
    pub time: Duration,
    pub silence: Duration,
    pub reply_only: bool, // frames on the reply subject, instead of llm.stream.<id>
}

// [stream]
/// Calls show with the whole text so far, and returns the answer.
pub async fn stream(nats: &Client, feature: &str, mut request: Value, how: &Reading, mut show: impl FnMut(&str)) -> Result<Value, Failure> {
    let inbox = nats.new_inbox();
    let mut replies = nats.subscribe(inbox.clone()).await?; // listen before you ask
    let mut frames = nats.subscribe(format!("llm.stream.{}", how.id)).await?;
    request["stream"] = json!(true);
    request["stream_to"] = json!(if how.reply_only { "reply" } else { "subject" });
    let mut headers = headers(&how.id, how.time);
    headers.insert("Llm-Ping-Ms", (how.silence.as_millis() / 3).to_string());
    nats.publish_with_reply_and_headers(format!("llm.complete.{feature}"), inbox.clone(), headers, request.to_string().into()).await?;
    let mut reader = Reader { reply_only: how.reply_only, ..Reader::default() };
    let read = async {
        loop {
            let next = async {
                tokio::select! { biased; frame = frames.next() => frame, reply = replies.next() => reply } // frames were sent first
            };
            let message = timeout(how.silence, next).await.map_err(|_| Failure::Broken("the worker fell silent"))?;
            let message = message.ok_or(Failure::Broken("the connection is closed"))?;
            if let Some(answer) = reader.take(&message, message.subject.as_str() == inbox, &mut show)? {
                return Ok(answer);
            }
        }
    };
    timeout(how.time, read).await.unwrap_or(Err(Failure::Broken("the time ran out")))
}
// [end]

/// The rules for readers.
#[derive(Default)]
struct Reader {
    reply_only: bool,
    text: String,
    seq: u64,
    gap: bool,
}

impl Reader {
    /// Returns the answer with the last message.
    fn take(&mut self, message: &Message, inbox: bool, show: &mut impl FnMut(&str)) -> Result<Option<Value>, Failure> {
        if message.status == Some(StatusCode::NO_RESPONDERS) {
            return Err(Failure::NoResponders);
        }
        if inbox && !self.reply_only {
            // the whole answer, whatever became of the frames
            let answer = read(message)?;
            let content = answer["content"].as_str().unwrap_or_default();
            if !content.starts_with(&self.text) {
                return Err(Failure::Broken("frames were lost, and the answer does not go on from them"));
            }
            show(content);
            return Ok(Some(answer));
        }
        if message.payload.is_empty() {
            return Err(Failure::Broken("the stream ended without an end"));
        }
        let mut frame: Value = serde_json::from_slice(&message.payload).map_err(|_| Failure::Broken("the message is no frame"))?;
        if frame["seq"] == 1 && self.text.is_empty() {
            self.seq = 0; // another worker has begun
        }
        self.seq += 1;
        self.gap |= frame["seq"] != self.seq;
        if self.gap {
            // show nothing after a gap
            return if self.reply_only { Err(Failure::Broken("frames were lost")) } else { Ok(None) };
        }
        match frame["type"].as_str().unwrap_or_default() {
            "start" => self.text.clear(), // this attempt replaces what an earlier one has shown
            "delta" => {
                self.text += frame["text"].as_str().unwrap_or_default();
                show(&self.text);
            }
            "error" => return Err(Failure::of(&frame["error"])),
            "end" if self.reply_only => {
                let mut answer = frame["response"].take();
                answer["content"] = json!(self.text);
                return Ok(Some(answer));
            }
            _ => {}
        }
        Ok(None)
    }
}
