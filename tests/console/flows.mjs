// SPDX-License-Identifier: MIT
// Copyright the detent authors

// Flows for the mock: graphs of any size, and journals whose rows come when a test says so.

const iso = (ms) => new Date(ms).toISOString();

function stage(name, kind, connector, more = {}) {
    return { name, kind, connector, state: "running", reason: null, in: 0, out: 0, rejected: 0, keys: 0, turns: 0, blocked: 0, end: null, rate: 0, ...more };
}

function edge(from, to, more = {}) {
    return { from, to, kind: "data", record: "reading", lag: 0, credit: 4096, window: 4096, written: 0, read: 0, rate: 0, ...more };
}

/** The machine of a supervisor, small. */
function machine() {
    const names = ["created", "running", "draining", "drained"];
    return {
        type: "machine", name: "flow_source", version: 1, served: false, initial: "created", data: null, events: [{ name: "start", internal: false, unhandled: "error", payload: null }],
        states: names.map((name, i) => ({ name, initial: i === 0, final: i === 3, health: null, timeout: null })), effects: [], records: [], findings: [],
        transitions: names.slice(1).map((to, i) => ({ from: names[i], event: "start", outcome: "goto", to })),
    };
}

export class MockFlow {
    constructor(name, stages, edges, more = {}) {
        this.summary = {
            kind: "flow", name, flow: name, state: "running", reason: null, since: iso(Date.now() - 95000), run: 1, start: "auto", durability: "disk",
            rows_in: 0, rows_out: 0, rejected: 0, lag: 0, rate: 0, restarts: 0, ...more,
        };
        this.stages = stages;
        this.edges = edges;
        this.rows = [];
        this.position = 0;
        this.listeners = new Set();
        this.fact("opened", null);
        this.fact("running", null);
        for (const { name: one } of stages) this.fact("stage_running", one);
    }

    put(stream, kind, more) {
        const row = { position: ++this.position, stream, sequence: this.rows.filter((r) => r.stream === stream).length + 1, kind, at: iso(Date.now()), ...more };
        this.rows.push(row);
        for (const listener of this.listeners) listener(row);
        return row;
    }

    fact(fact, one, reason = null) {
        return this.put("system", "fact", { fact, stage: one, reason, rows_in: 0, rows_out: 0, rejected: 0 });
    }

    data(stream, value) {
        const of = this.stages.find((s) => s.name === stream);
        of.out++;
        this.summary.rows_in += of.kind === "source" ? 1 : 0;
        return this.put(stream, "data", { event_time: iso(Date.now()), correlation: this.position, parent: null, value });
    }

    reject(stream, why, text, value, marked = false) {
        this.stages.find((s) => s.name === stream).rejected++;
        this.summary.rejected++;
        return this.put(marked ? stream : `${stream}.errors`, "rejected", { event_time: iso(Date.now()), correlation: 1, parent: 1, why, text, value });
    }

    full() {
        const journal = { begin: 1, position: this.position, acknowledged: this.position, bytes: 4200000, segments: 2, torn: 1, writes: 12, syncs: 9 };
        return { ...this.summary, stages: this.stages, edges: this.edges, journal };
    }

    order(word) {
        Object.assign(this.summary, { state: word === "run" ? "running" : "stopped", reason: word === "run" ? null : "stop requested", since: iso(Date.now()) });
        return this.full();
    }

    page(query, limit) {
        const backward = query.backward === "true";
        const after = query.after === undefined ? (backward ? Infinity : 0) : Number(query.after);
        const fits = (row) => (query.stream ? row.stream === query.stream : true) && (!query.kind || row.kind === query.kind) && (backward ? row.position < after : row.position > after);
        const rows = this.rows.filter(fits);
        if (backward) rows.reverse();
        const items = rows.slice(0, limit);
        return { items, next: rows.length > limit ? items.at(-1).position : null, position: this.position, run: this.summary.run ?? 0 };
    }
}

export const HOSTILE_STAGE = { headers: "{redacted}", url: "http://127.0.0.1:1/rows" };

/** A graph with each kind of stage and edge. */
export function readings() {
    const flow = new MockFlow(
        "readings",
        [
            stage("rooms", "source", "csv", { end: "natural", state: "drained", out: 3 }), stage("measure", "source", "http_pull", { rate: 250 }), stage("warm", "transform", "filter", { rate: 120, rejected: 0 }),
            stage("mean", "stateful", "window", { keys: 12 }), stage("locate", "join", "join", { keys: 3 }), stage("store", "sink", "sqlite", { rate: 12 }),
        ],
        [edge("rooms", "locate", { kind: "reference", record: "room" }), edge("measure", "warm", { rate: 250, lag: 4096, credit: 0 }), edge("warm", "mean", { rate: 120 }), edge("mean", "locate", { lag: 1200, credit: 900 }), edge("locate", "store"), edge("mean", "warm", { kind: "back" })],
    );
    flow.summary.rate = 12;
    return flow;
}

/** A chain with so many stages. */
export function chain(name, count) {
    const names = Array.from({ length: count }, (_, i) => `stage_${String(i + 1).padStart(2, "0")}`);
    const kind = (i) => (i === 0 ? "source" : i === count - 1 ? "sink" : "transform");
    return new MockFlow(name, names.map((one, i) => stage(one, kind(i), "map", { rate: 10 })), names.slice(1).map((to, i) => edge(names[i], to)));
}

export class Flows {
    constructor(items = []) {
        this.items = items;
    }

    find(name) {
        return this.items.find((flow) => flow.summary.name === name);
    }

    stuck() {
        const failed = this.items.filter(({ summary }) => ["failed", "backing_off"].includes(summary.state));
        return failed.map(({ summary }) => ({ about: "flow", name: summary.name, machine: null, id: null, why: summary.reason }));
    }

    stage(flow, name) {
        const found = flow.stages.find((one) => one.name === name);
        return found && { name, kind: found.kind, connector: found.connector, in: null, reference: null, out: "reading", key: null, reference_key: null, with: ["retries"], settings: HOSTILE_STAGE, machine: machine() };
    }
}
