// SPDX-License-Identifier: MIT
// Copyright the detent authors

// Every screen of the console, with what shows that it is there.

export const SCREENS = [
    { name: "overview", path: () => "/", ready: ".tile" },
    { name: "machines", path: () => "/machines", ready: ".tr.linked" },
    { name: "machine", path: () => "/machines/order", ready: ".node .count" },
    {
        name: "machine-start", path: () => "/machines/heartbeat", ready: ".node",
        act: (page) => page.getByRole("button", { name: "Start an instance" }).click(),
    },
    { name: "instance", path: () => "/machines/order/instances/o-9004", ready: ".node.current" },
    {
        name: "instance-past", path: () => "/machines/order/instances/o-9004?at=3", ready: ".moment",
    },
    {
        name: "instance-send", path: () => "/machines/order/instances/o-9001", ready: ".events .button",
        act: (page) => page.getByRole("button", { name: "pay", exact: true }).click(),
    },
    { name: "timers", path: () => "/timers", ready: ".tr.linked" },
    { name: "effects", path: () => "/effects", ready: ".td .badge.bad" },
    { name: "tasks", path: () => "/tasks", ready: ".task-row" },
    { name: "task", path: () => "/tasks/worker", ready: ".log-row" },
    { name: "slots", path: () => "/slots", ready: ".tr.linked" },
    { name: "slot", path: () => "/slots/invoices", ready: ".tr .badge" },
    { name: "journal", path: () => "/journal", ready: ".tr.linked" },
    {
        name: "simulator", path: () => "/simulator?machine=order", ready: ".node.current",
        act: async (page) => {
            await page.getByRole("button", { name: "→ charging" }).click();
            await page.getByRole("button", { name: "→ paid" }).click();
        },
    },
    {
        name: "simulator-paste", path: () => "/simulator?source=paste", ready: "textarea",
        act: async (page) => {
            await page.getByRole("button", { name: "Check and play" }).click();
            await page.waitForSelector(".node");
        },
    },
    { name: "missing", path: () => "/machines/none", ready: ".empty" },
    { name: "nowhere", path: () => "/no/such/view", ready: ".empty" },
    {
        name: "palette", path: () => "/machines", ready: ".tr.linked",
        act: async (page) => {
            await page.keyboard.press("/");
            await page.keyboard.type("o-9");
            await page.waitForSelector(".dialog li:nth-child(3)");
        },
        after: (page) => page.keyboard.press("Escape"),
    },
];
