// SPDX-License-Identifier: MIT
// Copyright the detent authors

// xstate.cjs - peer of step.c: the order machine in XState. Node finds the package as it finds any
// other (NODE_PATH, or node_modules in this folder or above it); without it the exit code is 3.
//
// node xstate.cjs EVENTS COUNT prints {"nanoseconds": n}.
"use strict";
const fs = require("fs");

let xstate;
try {
    xstate = require("xstate");
} catch {
    process.exit(3);
}

const NAMES = ["pay", "ship", "deliver", "cancel", "move", "charged", "declined", "refunded",
    "expired", "late"];
const EVENTS = NAMES.map((type) => ({ type }));
const machine = xstate.createMachine({
    initial: "pending",
    states: {
        pending: { on: { pay: "charging", charged: "paid", cancel: "cancelled",
            expired: "cancelled", move: {} } },
        charging: { on: { charged: "paid", declined: "pending", move: {} } },
        paid: { on: { ship: "shipped", cancel: "refunding", move: {}, late: {} } },
        shipped: { on: { deliver: "delivered", late: {} } },
        delivered: {},
        refunding: { on: { refunded: "cancelled" } },
        cancelled: { on: { charged: "refunding" } },
    },
});

// A walk begins with an actor of its own. Making them is not what is measured, so they are made and
// started beforehand.
function walk(bytes, count) {
    const actors = [];
    for (let i = 0; i < count; i += 16)
        actors.push(xstate.createActor(machine).start());
    const started = process.hrtime.bigint();
    for (let i = 0; i < count; i++)
        actors[i >> 4].send(EVENTS[bytes[i % bytes.length]]);
    return Number(process.hrtime.bigint() - started);
}

const bytes = fs.readFileSync(process.argv[2]);
const count = Number(process.argv[3]);
walk(bytes, Math.ceil(count / 2));
console.log(JSON.stringify({ nanoseconds: walk(bytes, count) }));
