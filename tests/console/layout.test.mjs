// SPDX-License-Identifier: MIT
// Copyright the detent authors

// Long names, ids and errors at the width of a desk and of a telephone: all of them can be read.
import assert from "node:assert/strict";
import test from "node:test";
import { go } from "./browser.mjs";
import { session, shoot } from "./session.mjs";

const WIDE = { width: 1280, height: 860 };
const NARROW = { width: 390, height: 844 };
const IDS = [1, 2, 3, 4].map((i) => `invoice-2026-11-17-customer-000${i}`);
const REASON = "exit code 1: the printer on the third floor is out of paper, and nobody has answered the telephone since noon";
const LONG = "nightly-export-of-all-invoices-to-the-tax-office-in-the-capital";

/** What of the elements that fit cannot be read: wider than its box, or under a box that cuts it. */
function hidden(locator) {
    return locator.evaluateAll((all) =>
        all
            .filter((element) => {
                for (let box = element; box && box.tagName !== "MAIN"; box = box.parentElement) {
                    const style = getComputedStyle(box);
                    if (style.overflowX === "visible" && style.overflowY === "visible") continue;
                    const [inner, outer] = [element.getBoundingClientRect(), box.getBoundingClientRect()];
                    if (inner.right > outer.right + 1 || inner.bottom > outer.bottom + 1) return true;
                    if (style.overflowX === "hidden" && box.scrollWidth > box.clientWidth + 1 && box.contains(element) && box.textContent === element.textContent) return true;
                }
                return element.getBoundingClientRect().width === 0;
            })
            .map((element) => element.textContent),
    );
}

/** Elements with exactly this text, or that begin with it. */
function shown(page, text, exact = true) {
    return page.locator("main").getByText(text, { exact });
}

async function readable(page, text, exact = true) {
    const found = shown(page, text, exact);
    await found.first().waitFor();
    assert.deepEqual(await hidden(found), [], `${page.url()}: ${text}`);
}

function prepare({ world }) {
    for (const id of IDS) {
        world.start("order", id, { cents: 1 });
        world.send("order", id, "pay", { cents: 1 });
        world.find("order", id).dead = "charge_card";
    }
    const effects = world.effects.bind(world);
    world.effects = (instance) => effects(instance).map((effect) => ({ ...effect, reason: REASON }));
    Object.assign(world.tasks[4], { reason: REASON, next_at: null, state: "failed" });
    world.tasks[3].name = LONG;
    Object.assign(world.slots[0], { name: LONG, owner_name: LONG + "-1" });
    world.jobs[5].reason = REASON;
    Object.assign(world.workers.items[2], { reason: REASON, degraded_by: null });
    Object.assign(world.workers.items[3], { name: LONG, id: "plant~" + LONG });
}

test("the palette shows the whole id beside a long hint", async () => {
    await session(
        async ({ mock, page }) => {
            const row = mock.world.row.bind(mock.world);
            mock.world.row = (instance) => ({ ...row(instance), state: "waiting_for_the_confirmation_of_the_warehouse_in_another_country" });
            for (const size of [WIDE, NARROW]) {
                await page.setViewportSize(size);
                await page.keyboard.press("Control+k");
                await page.keyboard.type(IDS[0]);
                const name = page.locator(".dialog li .grow", { hasText: IDS[0] });
                await name.waitFor();
                const { width, wanted, hint } = await name.evaluate((element) => ({
                    width: element.clientWidth, wanted: element.scrollWidth, hint: element.nextElementSibling.clientWidth,
                }));
                assert.ok(width >= wanted && width > 150, `${width} of ${wanted} px are shown at ${size.width} px`);
                assert.ok(hint > 40, `the hint is ${hint} px wide at ${size.width} px`);
                await shoot(page, `palette-${size.width}`);
                await page.keyboard.press("Escape");
                await page.getByRole("dialog").waitFor({ state: "detached" });
            }
        },
        { prepare },
    );
});

test("on a telephone ids that begin alike can be told apart, and errors can be read", async () => {
    await session(
        async ({ page }) => {
            await page.setViewportSize(NARROW);
            for (const place of ["/journal", "/effects?dead=true", "/machines/order?prefix=invoice", "/timers?machine=order"]) {
                await go(page, place);
                for (const id of IDS) if (!place.startsWith("/timers")) await readable(page, id);
                if (place.startsWith("/effects")) await readable(page, REASON);
                await shoot(page, `narrow${place.split("?")[0].replaceAll("/", "-")}`);
            }
            await go(page, "/");
            for (const id of IDS) await readable(page, id);
            await shoot(page, "narrow-overview");
            await go(page, "/workers");
            await readable(page, REASON);
            await readable(page, LONG);
            await shoot(page, "narrow-workers");
            await go(page, "/tasks");
            await readable(page, REASON, false);
            await readable(page, LONG);
            await shoot(page, "narrow-tasks");
            await go(page, "/slots");
            await readable(page, LONG);
            await readable(page, LONG + "-1");
            await go(page, "/slots/invoices");
            await readable(page, REASON);
            await shoot(page, "narrow-slots");
        },
        { prepare },
    );
});

test("long names of tasks, workers and slots are shown whole", async () => {
    await session(
        async ({ page }) => {
            for (const place of ["/tasks", "/workers", "/slots"]) {
                await go(page, place);
                await readable(page, LONG);
                await shoot(page, `long${place.replaceAll("/", "-")}`);
            }
        },
        { prepare },
    );
});

test("rows of different heights scroll to the last one, and few of them are in the document", async () => {
    await session(
        async ({ page }) => {
            await page.setViewportSize(NARROW);
            await page.waitForSelector(".tr.linked");
            await page.waitForFunction(() => (scrollTo(0, document.documentElement.scrollHeight), document.querySelector(".end").textContent.includes("No earlier events")));
            await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight));
            const last = page.locator(".tr.linked").last();
            await last.getByText("row-000").waitFor();
            assert.ok((await page.locator("[role=row]").count()) < 120);
            const gap = await last.evaluate((row) => document.querySelector(".end").getBoundingClientRect().top - row.getBoundingClientRect().bottom);
            assert.ok(Math.abs(gap) < 4, `${gap} px between the last row and the end`);
        },
        {
            path: "/journal",
            mock: { orders: 0 },
            prepare: ({ world }) => {
                world.log.length = 0;
                for (let i = 0; i < 600; i++) world.start("order", `row-${String(i).padStart(3, "0")}` + (i % 3 ? "" : "-" + "long-".repeat(16)), {}, Date.now() - 60000);
            },
        },
    );
});
