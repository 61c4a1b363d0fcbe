"""Features as agents, through the SDK of the Synadia Agent Protocol. NATS_URL comes from examples/run."""
import asyncio
import os

import nats
import pytest
import pytest_asyncio
from synadia_ai.agents import Agents, Attachment, AttachmentsNotSupportedError, DiscoverFilter, ProtocolError, ResponseChunk, StatusChunk


@pytest_asyncio.fixture
async def agents():
    nc = await nats.connect(os.environ["NATS_URL"])
    agents = Agents(nc=nc)
    yield agents
    await agents.close()
    await nc.close()


async def find(agents, feature):
    found = await agents.discover(filter=DiscoverFilter(agent="llmbus", owner="examples", session_name=feature))
    return found[0]


async def test_discover(agents):
    found = await agents.discover()
    assert {(a.agent, a.owner) for a in found} == {("llmbus", "examples")}
    assert {a.session_name for a in found} == {"support", "slow", "limited", "failing", "switched"}
    assert len(found) == 15  # three workers


async def test_prompt(agents):
    # [prompt]
    agent = await find(agents, "support")
    text, statuses = "", []
    async for message in agent.prompt("hello"):
        match message:
            case ResponseChunk():
                text += message.text
            case StatusChunk():
                statuses.append(message.status)
    # [end]
    assert text.startswith("This is a simulated answer") and statuses[0] == "ack"


async def test_an_error(agents):
    agent = await find(agents, "limited")
    with pytest.raises(ProtocolError, match="429: rate_limited"):
        async for _ in agent.prompt("hello"):
            pass


async def test_leave_early(agents):
    agent = await find(agents, "slow")
    async for message in agent.prompt("a long story"):
        if isinstance(message, ResponseChunk):
            break


async def test_status_and_heartbeats(agents):
    agent = await find(agents, "support")
    status = await agent.status()
    assert (status.agent, status.owner, status.session) == ("llmbus", "examples", "support")
    assert status.endpoints["prompt"].subject == agent.prompt_endpoint.subject
    seen = asyncio.get_running_loop().create_future()
    agents.on_heartbeat(agent.instance_id, lambda beat: seen.done() or seen.set_result(beat))
    beat = await asyncio.wait_for(seen, 15)
    assert beat.interval_s == 10 and agents.liveness(agent.instance_id).is_online


async def test_attachments_are_not_taken(agents):
    agent = await find(agents, "support")
    with pytest.raises(AttachmentsNotSupportedError):
        async for _ in agent.prompt("hello", attachments=[Attachment.from_bytes("a.txt", b"a")]):
            pass
