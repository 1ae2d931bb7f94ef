// SPDX-License-Identifier: MIT
// Copyright the detent authors

// What lives in the project of the tests: orders at all places of their way, jobs of every kind, and
// text that must stay text.
import { HOSTILE } from "./world.mjs";

/** A word without a place to break it. */
export const WORD = "w".repeat(10000);

/** What is shown as it is: no zero byte, which no line has, and no escape. */
export const TEXTS = [...HOSTILE.map((text) => text.replace(/\p{Cc}/gu, "")), "\u202eright to left\u2066 marks", WORD];

const state = (wanted) => (instance) => instance.state === wanted;

async function order(server, id, card, events = []) {
    const place = `/machines/order/instances/${id}`;
    await server.begin("order", id, { cents: 4200 });
    if (!card) return;
    await server.send("order", id, "pay", { card, cents: 1999, channel: "phone" });
    if (!card.startsWith("4")) return;
    await server.settled(place, state("paid"));
    for (const [event, data] of events) await server.send("order", id, event, data);
}

/** Begins all of them, and comes back when they stand where they stay. */
export async function populate(server) {
    const note = (remark) => ["note", { remark }];
    const ship = ["ship"];
    await Promise.all([
        ...["o-1001", "o-1002", "o-1003", "o-1004", "long-".repeat(25) + "1"].map((id) => order(server, id, null)),
        ...["o-1005", "o-1006"].map((id) => order(server, id, "9000 closed")),
        order(server, "o-1007", "4242", [note("leave it at the door")]),
        ...["o-1008", "o-1009"].map((id) => order(server, id, "4242")),
        ...["o-1010", "o-1011"].map((id) => order(server, id, "4242", [ship])),
        ...["o-1012", "o-1013"].map((id) => order(server, id, "4242", [note("ring twice"), note("or call"), ship, ["sign"]])),
        order(server, "o-1014", "4242", [["cancel"]]),
        ...TEXTS.map((text, i) => order(server, `h-${i}`, "4242", [note(text)])),
        ...["s-1", "s-2", "s-3"].map((id) => server.begin("subscription", id)),
        server.submit("invoices", "inv-0012", "true"),
        server.submit("invoices", "inv-0013", "sh", "-c", "echo '<b>no paper</b>' >&2; exit 1"),
    ]);
    for (const id of ["s-1", "s-2"]) await server.send("subscription", id, "renew");
    const ended = ({ items }) => items.every((job) => job.state === "done" || job.state === "failed");
    await server.settled("/slots/invoices/submissions", ended);
    for (const name of ["inv-0014", "inv-0015", "inv-0016"]) await server.submit("invoices", name, "bin/wait");
    await server.settled("/workers?unwell=true", ({ items }) => items.some((worker) => worker.name === "oven"));
    await server.settled("/workers?kind=examplechild&phase=running", ({ items }) => items.length === 3);
    await server.settled("/effects?dead=true", ({ items }) => items.length === 4);
    await server.settled("/tree", ({ tasks }) => tasks.find((task) => task.name === "web").state === "running");
}
