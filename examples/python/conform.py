"""Lets the conformance kit judge llmbus.py; docs/conformance.md says how."""
import asyncio
import json
import os

import nats
from nats.errors import NoRespondersError

from llmbus import Broken, Failed, ask, new_id, stream


async def carry_out(nc, task):
    timeout, request, shown, id = task.get("timeout_ms", 0) / 1000, {"prompt": task.get("prompt")}, [], new_id()

    def show(text):
        shown.append(text)
        if len(shown) == task.get("cancel_after"):
            asyncio.ensure_future(nc.publish(f"llm.cancel.{id}"))

    try:
        if task["do"] == "complete":
            answer = await ask(nc, task["feature"], request, timeout)
        elif task["do"] in ("stream", "stream_reply"):
            answer = await stream(nc, task["feature"], request, show, id, timeout, task["silence_ms"] / 1000, task["do"] == "stream_reply")
        else:
            return {"outcome": "unsupported"}
        return {"outcome": "answer", "text": answer["content"]}
    except Failed as failed:
        return {"outcome": "error", "code": failed.code, "retry_after_ms": int(failed.retry_after * 1000), "text": shown[-1] if shown else ""}
    except NoRespondersError:
        return {"outcome": "no_responders"}
    except (Broken, TimeoutError):
        return {"outcome": "broken", "text": shown[-1] if shown else ""}


async def main():
    nc = await nats.connect(os.environ["NATS_URL"])
    tasks = await nc.subscribe("conformance.client")
    async for message in tasks.messages:
        task = json.loads(message.data)
        if task["do"] == "end":
            break
        await message.respond(json.dumps(await carry_out(nc, task)).encode())
    await nc.close()


asyncio.run(main())
