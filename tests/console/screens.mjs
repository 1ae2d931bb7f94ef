// SPDX-License-Identifier: MIT
// Copyright the detent authors

// Every screen of the console on the project of the tests, with what shows that it is there.

const press = (name) => (page) => page.getByRole("button", { name, exact: true }).click();

export const SCREENS = [
    { name: "overview", path: "/", ready: ".machine-count" },
    { name: "machines", path: "/machines", ready: ".tr.linked" },
    { name: "machine", path: "/machines/order", ready: ".node .count" },
    { name: "machine-long", path: "/machines/subscription", ready: ".stuck .badge.warn" },
    { name: "machine-locks", path: "/machines/order?tab=locks", ready: ".empty" },
    { name: "machine-start", path: "/machines/order?show=stopped", ready: ".node", act: press("Start an instance") },
    { name: "machine-definition", path: "/machines/order?tab=definition", ready: ".plain-table" },
    { name: "instance", path: "/machines/order/instances/o-1013", ready: ".node.current" },
    { name: "instance-past", path: "/machines/order/instances/o-1013?at=2", ready: ".moment" },
    { name: "instance-retries", path: "/machines/order/instances/o-1005", ready: ".node.current" },
    { name: "instance-dead", path: "/machines/order/instances/o-1010", ready: ".lines .badge.bad" },
    { name: "instance-hostile", path: "/machines/order/instances/h-0", ready: ".node.current" },
    { name: "instance-long", path: `/machines/order/instances/${"long-".repeat(25)}1`, ready: ".node.current" },
    { name: "instance-send", path: "/machines/order/instances/o-1001", ready: ".events .button", act: press("pay") },
    { name: "timers", path: "/timers", ready: ".tr.linked" },
    { name: "effects", path: "/effects", ready: ".td .badge.bad" },
    { name: "effects-dead", path: "/effects?dead=true", ready: ".td .badge.bad" },
    { name: "tasks", path: "/tasks", ready: ".task-row" },
    { name: "task", path: "/tasks/web", ready: ".log-row" },
    { name: "task-backoff", path: "/tasks/worker", ready: ".backoff .here" },
    { name: "slots", path: "/slots", ready: ".tr.linked" },
    { name: "slot", path: "/slots/batch", ready: ".fact" },
    { name: "slot-durable", path: "/slots/invoices", ready: ".tr .badge.bad" },
    { name: "workers", path: "/workers", ready: ".worker-name" },
    { name: "workers-unwell", path: "/workers?unwell=true", ready: ".worker-name" },
    { name: "worker", path: "/workers/plant~press~child-0", ready: ".sides" },
    { name: "worker-failing", path: "/workers/plant~oven", ready: ".happened .badge.bad" },
    { name: "worker-parent", path: "/workers/plant~press", ready: ".worker-tree" },
    { name: "flows", path: "/flows", ready: ".tr.linked" },
    { name: "flow", path: "/flows/readings", ready: ".flow-rows .tr" },
    { name: "flow-stage", path: "/flows/readings?stage=parse", ready: ".node.current" },
    { name: "flow-edge", path: "/flows/readings?edge=parse.warm", ready: ".flow-rows .tr" },
    { name: "flow-rejected", path: "/flows/readings?tab=rejected", ready: ".td .badge.bad" },
    { name: "flow-life", path: "/flows/readings?tab=life", ready: ".flow-life .badge" },
    { name: "flow-from", path: "/flows/readings?at=1", ready: ".flow-rows .tr" },
    { name: "flow-waiting", path: "/flows/nightly", ready: ".flow-stage" },
    { name: "journal", path: "/journal", ready: ".tr.linked" },
    { name: "journal-none", path: "/journal?id=none", ready: ".empty" },
    { name: "simulator", path: "/simulator?machine=order", ready: ".node.current", act: press("→ charging") },
    {
        name: "simulator-paste", path: "/simulator?source=paste", ready: "textarea",
        act: async (page) => {
            await press("Check and play")(page);
            await page.waitForSelector(".node");
        },
    },
    { name: "missing", path: "/machines/none", ready: ".empty", expected: /status of 404/ },
    { name: "nowhere", path: "/no/such/view", ready: ".empty" },
    {
        name: "palette", path: "/machines", ready: ".tr.linked",
        act: async (page) => {
            await page.keyboard.press("/");
            await page.keyboard.type("o-1");
            await page.waitForSelector(".dialog li:nth-child(3)");
        },
        after: (page) => page.keyboard.press("Escape"),
    },
    {
        name: "help", path: "/machines", ready: ".tr.linked",
        act: (page) => page.keyboard.press("?"),
        after: (page) => page.keyboard.press("Escape"),
    },
];
