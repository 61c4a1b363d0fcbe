// The official JavaScript SDK against the gateway. gateway/sdktest/run starts both.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import OpenAI from 'openai';
import { zodFunction, zodResponseFormat } from 'openai/helpers/zod';
import { z } from 'zod';

const messages = [{ role: 'developer', content: 'Be brief.' }, { role: 'user', content: 'hello' }];
const words = 'This is a simulated answer from a provider that does as its';
const weather = { type: 'function', function: { name: 'weather', parameters: { type: 'object', properties: {} } } };
const Order = z.object({ item: z.string(), count: z.number() });
const slow = 'sim-ok-t600-g50ms';

const client = new OpenAI({ maxRetries: 0 });
const patient = new OpenAI({ maxRetries: 2 });

const stats = async () => (await fetch(process.env.SIM_URL + '/stats')).json();
const calls = async (model) => (await stats()).calls[model] ?? 0;
const cancelled = async () => (await stats()).cancelled[slow] ?? 0;

async function waitFor(what, check, ms) {
  for (const end = Date.now() + ms; !(await check()); await sleep(10)) {
    assert.ok(Date.now() < end, what);
  }
}

const collect = async (stream) => {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks;
};

test('plain', async () => {
  const got = await client.chat.completions.create({
    model: 'chat', messages, max_completion_tokens: 100, temperature: 0.2, top_p: 0.9, stop: ['END'], seed: 7, n: 1,
  });
  assert.equal(got.choices[0].message.content, words);
  assert.equal(got.choices[0].finish_reason, 'stop');
  assert.equal(got.model, 'sim-ok');
  assert.equal(got.usage.completion_tokens, 12);
  assert.equal(got.usage.total_tokens, got.usage.prompt_tokens + 12);
  assert.equal(got.id, 'chatcmpl-' + got._request_id);
});

test('headers', async () => {
  const { response } = await client.chat.completions.create({ model: 'chat', messages, colour: 'red' }).withResponse();
  assert.equal(response.headers.get('x-llmbus-provider'), 'sim');
  assert.equal(response.headers.get('x-llmbus-served-by'), 'model');
  assert.match(response.headers.get('x-llmbus-warnings'), /colour/);
});

test('image', async () => {
  const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=', detail: 'low' } };
  const content = [{ type: 'text', text: 'what is this?' }, image];
  const got = await client.chat.completions.create({ model: 'chat', messages: [{ role: 'user', content }] });
  assert.equal(got.choices[0].message.content, words);
});

test('stream', async () => {
  const chunks = await collect(await client.chat.completions.create({ model: 'chat', messages, stream: true }));
  assert.equal(chunks.map((c) => c.choices[0].delta.content ?? '').join(''), words);
  assert.equal(chunks[0].choices[0].delta.role, 'assistant');
  assert.equal(chunks.at(-1).choices[0].finish_reason, 'stop');
  assert.ok(chunks.every((c) => !c.usage));
});

test('stream with usage', async () => {
  const chunks = await collect(
    await client.chat.completions.create({ model: 'chat', messages, stream: true, stream_options: { include_usage: true } }),
  );
  assert.deepEqual(chunks.at(-1).choices, []);
  assert.equal(chunks.at(-1).usage.completion_tokens, 12);
});

test('tools', async () => {
  const got = await client.chat.completions.create({ model: 'tools', messages, tools: [weather] });
  assert.equal(got.choices[0].finish_reason, 'tool_calls');
  const message = got.choices[0].message;
  assert.equal(message.tool_calls[0].function.name, 'weather');
  const result = { role: 'tool', tool_call_id: message.tool_calls[0].id, content: 'sunny' };
  const after = await client.chat.completions.create({ model: 'chat', messages: [...messages, message, result], tools: [weather] });
  assert.equal(after.choices[0].message.content, words);
});

test('streamed tools', async () => {
  const stream = client.chat.completions.stream({ model: 'tools', messages, tools: [zodFunction({ name: 'weather', parameters: z.object({}) })] });
  const got = await stream.finalChatCompletion();
  assert.equal(got.choices[0].finish_reason, 'tool_calls');
  assert.equal(got.choices[0].message.tool_calls[0].function.name, 'weather');
  assert.deepEqual(got.choices[0].message.tool_calls[0].function.parsed_arguments, {});
});

test('structured', async () => {
  const response_format = zodResponseFormat(Order, 'order');
  const got = await client.chat.completions.parse({ model: 'json', messages, response_format });
  assert.deepEqual(got.choices[0].message.parsed, { item: 'simulated', count: 1 });
  const streamed = await client.chat.completions.stream({ model: 'json', messages, response_format }).finalChatCompletion();
  assert.deepEqual(streamed.choices[0].message.parsed, { item: 'simulated', count: 1 });
});

test('models', async () => {
  const ids = (await collect(client.models.list())).map((m) => m.id);
  assert.ok(ids.includes('chat'));
  assert.equal((await client.models.retrieve('chat')).id, 'chat');
  await assert.rejects(client.models.retrieve('gpt-4.1'), OpenAI.NotFoundError);
});

test('bad requests', async () => {
  await assert.rejects(patient.chat.completions.create({ model: 'chat', messages, n: 2 }), (error) => {
    assert.ok(error instanceof OpenAI.BadRequestError);
    assert.deepEqual([error.status, error.param, error.code, error.type], [400, 'n', 'invalid_request', 'invalid_request_error']);
    assert.ok(error.requestID);
    return true;
  });
  await assert.rejects(patient.chat.completions.create({ model: 'gpt-4.1', messages }), { status: 404, code: 'model_not_found' });
  await assert.rejects(new OpenAI({ apiKey: 'llmbus_wrong' }).chat.completions.create({ model: 'chat', messages }), OpenAI.AuthenticationError);
});

test('worth a retry', async () => {
  const asked = patient.chat.completions.create({ model: 'javascript-down', messages });
  await assert.rejects(asked, { status: 503, code: 'unavailable' });
  assert.equal(await calls('sim-500'), 3);
});

test('not worth a retry', async () => {
  const before = await calls('sim-401');
  await assert.rejects(patient.chat.completions.create({ model: 'misconfigured', messages }), { status: 502, code: 'provider_auth' });
  assert.equal(await calls('sim-401'), before + 1);
  await assert.rejects(patient.chat.completions.create({ model: 'off', messages }), { status: 503, code: 'switched_off' });
});

test('rate limit', async () => {
  const began = Date.now();
  const got = await patient.chat.completions.create({ model: 'javascript-limited', messages });
  assert.equal(got.choices[0].message.content, words);
  assert.ok(Date.now() - began >= 1000);
  assert.equal(await calls('sim-first-1-429-retry-1'), 2);
});

test('deadline', async () => {
  const asked = patient.chat.completions.create({ model: 'slow', messages }, { headers: { 'x-llmbus-timeout-ms': '200' } });
  await assert.rejects(asked, { status: 504, code: 'deadline' });
});

test('broken stream', async () => {
  let text = '';
  const read = async () => {
    for await (const chunk of await client.chat.completions.create({ model: 'cut', messages, stream: true })) {
      text += chunk.choices[0].delta.content ?? '';
    }
  };
  await assert.rejects(read(), { code: 'interrupted' });
  assert.equal(text, 'This is a simulated');
});

test('cancel', async () => {
  const before = await cancelled();
  for await (const _ of await client.chat.completions.create({ model: 'slow', messages, stream: true })) break;
  await waitFor('the stream goes on', async () => (await cancelled()) > before, 1000);
  await assert.rejects(client.chat.completions.create({ model: 'slow', messages }, { timeout: 300 }), OpenAI.APIConnectionTimeoutError);
  await waitFor('the call goes on', async () => (await cancelled()) > before + 1, 1000);
});
