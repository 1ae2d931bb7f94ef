// SPDX-License-Identifier: MIT
// Copyright the detent authors

// Chromium for the tests: one for all of them, a fresh context for each.
import { createRequire } from "node:module";
import { resolve } from "node:path";

/** Packages are in the folder that DETENT_MODULES names, not in the tree. */
const load = createRequire(resolve(process.env.DETENT_MODULES ?? ".", "package.json"));
const { chromium } = load("playwright-core");
export const AXE = load.resolve("axe-core/axe.min.js");

const FLAGS = [
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
];

let browser = null;

/** The same one for all; `quit` ends it. */
export function launch() {
    browser ??= chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: FLAGS });
    return browser;
}

export async function quit() {
    await (await browser)?.close();
}

/**
 * A page that notes what must not happen: errors on the console, exceptions, requests to another
 * host, scripts of others. `expected` are patterns of console lines that a test brings about.
 */
export async function open(browser, base, { scheme = "light", width = 1280, height = 860, expected = [], clock = false } = {}) {
    const context = await browser.newContext({ colorScheme: scheme, viewport: { width, height }, reducedMotion: "reduce" });
    const page = await context.newPage();
    const wrong = [];
    if (clock) await page.clock.install();
    page.on("pageerror", (error) => wrong.push("exception: " + error.message));
    page.on("console", (message) => {
        if (message.type() !== "error" && message.type() !== "warning") return;
        if (!expected.some((pattern) => pattern.test(message.text()))) wrong.push("console: " + message.text());
    });
    page.on("request", (request) => {
        const { origin, protocol } = new URL(request.url());
        if (origin !== base && protocol !== "data:" && protocol !== "blob:") wrong.push("request: " + request.url());
    });
    return { page, wrong, close: () => context.close() };
}
