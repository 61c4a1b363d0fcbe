"""Asks a real model through the broker, over NATS and over HTTP, and says how long it took."""

import asyncio
import json
import statistics
import sys
import time
import uuid

import nats
import openai

NATS, HTTP, ROUNDS = sys.argv[1], sys.argv[2], int(sys.argv[3])
QUESTION = "Name a colour of the sky."
SCHEMA = {"type": "object", "properties": {"colour": {"type": "string", "maxLength": 20}}, "required": ["colour"], "additionalProperties": False}


async def whole(nc, feature, **more):
    reply = await nc.request(f"llm.complete.{feature}", json.dumps({"prompt": QUESTION, "seed": 1, **more}).encode(), timeout=120)
    body = json.loads(reply.data)
    assert "error" not in body, body["error"]
    return body


async def nats_plain(nc):
    body = await whole(nc, "chat")
    assert body["content"] and body["served_by"] == "model" and body["provider"] == "gemma", body
    assert not body["usage"].get("estimated"), "the server counts tokens itself"
    return f"{body['usage']['output_tokens']} tokens"


async def nats_stream(nc):
    request, frames, done = str(uuid.uuid4()), [], asyncio.Event()

    async def take(msg):
        frames.append(json.loads(msg.data))
        if frames[-1]["type"] in ("end", "error"):
            done.set()

    sub = await nc.subscribe(f"llm.stream.{request}", cb=take)
    began = time.monotonic()
    await nc.publish("llm.complete.chat", json.dumps({"prompt": QUESTION, "stream": True}).encode(), headers={"Llm-Request-Id": request})
    await asyncio.wait_for(done.wait(), 120)
    await sub.unsubscribe()
    assert [f["seq"] for f in frames] == list(range(1, len(frames) + 1)), "a gap"
    assert frames[-1]["type"] == "end", frames[-1]
    deltas = [f for f in frames if f["type"] == "delta"]
    assert len(deltas) > 1, "streamed"
    return f"{len(deltas)} pieces, worker's first token {frames[-1]['response']['timing']['first_token_ms']} ms of {(time.monotonic() - began) * 1000:.0f}"


async def nats_schema(nc):
    body = await whole(nc, "chat", json_schema={"schema": SCHEMA})
    assert set(body["json"]) == {"colour"} and isinstance(body["json"]["colour"], str), body
    return json.dumps(body["json"])


async def nats_failover(nc):
    body = await whole(nc, "rescued")
    assert body["provider"] == "gemma", body
    if len(body["attempts"]) == 1:
        return "the dead primary's circuit is open, so it was not asked"
    assert [a["class"] for a in body["attempts"]] == ["connect", "ok"], body["attempts"]
    return f"primary dead after {body['attempts'][0]['ms']} ms"


def door():
    return openai.OpenAI(base_url=HTTP, api_key="none", max_retries=0, timeout=120)


async def http_plain(_):
    answer = await asyncio.to_thread(door().chat.completions.create, model="chat", messages=[{"role": "user", "content": QUESTION}])
    assert answer.choices[0].message.content and answer.usage.completion_tokens > 0, answer
    return f"{answer.usage.completion_tokens} tokens"


async def http_stream(_):
    def read():
        began, first, pieces, finish = time.monotonic(), 0.0, 0, None
        for chunk in door().chat.completions.create(model="chat", messages=[{"role": "user", "content": QUESTION}], stream=True):
            if chunk.choices and chunk.choices[0].delta.content:
                pieces, first = pieces + 1, first or time.monotonic() - began
            finish = (chunk.choices and chunk.choices[0].finish_reason) or finish
        assert pieces > 1 and finish, "streamed to its end"
        return f"{pieces} pieces, first after {first * 1000:.0f} ms"

    return await asyncio.to_thread(read)


async def http_schema(_):
    form = {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA}}
    answer = await asyncio.to_thread(door().chat.completions.create, model="chat", messages=[{"role": "user", "content": QUESTION}], response_format=form)
    value = json.loads(answer.choices[0].message.content)
    assert set(value) == {"colour"}, value
    return json.dumps(value)


async def http_failover(_):
    raw = await asyncio.to_thread(door().chat.completions.with_raw_response.create, model="rescued", messages=[{"role": "user", "content": QUESTION}])
    assert raw.headers["x-llmbus-provider"] == "gemma" and raw.headers["x-llmbus-served-by"] == "model", dict(raw.headers)
    return "served by gemma"


async def main():
    nc = await nats.connect(NATS)
    for check in (nats_plain, nats_stream, nats_schema, nats_failover, http_plain, http_stream, http_schema, http_failover):
        took = []
        for _ in range(ROUNDS):
            began = time.monotonic()
            said = await check(nc)
            took.append(time.monotonic() - began)
        print(f"ok  {check.__name__.replace('_', ' '):14} {statistics.median(took):6.2f} s   {said}", flush=True)
    await nc.close()


asyncio.run(main())
