// Every part of llmbus from Node. NATS_URL and the rest come from examples/run.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { jetstream } from "@nats-io/jetstream";
import { Kvm } from "@nats-io/kv";
import { connect, headers } from "@nats-io/transport-node";
import { ask, Failed, newId, NoResponders, stream } from "./llmbus.js";

const hello = { prompt: "hello" };
let nc;
before(async () => (nc = await connect({ servers: process.env.NATS_URL })));
after(() => nc.close());

/** The code of the error that asking for the feature ends in. */
const codeOf = (feature) => ask(nc, feature, hello).then(() => null, (err) => err.code);

test("a request and its reply", async () => {
  const answer = await ask(nc, "support", hello);
  assert.equal(answer.served_by, "model");
  assert.ok(answer.content);
});

for (const replyOnly of [false, true]) {
  test(`a stream on ${replyOnly ? "the inbox" : "its own subject"}`, async () => {
    const shown = [];
    const answer = await stream(nc, "support", hello, (text) => shown.push(text), { replyOnly });
    assert.ok(shown.length > 5);
    assert.equal(shown.at(-1), answer.content);
  });
}

test("cancel", async () => {
  // [cancel]
  const id = newId();
  const show = () => nc.publish(`llm.cancel.${id}`);
  await assert.rejects(stream(nc, "slow", hello, show, { id }), { code: "cancelled" });
  // [end]
});

test("an error and when to come back", async () => {
  // [error]
  await assert.rejects(ask(nc, "limited", hello), (err) => err instanceof Failed && err.code === "rate_limited" && err.retryAfterMs > 0);
  const message = await nc.request("llm.complete.limited", JSON.stringify(hello), { timeout: 10_000 });
  assert.equal(message.headers.get("Nats-Service-Error-Code"), "429");
  assert.match(message.headers.get("Retry-After"), /^[1-9]$/);
  // [end]
});

test("no responders", async () => {
  // [no_responders]
  const empty = await connect({ servers: process.env.NATS_EMPTY_URL });
  await assert.rejects(ask(empty, "support", hello), NoResponders);
  // [end]
  await empty.close();
});

test("a job and its result", async () => {
  // [job]
  const id = newId(), h = headers();
  h.set("Llm-Request-Id", id);
  const results = nc.subscribe(`llm.results.${id}`, { max: 1 });
  await jetstream(nc).publish("llm.jobs.support", JSON.stringify(hello), { headers: h });
  for await (const message of results) assert.ok(message.json().content); // it also stays in the stream LLM_RESULTS for a day
  // [end]
});

test("breakers", async () => {
  // [breakers]
  let change, stored;
  const changes = nc.subscribe("llm.kv.breakers.>", { callback: (err, m) => (change = m) }); // each change, on plain NATS
  const bucket = await new Kvm(nc).open("llm_breakers");
  const watch = await bucket.watch(); // what is stored, then each change
  // [end]
  const watching = (async () => {
    for await (const entry of watch) if ((stored = entry).key === "sim.sim-status-503") break;
  })();
  while (!change) assert.ok(await codeOf("failing"));
  await watching;
  assert.equal(change.subject, "llm.kv.breakers.sim.sim-status-503");
  assert.ok(change.json().state && stored.json().state);
  changes.unsubscribe();
});

test("a kill switch", async () => {
  // [kill_switch]
  const flags = await new Kvm(nc).open("llm_flags");
  await flags.put("feature.switched", "off @ann a drill");
  while ((await codeOf("switched")) !== "switched_off");
  await flags.put("feature.switched", "on");
  while ((await codeOf("switched")) !== null);
  // [end]
});
