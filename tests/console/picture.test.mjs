// SPDX-License-Identifier: MIT
// Copyright the detent authors

// The picture of README.md: the console on the project of `detent new order`, while the bank is closed.
// docs/images/console.txt names what the committed picture shows; scripts/pictures makes both anew.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after, before } from "node:test";
import { launch, open } from "./browser.mjs";
import { Daemon } from "./driver.mjs";

const SHOTS = process.env.DETENT_SHOTS ?? "shots";
const IMAGES = join(import.meta.dirname ?? new URL(".", import.meta.url).pathname, "../../docs/images");
const SIZE = { width: 1280, height: 772 };
/** In milliseconds; each failed attempt of an effect waits longer than the one before. */
const BACKOFF = ["backoff: 2s..1m", "backoff: 20s..1m"];

let server, work;

before(async () => {
    mkdirSync(SHOTS, { recursive: true });
    work = mkdtempSync(join(tmpdir(), "detent-picture-"));
    execFileSync(process.env.DETENT, ["new", "order"], { cwd: work });
    server = new Daemon(process.env.DETENT, join(work, "order"));
    const config = readFileSync(join(work, "order/detent.yaml"), "utf8");
    assert.ok(config.includes(BACKOFF[0]));
    server.file("detent.yaml", config.replace(...BACKOFF));
    await server.start();
});

after(async () => {
    await server.end();
    rmSync(work, { recursive: true, force: true });
});

const pay = (id, card) => server.send("order", id, "pay", { card, cents: 1999 });
const reached = (id, state) => server.settled(`/machines/order/instances/${id}`, (instance) => instance.state === state);

/** Orders in all states that this bank lets them reach; o-1004 waits for its second attempt. */
async function populate() {
    for (let i = 1; i <= 9; i++) await server.begin("order", `o-100${i}`, { total: 1500 + 250 * i });
    await pay("o-1003", "0042");
    await reached("o-1003", "pending");
    await server.send("order", "o-1008", "cancel");
    for (const id of ["o-1004", "o-1006", "o-1009"]) await pay(id, "4242");
    await server.send("order", "o-1006", "cancel");
    await server.settled("/machines/order/instances/o-1004", (instance) => instance.effects?.some((effect) => effect.attempts === 1));
}

/** What names a part of the picture: headings, links, buttons, and the states and events drawn. */
function names(page) {
    return page.evaluate(
        (height) =>
            [...document.querySelectorAll("a, h1, h2, button, main svg text")]
                .filter((element) => element.checkVisibility() && element.textContent.trim() && element.getBoundingClientRect().bottom < height)
                .map((element) => `${element.localName} ${element.textContent.trim()}`),
        SIZE.height,
    );
}

/** Width and height of a PNG. */
function dimensions(bytes) {
    assert.equal(bytes.toString("latin1", 1, 4), "PNG");
    return { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) };
}

test("the picture of README.md shows what the console of today shows", async () => {
    await populate();
    const { page, wrong, close } = await open(await launch(), server.base, SIZE);
    await page.goto(`${server.base}/machines/order/instances/o-1004#code=${server.code}`);
    await page.waitForSelector(".connection.live");
    await page.locator(".node.current", { hasText: "charging" }).first().waitFor();
    await page.getByText("HTTP 503: the bank is closed").first().waitFor();
    await page.getByRole("button", { name: "Cancel instance" }).waitFor();
    await page.waitForFunction(() => !document.querySelector(".skeleton"));
    // The picture ends with the card of the path, which is whole.
    const bottom = await page.locator("section", { has: page.getByRole("heading", { name: "Path", exact: true }) }).last().evaluate((card) => card.getBoundingClientRect().bottom);
    assert.ok(bottom > 600 && bottom < SIZE.height, `${bottom}`);
    const shown = (await names(page)).join("\n") + "\n";
    const clip = { x: 0, y: 0, ...SIZE };
    const picture = await page.screenshot({ path: join(SHOTS, "readme.png"), clip });
    assert.deepEqual(dimensions(picture), SIZE);
    assert.deepEqual(wrong, []);
    await close();
    if (process.env.DETENT_PICTURES) {
        writeFileSync(join(IMAGES, "console.png"), picture);
        writeFileSync(join(IMAGES, "console.txt"), shown);
    }
    assert.deepEqual(dimensions(readFileSync(join(IMAGES, "console.png"))), SIZE);
    assert.equal(shown, readFileSync(join(IMAGES, "console.txt"), "utf8"), "the console has changed: run scripts/pictures");
});
