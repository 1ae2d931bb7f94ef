// SPDX-License-Identifier: MIT
// Copyright the detent authors

// The console of the program itself, in one browser, on one page: every screen, looked at by axe and
// kept as a picture; live within a second; what can be done; and kill -9.
import assert from "node:assert/strict";
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import test, { after, before } from "node:test";
import { go, launch, load, open, violations } from "./browser.mjs";
import { Daemon } from "./driver.mjs";
import { populate, TEXTS } from "./people.mjs";
import { SCREENS } from "./screens.mjs";

const SHOTS = process.env.DETENT_SHOTS ?? "shots";
const LIVE_MS = 1000; // on an idle machine
const SAMPLE_MS = 50;
const WIDE = { width: 1280, height: 900 };
const NARROW = { width: 390, height: 844 };

/** A line of what the flow follows. */
const reading = (sensor, remark = "") => JSON.stringify({ sensor, celsius: 30, remark }) + "\n";

let server, page, wrong;
/** Console lines that a test brings about, for as long as it does. */
const expected = [];
/** The token of the page, as the daemon is told it. */
let token = null;

before(async () => {
    mkdirSync(SHOTS, { recursive: true });
    rmSync(join(SHOTS, "daemon.log"), { force: true });
    server = new Daemon(process.env.DETENT, process.env.DETENT_PROJECT, join(SHOTS, "daemon.log"));
    server.file("hostile.txt", TEXTS.join("\n") + "\n");
    server.file("readings.txt", TEXTS.map((text, i) => reading(`s-${i}`, text)).join("") + "no reading\n");
    await server.start();
    const [browser] = await Promise.all([launch(), populate(server)]);
    ({ page, wrong } = await open(browser, server.base, { ...WIDE, expected }));
    page.on("request", (request) => (token = request.headers().authorization?.slice(7) ?? token));
    await page.goto(`${server.base}/#code=${server.code}`);
    await page.waitForSelector(".connection.live");
});

after(() => server.end());

/** A test on the page; nothing else may have gone wrong on it. */
function check(name, body) {
    test(name, async (told) => {
        await body(told);
        assert.deepEqual(wrong.splice(0), []);
    });
}

async function show({ path, ready, act }) {
    await go(page, path);
    await page.locator(ready).first().waitFor();
    await page.waitForFunction(() => !document.querySelector(".skeleton"));
    await act?.(page);
}

async function shoot(name) {
    await page.evaluate(() => scrollTo(0, 0));
    await page.screenshot({ path: join(SHOTS, `${name}.png`), fullPage: true });
}

/** What of hostile text has become more than text. */
function harm() {
    return page.evaluate(() => [
        ...(globalThis.hurt === undefined ? [] : ["a script ran"]),
        ...[...document.querySelectorAll("#app script, #app img, #app base, #app style, #app [onload], #app [onerror], #app a[href^=javascript]")].map((e) => e.outerHTML),
    ]);
}

check("every screen, light and dark: no serious violation, no error, hostile text is text", async () => {
    const found = [];
    for (const screen of SCREENS) {
        if (screen.expected) expected.push(screen.expected);
        await show(screen);
        found.push(...(await harm()).map((text) => `${screen.name}: ${text}`));
        found.push(...(await violations(page)).map((text) => `${screen.name}, light: ${text}`));
        assert.equal(await page.getByRole("alert").count(), 0, screen.name);
        await shoot(`${screen.name}-light`);
        // Dark and light differ in colours alone.
        await page.emulateMedia({ colorScheme: "dark" });
        found.push(...(await violations(page, ["color-contrast"])).map((text) => `${screen.name}, dark: ${text}`));
        await shoot(`${screen.name}-dark`);
        await page.emulateMedia({ colorScheme: "light" });
        await screen.after?.(page);
        expected.length = 0;
    }
    assert.deepEqual(found, []);
});

check("no screen is wider than a telephone", async () => {
    await page.setViewportSize(NARROW);
    for (const screen of SCREENS) {
        if (screen.expected) expected.push(screen.expected);
        await show(screen);
        const width = await page.evaluate(() => document.documentElement.scrollWidth);
        assert.ok(width <= NARROW.width, `${screen.name} is ${width} wide`);
        await shoot(`${screen.name}-narrow`);
        await screen.after?.(page);
        expected.length = 0;
    }
    await page.setViewportSize(WIDE);
});

check("hostile text is shown letter by letter", async () => {
    for (let i = 0; i < TEXTS.length; i++) {
        await show({ path: `/machines/order/instances/h-${i}`, ready: ".node.current" });
        assert.equal(await page.locator(".data div", { hasText: "remark" }).locator("dd .value").last().textContent(), TEXTS[i]);
    }
    await show({ path: "/tasks/web", ready: ".log-row" });
    const lines = (await page.locator(".log-row > span").allTextContents()).join("\n");
    // A line of output has its own limit; what is longer goes on in the next one.
    for (const text of TEXTS) assert.ok(lines.includes(text.slice(0, 4000)), text.slice(0, 80));
});

/** Notes in the page when an element that fits `selector` first has `text`; it must not have it yet. */
function expectToSee(selector, text) {
    return page.evaluate(
        ([wanted, inside]) => {
            const there = () => [...document.querySelectorAll(wanted)].some((element) => element.textContent.includes(inside));
            if (there()) throw new Error(`${inside} is there already`);
            globalThis.seen = new Promise((resolve) => {
                const observer = new MutationObserver(() => {
                    if (!there()) return;
                    observer.disconnect();
                    resolve(Date.now());
                });
                observer.observe(document.body, { subtree: true, childList: true, characterData: true, attributes: true });
            });
        },
        [selector, text],
    );
}

/**
 * What `act` commits is seen before a second of an idle machine is over, by the clock that we and
 * the page share: the most that was ready to run meanwhile makes it longer.
 */
async function live(told, act) {
    let most = load();
    const sampler = setInterval(() => (most = Math.max(most, load())), SAMPLE_MS);
    try {
        await act();
        const committed = Date.now();
        const took = (await page.evaluate(() => globalThis.seen)) - committed;
        told.diagnostic(`seen after ${took} ms, ${most.toFixed(1)} ready for each processor`);
        assert.ok(took < LIVE_MS * most, `${took} ms`);
    } finally {
        clearInterval(sampler);
    }
}

const pay = (id, card) => server.send("order", id, "pay", { card, cents: 77, channel: "shop" });
const LIVE = [
    { name: "Overview", path: "/", ready: ".log-line", sees: [".log-line", "l-overview"], act: () => server.begin("order", "l-overview", {}) },
    { name: "Machine", path: "/machines/order?prefix=l-", ready: ".node .count", sees: [".tr.linked", "l-machine"], act: () => server.begin("order", "l-machine", {}) },
    { name: "Instance", path: "/machines/order/instances/l-machine", ready: ".moved", sees: [".moved", "pay"], act: () => pay("l-machine", "4242") },
    { name: "Timers", path: "/timers", ready: ".tr.linked", sees: [".tr.linked", "l-timers"], act: () => server.begin("order", "l-timers", {}) },
    { name: "Effects", path: "/effects", ready: ".tr .badge", sees: [".tr", "l-timers"], act: () => pay("l-timers", "9000") },
    { name: "Tree", path: "/tasks", ready: ".task-row", sees: ['.task-row[href="/tasks/clock"]', "stopped"], act: () => server.ask("POST", "/tasks/clock/stop", {}) },
    { name: "Slots", path: "/slots", ready: ".tr.linked", sees: [".tr.linked", "thumb-1"], act: () => server.submit("thumbnails", "thumb-1", "bin/wait") },
    { name: "Workers", path: "/workers", ready: ".worker-name", sees: [".tr.linked", "l-worker"], act: () => server.ask("PUT", "/workers/plant~l-worker", { kind: "helloworld" }) },
    { name: "Worker", path: "/workers/plant~hello", ready: ".happened", sees: [".head", "disabled"], act: () => server.ask("POST", "/workers/hello/order", { order: "disable" }) },
    { name: "Flow", path: "/flows/readings?stage=warm", ready: ".flow-rows .tr", sees: [".flow-rows .tr", "l-flow"], act: () => server.append("readings.txt", reading("l-flow")) },
    { name: "Journal", path: "/journal", ready: ".tr.linked", sees: [".tr.linked", "l-journal"], act: () => server.begin("order", "l-journal", {}) },
];

for (const { name, path, ready, sees, act } of LIVE)
    check(`${name}: what is committed is on the screen within a second`, async (told) => {
        await show({ path, ready });
        await expectToSee(...sees);
        await live(told, act);
    });

check("the counts of the overview and of the drawing follow within a second", async (told) => {
    const active = async () => (await server.ask("GET", "/machines")).items.find((m) => m.name === "subscription").active;
    for (const [path, selector, text] of [["/", ".machine-count-head", (n) => `${n} active`], ["/machines/subscription", ".below", (n) => `${n} active`]]) {
        await show({ path, ready: selector });
        const more = (await active()) + 1;
        await expectToSee(selector, text(more));
        await live(told, () => server.begin("subscription", `c-${more}`));
    }
});

check("only events that are legal now have a button; one is sent by it, with all digits of its numbers", async () => {
    await server.begin("order", "b-1", { cents: 5 });
    await show({ path: "/machines/order/instances/b-1", ready: ".events .button" });
    const names = async () => (await page.locator(".events .button").allTextContents()).sort();
    assert.deepEqual(await names(), ["cancel", "pay"]);
    await page.getByRole("button", { name: "pay", exact: true }).click();
    await page.getByLabel("card").fill("4242");
    await page.getByLabel("channel").selectOption("phone");
    await page.getByLabel("cents").fill("18446744073709551616");
    assert.equal(await page.getByRole("button", { name: "Send pay" }).isDisabled(), true);
    await page.getByText("from 0 to 18446744073709551615").waitFor();
    await page.getByLabel("cents").fill("18446744073709551615");
    await page.getByRole("button", { name: "Send pay" }).click();
    await page.locator(".data dd").getByText("18446744073709551615").first().waitFor();
    await page.locator(".head .chip").getByText("paid").waitFor();
    await page.waitForFunction(() => document.querySelectorAll(".events .button").length === 3);
    assert.deepEqual(await names(), ["cancel", "note", "ship"]);
});

check("the slider shows state and data of any event", async () => {
    await page.getByRole("slider", { name: "Time" }).focus();
    await page.keyboard.press("Home");
    await page.getByText("looking at the start").waitFor();
    await page.locator(".node.current").getByText("pending").waitFor();
    await page.locator(".data dd").getByText("5", { exact: true }).waitFor();
    assert.match(page.url(), /[?&]at=0/);
    assert.equal(await page.locator(".events .button").count(), 0);
    await page.keyboard.press("ArrowRight");
    await page.locator(".node.current").getByText("charging").waitFor();
    await page.getByRole("button", { name: "Back to now" }).first().click();
    await page.locator(".node.current").getByText("paid").waitFor();
    assert.doesNotMatch(page.url(), /at=/);
});

check("what destroys something asks again in its place", async () => {
    const ask = page.getByRole("button", { name: "Cancel instance" });
    await ask.click();
    await page.keyboard.press("Escape");
    await ask.click();
    await page.getByText("It stops for good.").waitFor();
    assert.equal((await server.ask("GET", "/machines/order/instances/b-1")).stopped, false);
    await ask.click();
    await page.getByText("It has stopped: it takes no more events.").waitFor();
    assert.equal((await server.ask("GET", "/machines/order/instances/b-1")).stopped, true);
});

check("a dead letter is tried again by its button", async () => {
    await show({ path: "/effects?dead=true", ready: ".td .badge.bad" });
    const letter = page.locator(".tr", { hasText: "o-1011" });
    server.file("paper", "");
    await letter.getByRole("button", { name: "Retry" }).click();
    await letter.waitFor({ state: "detached" });
    assert.equal((await server.ask("GET", "/effects?dead=true")).items.length, 3);
});

check("a task is restarted by its button, and what it writes then is followed", async () => {
    await show({ path: "/tasks/web", ready: ".log-row" });
    const starts = () => page.locator(".log-row").getByText("listens on port").count();
    const before = await starts();
    await page.getByRole("button", { name: "Restart" }).click();
    await page.getByText("It begins anew.").waitFor();
    await page.getByRole("button", { name: "Restart" }).click();
    await page.waitForFunction((old) => [...document.querySelectorAll(".log-row")].filter((row) => row.textContent.includes("listens on port")).length > old, before);
});

check("a flow that waits is run by its button, and its rows are counted to the end", async () => {
    await show({ path: "/flows/nightly", ready: ".flow-stage" });
    await page.getByRole("button", { name: "Run", exact: true }).click();
    await page.locator(".head .badge").getByText("completed").waitFor();
    await page.getByText("2 000 in all".replace(" ", "\u202f")).first().waitFor();
});

check("a worker is told to run again by its button, and over kill -9 the tree is followed", async () => {
    await show({ path: "/workers/plant~hello", ready: ".happened" });
    await page.getByRole("button", { name: "Enable" }).click();
    await page.getByText("It runs again.").waitFor();
    await page.getByRole("button", { name: "Enable" }).click();
    await page.locator(".head .badge").getByText("running").waitFor();
    await show({ path: "/workers", ready: ".worker-name" });
    expected.push(/ERR_/);
    await server.kill();
    await page.waitForSelector(".connection.waiting");
    await server.start();
    await page.waitForSelector(".connection.live");
    await page.locator(".worker-name").getByText("l-worker").waitFor();
    await server.ask("DELETE", "/workers/l-worker");
    await page.locator(".worker-name").getByText("l-worker").waitFor({ state: "detached" });
    assert.equal((await server.ask("GET", "/workers/hello")).counts.startups, 2);
    expected.length = 0;
});

check("over kill -9 of the daemon no row of a flow is missed and none is doubled", async () => {
    const wanted = [];
    const write = (count) => {
        for (let i = 0; i < count; i++) {
            wanted.push(`kill-${wanted.length}`);
            server.append("readings.txt", reading(wanted.at(-1)));
        }
    };
    const seen = () => page.locator(".flow-rows .td:nth-child(3)").allTextContents();
    expected.push(/ERR_/);
    await show({ path: "/flows/readings?stage=warm", ready: ".flow-rows .tr" });
    for (let round = 0; round < 2; round++) {
        write(10);
        await page.locator(".flow-rows .td").getByText(wanted.at(-1), { exact: true }).waitFor();
        await server.kill();
        await page.waitForSelector(".connection.waiting");
        write(10);
        await server.start();
        await page.waitForSelector(".connection.live");
        await page.locator(".flow-rows .td").getByText(wanted.at(-1), { exact: true }).waitFor();
    }
    assert.deepEqual((await seen()).filter((name) => name.startsWith("kill-")).reverse(), wanted);
    expected.length = 0;
});

check("over kill -9 and a restart no event is missed and none is doubled", async () => {
    const acknowledged = [];
    const start = async () => {
        const id = `kill-${acknowledged.length}`;
        await server.begin("order", id, {});
        acknowledged.push(id);
    };
    expected.push(/ERR_/);
    await show({ path: `/journal?state=pending&since=${new Date().toISOString()}`, ready: ".empty" });
    for (let round = 0; round < 2; round++) {
        for (let i = 0; i < 12; i++) await start();
        await server.kill();
        await page.waitForSelector(".connection.waiting");
        if (!round) await shoot("reconnecting");
        await server.start();
        // What happens while nobody listens must be there as well.
        for (let i = 0; i < 12; i++) await start();
        await page.waitForSelector(".connection.live");
    }
    await page.waitForFunction((count) => document.querySelectorAll(".tr.linked").length >= count, acknowledged.length);
    assert.deepEqual((await page.locator(".tr.linked .id").allTextContents()).sort(), acknowledged.sort());
    expected.length = 0;
});

check("who signs out is signed out at the daemon too", async () => {
    const used = token;
    assert.equal(await server.takes(used), true);
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByLabel("Token").waitFor();
    while (await server.takes(used)) await new Promise((resolve) => setTimeout(resolve, 20));
});
