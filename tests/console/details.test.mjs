// SPDX-License-Identifier: MIT
// Copyright the detent authors

// Details that people rely on: the connection, times, attempts, deferred events, jobs.
import assert from "node:assert/strict";
import test from "node:test";
import { go } from "./browser.mjs";
import { session, shoot } from "./session.mjs";

const REASON = "the printer is out of paper";

test("a lost connection says that it is offline, and counts down to the next try", async () => {
    await session(
        async ({ mock, page }) => {
            await mock.kill();
            const line = page.locator(".connection.waiting");
            await page.waitForFunction(() => /^Offline, retrying in [1-9]\d* s$/.test(document.querySelector(".connection.waiting .grow")?.textContent ?? ""));
            await shoot(page, "offline");
            const left = async () => Number(/\d+/.exec((await line.locator(".grow").textContent()) ?? "")?.[0] ?? 0);
            const before = await left();
            await page.waitForFunction((old) => {
                const text = document.querySelector(".connection.waiting .grow")?.textContent ?? "";
                return text.includes("<1 s") || text === "Offline, retrying" || Number(/\d+/.exec(text)?.[0]) < old;
            }, before);
            await mock.start();
            await page.waitForSelector(".connection.live");
        },
        { expected: [/ERR_/] },
    );
});

test("the head of an instance and its Why tell the same time, also while it goes on", async () => {
    await session(
        async ({ page }) => {
            await page.waitForSelector(".sentences li");
            const times = () => page.evaluate(() => [".instance-below > span time", ".sentences li:first-child time"].map((place) => document.querySelector(place).textContent));
            const [head, why] = await times();
            assert.equal(head, why);
            await page.clock.fastForward(61000);
            const [later, other] = await times();
            assert.equal(later, other);
            assert.notEqual(later, head);
        },
        { clock: true, path: "/machines/order/instances/o-9001" },
    );
});

test("the timeline shows attempts of effects and of timers below the event that asked for them", async () => {
    const prepare = ({ world }) => {
        const timers = world.timers.bind(world);
        const failed = { timer: "reminder", event: "remind", due: "2026-01-01T00:00:00Z", visit: 1, dead: false, attempts: 2, last_error: "-5", reason: REASON, next_at: "2030-01-01T00:00:00Z" };
        // As the daemon tells it: a start has no visit.
        delete world.find("order", "o-9003").rows[0].visit;
        world.timers = (instance) => (instance.id === "o-9003" ? [failed] : timers(instance));
    };
    await session(
        async ({ page }) => {
            const asked = page.locator(".timeline li", { has: page.locator(".event-name", { hasText: "pay" }) });
            await asked.locator(".attempts", { hasText: "charge_card" }).getByText("3 attempts: HTTP 503").waitFor();
            const start = page.locator(".timeline li", { has: page.locator(".event-name", { hasText: "start" }) });
            await start.locator(".attempts", { hasText: "reminder" }).getByText(`2 attempts: ${REASON}`).waitFor();
            await shoot(page, "attempts");
        },
        { prepare, path: "/machines/order/instances/o-9003" },
    );
});

test("an event that would be deferred has a button that says so", async () => {
    const prepare = ({ world }) => {
        const why = world.why.bind(world);
        world.why = (instance) => ({ ...why(instance), defers: [{ event: "ship", internal: false }, { event: "lost", internal: true }] });
    };
    await session(
        async ({ page }) => {
            const button = page.locator(".events").getByRole("button", { name: "ship (deferred)" });
            await button.waitFor();
            assert.equal(await page.locator(".events").getByRole("button", { name: "lost" }).count(), 0);
            const asked = page.waitForRequest((request) => request.url().endsWith("/instances/o-9001/events"));
            await button.click();
            assert.equal((await asked).postDataJSON().event, "ship");
        },
        { prepare, path: "/machines/order/instances/o-9001", expected: [/status of 4/] },
    );
});

test("jobs show their program; only slots that can replace or give up offer it", async () => {
    const prepare = ({ world }) => {
        const body = JSON.stringify({ run: ["sh", "-c", "echo 'hello there'"], folder: "/srv" });
        Object.assign(world.jobs[0], { work: "invoices", body });
        Object.assign(world.jobs[1], { work: "send_invoice", body: "\u0001" });
    };
    await session(
        async ({ page }) => {
            const table = page.getByRole("table", { name: "Jobs" });
            await table.getByText("sh -c \"echo 'hello there'\"").waitFor();
            await table.getByText("send_invoice").waitFor();
            await shoot(page, "jobs");
            assert.equal(await page.getByLabel("If it is taken").count(), 0);
            await page.getByLabel("Program and arguments").fill("bin/report 3");
            const asked = page.waitForRequest((request) => request.url().endsWith("/slots/invoices/submissions"));
            await page.getByRole("button", { name: "Submit", exact: true }).click();
            assert.deepEqual((await asked).postDataJSON(), { run: ["bin/report", "3"] });
            await page.setViewportSize({ width: 390, height: 844 });
            await table.locator(".td.below").getByText("sh -c \"echo 'hello there'\"").waitFor();
            await shoot(page, "jobs-390");
            await go(page, "/slots/batch");
            await page.getByLabel("If it is taken").waitFor();
        },
        { prepare, path: "/slots/invoices" },
    );
});
