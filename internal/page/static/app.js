// The operator's page: what it shows comes whole, once a second.
import { tile } from "./charts.js";
import { Refused, events, request } from "./live.js";
import { chip, el, fill } from "./table.js";
import * as say from "./words.js";
import { ask, confirmed, flipDialog, notice } from "./dialogs.js";

const $ = (id) => document.getElementById(id);
let key = ""; // the admin key, in the memory of this page alone
let stop = new AbortController();
let view = null;

const tiles = {
  rate: tile($("charts"), "Requests a second", [{ kind: "main" }]),
  trouble: tile($("charts"), "Failovers", [{ kind: "second", name: "moved" }, { kind: "bad", name: "failed" }]),
  first: tile($("charts"), "First token, p95", [{ kind: "main" }]),
  total: tile($("charts"), "Whole answer", [{ kind: "main", name: "p50" }, { kind: "second", name: "p95" }]),
  cost: tile($("charts"), "Cost today"),
  jobs: tile($("charts"), "Jobs"),
};

function charts(v) {
  const t = v.traffic, s = t.series, of = (name) => s.map((x) => x[name]);
  const perSecond = (n) => say.number(n) + "/s";
  tiles.rate({ value: perSecond(t.requests_per_second), note: t.missed ? `${t.missed} events missed` : "", bad: t.missed, series: [of("n")], peak: perSecond });
  tiles.trouble({ value: say.share(t.failovers, t.requests), note: `${say.share(t.failed, t.requests)} failed`, bad: t.failed,
    series: [of("failovers"), of("failed")], peak: perSecond });
  tiles.first({ value: say.ms(t.first_token.p95_ms), note: `p50 ${say.ms(t.first_token.p50_ms)}`, series: [of("first_token_p95_ms")], peak: say.ms });
  tiles.total({ value: say.ms(t.total.p50_ms), note: `p95 ${say.ms(t.total.p95_ms)}, p99 ${say.ms(t.total.p99_ms)}`,
    series: [of("total_p50_ms"), of("total_p95_ms")], peak: say.ms });
  tiles.cost({ value: say.dollars(v.cost.today_usd), note: v.cost.counted ? "since midnight UTC" : `of events since ${say.clock(v.cost.since)}` });
  const j = v.jobs;
  tiles.jobs({ value: j.waiting === null ? "unknown" : `${j.waiting} waiting`,
    note: `${j.dead ?? "?"} dead${j.oldest_ms === null ? "" : `, the oldest waits ${say.span(j.oldest_ms)}`}`, bad: j.dead });
}

const onOff = (on, now) => (on ? chip("on", "good") : chip(now ? "off now" : "off", "bad"));

function tables(v) {
  fill($("features"), v.features, (f) => f.name, (f) => [
    f.name, onOff(!f.off), say.number(f.requests_per_second), say.share(f.failed, f.requests), say.share(f.failovers, f.requests), say.ms(f.p95_ms),
    f.targets.map((t) => ({ before: `${t.provider}/${t.model}`, ...(t.off ? chip("off", "bad") : t.state === "closed" ? {} : state(t.state)) })),
    f.off ? { button: "Clear…", label: `Switch ${f.name} on again`, click: () => clear("feature." + f.name) }
      : { button: "Off…", label: `Switch ${f.name} off`, click: () => flip("feature." + f.name) },
  ]);
  fill($("breakers"), v.breakers, (b) => b.key, (b) => [
    say.target(b), state(b.state), b.why || "–", say.span(b.for_ms), say.next(b), b.failures, `${b.workers} of ${b.of}`,
  ]);
  fill($("switches"), v.switches, (s) => s.flag, (s) => [
    s.flag, onOff(s.on, s.now), s.unrecognised ? "the value is neither on nor off" : s.reason || "–", s.by || "–", say.date(s.set),
    { button: "Clear…", label: `Clear ${s.flag}`, click: () => clear(s.flag) },
  ]);
  fill($("workers"), v.workers, (w) => w.name, (w) => [
    w.name, worker(w), `${w.in_flight} of ${w.slots}`, w.requests, w.busy, w.version, w.nats,
  ]);
  fill($("events"), v.events, (e) => (e.request_id ? [e.event, e.feature, e.provider, e.model, e.class, e.code] : [e.time, e.event, e.flag || e.breaker]).join(" "), (e) => [
    say.clock(e.time), chip(e.event, say.kind(e.event)), say.about(e), say.details(e),
  ]);
}

const state = (s) => chip(say.words(s), { closed: "good", open: "bad" }[s] || "warn");

function worker(w) {
  if (w.state === "silent") return chip(`silent for ${say.span(w.heard_ms)}`, "bad");
  if (w.degraded) return chip(`${w.state}, degraded`, "bad");
  if (w.refused && w.refused.length) return chip("configuration refused", "bad");
  return chip(w.state, w.state === "joined" ? "good" : "warn");
}

// announce tells screen readers what changed, and nobody else: the tables show it.
function announce(before, now) {
  const states = (v) => new Map([...v.breakers.map((b) => [say.target(b), say.words(b.state)]), ...v.switches.map((s) => [`switch ${s.flag}`, s.on ? "on" : "off"])]);
  const old = states(before), news = [];
  for (const [what, is] of states(now)) if (old.get(what) !== is && (old.has(what) || is !== "closed")) news.push(`${what} is ${is}`);
  for (const what of old.keys()) if (what.startsWith("switch ") && !states(now).has(what)) news.push(`${what} is cleared`);
  if (news.length) $("announce").textContent = news.slice(0, 5).join("; ");
}

function show(v) {
  charts(v);
  tables(v);
  for (const section of document.querySelectorAll("section[data-part]")) section.classList.toggle("old", v.stale.includes(section.dataset.part));
  for (const wide of document.querySelectorAll(".wide")) { // what scrolls must be within reach of the keyboard
    if (wide.scrollWidth > wide.clientWidth) wide.tabIndex = 0;
    else wide.removeAttribute("tabindex");
  }
  const stale = v.stale.includes("nats") ? ["nats"] : v.stale;
  const list = stale.map((part) => say.stale[part] || part);
  if ($("problems").dataset.shown !== list.join()) {
    $("problems").dataset.shown = list.join();
    $("problems").replaceChildren(...list.map((text) => el("li", "", text)));
  }
  $("server").textContent = v.nats.server || "";
  document.title = (v.breakers.some((b) => b.state !== "closed") || stale.length ? "● " : "") + "llmbus fleet";
  if (view) announce(view, v);
  if (!view || view.jobs.dead !== v.jobs.dead) letters(v.jobs.dead);
  view = v;
}

// letters reads the dead letters, when there are more or fewer.
async function letters(count) {
  try {
    const list = count ? await (await request("/page/dead", key)).json() : [];
    fill($("dead"), list, (d) => `${d.tenant || ""} ${d.feature} ${d.id}`, (d) => [
      d.id, d.feature, { before: d.message, text: d.code, kind: "bad" }, d.tries, say.date(d.died),
      { button: "Replay", label: `Replay job ${d.id}`, click: () => replay({ jobs: [{ id: d.id, feature: d.feature, tenant: d.tenant }] }).catch(trouble) },
    ]);
    $("more-dead").hidden = count <= list.length;
    $("more-dead").textContent = `The first ${list.length} of ${count} are listed.`;
  } catch (err) {
    trouble(err);
  }
}

const act = async (path, body) => (await request(path, key, body)).json();

async function replay(jobs) {
  const done = await act("/page/replay", jobs);
  if (done.failed) throw new Error(`${done.replayed} replayed; ${done.failed} hold no request that could be, and stay.`);
}

const flip = (flag) => flipDialog(view.switchable, flag, (body) => act("/page/switch", body));
const clear = (flag) => confirmed(`Clear ${flag}, so that what it switched is on?`, () => act("/page/switch", { flag, to: "clear" }));
const trouble = (err) => notice(err.message);

$("flip").onclick = () => flip();
$("replay-all").onclick = () => confirmed(`Put all ${view.jobs.dead} dead letters back into the queue?`, () => replay({ all: true }));
$("unlock").onclick = () => (key ? lock() : unlock("With the admin key this page flips switches and replays dead letters."));

// unlock asks for the key and begins the stream anew with it.
function unlock(why) {
  ask(why, async (given) => {
    await (await request("/page/dead", given)).json(); // refused, if it is wrong
    key = given;
    stop.abort();
  });
}

// lock forgets the key.
function lock() {
  key = "";
  stop.abort();
}

function link(is, text) {
  if ($("link").dataset.is === is && $("link").textContent === text) return;
  $("link").dataset.is = is;
  $("link").textContent = text;
}

function greet(hello) {
  document.body.dataset.admin = hello.admin;
  $("readonly").hidden = hello.admin !== "off";
  $("unlock").hidden = hello.admin === "off";
  $("unlock").textContent = hello.admin === "open" ? "Lock" : "Unlock…";
}

// follow shows views for ever, and comes back when the stream breaks.
async function follow() {
  for (let pause = 500; ; pause = Math.min(2 * pause, 10000)) {
    stop = new AbortController();
    try {
      for await (const { event, data } of events(key, stop.signal)) {
        pause = 250;
        if (event === "hello") greet(data);
        else show(data);
        link("live", "live");
      }
    } catch (err) {
      if (err instanceof Refused && err.status === 401) {
        key = "";
        link("lost", "locked");
        unlock("This page is not open to everybody: the admin key is needed to look.");
      } else if (err instanceof Refused) link("lost", err.message);
    }
    if (stop.signal.aborted) continue;
    if ($("link").dataset.is === "live") link("wait", "connection lost: what you see is old");
    for (const section of document.querySelectorAll("section[data-part]")) section.classList.add("old");
    await new Promise((resolve) => { setTimeout(resolve, pause); stop.signal.addEventListener("abort", resolve); });
  }
}

follow();
