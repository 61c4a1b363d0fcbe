// A broker, a simulated provider and traffic, as separate processes.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, writeFileSync } from "node:fs";
import net from "node:net";
import { join } from "node:path";

export const KEY = "browsertest-0123456789";

// start runs a process until stop, and waits for a line of its output.
async function start(args, env, pattern) {
  const child = spawn(process.env.BROKER, args, { env: { PATH: process.env.PATH, HOME: process.env.WORK, ...env }, stdio: ["ignore", "pipe", "pipe"] });
  let text = "";
  const found = await new Promise((resolve, reject) => {
    for (const out of [child.stdout, child.stderr]) {
      out.on("data", (d) => {
        text += d;
        const m = pattern.exec(text);
        if (m) resolve(m);
      });
    }
    child.on("exit", (code) => reject(new Error(`broker ${args.join(" ")} ended with ${code}:\n${text}`)));
  });
  child.removeAllListeners("exit");
  const ended = once(child, "exit");
  return { found, stop: async () => { child.kill("SIGTERM"); await ended; } };
}

const config = (url) => `
breaker: {threshold: 3, window: 10s, cool_down: 5s}
providers:
  primary: {kind: openai, base_url: ${url}, api_key_env: FAKE, models: {model-a: {price: {input: 1, output: 4}}}}
  backup: {kind: anthropic, base_url: ${url}, api_key_env: FAKE}
features:
  support: {timeout: 5s, targets: [{provider: primary, model: model-a, timeout: 2s}, {provider: backup, model: model-b}]}
  chat: {timeout: 5s, targets: [{provider: backup, model: model-b}]}
`;

export async function fleet() {
  const work = mkdtempSync(join(process.env.WORK, "fleet-"));
  const sim = await start(["provider-sim", "--listen", "127.0.0.1:0"], {}, /http:\/\/127\.0\.0\.1:\d+/);
  writeFileSync(join(work, "broker.yaml"), config(sim.found[0]));
  const f = { sim: sim.found[0], http: "127.0.0.1:0", nats: "127.0.0.1:0" };
  f.up = async () => {
    f.broker = await start(["serve", "--http", f.http], {
      FAKE: "x", LLMBUS_LISTEN: f.nats, LLMBUS_STORE_DIR: join(work, "store"), LLMBUS_CONFIG: join(work, "broker.yaml"), LLMBUS_ADMIN_KEY: KEY, LLMBUS_WORKER_NAME: "blue",
    }, /nats:\/\/(\S+)[^]*page +http:\/\/(\S+)\/[^]*--timeout 30s/);
    [, f.nats, f.http] = f.broker.found;
    f.url = `http://${f.http}/`;
  };
  await f.up();
  f.control = (rule) => fetch(f.sim + "/control", rule ? { method: "POST", body: JSON.stringify(rule) } : { method: "DELETE" });
  f.calls = async () => (await (await fetch(f.sim + "/stats")).json()).calls;
  f.ask = async (model = "support", stream = false) => {
    const answer = await fetch(f.url + "v1/chat/completions", { method: "POST", headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ model, stream, messages: [{ role: "user", content: "hello" }] }) });
    return { status: answer.status, text: await answer.text() };
  };
  f.publish = (subject, data) => publish(f.nats, subject, data);
  f.stop = async () => { await f.broker.stop(); await sim.stop(); };
  return f;
}

// traffic asks again and again, until it is stopped or the test ends.
export function traffic(t, f, every = 40) {
  let on = true;
  t.after(() => { on = false; });
  const done = (async () => {
    for (let i = 0; on; i++) {
      await f.ask(i % 3 ? "support" : "chat", i % 2 === 0).catch(() => {});
      await new Promise((resolve) => setTimeout(resolve, every));
    }
  })();
  return async () => { on = false; await done; };
}

// publish speaks just enough of NATS.
async function publish(address, subject, data) {
  const [host, port] = address.split(":");
  const socket = net.connect(Number(port), host);
  socket.write(`CONNECT {"verbose":false}\r\nPUB ${subject} ${Buffer.byteLength(data)}\r\n${data}\r\nPING\r\n`);
  for await (const chunk of socket) if (String(chunk).includes("PONG")) break;
  socket.destroy();
}
