// A browser that tells of everything that goes wrong in a page.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { chromium } from "playwright-core";

const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export const launch = () => chromium.launch({
  executablePath: process.env.CHROMIUM,
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});

// open shows a page in a profile of its own. faults is what it complained of.
export async function open(browser, url, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, colorScheme: "light", locale: "en-GB", timezoneId: "UTC", ...options });
  const page = await context.newPage();
  const faults = [];
  page.on("console", (m) => { if (["error", "warning"].includes(m.type())) faults.push(m.text()); });
  page.on("pageerror", (err) => faults.push(err.message));
  page.on("request", (r) => { if (!r.url().startsWith(new URL(url).origin)) faults.push("asked elsewhere: " + r.url()); });
  await page.addInitScript(() => {
    window.violations = [];
    document.addEventListener("securitypolicyviolation", (e) => window.violations.push(`${e.violatedDirective}: ${e.blockedURI}`));
  });
  await page.goto(url);
  await page.locator("#link[data-is=live]").waitFor();
  return { page, context, faults };
}

// axe returns what its rules find wrong, with where.
export async function axe(page) {
  await page.evaluate(axeSource);
  const { violations } = await page.evaluate(() => window.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }));
  return violations.map((v) => `${v.id}: ${v.help}: ${v.nodes.slice(0, 5).map((n) => n.target.join(" ")).join(", ")}`);
}
