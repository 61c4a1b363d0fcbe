"""Every part of llmbus from Python. NATS_URL and the rest come from examples/run."""
import asyncio
import json
import os

import nats
import pytest
import pytest_asyncio
from nats.errors import NoRespondersError

from llmbus import Failed, ask, new_id, stream

HELLO = {"prompt": "hello"}


@pytest_asyncio.fixture
async def nc():
    connection = await nats.connect(os.environ["NATS_URL"])
    yield connection
    await connection.close()


async def test_a_request_and_its_reply(nc):
    answer = await ask(nc, "support", HELLO)
    assert answer["served_by"] == "model" and answer["content"]


async def test_a_stream_on_its_own_subject(nc):
    shown = []
    answer = await stream(nc, "support", HELLO, shown.append)
    assert len(shown) > 5 and shown[-1] == answer["content"]


async def test_a_stream_on_the_inbox(nc):
    shown = []
    answer = await stream(nc, "support", HELLO, shown.append, reply_only=True)
    assert len(shown) > 5 and shown[-1] == answer["content"]


async def test_cancel(nc):
    # [cancel]
    id = new_id()

    def show(text):
        asyncio.ensure_future(nc.publish(f"llm.cancel.{id}"))

    with pytest.raises(Failed) as failed:
        await stream(nc, "slow", HELLO, show, id)
    assert failed.value.code == "cancelled"
    # [end]


async def test_an_error_and_when_to_come_back(nc):
    # [error]
    with pytest.raises(Failed) as failed:
        await ask(nc, "limited", HELLO)
    assert failed.value.code == "rate_limited" and 0 < failed.value.retry_after <= 10
    message = await nc.request("llm.complete.limited", json.dumps(HELLO).encode())
    assert message.headers["Nats-Service-Error-Code"] == "429" and 0 < int(message.headers["Retry-After"]) <= 10
    # [end]


async def test_no_responders():
    # [no_responders]
    empty = await nats.connect(os.environ["NATS_EMPTY_URL"])
    with pytest.raises(NoRespondersError):
        await ask(empty, "support", HELLO)
    # [end]
    await empty.close()


async def test_a_job_and_its_result(nc):
    # [job]
    id = new_id()
    results = await nc.subscribe(f"llm.results.{id}")
    await nc.jetstream().publish("llm.jobs.support", json.dumps(HELLO).encode(), headers={"Llm-Request-Id": id})
    message = await results.next_msg(10)  # it also stays in the stream LLM_RESULTS for a day
    assert json.loads(message.data)["content"]
    # [end]


async def test_breakers(nc):
    # [breakers]
    changes = await nc.subscribe("llm.kv.breakers.>")  # each change, on plain NATS
    bucket = await nc.jetstream().key_value("llm_breakers")
    watcher = await bucket.watchall()  # what is stored, then each change
    # [end]
    while changes.pending_msgs == 0:
        with pytest.raises(Failed):
            await ask(nc, "failing", HELLO)
    change = await changes.next_msg()
    assert change.subject == "llm.kv.breakers.sim.sim-status-503" and json.loads(change.data)["state"]
    while (entry := await watcher.updates(10)) is None or entry.key != "sim.sim-status-503":
        pass
    await watcher.stop()


async def test_a_kill_switch(nc):
    # [kill_switch]
    flags = await nc.jetstream().key_value("llm_flags")
    await flags.put("feature.switched", b"off @ann a drill")
    while await code_of(nc) != "switched_off":
        pass
    await flags.put("feature.switched", b"on")
    while await code_of(nc) is not None:
        pass
    # [end]


async def code_of(nc):
    try:
        await ask(nc, "switched", HELLO)
    except Failed as failed:
        return failed.code
