// SPDX-License-Identifier: MIT
// Copyright the detent authors

// Flows in Chromium against the mock: graphs of all sizes, rows over pauses and lost connections,
// orders by state and by right.
import assert from "node:assert/strict";
import test from "node:test";
import { go, until, violations } from "./browser.mjs";
import { chain, readings } from "./flows.mjs";
import { session, shoot } from "./session.mjs";

/** A page on a flow; `flow` is its mock. */
function showing(make, body, options = {}) {
    const flow = make();
    const prepare = ({ world }) => world.flows.items.push(flow);
    return session((given) => body({ ...given, flow }), { prepare, path: `/flows/${flow.summary.name}`, mock: { orders: 0 }, ...options });
}

const positions = (page) => page.locator(".flow-rows [role=rowgroup] .tr:not(.remarked) .td:first-child").allTextContents();

test("the graph shows each kind of stage and edge, and where one waits for the next", async () => {
    await showing(readings, async ({ page }) => {
        await page.waitForSelector(".flow-stage");
        assert.equal(await page.locator(".flow-stage").count(), 6);
        assert.equal(await page.locator(".flow-edge.dashed").count(), 2, "the reference and the way back");
        const full = page.getByRole("button", { name: "measure to warm: 250 rows a second, 4 096 waiting, credit 0 of 4 096" });
        assert.equal(await full.locator(".used.bad").count(), 1);
        assert.deepEqual(await violations(page), []);
        await shoot(page, "flow-graph");
    });
});

test("graphs of 3 to 40 stages begin legibly, and each stage is reached by key", async () => {
    for (const stages of [3, 12, 40])
        await showing(() => chain("chain", stages), async ({ page }) => {
            await page.waitForSelector(".flow-stage");
            assert.equal(await page.locator(".flow-stage").count(), stages);
            const height = await page.locator(".flow-stage .name").first().evaluate((text) => text.getBoundingClientRect().height);
            assert.ok(height >= 11, `${stages} stages: a name is ${height} pixels high`);
            if (stages < 40) return;
            const last = page.locator(".flow-stage").last();
            await page.getByRole("group", { name: "Graph of the flow chain" }).press("Tab");
            await last.focus();
            await page.waitForFunction(() => {
                const [stage, all] = [[...document.querySelectorAll(".flow-stage")].pop(), document.querySelector(".flow-graph svg")].map((e) => e.getBoundingClientRect());
                return stage.right <= all.right + 1 && stage.left >= all.left;
            });
            await page.keyboard.press("Enter");
            await page.waitForURL("**/flows/chain?stage=stage_40");
            await page.getByRole("region", { name: "Stage stage_40" }).waitFor();
            await shoot(page, "flow-chain");
        });
});

test("a stage shows its supervisor in its state, its counts, and settings without secrets; the address is that of the view", async () => {
    await showing(readings, async ({ page }) => {
        await page.getByRole("button", { name: /^measure, source/ }).click();
        await page.waitForURL("**/flows/readings?stage=measure");
        await page.locator(".node.current").getByText("running").waitFor();
        await page.getByText("{redacted}").waitFor();
        await page.reload();
        await page.getByRole("region", { name: "Stage measure" }).waitFor();
        await page.getByRole("button", { name: /^warm to mean/ }).press("Enter");
        await page.waitForURL("**/flows/readings?edge=warm.mean");
        await page.getByRole("region", { name: "warm → mean" }).waitFor();
        await page.getByRole("region", { name: "Rows of warm", exact: true }).waitFor();
    });
});

test("rows come live; a pause holds them, and neither it nor a lost connection loses or repeats one", async () => {
    await showing(
        readings,
        async ({ page, mock, flow }) => {
            const send = (count) => {
                for (let i = 0; i < count; i++) flow.data("measure", { sensor: "door", celsius: i });
            };
            const wait = (count) => page.waitForFunction((n) => document.querySelectorAll(".flow-rows [role=rowgroup] .tr").length === n, count);
            await go(page, "/flows/readings?stage=measure");
            await page.getByText("following").waitFor();
            send(5);
            await wait(5);
            assert.deepEqual(await page.locator(".flow-rows [role=columnheader]").allTextContents(), ["Position", "At", "sensor", "celsius"]);
            await page.getByRole("button", { name: "Pause" }).click();
            await page.getByText("paused").waitFor();
            await until(() => flow.listeners.size === 0);
            send(7);
            assert.equal((await positions(page)).length, 5);
            await page.getByRole("button", { name: "Resume" }).click();
            await wait(12);
            await mock.kill();
            await page.waitForSelector(".connection.waiting");
            send(6);
            await mock.start();
            await page.waitForSelector(".connection.live");
            await wait(18);
            const wanted = flow.rows.filter((row) => row.stream === "measure").map((row) => String(row.position)).reverse();
            assert.deepEqual(await positions(page), wanted);
        },
        { expected: [/ERR_/] },
    );
});

test("a flow that is faster than the view says what was left out", async () => {
    await showing(readings, async ({ page, mock, flow }) => {
        await page.getByText("following").waitFor();
        flow.data("measure", { sensor: "door", celsius: 1 });
        await page.waitForSelector(".flow-rows .tr");
        flow.position += 1000000;
        const asked = () => mock.requests.filter((line) => line === "GET /v1/flows/readings").length;
        const before = asked();
        await until(() => asked() > before + 1);
        flow.listeners.forEach((tell) => tell({ ...flow.rows.at(-1), position: 900 }));
        await page.getByText(/positions are left out: the flow is faster than this view/).waitFor();
    });
});

test("rows are read from a position, page by page", async () => {
    await showing(readings, async ({ page, flow }) => {
        for (let i = 0; i < 250; i++) flow.data("measure", { sensor: "door", celsius: i });
        const from = flow.rows.find((row) => row.stream === "measure").position + 10;
        await page.getByLabel("From position").fill(String(from));
        await page.getByRole("button", { name: "Go", exact: true }).click();
        await page.waitForURL(`**/flows/readings?at=${from}`);
        await page.locator(".flow-rows").getByText(String(from), { exact: true }).waitFor();
        await page.getByRole("button", { name: "Show more" }).click();
        await page.getByRole("button", { name: "Show more" }).click();
        await page.getByText("No later rows yet.").waitFor();
        assert.equal(await page.getByRole("table", { name: "Rows of every stage" }).getAttribute("aria-rowcount"), "241");
        await page.getByRole("button", { name: "Follow the newest" }).click();
        await page.getByText("following").waitFor();
    });
});

test("rejected rows have their reason and their input, also those that stayed in the stream", async () => {
    await showing(readings, async ({ page, flow }) => {
        flow.reject("warm", "deserialization", "text: expected key=value", { text: "garbled" });
        flow.reject("warm", "validation", "celsius is below 0", { celsius: -1 }, true);
        flow.reject("measure", "remote", "HTTP 503", { text: "x" });
        await go(page, "/flows/readings?tab=rejected");
        const lines = page.getByRole("table", { name: "Rejected rows" }).locator(".tr:not(.th)");
        await page.getByText("HTTP 503").waitFor();
        assert.equal(await lines.count(), 3);
        await page.getByLabel("Stage", { exact: true }).selectOption("warm");
        await page.getByText("celsius is below 0").waitFor();
        await page.getByText("text: expected key=value").waitFor();
        assert.equal(await lines.count(), 2);
        flow.reject("warm", "domain", "it is late", null);
        await page.getByText("it is late").waitFor();
        await shoot(page, "flow-rejected");
    });
});

test("the life of a flow is told as it happens, and by stage", async () => {
    await showing(readings, async ({ page, flow }) => {
        await go(page, "/flows/readings?tab=life");
        await page.locator(".flow-life .badge").getByText("opened").waitFor();
        flow.fact("stage_failed", "store", "the disk is full");
        await page.locator(".flow-life").getByText("the disk is full").waitFor();
        await go(page, "/flows/readings?tab=life&stage=warm");
        await page.getByRole("region", { name: "Life of warm" }).waitFor();
        await page.locator(".flow-life").getByText("the disk is full").waitFor({ state: "detached" });
    });
});

test("an earlier run is read by its number, which is in the address", async () => {
    const third = () => {
        const flow = readings();
        flow.summary.run = 3;
        return flow;
    };
    await showing(third, async ({ page, mock }) => {
        await page.getByLabel("Run", { exact: true }).selectOption("2");
        await page.waitForURL("**/flows/readings?run=2");
        await page.getByText("from position 1 of run 2").waitFor();
        await page.getByRole("button", { name: "Life" }).click();
        await page.locator(".flow-life .badge").getByText("opened").waitFor();
        assert.ok(mock.requests.some((line) => line.startsWith("GET /v1/flows/readings/facts?") && line.endsWith("run=2")));
        await page.getByRole("button", { name: "Rejected" }).click();
        await page.getByText("No row was rejected.").waitFor();
    });
});

test("only orders that are legal now have a button, cancel asks again, and a token to read has none", async () => {
    await showing(readings, async ({ page, mock }) => {
        const names = () => page.locator(".head .actions button").allTextContents();
        await page.waitForSelector(".head .actions button");
        assert.deepEqual(await names(), ["Drain", "Cancel"]);
        await page.getByRole("button", { name: "Cancel" }).click();
        await page.getByText("It stops at once; the next run continues.").waitFor();
        assert.ok(!mock.requests.includes("POST /v1/flows/readings/cancel"));
        await page.locator(".asking").getByRole("button", { name: "Cancel" }).click();
        await page.locator(".head .badge").getByText("stopped").waitFor();
        await page.waitForFunction(() => document.querySelector(".head .actions").textContent === "Run");
        await page.getByRole("button", { name: "Run", exact: true }).click();
        await page.locator(".head .badge").getByText("running").waitFor();
    });
    await showing(readings, async ({ page }) => {
        await page.getByText("Orders need a token with the scope admin.").waitFor();
        assert.equal(await page.locator(".head .actions button").count(), 0);
    }, { mock: { orders: 0, scopes: ["read"] } });
});

test("a failed flow is in what needs attention, with its reason", async () => {
    const failed = () => {
        const flow = readings();
        Object.assign(flow.summary, { state: "backing_off", reason: "missing.csv cannot be opened" });
        return flow;
    };
    await showing(failed, async ({ page }) => {
        await page.locator(".notices").getByText("missing.csv cannot be opened").waitFor();
        await go(page, "/");
        const attention = page.getByRole("region", { name: "Needs attention" });
        await attention.getByText("missing.csv cannot be opened").waitFor();
        await page.getByRole("region", { name: "Flows" }).getByText("backing off").waitFor();
        await attention.getByRole("link", { name: "readings" }).click();
        await page.waitForURL("**/flows/readings");
    });
});
