// How numbers, times and states are said.

export const number = (n) => (n >= 100 ? Math.round(n).toString() : n >= 10 ? n.toFixed(1).replace(/\.0$/, "") : n.toFixed(1));
export const share = (part, all) => (all ? `${((100 * part) / all).toFixed(1)} %` : "–");
export const ms = (n) => (n === null || n === undefined ? "–" : n < 1000 ? `${Math.round(n)} ms` : `${(n / 1000).toFixed(n < 10000 ? 1 : 0)} s`);
export const dollars = (n) => "$" + (n >= 100 ? n.toFixed(0) : n >= 1 || n === 0 ? n.toFixed(2) : n.toFixed(4));
export const words = (s) => s.replaceAll("_", "-");

export function span(n) {
  const s = Math.round(n / 1000);
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

export const clock = (t) => new Date(t).toLocaleTimeString([], { hour12: false });
export const date = (t) => new Date(t).toLocaleString([], { dateStyle: "short", timeStyle: "short", hour12: false });

export const target = (b) => (b.model ? `${b.provider}/${b.model}` : b.provider);

export function next(b) {
  if (b.state === "closed") return "now";
  return b.retry_ms ? `in ${(b.retry_ms / 1000).toFixed(b.retry_ms < 60000 ? 1 : 0)} s` : "at the next request";
}

export const about = (e) => e.flag || [e.feature, e.provider && target(e)].filter(Boolean).join(" ") || e.breaker || "";

export function details(e) {
  const list = [];
  if (e.on !== undefined) list.push(e.on ? "on" : e.now ? "off now" : "off");
  if (e.code) list.push(e.code);
  if (e.class && e.class !== e.code && e.class !== "ok") list.push(e.class);
  if (e.limit) list.push(e.limit);
  if (e.why) list.push(e.why);
  if (e.cool_down_ms && e.event === "circuit_opened") list.push(`next probe in ${span(e.cool_down_ms)}`);
  if (e.ms) list.push(ms(e.ms));
  if (e.attempts > 1) list.push(`${e.attempts} attempts`);
  if (e.by) list.push(`by ${e.by}`);
  if (e.reason) list.push(`“${e.reason}”`);
  if (e.times > 1) list.push(`${e.times} times`);
  if (e.workers) list.push(`${e.workers} ${e.workers === 1 ? "worker" : "workers"}`);
  return list.join(", ");
}

export function kind(event) {
  if (/_(failed|exhausted|opened|interrupted)$/.test(event)) return "bad";
  if (/^(failover|limit)_|_(half_open|flipped)$/.test(event)) return "warn";
  return /_(closed|succeeded)$/.test(event) ? "good" : "";
}

export const stale = {
  nats: "NATS is out of reach: everything below is old.",
  workers: "No worker answers.",
  breakers: "Stored breakers cannot be followed: what you see is the workers' own words.",
  switches: "Switches cannot be followed.",
  events: "Events may not be heard, so that traffic is unknown: log in to NATS as an operator.",
  jobs: "Jobs cannot be counted.",
};
