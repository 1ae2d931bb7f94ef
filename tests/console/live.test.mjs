// SPDX-License-Identifier: MIT
// Copyright the detent authors

// What must hold against any server: live within a second, the past at hand, only legal buttons,
// and nothing missed over kill -9. DETENT names the program; without it the mock serves.
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { launch, open } from "./browser.mjs";
import { driver } from "./driver.mjs";

let browser, server;
before(async () => {
    server = await driver();
    browser = await launch();
});
after(async () => {
    await server.end();
});

let turn = 0;

/** A page that shows a fresh order. */
async function withOrder(body) {
    const id = `live-${++turn}`;
    await server.start("order", id, { cents: 5 });
    const expected = [/ERR_/, /status of 40[0-9]/, /Failed to fetch/];
    const opened = await open(browser, server.base, { expected });
    try {
        await opened.page.goto(`${server.base}/machines/order/instances/${id}#code=${await server.code()}`);
        await opened.page.waitForSelector(".connection.live");
        await opened.page.waitForSelector(".moved");
        await body({ id, ...opened });
        assert.deepEqual(opened.wrong, []);
    } finally {
        await opened.close();
    }
}

test("an event is on the screen within a second of its commit", async () => {
    await withOrder(async ({ id, page }) => {
        await server.send("order", id, "pay", { card: "4242", cents: 77 });
        const committed = Date.now();
        await page.locator(".moved").getByText("pay", { exact: true }).waitFor({ timeout: 5000 });
        const took = Date.now() - committed;
        assert.ok(took < 1000, `${took} ms`);
    });
});

test("only events that are legal now have a button, and one is sent by it", async () => {
    await withOrder(async ({ page }) => {
        const names = () => page.locator(".events .button").allTextContents();
        await page.waitForSelector(".events .button");
        assert.deepEqual((await names()).sort(), ["cancel", "pay"]);
        await page.getByRole("button", { name: "cancel", exact: true }).click();
        await page.locator(".head .chip").getByText("cancelled").waitFor();
        await page.waitForFunction(() => !document.querySelector(".events .button"));
    });
});

test("the slider shows state and data of any event", async () => {
    await withOrder(async ({ id, page }) => {
        await server.send("order", id, "pay", { card: "4242", cents: 1234567 });
        await page.locator(".moved").getByText("pay", { exact: true }).waitFor();
        await page.getByRole("slider", { name: "Time" }).focus();
        await page.keyboard.press("Home");
        await page.getByText("looking at the start").waitFor();
        await page.locator(".node.current").getByText("pending").waitFor();
        await page.locator(".data dd").getByText("5", { exact: true }).waitFor();
        assert.match(page.url(), /[?&]at=0/);
        await page.getByRole("button", { name: "Back to now" }).first().click();
        await page.locator(".data .changed dd").getByText("1234567").waitFor();
        assert.doesNotMatch(page.url(), /at=/);
    });
});

test("every screen opens without an error", async () => {
    const id = `live-${++turn}`;
    await server.start("order", id, {});
    const opened = await open(browser, server.base);
    const { page } = opened;
    try {
        await page.goto(`${server.base}/#code=${await server.code()}`);
        await page.waitForSelector(".connection.live");
        for (const { path, ready } of screens(id)) {
            await page.evaluate((to) => (history.pushState(null, "", to), dispatchEvent(new PopStateEvent("popstate"))), path);
            await page.locator(ready).first().waitFor({ timeout: 10000 });
            await page.waitForFunction(() => !document.querySelector(".skeleton"));
            assert.equal(await page.getByRole("alert").count(), 0, path);
        }
        assert.deepEqual(opened.wrong, []);
    } finally {
        await opened.close();
    }
});

/** Where to go, and what shows that the server has answered. */
function screens(id) {
    return [
        { path: "/", ready: ".machine-count" },
        { path: "/machines", ready: ".tr.linked" },
        { path: "/machines/order", ready: ".node .count" },
        { path: `/machines/order?state=pending&show=running&prefix=${id}`, ready: `.tr [title="${id}"]` },
        { path: "/machines/order?tab=definition", ready: ".plain-table" },
        { path: `/machines/order/instances/${id}`, ready: ".node.current" },
        { path: "/timers", ready: ".empty, .tr.linked" },
        { path: "/effects", ready: ".empty, .tr" },
        { path: "/tasks", ready: ".task-row" },
        { path: `/tasks/${server.task}`, ready: ".log-row" },
        { path: "/slots", ready: ".tr.linked" },
        { path: "/slots/batch", ready: ".fact" },
        { path: `/journal?id=${id}`, ready: ".tr.linked" },
        { path: "/simulator?machine=order", ready: ".node.current" },
    ];
}

test("a task is restarted by its button, after asking again", async () => {
    const opened = await open(browser, server.base);
    const { page } = opened;
    try {
        await page.goto(`${server.base}/tasks/${server.task}#code=${await server.code()}`);
        const process = page.locator(".data div", { hasText: "Process" }).locator("dd");
        await process.waitFor();
        const before = await process.textContent();
        await page.getByRole("button", { name: "Restart" }).click();
        await page.getByText("It begins anew.").waitFor();
        await page.getByRole("button", { name: "Restart" }).click();
        await page.waitForFunction((old) => {
            const rows = [...document.querySelectorAll(".data div")];
            const now = rows.find((row) => row.textContent.startsWith("Process"))?.querySelector("dd").textContent;
            return /^[0-9]+$/.test(now) && now !== old;
        }, before, { timeout: 15000 });
        assert.deepEqual(opened.wrong, []);
    } finally {
        await opened.close();
    }
});

test("what was acknowledged around kill -9 is all in the journal, once", async () => {
    const opened = await open(browser, server.base, { expected: [/ERR_/, /status of 5/, /Failed to fetch/] });
    const { page } = opened;
    const acknowledged = [];
    const start = async () => {
        const id = `kill-${++turn}`;
        await server.start("order", id, {});
        acknowledged.push(id);
    };
    try {
        await page.goto(`${server.base}/journal?state=pending&since=${new Date().toISOString()}#code=${await server.code()}`);
        await page.waitForSelector(".connection.live");
        for (let round = 0; round < 2; round++) {
            for (let i = 0; i < 12; i++) await start();
            await server.kill();
            await server.again();
            for (let i = 0; i < 12; i++) await start();
        }
        await page.waitForFunction((count) => document.querySelectorAll(".tr.linked").length >= count, acknowledged.length, { timeout: 30000 });
        const seen = await page.locator(".tr.linked .id").allTextContents();
        assert.deepEqual(seen.sort(), acknowledged.sort());
        assert.deepEqual(opened.wrong, []);
    } finally {
        await opened.close();
    }
});

test("over kill -9 and a restart no event is missed and none is doubled", async () => {
    const expected = [/ERR_/, /status of 5/, /Failed to fetch/];
    const opened = await open(browser, server.base, { expected });
    const { page } = opened;
    const id = `live-${++turn}`;
    try {
        await server.start("order", id, { cents: 1 });
        await page.goto(`${server.base}/journal?id=${id}#code=${await server.code()}`);
        await page.waitForSelector(".connection.live");
        await page.waitForSelector(".tr.linked");
        await server.send("order", id, "pay", { card: "1", cents: 2 });
        await server.kill();
        await page.waitForSelector(".connection.waiting");
        await server.again();
        // What happens while nobody listens must be there as well.
        const wanted = await server.finish(id);
        await page.waitForSelector(".connection.live", { timeout: 20000 });
        await page.waitForFunction((count) => document.querySelectorAll(".tr.linked").length >= count, wanted, { timeout: 10000 });
        const seen = await page.locator(".tr.linked [role=cell]:first-child").allTextContents();
        assert.equal(seen.length, wanted);
        assert.equal(new Set(seen).size, wanted);
        assert.deepEqual(opened.wrong, []);
    } finally {
        await opened.close();
    }
});
