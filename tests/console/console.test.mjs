// SPDX-License-Identifier: MIT
// Copyright the detent authors

// The console in Chromium against the mock: what is rare in life, or cannot be brought about there.
// Every screen is looked at in daemon.test.mjs, with the program itself.
import assert from "node:assert/strict";
import test from "node:test";
import { go, until, violations } from "./browser.mjs";
import { readings } from "./flows.mjs";
import { load } from "./module.mjs";
import { session, shoot } from "./session.mjs";
import { HOSTILE, World } from "./world.mjs";

const { SNIPPETS } = await load("snippets.ts");

test("a link signs in: the code leaves the address, and a reload finds the token", async () => {
    await session(async ({ mock, page }) => {
        assert.equal(new URL(page.url()).hash, "");
        await page.reload();
        await page.waitForSelector(".connection.live");
        assert.deepEqual(await violations(page), []);
        assert.ok(mock.requests.every((line) => !line.includes(mock.token)));
    });
});

test("a new tab is signed in by an open one; signing out ends all tabs, and the token at the daemon", async () => {
    await session(
        async ({ mock, page }) => {
            const other = await page.context().newPage();
            await other.goto(new URL("/timers", page.url()).href);
            await other.waitForSelector(".connection.live");
            const { token } = mock;
            await page.getByRole("button", { name: "Sign out" }).click();
            await page.getByLabel("Token").waitFor();
            await other.getByRole("alert").getByText("Signed out in another tab.").waitFor();
            await other.close();
            assert.equal(await page.evaluate(() => sessionStorage.length), 0);
            await until(() => mock.requests.includes("DELETE /v1/session"));
            assert.notEqual(mock.token, token);
            await page.getByLabel("Token").fill(token);
            await page.getByRole("button", { name: "Sign in" }).click();
            await page.getByRole("alert").getByText("this token is not known").waitFor();
            await shoot(page, "sign-in");
        },
        { expected: [/status of 401/] },
    );
});

test("a tab that does not share its token keeps it from reloads and other tabs", async () => {
    await session(
        async ({ mock, page }) => {
            await page.getByLabel("Token").fill(mock.token);
            await page.getByLabel("Stay signed in").uncheck();
            await page.getByRole("button", { name: "Sign in" }).click();
            await page.waitForSelector(".connection.live");
            assert.equal(await page.evaluate(() => sessionStorage.length), 0);
            const other = await page.context().newPage();
            await other.goto(page.url());
            await other.getByLabel("Token").waitFor();
            await other.close();
            await page.reload();
            await page.getByLabel("Token").waitFor();
        },
        { signedIn: false },
    );
});

test("what needs attention is counted truly, and grouped by reason", async () => {
    await session(async ({ mock, page }) => {
        const overview = mock.world.overview.bind(mock.world);
        const why = "failed after 8 attempts: HTTP 503: the bank is closed";
        mock.world.overview = () => ({
            ...overview(),
            stuck: [["charge_card", 100, why], ["send_mail", 40, why], ["charge_card", 6, "failed after 1 attempt: declined"]].map(([name, count, text]) => ({ about: "effect", name, machine: "order", id: "o-1", ids: ["o-1", "o-2", "o-3"], count, why: text })),
            stuck_total: 166,
            stuck_capped: true,
        });
        await page.reload();
        const panel = page.getByRole("region", { name: "Needs attention" });
        await panel.getByText("166", { exact: true }).waitFor();
        const lines = await panel.locator("li").allInnerTexts();
        assert.deepEqual(lines.map((line) => [/charge_card|send_mail/.exec(line)[0], /and \d+ more/.exec(line)[0]]), [["charge_card", "and 97 more"], ["send_mail", "and 37 more"], ["charge_card", "and 3 more"]]);
        await panel.getByText("and 20 more").waitFor();
        await panel.getByText("too many dead effects to group").waitFor();
        await shoot(page, "attention");
        await panel.getByRole("link", { name: "and 97 more" }).click();
        await page.waitForURL("**/effects?dead=true&machine=order");
    });
});

test("a timer that was given up is shown as a dead letter, and retried by its button", async () => {
    await session(async ({ mock, page }) => {
        const timers = mock.world.timers.bind(mock.world);
        const lost = { timer: "reminder", event: "remind", due: "2026-01-01T00:00:00Z", visit: 1, dead: true, attempts: 8, last_error: "-5: I/O error", reason: "the disk is gone" };
        const { id } = mock.world.of("order").find((instance) => instance.state === "charging");
        mock.world.timers = (instance) => (instance.id === id ? [lost] : timers(instance));
        await go(page, `/machines/order/instances/${id}`);
        const panel = page.getByRole("region", { name: "Timers" });
        await panel.getByText("dead", { exact: true }).waitFor();
        await panel.getByText("8 attempts: the disk is gone").waitFor();
        await page.getByRole("region", { name: "Why" }).getByRole("button", { name: "Retry reminder" }).waitFor();
        const asked = page.waitForRequest((request) => request.url().endsWith(`/instances/${id}/retry`));
        await shoot(page, "dead-timer");
        await panel.getByRole("button", { name: "Retry" }).click();
        assert.deepEqual((await asked).postDataJSON(), { key: "timer/reminder" });
    });
});

test("a wide diagram is legible at once, and can be zoomed, moved and fitted", async () => {
    await session(async ({ page }) => {
        await go(page, "/machines/order");
        const drawing = page.getByRole("group", { name: "Diagram of the machine order" });
        await drawing.waitFor();
        const width = async () => Number((await drawing.getAttribute("viewBox")).split(" ")[2]);
        const left = async () => Number((await drawing.getAttribute("viewBox")).split(" ")[0]);
        const height = await drawing.locator(".node .name").first().evaluate((text) => text.getBoundingClientRect().height);
        assert.ok(height >= 11, `a name is ${height} pixels high`);
        const before = await width();
        for (let i = 0; i < 4; i++) await page.getByRole("button", { name: "Zoom in" }).click();
        assert.ok((await width()) < before / 2);
        const from = await left();
        const box = await drawing.boundingBox();
        await page.mouse.move(box.x + 200, box.y + 60);
        await page.mouse.down();
        await page.mouse.move(box.x + 120, box.y + 60, { steps: 4 });
        await page.mouse.up();
        assert.ok((await left()) > from);
        assert.equal(new URL(page.url()).search, "", "a drag selects no state");
        await page.getByRole("button", { name: "Show all of it" }).click();
        assert.ok((await width()) >= before * 0.99);
    });
});

test("rates are curves over a span that is in the address", async () => {
    await session(async ({ mock, page }) => {
        const panel = page.getByRole("region", { name: "Rates" });
        await panel.locator("canvas").waitFor();
        await panel.getByRole("button", { name: "24 h" }).click();
        await until(() => mock.requests.some((line) => line.includes("/v1/rates?span_s=86400")));
        assert.equal(new URL(page.url()).search, "?span=86400");
        await shoot(page, "rates");
    });
});

test("columns of instances are sorted, and the total is told", async () => {
    await session(async ({ page }) => {
        await go(page, "/machines/order");
        const table = page.getByRole("table", { name: "Instances" });
        await table.waitFor();
        await table.getByRole("button", { name: "State" }).click();
        await table.locator("[aria-sort=ascending]").waitFor();
        const states = await table.locator(".tr.linked .chip").allInnerTexts();
        assert.deepEqual(states, [...states].sort());
        await page.getByText(/^\d+ of \d+/).waitFor();
    });
});

test("who has no token is asked for one, and a wrong one is refused with the reason", async () => {
    await session(
        async ({ mock, page }) => {
            await page.getByLabel("Token").fill("wrong");
            await page.getByRole("button", { name: "Sign in" }).click();
            await page.getByRole("alert").getByText("this token is not known").waitFor();
            await page.getByLabel("Token").fill(mock.token);
            await page.getByRole("button", { name: "Sign in" }).click();
            await page.waitForSelector(".connection.live");
        },
        { signedIn: false, expected: [/status of 401/] },
    );
});

test("a token that is revoked leads back to the sign-in, with the reason", async () => {
    await session(
        async ({ mock, page }) => {
            mock.token = "another";
            await go(page, "/timers");
            await page.getByLabel("Token").waitFor();
            assert.match(await page.getByRole("alert").textContent(), /this token is not known/);
        },
        { expected: [/status of 401/, /ERR_/] },
    );
});

test("hostile text stays text on every screen", async () => {
    const prepare = ({ world }) => {
        HOSTILE.forEach((text, i) => {
            world.start("order", `quiet-${i}`, { cents: 1, receipt: text, remark: text });
            world.send("order", `quiet-${i}`, "pay", { cents: 1, remark: text });
            const instance = world.find("order", `quiet-${i}`);
            instance.dead = text;
            instance.rows[1].event_id = text;
        });
        const evil = HOSTILE[0];
        world.tasks[1].reason = evil;
        world.tasks[1].waits_for = evil;
        world.tasks[2].name = HOSTILE[1];
        world.slots[0].owner_name = evil;
        Object.assign(world.workers.items[2], { reason: evil, state: HOSTILE[1], degraded_by: HOSTILE[2] });
        world.workers.history = () => HOSTILE.map((text) => ({ at: new Date().toISOString(), action: text, result: text, took_ms: 1, reason: text }));
        for (const text of HOSTILE) world.say("web", text);
        const flow = readings();
        Object.assign(flow.summary, { state: "failed", reason: evil });
        Object.assign(flow.stages[2], { reason: HOSTILE[1], state: HOSTILE[2], connector: HOSTILE[3] });
        for (const text of HOSTILE) {
            flow.data("measure", { [text]: text });
            flow.reject("warm", text, text, { text });
            flow.fact("failed", "warm", text);
        }
        world.flows.items.push(flow);
        const machine = structuredClone(world.machines.get("heartbeat"));
        machine.name = HOSTILE[2];
        machine.initial = machine.states[0].name = HOSTILE[10];
        machine.events[0].name = HOSTILE[1];
        machine.transitions.forEach((t) => {
            if (t.from === "starting") t.from = HOSTILE[10];
            if (t.to === "starting") t.to = HOSTILE[10];
            if (t.event === "beat") t.event = HOSTILE[1];
        });
        world.machines.set(machine.name, machine);
        world.start(machine.name, "quiet-x", {});
    };
    await session(
        async ({ page }) => {
            const evil = encodeURIComponent(HOSTILE[2]);
            const places = ["/", "/machines", "/machines/order", `/machines/${evil}`, `/machines/${evil}/instances/quiet-x`, "/machines/order/instances/quiet-0", "/machines/order/instances/quiet-10", "/timers", "/effects", "/tasks", "/tasks/web", `/tasks/${encodeURIComponent(HOSTILE[1])}`, "/slots", "/slots/batch", "/workers", "/workers/plant~press~valve", "/flows", "/flows/readings", "/flows/readings?stage=warm", "/flows/readings?stage=measure", "/flows/readings?tab=rejected", "/flows/readings?tab=life", "/journal", `/simulator?machine=${evil}`, `/journal?id=${encodeURIComponent(HOSTILE[0])}`];
            for (const place of places) {
                await go(page, place);
                await page.waitForSelector(place.startsWith("/machines/") || place.startsWith("/simulator") ? ".node" : ".panel");
                await page.waitForFunction(() => !document.querySelector(".skeleton"));
                assert.equal(await page.evaluate(() => globalThis.hurt), undefined, place);
                const strange = await page.evaluate(() => document.querySelectorAll("#app script, #app img, #app base, #app style, #app [onload], #app [onerror], #app a[href^=javascript]").length);
                assert.equal(strange, 0, place);
            }
            assert.ok(await page.evaluate(() => document.title.length) > 0);
        },
        { prepare, mock: { orders: 5 } },
    );
});

test("ten thousand rows scroll, and few of them are in the document", async () => {
    const world = new World({ orders: 0 });
    for (let i = 0; i < 10000; i++) world.start("order", `quiet-${i}`, {}, Date.now() - 60000);
    await session(
        async ({ mock, page }) => {
            for (let i = 0; i < 4; i++) {
                const before = await page.evaluate(() => document.documentElement.scrollHeight);
                await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight));
                await page.waitForFunction((height) => document.documentElement.scrollHeight > height, before);
            }
            const rows = await page.locator("[role=row]").count();
            assert.ok(rows < 120, `${rows} rows`);
            assert.equal(await page.locator(".tr.linked").last().isVisible(), true);
            // Who reads below is not disturbed; the new ones wait for a click.
            const height = await page.evaluate(() => document.documentElement.scrollHeight);
            mock.world.start("order", "quiet-new", {});
            await page.getByRole("button", { name: "1 new event" }).waitFor();
            assert.equal(await page.evaluate(() => document.documentElement.scrollHeight), height);
            await page.getByRole("button", { name: "1 new event" }).click();
            await page.locator(".tr.linked").first().getByText("quiet-new").waitFor();
        },
        { mock: { world }, path: "/journal" },
    );
});

test("empty states say what to do", async () => {
    const prepare = ({ world }) => {
        world.machines.clear();
        world.instances.clear();
        Object.assign(world, { tasks: [], groups: [], slots: [], log: [], workers: null });
    };
    const shown = new Set();
    await session(
        async ({ mock, page }) => {
            for (const [place, text] of [["/", "No machines yet"], ["/machines", "No machines yet"], ["/timers", "No timer is armed."], ["/effects", "Nothing is left to do."], ["/effects?dead=true", "No dead letters."], ["/tasks", "No tasks"], ["/slots", "No slots"], ["/workers", "No workers"], ["/flows", "No flows"], ["/journal", "Nothing has happened yet."], ["/simulator", "No machine is served."]]) {
                await go(page, place);
                await page.getByText(text).first().waitFor();
                await shoot(page, place === "/" ? "empty" : `empty${place.split("?")[0].replace("/", "-")}`);
                for (const text of await page.locator(".snippet").allTextContents()) shown.add(text);
            }
            // tests/console/snippets.test.mjs runs these.
            assert.deepEqual(shown, new Set(Object.values(SNIPPETS)));
            for (const place of ["/timers", "/effects", "/journal"]) {
                mock.faults.set(`/v1/${place === "/journal" ? "log" : place.slice(1)}`, { status: 501, code: "UNSUPPORTED", text: "no store is configured: this detent serves no machine" });
                await go(page, "/");
                await go(page, place);
                await page.locator(".snippet").getByText("job/job.fsm").waitFor();
            }
            assert.deepEqual(await violations(page), []);
        },
        { prepare, expected: [/status of 501/] },
    );
});

test("workers: the tree folds and is walked by keys; filters and the search narrow it", async () => {
    await session(
        async ({ page }) => {
            const names = () => page.locator(".worker-name a").allTextContents();
            await page.getByText("config refused").waitFor();
            await shoot(page, "workers-all");
            assert.deepEqual(await violations(page), []);
            assert.equal((await names()).length, 9);
            await page.getByRole("link", { name: "press" }).focus();
            await page.keyboard.press("ArrowLeft");
            assert.equal((await names()).includes("valve"), false);
            await page.keyboard.press("ArrowRight");
            await page.keyboard.press("ArrowDown");
            assert.equal(await page.evaluate(() => document.activeElement.textContent), "valve");
            await page.keyboard.press("Enter");
            await page.getByText("the valve does not answer").waitFor();
            await page.goBack();
            await page.getByLabel("Phase").selectOption("stopped");
            await page.waitForFunction(() => document.querySelectorAll(".worker-name a").length === 2);
            assert.match(page.url(), /phase=stopped/);
            await page.getByLabel("Phase").selectOption("");
            await page.getByRole("button", { name: "Not well" }).click();
            await page.waitForFunction(() => document.querySelectorAll(".worker-name a").length === 6);
            await page.getByRole("button", { name: "All", exact: true }).click();
            await page.getByRole("searchbox", { name: "Search" }).fill("gauge");
            await page.waitForFunction(() => document.querySelectorAll(".worker-name a").length === 2);
        },
        { path: "/workers" },
    );
});

test("a worker shows what differs, and is told to rest and to go; what others do to it is seen", async () => {
    await session(
        async ({ mock, page }) => {
            await page.locator(".sides .differs").getByText("180").waitFor();
            await page.locator(".sides .differs").getByText("162").waitFor();
            await page.getByText("18446744073709551615").waitFor();
            await page.getByText("Its config was refused").waitFor();
            await shoot(page, "worker-gap");
            assert.deepEqual(await violations(page), []);
            mock.world.workers.change(mock.world.workers.find("oven"), { reason: "it is warm now" });
            await page.getByText("it is warm now").waitFor();
            await page.getByRole("button", { name: "Disable" }).click();
            await page.getByText("It stops until it is started again.").waitFor();
            assert.equal(mock.world.workers.find("oven").disabled, false);
            await page.getByRole("button", { name: "Disable" }).click();
            await page.locator(".head .badge").getByText("stopped").waitFor();
            await go(page, "/workers/plant~spare");
            await page.getByRole("button", { name: "Remove" }).click();
            await page.getByRole("button", { name: "Remove" }).click();
            await page.waitForFunction(() => location.pathname === "/workers");
            await until(() => !mock.world.workers.find("spare"));
            await go(page, "/workers/plant~press");
            await page.getByText("Its circuit is open").waitFor();
            await page.locator(".worker-tree").getByText("valve", { exact: true }).first().waitFor();
            await shoot(page, "worker-circuit");
            await go(page, "/workers/plant~nobody");
            await page.getByText("There is no worker").waitFor();
        },
        { path: "/workers/plant~oven", expected: [/status of 404/] },
    );
});

test("a thousand workers scroll, few of them are in the document, and all of them can be folded", async () => {
    await session(
        async ({ page }) => {
            const total = () => page.locator("[role=table]").getAttribute("aria-rowcount");
            await page.waitForSelector(".worker-name");
            assert.equal(await total(), "1010");
            await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight));
            await page.getByRole("link", { name: "device-19" }).last().waitFor();
            const rows = await page.locator("[role=row]").count();
            assert.ok(rows < 120, `${rows} rows`);
            await page.evaluate(() => scrollTo(0, 0));
            await page.getByRole("button", { name: "Fold all" }).click();
            assert.equal(await total(), "58");
            await page.getByRole("button", { name: "Unfold all" }).click();
            assert.equal(await total(), "1010");
        },
        { path: "/workers", mock: { orders: 0, workers: 1000 } },
    );
});

test("an error is told with its text, and trying again helps", async () => {
    await session(
        async ({ mock, page }) => {
            mock.faults.set("/v1/timers", { status: 503, code: "AWAY", text: "the store cannot be reached" });
            await go(page, "/timers");
            await page.getByRole("alert").getByText("the store cannot be reached").waitFor();
            await shoot(page, "trouble");
            mock.faults.clear();
            await page.getByRole("button", { name: "Try again" }).click();
            await page.waitForSelector(".tr.linked");
            assert.equal(await page.getByRole("alert").count(), 0);
        },
        { expected: [/status of 503/] },
    );
});

test("a daemon that cannot reach its store, or drains, says so on every view", async () => {
    await session(async ({ mock, page }) => {
        const alert = page.getByRole("alert");
        mock.tell("status", { state: "running", away: "no connection to the server" });
        await alert.getByText("The store cannot be reached: no connection to the server.").waitFor();
        await go(page, "/slots");
        assert.equal(await alert.count(), 1);
        mock.tell("status", { state: "draining", away: null });
        await alert.getByText("The daemon is draining").waitFor();
        mock.tell("status", { state: "running", away: null });
        await alert.waitFor({ state: "detached" });
    });
});

test("keys lead everywhere: g and a letter, the palette, the help", async () => {
    await session(async ({ page }) => {
        for (const [key, path] of [["m", "/machines"], ["t", "/timers"], ["e", "/effects"], ["s", "/tasks"], ["l", "/slots"], ["w", "/workers"], ["j", "/journal"], ["i", "/simulator"], ["o", "/"]]) {
            await page.keyboard.press("g");
            await page.keyboard.press(key);
            await page.waitForFunction((wanted) => location.pathname === wanted, path);
        }
        await page.keyboard.press("Control+k");
        await page.keyboard.type("o-0007");
        await page.locator(".dialog li").getByText("o-0007").waitFor();
        await page.keyboard.press("Enter");
        await page.waitForFunction(() => location.pathname === "/machines/order/instances/o-0007");
        await page.keyboard.press("?");
        await page.getByRole("dialog", { name: "Keys" }).waitFor();
        await page.keyboard.press("Escape");
        await page.getByRole("dialog").waitFor({ state: "detached" });
        await page.goBack();
        await page.waitForFunction(() => location.pathname === "/");
    });
});

test("who holds an instance is told in the list of its machine, and with the instance", async () => {
    await session(
        async ({ page }) => {
            const row = page.locator(".tr.linked", { hasText: "o-0007" });
            await row.getByText("clerk-2").waitFor();
            await row.getByRole("link", { name: "o-0007" }).click();
            await page.locator(".lock").getByText("clerk-2").waitFor();
        },
        { path: "/machines/order?tab=locks", mock: { orders: 8 } },
    );
});

test("the simulator plays guards, stays and undo without the server", async () => {
    await session(
        async ({ mock, page }) => {
            await page.waitForSelector(".node.current");
            const asked = mock.requests.filter((line) => line.startsWith("POST")).length;
            await page.getByRole("button", { name: "→ charging" }).click();
            await page.getByRole("button", { name: "→ paid" }).click();
            await page.getByRole("button", { name: "if in_stock" }).click();
            await page.getByRole("heading", { name: "What shipping takes" }).waitFor();
            await page.getByRole("button", { name: "Undo" }).click();
            await page.getByRole("button", { name: "else stay" }).click();
            await page.getByRole("heading", { name: "What paid takes" }).waitFor();
            assert.equal(mock.requests.filter((line) => line.startsWith("POST")).length, asked);
        },
        { path: "/simulator?machine=order" },
    );
});

test("a tab that nobody sees lets go of its connection, and misses nothing", async () => {
    const prepare = ({ world }) => world.start("order", "quiet-1", {});
    await session(
        async ({ mock, page }) => {
            await page.waitForSelector(".moved");
            const look = (hidden) =>
                page.evaluate((value) => {
                    Object.defineProperty(document, "hidden", { configurable: true, value });
                    document.dispatchEvent(new Event("visibilitychange"));
                }, hidden);
            await look(true);
            await page.clock.fastForward(31000);
            await page.waitForSelector(".connection.connecting");
            await until(() => mock.streams.size === 0);
            mock.world.send("order", "quiet-1", "pay", { cents: 3 });
            await look(false);
            await page.waitForSelector(".connection.live");
            await page.locator(".moved").getByText("pay", { exact: true }).waitFor();
        },
        { prepare, clock: true, path: "/machines/order/instances/quiet-1" },
    );
});

test("a connection that has been silent for too long is given up, and nothing is missed", async () => {
    const prepare = ({ world }) => world.start("order", "quiet-1", {});
    await session(
        async ({ mock, page }) => {
            await page.waitForSelector(".moved");
            // As after a sleep: the socket is open, and nothing comes through it any more.
            mock.world.listeners.clear();
            mock.world.send("order", "quiet-1", "pay", { cents: 3 });
            await page.clock.fastForward(30000);
            assert.equal(mock.requests.filter((line) => line.includes("/v1/events")).length, 1);
            await page.clock.fastForward(12000);
            await page.locator(".moved").getByText("pay", { exact: true }).waitFor();
            assert.equal(mock.requests.filter((line) => line.includes("/v1/events")).length, 2);
        },
        { prepare, clock: true, path: "/machines/order/instances/quiet-1" },
    );
});

test("a daemon that comes back with another log is read from its beginning", async () => {
    await session(
        async ({ mock, page }) => {
            await page.waitForSelector(".tr.linked");
            await mock.kill();
            mock.world = new World({ orders: 0 });
            mock.world.start("order", "other-1", {});
            await mock.start();
            await page.locator(".tr.linked").getByText("other-1").waitFor();
            mock.world.start("order", "other-2", {});
            await page.locator(".tr.linked").getByText("other-2").waitFor();
            const all = await page.locator(".tr.linked .id").allTextContents();
            assert.deepEqual(all.filter((id) => id.startsWith("o")), ["other-2", "other-1"]);
        },
        { path: "/journal", mock: { orders: 8 }, expected: [/ERR_/] },
    );
});

test("an event whose answer is lost happens once, however often it is sent", async () => {
    const prepare = ({ world }) => {
        world.start("order", "quiet-1", {});
        for (const name of ["pay", "charged"]) world.send("order", "quiet-1", name, {});
    };
    await session(
        async ({ mock, page }) => {
            const rows = () => mock.world.find("order", "quiet-1").rows.filter((row) => row.event === "note").length;
            const place = "/v1/machines/order/instances/quiet-1/events";
            const send = page.getByRole("button", { name: "Send note" });
            await page.getByRole("button", { name: "note", exact: true }).click();
            await page.getByLabel("remark").fill("by the door");
            mock.faults.set(place, { cut: true });
            await send.click();
            await page.getByRole("alert").getByText("does not answer").waitFor();
            assert.equal(rows(), 1);
            mock.faults.clear();
            await send.click();
            await page.getByText("taken the first time").waitFor();
            assert.equal(rows(), 1);
            // What is said after an answer is meant as another one.
            await page.getByRole("button", { name: "note", exact: true }).click();
            await page.getByLabel("remark").fill("by the door");
            await send.click();
            await until(() => rows() === 2);
        },
        { prepare, path: "/machines/order/instances/quiet-1", expected: [/ERR_/] },
    );
});

test("a list that is longer than a page says so, and shows the rest when asked", async () => {
    const prepare = (mock) => {
        mock.left_out = 1;
        for (let i = 0; i < 501; i++) mock.world.start("order", `quiet-${i}`, {});
        for (let i = 0; i < 501; i++) mock.world.find("order", `quiet-${i}`).dead = "charge_card";
    };
    await session(
        async ({ mock, page }) => {
            const rows = () => page.locator("[role=table]").getAttribute("aria-rowcount");
            await page.getByText("The first 500.").waitFor();
            assert.equal(await rows(), "501");
            await page.getByText("1 instance could not be read").waitFor();
            await page.getByRole("button", { name: "Show more" }).click();
            await page.getByText("The first 500.").waitFor({ state: "detached" });
            assert.equal(await rows(), "502");
            // It stays as long as it was asked for.
            mock.world.find("order", "quiet-7").dead = null;
            mock.world.start("order", "quiet-more", {});
            await page.waitForFunction(() => document.querySelector("[role=table]").getAttribute("aria-rowcount") === "501");
        },
        { prepare, path: "/effects?dead=true", mock: { orders: 0 } },
    );
});
