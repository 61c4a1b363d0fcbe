"""llmbus over nats-py: what an application may copy. docs/clients.md tells more."""
import asyncio
import json
import uuid

from nats.errors import NoRespondersError


class Failed(Exception):
    """The error that a worker answered with."""

    def __init__(self, error):
        super().__init__(f"{error['code']}: {error['message']}")
        self.code = error["code"]
        self.retry_after = error.get("retry_after_ms", 0) / 1000  # seconds; 0 is unknown


class Broken(Exception):
    """The answer is not whole: a gap, no end, or silence."""


def new_id():
    return uuid.uuid4().hex


def read(message):
    """The answer of a reply, or its error."""
    try:
        reply = json.loads(message.data)
    except ValueError:
        raise Broken("the message is no reply")
    if "error" in reply:
        raise Failed(reply["error"])
    if "served_by" not in reply:
        raise Broken("the message is no reply")
    return reply


# [ask]
async def ask(nc, feature, request, timeout=30):
    headers = {"Llm-Request-Id": new_id(), "Llm-Timeout-Ms": str(int(timeout * 900))}
    message = await nc.request(f"llm.complete.{feature}", json.dumps(request).encode(), timeout, headers=headers)
    return read(message)
# [end]


# [stream]
async def stream(nc, feature, request, show, id=None, timeout=30, silence=30, reply_only=False):
    """Calls show with the whole text so far, and returns the answer. The frames come on llm.stream.<id>,
    or with reply_only on the reply subject."""
    id, inbox = id or new_id(), nc.new_inbox()
    messages = asyncio.Queue()
    places = [inbox] if reply_only else [inbox, f"llm.stream.{id}"]
    subscriptions = [await nc.subscribe(place, cb=messages.put) for place in places]  # listen before you ask
    try:
        request = {**request, "stream": True, "stream_to": "reply" if reply_only else "subject"}
        headers = {"Llm-Request-Id": id, "Llm-Timeout-Ms": str(int(timeout * 900)), "Llm-Ping-Ms": str(int(silence * 333))}
        await nc.publish(f"llm.complete.{feature}", json.dumps(request).encode(), reply=inbox, headers=headers)
        async with asyncio.timeout(timeout):
            return await _follow(messages, inbox if not reply_only else None, show, silence)
    except TimeoutError:
        raise Broken("the worker fell silent")
    finally:
        for subscription in subscriptions:
            await subscription.unsubscribe()
# [end]


async def _follow(messages, inbox, show, silence):
    text, seq, whole = "", 0, True
    while True:
        message = await asyncio.wait_for(messages.get(), silence)
        if (message.headers or {}).get("Status") == "503":
            raise NoRespondersError
        if message.subject == inbox:  # the whole answer, whatever became of the frames
            answer = read(message)
            if not answer["content"].startswith(text):
                raise Broken("frames were lost, and the answer does not go on from them")
            show(answer["content"])
            return answer
        if not message.data:
            raise Broken("the stream ended without an end")
        frame = json.loads(message.data)
        if frame["seq"] == 1 and not text:
            seq = 0  # another worker has begun
        seq += 1
        whole = whole and frame["seq"] == seq
        if not whole:  # show nothing after a gap
            if inbox is None:
                raise Broken("frames were lost")
            continue
        match frame["type"]:
            case "start":
                text = ""  # this attempt replaces what an earlier one has shown
            case "delta":
                text += frame["text"]
                show(text)
            case "error":
                raise Failed(frame["error"])
            case "end" if inbox is None:
                return {**frame["response"], "content": text}
