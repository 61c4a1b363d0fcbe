// llmbus over nats.js, in Node and in browsers: what an application may copy. docs/clients.md tells more.
import { createInbox, errors, headers } from "@nats-io/nats-core";

/** The error that a worker answered with. */
export class Failed extends Error {
  constructor(error) {
    super(`${error.code}: ${error.message}`);
    this.code = error.code;
    this.retryAfterMs = error.retry_after_ms ?? 0; // 0 is unknown
  }
}

/** The answer is not whole: a gap, no end, or silence. */
export class Broken extends Error {}

/** Nobody serves. */
export class NoResponders extends Error {}

export const newId = () => crypto.randomUUID();

function head(fields) {
  const h = headers();
  for (const [name, value] of Object.entries(fields)) h.set(name, String(value));
  return h;
}

/** The answer of a reply, or its error. */
function read(message) {
  let reply;
  try {
    reply = message.json();
  } catch {
    throw new Broken("the message is no reply");
  }
  if (reply.error) throw new Failed(reply.error);
  if (!reply.served_by) throw new Broken("the message is no reply");
  return reply;
}

// [ask]
export async function ask(nc, feature, request, timeout = 30_000) {
  const h = head({ "Llm-Request-Id": newId(), "Llm-Timeout-Ms": Math.floor(timeout * 0.9) });
  try {
    return read(await nc.request(`llm.complete.${feature}`, JSON.stringify(request), { timeout, headers: h }));
  } catch (err) {
    if (err instanceof errors.RequestError && err.isNoResponders()) throw new NoResponders();
    if (err instanceof errors.TimeoutError) throw new Broken("no reply");
    throw err;
  }
}
// [end]

// [stream]
/** Calls show with the whole text so far, and returns the answer. The frames come on llm.stream.<id>, or with
 * replyOnly on the reply subject. */
export async function stream(nc, feature, request, show, { id = newId(), timeout = 30_000, silence = 30_000, replyOnly = false } = {}) {
  const inbox = createInbox(), messages = new Queue();
  const places = replyOnly ? [inbox] : [inbox, `llm.stream.${id}`];
  const subscriptions = places.map((place) => nc.subscribe(place, { callback: (err, m) => messages.push(m) })); // listen before you ask
  const h = head({ "Llm-Request-Id": id, "Llm-Timeout-Ms": Math.floor(timeout * 0.9), "Llm-Ping-Ms": Math.floor(silence / 3) });
  const body = { ...request, stream: true, stream_to: replyOnly ? "reply" : "subject" };
  nc.publish(`llm.complete.${feature}`, JSON.stringify(body), { reply: inbox, headers: h });
  try {
    return await follow(messages, replyOnly ? null : inbox, show, silence, Date.now() + timeout);
  } finally {
    subscriptions.forEach((subscription) => subscription.unsubscribe());
  }
}
// [end]

async function follow(messages, inbox, show, silence, end) {
  let text = "", seq = 0, whole = true;
  for (;;) {
    const message = await messages.next(Math.min(silence, end - Date.now()));
    if (message.headers?.code === 503) throw new NoResponders();
    if (message.subject === inbox) { // the whole answer, whatever became of the frames
      const answer = read(message);
      if (!answer.content.startsWith(text)) throw new Broken("frames were lost, and the answer does not go on from them");
      show(answer.content);
      return answer;
    }
    if (message.data.length === 0) throw new Broken("the stream ended without an end");
    const frame = message.json();
    if (frame.seq === 1 && text === "") seq = 0; // another worker has begun
    whole &&= frame.seq === ++seq;
    if (!whole && inbox === null) throw new Broken("frames were lost");
    if (!whole) continue; // show nothing after a gap
    if (frame.type === "start") text = ""; // this attempt replaces what an earlier one has shown
    if (frame.type === "delta") show((text += frame.text));
    if (frame.type === "error") throw new Failed(frame.error);
    if (frame.type === "end" && inbox === null) return { ...frame.response, content: text };
  }
}

/** Messages in order, and silence noticed. */
class Queue {
  #messages = [];
  #wake = () => {};

  push(message) {
    this.#messages.push(message);
    this.#wake();
  }

  async next(ms) {
    if (this.#messages.length === 0) {
      let timer;
      await new Promise((resolve, reject) => {
        this.#wake = resolve;
        timer = setTimeout(() => reject(new Broken("the worker fell silent")), Math.max(0, ms));
      }).finally(() => clearTimeout(timer));
    }
    return this.#messages.shift();
  }
}
