// SPDX-License-Identifier: MIT
// Copyright the detent authors

// Pictures of every screen, to be looked at: node shots.mjs DIST OUTDIR [WIDTH]
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { launch, open } from "./browser.mjs";
import { Mock } from "./mock.mjs";
import { SCREENS } from "./screens.mjs";

const [dist, out, width = "1280"] = process.argv.slice(2);
const mock = new Mock(dist, { pace_ms: 150 });
const base = await mock.start();
const browser = await launch();
mkdirSync(out, { recursive: true });
for (const scheme of ["light", "dark"]) {
    mock.codes.add("shots");
    const { page, wrong, close } = await open(browser, base, { scheme, width: Number(width) });
    await page.goto(base + "/#code=shots");
    await page.waitForSelector(".live");
    await page.waitForTimeout(1500);
    for (const { name, path, ready, act, after } of SCREENS) {
        await page.evaluate((to) => (history.pushState(null, "", to), dispatchEvent(new PopStateEvent("popstate"))), path());
        await page.waitForSelector(ready);
        await act?.(page);
        await page.waitForTimeout(400);
        await page.screenshot({ path: join(out, `${name}-${scheme}-${width}.png`), fullPage: true });
        await after?.(page);
    }
    if (wrong.length) console.log(scheme, wrong);
    await close();
}
await browser.close();
await mock.kill();
