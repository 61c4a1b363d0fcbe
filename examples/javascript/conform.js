// Lets the conformance kit judge llmbus.js; docs/conformance.md says how.
import { connect } from "@nats-io/transport-node";
import { ask, Failed, newId, NoResponders, stream } from "./llmbus.js";

const nc = await connect({ servers: process.env.NATS_URL });

async function carryOut(task) {
  const shown = [], id = newId(), request = { prompt: task.prompt };
  const show = (text) => {
    if (shown.push(text) === task.cancel_after) nc.publish(`llm.cancel.${id}`);
  };
  const text = () => shown.at(-1) ?? "";
  const options = { id, timeout: task.timeout_ms, silence: task.silence_ms, replyOnly: task.do === "stream_reply" };
  try {
    switch (task.do) {
      case "complete":
        return { outcome: "answer", text: (await ask(nc, task.feature, request, task.timeout_ms)).content };
      case "stream":
      case "stream_reply":
        return { outcome: "answer", text: (await stream(nc, task.feature, request, show, options)).content };
    }
    return { outcome: "unsupported" };
  } catch (err) {
    if (err instanceof Failed) return { outcome: "error", code: err.code, retry_after_ms: err.retryAfterMs, text: text() };
    if (err instanceof NoResponders) return { outcome: "no_responders" };
    return { outcome: "broken", text: text() };
  }
}

for await (const message of nc.subscribe("conformance.client")) {
  const task = message.json();
  if (task.do === "end") break;
  message.respond(JSON.stringify(await carryOut(task)));
}
await nc.close();
