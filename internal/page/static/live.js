// The stream of views. It is read by fetch and not by EventSource, since the
// admin key goes in a header, which EventSource cannot send.

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export async function request(path, key, body) {
  const headers = {};
  if (key) headers.Authorization = "Bearer " + key;
  if (body) headers["Content-Type"] = "application/json";
  const answer = await fetch(path, { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body), cache: "no-store" });
  if (answer.ok) return answer;
  const said = await answer.json().catch(() => ({}));
  throw new Refused(answer.status, said.error || `the server answered with status ${answer.status}`);
}

// events yields {event, data} until the stream ends. A stream that says nothing
// for ten seconds is dead: there is a view every second.
export async function* events(key, stop) {
  const answer = await request("/page/events", key);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  stop.addEventListener("abort", () => reader.cancel().catch(() => {}));
  let text = "";
  try {
    for (;;) {
      let late;
      const silence = new Promise((_, reject) => { late = setTimeout(() => reject(new Error("silence")), 10000); });
      const { value, done } = await Promise.race([reader.read(), silence]).finally(() => clearTimeout(late));
      if (done) return;
      text += value;
      const parts = text.split("\n\n");
      text = parts.pop();
      for (const part of parts) {
        const m = /^event: (\w+)\ndata: (.*)$/.exec(part);
        if (m) yield { event: m[1], data: JSON.parse(m[2]) };
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
