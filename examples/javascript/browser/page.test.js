// Opens the page in headless Chromium and hears from it what it showed.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { build } from "esbuild";

const here = import.meta.dirname;

test("a page asks over WebSocket", { timeout: 60_000 }, async () => {
  const bundle = await build({ entryPoints: [join(here, "page.js")], bundle: true, format: "esm", write: false });
  let seen;
  const told = new Promise((resolve) => (seen = resolve));
  const server = createServer(async (req, res) => {
    if (req.url === "/seen") {
      let body = "";
      for await (const piece of req) body += piece;
      seen(JSON.parse(body));
      return res.end();
    }
    const script = req.url === "/page.js";
    res.setHeader("Content-Type", script ? "text/javascript" : "text/html");
    res.end(script ? bundle.outputFiles[0].text : await readFile(join(here, "index.html")));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const profile = mkdtempSync(join(tmpdir(), "llmbus-page-"));
  const page = `http://127.0.0.1:${server.address().port}/?nats=${encodeURIComponent(process.env.NATS_WS_URL)}`;
  const browser = spawn("chromium", ["--headless=new", "--no-sandbox", "--disable-gpu", `--user-data-dir=${profile}`, page], { stdio: "ignore" });
  try {
    const what = await told;
    assert.ok(what.text.length > 10);
    assert.equal(what.text, what.content);
    assert.equal(what.code, "rate_limited");
  } finally {
    browser.kill();
    await new Promise((resolve) => browser.once("exit", resolve));
    server.closeAllConnections();
    server.close();
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
  }
});
