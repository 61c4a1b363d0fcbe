"""The official Python SDK against the gateway. gateway/sdktest/run starts both."""

import asyncio
import json
import os
import time
import unittest
import urllib.request

import openai
import pydantic

HELLO = [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": "hello"}]
WORDS = "This is a simulated answer from a provider that does as its"
WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {"type": "object", "properties": {}, "additionalProperties": False},
        "strict": True,
    },
}


class Order(pydantic.BaseModel):
    item: str
    count: int


def stats():
    with urllib.request.urlopen(os.environ["SIM_URL"] + "/stats") as answer:
        return json.load(answer)


def calls(model):
    return stats()["calls"].get(model, 0)


def wait_for(what, check, seconds=5.0):
    end = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < end, what
        time.sleep(0.01)


class Answers(unittest.TestCase):
    def setUp(self):
        self.client = openai.OpenAI(max_retries=0)
        self.addCleanup(self.client.close)

    def test_plain(self):
        got = self.client.chat.completions.create(
            model="chat", messages=HELLO, max_completion_tokens=100, temperature=0.2, top_p=0.9, stop=["END"], seed=7, n=1
        )
        self.assertEqual(got.choices[0].message.content, WORDS)
        self.assertEqual(got.choices[0].message.role, "assistant")
        self.assertEqual(got.choices[0].finish_reason, "stop")
        self.assertEqual(got.model, "sim-ok")
        self.assertEqual(got.object, "chat.completion")
        self.assertTrue(got.id.startswith("chatcmpl-"))
        self.assertAlmostEqual(got.created, time.time(), delta=60)
        self.assertEqual(got.usage.completion_tokens, 12)
        self.assertEqual(got.usage.total_tokens, got.usage.prompt_tokens + 12)
        self.assertEqual(got.id, "chatcmpl-" + got._request_id)

    def test_headers(self):
        raw = self.client.chat.completions.with_raw_response.create(model="chat", messages=HELLO, extra_body={"colour": "red"})
        self.assertEqual(raw.headers["x-llmbus-provider"], "sim")
        self.assertEqual(raw.headers["x-llmbus-served-by"], "model")
        self.assertIn("colour", raw.headers["x-llmbus-warnings"])

    def test_image(self):
        part = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo=", "detail": "low"}}
        messages = [{"role": "user", "content": [{"type": "text", "text": "what is this?"}, part]}]
        self.assertEqual(self.client.chat.completions.create(model="chat", messages=messages).choices[0].message.content, WORDS)

    def test_stream(self):
        chunks = list(self.client.chat.completions.create(model="chat", messages=HELLO, stream=True))
        self.assertEqual("".join(c.choices[0].delta.content or "" for c in chunks), WORDS)
        self.assertEqual(chunks[0].choices[0].delta.role, "assistant")
        self.assertEqual([c.choices[0].finish_reason for c in chunks if c.choices[0].finish_reason], ["stop"])
        self.assertTrue(all(c.usage is None for c in chunks))
        self.assertEqual(len({c.id for c in chunks}), 1)

    def test_stream_with_usage(self):
        stream = self.client.chat.completions.create(
            model="chat", messages=HELLO, stream=True, stream_options={"include_usage": True}
        )
        chunks = list(stream)
        self.assertEqual(chunks[-1].choices, [])
        self.assertEqual(chunks[-1].usage.completion_tokens, 12)
        self.assertTrue(all(c.usage is None for c in chunks[:-1]))

    def test_tools(self):
        messages = list(HELLO)
        got = self.client.chat.completions.create(model="tools", messages=messages, tools=[WEATHER], tool_choice="auto")
        self.assertEqual(got.choices[0].finish_reason, "tool_calls")
        call = got.choices[0].message.tool_calls[0]
        self.assertEqual((call.function.name, call.function.arguments), ("weather", "{}"))
        messages += [got.choices[0].message, {"role": "tool", "tool_call_id": call.id, "content": "sunny"}]
        got = self.client.chat.completions.create(model="chat", messages=messages, tools=[WEATHER])
        self.assertEqual(got.choices[0].message.content, WORDS)

    def test_streamed_tools(self):
        with self.client.chat.completions.stream(model="tools", messages=HELLO, tools=[WEATHER], parallel_tool_calls=False) as stream:
            kinds = [event.type for event in stream]
            got = stream.get_final_completion()
        self.assertIn("tool_calls.function.arguments.done", kinds)
        self.assertEqual(got.choices[0].message.tool_calls[0].function.name, "weather")
        self.assertEqual(got.choices[0].finish_reason, "tool_calls")

    def test_structured(self):
        got = self.client.chat.completions.parse(model="json", messages=HELLO, response_format=Order)
        self.assertEqual(got.choices[0].message.parsed, Order(item="simulated", count=1))
        with self.client.chat.completions.stream(model="json", messages=HELLO, response_format=Order) as stream:
            got = stream.get_final_completion()
        self.assertEqual(got.choices[0].message.parsed, Order(item="simulated", count=1))
        got = self.client.chat.completions.create(model="json", messages=HELLO, response_format={"type": "json_object"})
        self.assertIsInstance(json.loads(got.choices[0].message.content), dict)

    def test_models(self):
        self.assertIn("chat", [m.id for m in self.client.models.list()])
        self.assertEqual(self.client.models.retrieve("chat").id, "chat")
        with self.assertRaises(openai.NotFoundError):
            self.client.models.retrieve("gpt-4.1")

    def test_async(self):
        async def ask():
            async with openai.AsyncOpenAI(max_retries=0) as client:
                one = client.chat.completions.create(model="chat", messages=HELLO)
                other = client.chat.completions.create(model="chat", messages=HELLO, stream=True)
                whole, stream = await asyncio.gather(one, other)
                return whole.choices[0].message.content, "".join([c.choices[0].delta.content or "" async for c in stream])

        self.assertEqual(asyncio.run(ask()), (WORDS, WORDS))


class Errors(unittest.TestCase):
    def setUp(self):
        self.client = openai.OpenAI(max_retries=2)
        self.addCleanup(self.client.close)

    def fails(self, error, model, **more):
        with self.assertRaises(error) as caught:
            self.client.chat.completions.create(model=model, messages=HELLO, **more)
        self.assertIsNotNone(caught.exception.request_id)
        return caught.exception

    def test_bad_requests(self):
        error = self.fails(openai.BadRequestError, "chat", n=2)
        self.assertEqual((error.param, error.code, error.type), ("n", "invalid_request", "invalid_request_error"))
        error = self.fails(openai.NotFoundError, "gpt-4.1")
        self.assertEqual((error.param, error.code), ("model", "model_not_found"))

    def test_wrong_key(self):
        with openai.OpenAI(api_key="llmbus_wrong") as client, self.assertRaises(openai.AuthenticationError) as caught:
            client.chat.completions.create(model="chat", messages=HELLO)
        self.assertEqual(caught.exception.code, "invalid_api_key")

    def test_worth_a_retry(self):
        error = self.fails(openai.InternalServerError, "python-down")
        self.assertEqual((error.status_code, error.code), (503, "unavailable"))
        self.assertEqual(calls("sim-503"), 3)

    def test_not_worth_a_retry(self):
        before = calls("sim-401"), calls("sim-400")
        self.assertEqual(self.fails(openai.InternalServerError, "misconfigured").code, "provider_auth")
        self.fails(openai.BadRequestError, "refused")
        self.assertEqual((calls("sim-401"), calls("sim-400")), (before[0] + 1, before[1] + 1))
        self.assertEqual(self.fails(openai.InternalServerError, "off").code, "switched_off")

    def test_rate_limit(self):
        began = time.monotonic()
        got = self.client.chat.completions.create(model="python-limited", messages=HELLO)
        self.assertEqual(got.choices[0].message.content, WORDS)
        self.assertGreaterEqual(time.monotonic() - began, 1)
        self.assertEqual(calls("sim-once-429-retry-1"), 2)

    def test_deadline(self):
        error = self.fails(openai.InternalServerError, "slow", extra_headers={"x-llmbus-timeout-ms": "200"})
        self.assertEqual((error.status_code, error.code), (504, "deadline"))

    def test_broken_stream(self):
        text = ""
        with self.assertRaises(openai.APIError) as caught:
            for chunk in self.client.chat.completions.create(model="cut", messages=HELLO, stream=True):
                text += chunk.choices[0].delta.content or ""
        self.assertEqual(text, "This is a simulated")
        self.assertEqual(caught.exception.code, "interrupted")

    def test_cancel(self):
        before = stats()["cancelled"].get("sim-ok-t600-g50ms", 0)
        with self.client.chat.completions.create(model="slow", messages=HELLO, stream=True) as stream:
            next(iter(stream))
        wait_for("the call goes on", lambda: stats()["cancelled"].get("sim-ok-t600-g50ms", 0) > before, 1)

    def test_timeout(self):
        before = stats()["cancelled"].get("sim-ok-t600-g50ms", 0)
        with self.assertRaises(openai.APITimeoutError):
            self.client.with_options(timeout=0.3, max_retries=0).chat.completions.create(model="slow", messages=HELLO)
        wait_for("the call goes on", lambda: stats()["cancelled"].get("sim-ok-t600-g50ms", 0) > before, 1)


if __name__ == "__main__":
    unittest.main()
