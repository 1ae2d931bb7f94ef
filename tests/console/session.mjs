// SPDX-License-Identifier: MIT
// Copyright the detent authors

// A test against the mock: a page that is signed in, on which nothing may go wrong.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { launch, open } from "./browser.mjs";
import { Mock } from "./mock.mjs";

const DIST = process.env.DETENT_DIST ?? "dist";
const SHOTS = process.env.DETENT_SHOTS ?? "shots";
const SIZE = { width: 1280, height: 860 };

/** The page of all tests that need no clock of their own; each has another origin. */
let shared = null;

async function opening(base, { clock = false, expected = [] }) {
    const browser = await launch();
    if (clock) return open(browser, base, { clock, expected });
    shared ??= await open(browser, base, SIZE);
    return Object.assign(shared, { base, expected });
}

/** A mock, a page that is signed in, and the promise that nothing went wrong when it ends. */
export async function session(body, { mock: options = {}, path = "/", signedIn = true, prepare, ...page } = {}) {
    const mock = new Mock(DIST, options);
    prepare?.(mock);
    const opened = await opening(await mock.start(), page);
    try {
        await opened.page.goto(opened.base + path + (signedIn ? "#code=first" : ""));
        if (signedIn) await opened.page.waitForSelector(".connection.live");
        await body({ mock, ...opened });
        assert.deepEqual(opened.wrong, []);
    } finally {
        opened.wrong.length = 0;
        await opened.page.evaluate(() => sessionStorage.clear()).catch(() => undefined);
        await opened.page.setViewportSize(SIZE);
        await (opened === shared ? opened.page.goto("about:blank") : opened.close());
        await mock.kill();
    }
}

/** A picture of what the daemon rarely shows. */
export function shoot(page, name) {
    mkdirSync(SHOTS, { recursive: true });
    return page.screenshot({ path: join(SHOTS, `${name}.png`) });
}
