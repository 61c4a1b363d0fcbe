// Asks from a browser, over NATS WebSocket, and shows the answer as it comes.
import { wsconnect } from "@nats-io/nats-core";
import { ask, Failed, stream } from "../llmbus.js";

// [browser]
const nc = await wsconnect({ servers: new URLSearchParams(location.search).get("nats") });
const place = document.querySelector("#answer");
const answer = await stream(nc, "support", { prompt: "hello" }, (text) => (place.textContent = text));
// [end]
const code = await ask(nc, "limited", { prompt: "hello" }).catch((err) => (err instanceof Failed ? err.code : String(err)));
await nc.close();

// The test behind the page wants to know.
await fetch("/seen", { method: "POST", body: JSON.stringify({ text: place.textContent, content: answer.content, code }) });
