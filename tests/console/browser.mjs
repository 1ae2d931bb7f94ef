// SPDX-License-Identifier: MIT
// Copyright the detent authors

// Chromium for the tests: one for all of them, a fresh context for each.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { availableParallelism } from "node:os";
import { resolve } from "node:path";

/** Packages are in the folder that DETENT_MODULES names, not in the tree. */
const packages = createRequire(resolve(process.env.DETENT_MODULES ?? ".", "package.json"));
const { chromium } = packages("playwright-core");
const AXE = readFileSync(packages.resolve("axe-core/axe.min.js"), "utf8");

const FLAGS = [
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
];

let browser = null;

/** The same one for all; `quit` ends it. */
export function launch() {
    browser ??= chromium.launch({
        executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: FLAGS, timeout: 600_000,
    });
    return browser;
}

export async function quit() {
    await (await browser)?.close();
}

/**
 * A page that notes what must not happen: errors on the console, exceptions, requests to another
 * host, scripts of others. `expected` are patterns of console lines that a test brings about. Both
 * that and `base`, where it may ask, can be changed on the way.
 */
export async function open(browser, base, { width = 1280, height = 860, expected = [], clock = false } = {}) {
    const context = await browser.newContext({ colorScheme: "light", viewport: { width, height }, reducedMotion: "reduce" });
    const page = await context.newPage();
    const opened = { page, base, expected, wrong: [], close: () => context.close() };
    /** The browser asks for the icon of a page on its own, maybe only when that page has been left. */
    const isLateIcon = (url) => url.endsWith("/favicon.svg") && new URL(url).origin !== opened.base;
    page.setDefaultTimeout(120000);
    if (clock) await page.clock.install();
    page.on("pageerror", (error) => opened.wrong.push("exception: " + error.message));
    page.on("console", (message) => {
        if (message.type() !== "error" && message.type() !== "warning") return;
        if (isLateIcon(message.location().url) || message.text().includes("/favicon.svg' from origin 'null'")) return;
        if (!opened.expected.some((pattern) => pattern.test(message.text()))) opened.wrong.push("console: " + message.text());
    });
    page.on("request", (request) => {
        const { origin, protocol } = new URL(request.url());
        if (isLateIcon(request.url())) return;
        if (origin !== opened.base && protocol !== "data:" && protocol !== "blob:") opened.wrong.push("request: " + request.url());
    });
    return opened;
}

/** How many programs are ready to run for each processor, now; at least 1. As patience.py has it. */
export function load() {
    const [ready] = readFileSync("/proc/loadavg", "utf8").split(" ")[3].split("/");
    return Math.max(1, (Number(ready) - 1) / availableParallelism());
}

/** Goes to a place of the console as a link in it would. */
export function go(page, path) {
    return page.evaluate((to) => (history.pushState(null, "", to), dispatchEvent(new PopStateEvent("popstate"))), path);
}

/** Waits for something of this process, which has no event for it. */
export async function until(holds) {
    for (let i = 0; i < 12000; i++) {
        if (holds()) return;
        await new Promise((resolve) => setTimeout(resolve, 10));
    }
    throw new Error("it did not come to hold: " + holds);
}

/** What axe finds, of what hurts; by DevTools and not by a script tag, which the policy forbids. */
export async function violations(page, rules = null) {
    const runOnly = rules ? `, runOnly: ${JSON.stringify(rules)}` : "";
    if (!(await page.evaluate("typeof axe !== 'undefined'"))) await page.evaluate(AXE);
    const found = await page.evaluate(`axe.run(document, { resultTypes: ["violations"], iframes: false${runOnly} })`);
    return found.violations
        .filter(({ impact }) => impact === "serious" || impact === "critical")
        .map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map((n) => `${n.target.join(" ")} ${n.any[0]?.message ?? ""}`).join(" | ")}`);
}
