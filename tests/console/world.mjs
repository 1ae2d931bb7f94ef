// SPDX-License-Identifier: MIT
// Copyright the detent authors

// A small living world for the mock: orders that move, tasks that fail, slots that fill.
//
// It keeps a log with positions that skip, as the real one may, and answers with the objects of
// src/program/api/openapi.yaml. Nothing in it is a copy of the engine: it only has to look right.

import { Flows } from "./flows.mjs";
import { Workers } from "./workers.mjs";

const SECOND = 1000;

function field(name, type, more = {}) {
    return { name, type, sensitive: false, ...more };
}

function state(name, more = {}) {
    return { name, initial: false, final: false, timeout: null, ...more };
}

function event(name, more = {}) {
    return { name, internal: false, unhandled: "error", payload: null, ...more };
}

function on(from, name, to, more = {}) {
    return { from, event: name, outcome: "goto", to, ...more };
}

export const ORDER = {
    type: "machine", name: "order", version: 3, served: true, initial: "pending", data: "order_data",
    states: [
        state("pending", { initial: true }),
        state("charging"),
        state("paid", { timeout: { after_ms: 30000, event: "arrived" } }),
        state("shipping", { timeout: { after_ms: 86400000, event: "lost" } }),
        state("delivered", { final: true }),
        state("cancelled", { final: true }),
    ],
    events: [
        event("pay", { payload: "payment" }),
        event("cancel", { unhandled: "defer" }),
        event("note", { payload: "remark" }),
        event("ship"),
        event("refund", { payload: "amount" }),
        event("charged", { internal: true, payload: "receipt" }),
        event("declined", { internal: true }),
        event("arrived", { internal: true }),
        event("lost", { internal: true }),
    ],
    effects: [
        { name: "charge_card", produces: ["charged", "declined"] },
        { name: "send_mail", produces: [] },
    ],
    transitions: [
        on("pending", "pay", "charging", { do: ["charge_card"] }),
        on("pending", "cancel", "cancelled"),
        on("charging", "charged", "paid", { do: ["send_mail"] }),
        on("charging", "declined", "pending"),
        on("paid", "ship", "shipping", { if: "in_stock" }),
        { from: "paid", event: "ship", outcome: "stay", to: "paid", else: true },
        on("paid", "cancel", "cancelled"),
        on("paid", "arrived", "delivered"),
        { from: "paid", event: "note", outcome: "stay", to: "paid" },
        on("shipping", "arrived", "delivered", { do: ["send_mail"] }),
        on("shipping", "lost", "paid"),
        { from: "delivered", event: "refund", outcome: "stop", to: "delivered", reason: "refunded" },
    ],
    records: [
        { name: "order_data", version: 1, fields: [field("cents", "u64"), field("receipt", "str", { capacity: 64 }), field("remark", "str", { capacity: 200 })] },
        { name: "payment", version: 1, fields: [field("card", "str", { capacity: 24, sensitive: true }), field("cents", "u64"), field("gift", "bool")] },
        { name: "receipt", version: 1, fields: [field("receipt", "str", { capacity: 64 })] },
        { name: "remark", version: 1, fields: [field("remark", "str", { capacity: 200 })] },
        { name: "amount", version: 1, fields: [field("cents", "u64"), field("small", "i8")] },
    ],
};

export const SERVICE = {
    type: "machine", name: "heartbeat", version: 1, served: true, initial: "starting", data: null,
    states: [
        state("starting", { initial: true, timeout: { after_ms: 5000, event: "silent" } }),
        state("healthy", { timeout: { after_ms: 3000, event: "silent" } }),
        state("suspect", { timeout: { after_ms: 3000, event: "silent" } }),
        state("restarting"),
    ],
    events: [event("beat"), event("silent", { internal: true }), event("restarted", { internal: true })],
    effects: [{ name: "restart_service", produces: ["restarted"] }],
    transitions: [
        on("starting", "beat", "healthy"),
        on("starting", "silent", "restarting", { do: ["restart_service"] }),
        on("healthy", "beat", "healthy"),
        on("healthy", "silent", "suspect"),
        on("suspect", "beat", "healthy"),
        on("suspect", "silent", "restarting", { do: ["restart_service"] }),
        on("restarting", "restarted", "starting"),
    ],
    records: [],
};

/** Text that must stay text wherever it is shown. */
export const HOSTILE = [
    "<script>globalThis.hurt=1</script>",
    "<img src=x onerror=globalThis.hurt=1>",
    "\"><svg onload=globalThis.hurt=1>",
    "javascript:globalThis.hurt=1",
    "'-globalThis.hurt-'",
    "{{constructor.constructor('globalThis.hurt=1')()}}",
    "</title><script>globalThis.hurt=1</script>",
    "]]><script>globalThis.hurt=1</script>",
    "\u202egnp.exe \u0000\u001b[31m",
    "<a href=javascript:globalThis.hurt=1>x</a>",
    "N1 -> N2 [URL=\"javascript:globalThis.hurt=1\"]",
    "<style>*{display:none}</style><base href=//other.example/>",
];

function iso(ms) {
    return new Date(ms).toISOString();
}

function fail(status, code, text) {
    return Object.assign(new Error(text), { status, code });
}

export class World {
    constructor({ orders = 60, long = 0, workers = 0, now = Date.now() } = {}) {
        this.machines = new Map([[ORDER.name, ORDER], [SERVICE.name, SERVICE]]);
        this.instances = new Map();
        this.log = [];
        this.position = 0;
        this.listeners = new Set();
        this.keys = new Map();
        this.started = now - 5 * 3600 * SECOND;
        this.buckets = [];
        this.seed = 42;
        this.turn = 0;
        this.flows = new Flows();
        this.tasks = tasks(now);
        this.groups = groups();
        this.slots = slots(now);
        this.jobs = jobs();
        this.workers = new Workers(now, workers);
        this.lines = new Map();
        this.lineListeners = new Set();
        this.now = now;
        this.grow(orders, long);
    }

    random() {
        this.seed = (Math.imul(this.seed, 1664525) + 1013904223) >>> 0;
        return this.seed / 2 ** 32;
    }

    find(machine, id) {
        if (!this.machines.has(machine)) throw fail(404, "NOT_FOUND", `there is no machine '${machine}'`);
        const found = this.instances.get(machine + "/" + id);
        if (!found) throw fail(404, "NOT_FOUND", `${machine} ${id}: there is no such instance`);
        return found;
    }

    start(machine, id, data, at = Date.now()) {
        const definition = this.machines.get(machine);
        if (!definition) throw fail(404, "NOT_FOUND", `there is no machine '${machine}'`);
        const key = machine + "/" + id;
        if (this.instances.has(key)) throw fail(409, "EXISTS", `${machine} ${id}: it exists already`);
        const zero = definition.data === "order_data" ? { cents: 0, receipt: "", remark: "" } : {};
        const instance = {
            machine, id, state: definition.initial, stopped: false, reason: null, sequence: -1, visit: 1,
            transitions: 0, started_at: iso(at), moved_at: iso(at), moved: at, before: [],
            data: { ...zero, ...data }, rows: [], dead: null, attempts: 0,
        };
        this.instances.set(key, instance);
        this.append(instance, { type: "start", state: definition.initial, event: null }, at);
        return instance;
    }

    append(instance, row, at) {
        instance.sequence++;
        instance.moved_at = iso(at);
        instance.moved = at;
        // Positions may skip: who counts them must not think that something is missing.
        this.position += this.random() < 0.05 ? 2 : 1;
        const full = {
            ...row, machine: instance.machine, id: instance.id, sequence: instance.sequence, at: iso(at),
            position: this.position, data: { ...instance.data }, visit: instance.visit,
        };
        instance.rows.push(full);
        this.log.push(full);
        for (const listener of this.listeners) listener(full);
        return full;
    }

    transition(instance, name) {
        const all = this.machines.get(instance.machine).transitions;
        return all.find((t) => t.from === instance.state && t.event === name);
    }

    takes(instance) {
        const machine = this.machines.get(instance.machine);
        if (instance.stopped) return [];
        const names = new Set(machine.transitions.filter((t) => t.from === instance.state).map((t) => t.event));
        return machine.events.filter((e) => names.has(e.name)).map((e) => ({ event: e.name, internal: e.internal }));
    }

    send(machine, id, name, payload = null, { key = null, at = Date.now(), timeout = false } = {}) {
        const instance = this.find(machine, id);
        if (key && this.keys.has(key)) return { ...this.keys.get(key), duplicate: true };
        const row = this.transition(instance, name);
        if (instance.stopped) throw fail(409, "STOPPED", `${machine} ${id}: it has stopped`);
        if (!row) throw fail(409, "UNHANDLED", `${machine} ${id}: ${instance.state} does not take ${name}`);
        const from = instance.state;
        for (const [field, value] of Object.entries(payload ?? {})) if (field in instance.data) instance.data[field] = value;
        if (row.outcome === "goto") {
            instance.before.unshift(from);
            instance.state = row.to;
            instance.visit++;
            instance.transitions++;
        }
        if (row.outcome === "stop") {
            instance.stopped = true;
            instance.reason = row.reason ?? null;
        }
        const shown = payload && { ...payload, ...(payload.card ? { card: "[redacted]" } : {}) };
        this.append(instance, { type: "event", event: name, from, to: instance.state, outcome: row.outcome, timeout, payload: shown, event_id: key, cause: null }, at);
        const sent = { type: "sent", machine, id, event: name, outcome: row.outcome, state: instance.state, sequence: instance.sequence, visit: instance.visit, duplicate: false };
        if (key) this.keys.set(key, sent);
        return sent;
    }

    cancel(machine, id, reason) {
        const instance = this.find(machine, id);
        if (!instance.stopped) {
            instance.stopped = true;
            instance.reason = reason ?? "cancelled";
            this.append(instance, { type: "event", event: null, from: instance.state, to: instance.state, outcome: "stop", payload: null }, Date.now());
        }
        return { type: "sent", machine, id, event: null, outcome: "stop", state: instance.state, sequence: instance.sequence, visit: instance.visit, duplicate: false };
    }

    timers(instance) {
        const machine = this.machines.get(instance.machine);
        const timeout = machine.states.find((s) => s.name === instance.state).timeout;
        if (instance.stopped || !timeout) return [];
        return [{ timer: instance.state, event: timeout.event, due: iso(instance.moved + timeout.after_ms), visit: instance.visit }];
    }

    effects(instance) {
        const key = `${instance.machine}/${instance.id}/${instance.sequence}/0`;
        if (instance.dead) return [{ key, effect: instance.dead, attempts: 8, dead: true, next_at: null, last_error: "HTTP 503: the bank is closed", reason: "8 attempts failed" }];
        if (instance.state === "charging") return [{ key, effect: "charge_card", attempts: instance.attempts, dead: false, next_at: instance.attempts ? iso(instance.moved + 4000 * instance.attempts) : null, last_error: instance.attempts ? "HTTP 503" : null, reason: null }];
        return [];
    }

    row(instance) {
        const { machine, id, state, stopped, sequence, started_at, moved_at } = instance;
        return { type: "instance", machine, id, state, stopped, sequence, started_at, moved_at };
    }

    full(instance) {
        const final = this.machines.get(instance.machine).states.find((s) => s.name === instance.state).final;
        const { reason, visit, transitions, data } = instance;
        return {
            ...this.row(instance), final, reason, visit, transitions, history: instance.before.slice(0, 8), data,
            timers: this.timers(instance), effects: this.effects(instance), deferred: [],
        };
    }

    why(instance) {
        const takes = this.takes(instance);
        const sentences = [{ about: "state", text: instance.stopped ? `stopped in ${instance.state}: ${instance.reason ?? "no reason"}` : `${instance.state} for ${Math.round((Date.now() - instance.moved) / 1000)} s` }];
        if (takes.length) sentences.push({ about: "takes", text: takes.map((t) => t.event + (t.internal ? " (by itself)" : "")).join(", ") });
        for (const timer of this.timers(instance)) sentences.push({ about: "timer", text: `${timer.event} is due at ${timer.due}` });
        for (const effect of this.effects(instance)) sentences.push({ about: "effect", text: effect.dead ? `${effect.effect} is a dead letter after ${effect.attempts} attempts: ${effect.last_error}` : `${effect.effect} is running, attempt ${effect.attempts + 1} of 8` });
        return { ...this.full(instance), takes, sentences, lock: this.lock(instance) };
    }

    lock({ machine, id }) {
        return id.endsWith("7") ? { machine, id, owner: "clerk-2", until: iso(Date.now() + 60000), fence: 12 } : null;
    }

    of(machine) {
        return [...this.instances.values()].filter((i) => i.machine === machine);
    }

    summary(definition) {
        const all = this.of(definition.name);
        const states = definition.states.map((s) => {
            const here = all.filter((i) => i.state === s.name);
            const stopped = here.filter((i) => i.stopped).length;
            return { name: s.name, initial: s.initial, final: s.final, instances: here.length - stopped, stopped };
        });
        const stopped = all.filter((i) => i.stopped).length;
        const final = states.filter((s) => s.final).reduce((n, s) => n + s.instances, 0);
        return {
            name: definition.name, version: definition.version, served: true, states, active: all.length - stopped - final, final, stopped,
            timers: all.reduce((n, i) => n + this.timers(i).length, 0),
            effects: all.filter((i) => !i.dead).reduce((n, i) => n + this.effects(i).length, 0),
            dead: all.filter((i) => i.dead).length,
        };
    }

    status() {
        const by = (state) => this.tasks.filter((t) => t.state === state).length;
        return {
            kind: "status", version: "0.5.0", project: "/srv/shop", process: 4242, since: iso(this.started), state: "running",
            position: this.position, machines: this.machines.size,
            tasks: {
                registered: this.tasks.length, queued: by("queued"), running: by("running"), waiting: by("waiting"),
                backing_off: by("backoff"), resting: 0, held: by("held"), stuck: 0, added: this.tasks.length, finished: 3,
                restarts: this.tasks.reduce((n, t) => n + t.restarts, 0), rejected: 3,
            },
        };
    }

    rates() {
        const now = Date.now();
        const events = Array.from({ length: 12 }, () => 0);
        for (let i = this.log.length - 1; i >= 0; i--) {
            const age = now - Date.parse(this.log[i].at);
            if (age >= 60000) break;
            events[11 - Math.floor(Math.max(0, age) / 5000)] += 0.2;
        }
        const zero = events.map(() => 0);
        return { step_ns: 5e9, events, unhandled: zero, effects_failed: events.map((v, i) => (i % 4 === 1 ? v / 8 : 0)), restarts: zero.map((_, i) => (i === 7 || i === 10 ? 0.2 : 0)) };
    }

    /** As many points as were asked for, the last minute at their end. */
    rateHistory(span_s) {
        const count = Math.min(360, Math.floor(span_s / 5));
        const { step_ns, ...series } = this.rates();
        const long = Object.entries(series).map(([name, values]) => [name, [...Array(count - 12).fill(null), ...values]]);
        return { step_ns: step_ns * Math.ceil(span_s / 5 / 360), until: iso(Date.now()), ...Object.fromEntries(long) };
    }

    /** By machine, effect and reason. */
    deadLetters() {
        const groups = new Map();
        for (const { dead, machine, id } of this.instances.values()) {
            if (!dead) continue;
            const key = JSON.stringify([machine, dead]);
            const group = groups.get(key) ?? { about: "effect", name: dead, machine, id, ids: [], count: 0, why: "failed after 8 attempts: HTTP 503: the bank is closed" };
            group.count++;
            if (group.ids.length < 3) group.ids.push(id);
            groups.set(key, group);
        }
        return [...groups.values()];
    }

    overview() {
        const machines = [...this.machines.values()].map((m) => this.summary(m));
        const stuck = this.deadLetters();
        const letters = stuck.reduce((sum, item) => sum + item.count, 0);
        for (const task of this.tasks) if (task.state === "backoff") stuck.push({ about: "task", name: task.name, machine: null, id: null, why: `${task.failures} failures in a row: ${task.reason}` });
        const ill = this.tasks.filter((t) => !["running", "completed"].includes(t.state));
        stuck.push(...(this.workers?.stuck() ?? []));
        stuck.push(...this.flows.stuck());
        return {
            status: this.status(), machines, rates: this.rates(), stuck: stuck.slice(0, 50).map((item) => ({ count: 1, ids: [], ...item })), stuck_total: letters + stuck.filter((item) => !item.count).length, stuck_capped: false, tasks: ill, slots: this.slots,
            workers: this.workers?.summary() ?? null,
        };
    }

    backoff(task) {
        if (task.type === "job" || task.state === "completed") return [];
        return Array.from({ length: 10 }, (_, i) => {
            const base = Math.min(5e9, 5e8 * 2 ** i);
            return { failures: i + 1, base_ns: base, least_ns: base * 0.75, most_ns: base * 1.25 };
        });
    }

    say(name, text, stream = "output") {
        const line = { kind: "line", at: iso(Date.now()), name, stream, text, cut: false, dropped: 0, missed: 0 };
        const all = this.lines.get(name) ?? [];
        all.push(line);
        this.lines.set(name, all.slice(-500));
        for (const listener of this.lineListeners) listener(line);
    }

    /** The past of the world: orders at all places of their way. */
    grow(orders, long) {
        const begin = this.now - 3600 * SECOND;
        for (let i = 1; i <= orders; i++) {
            const id = `o-${String(i).padStart(4, "0")}`;
            let at = begin + i * (3000 * SECOND / orders);
            this.start("order", id, { cents: 1000 + Math.floor(this.random() * 90000) }, at);
            const ways = ["pay", "charged", "note", "ship", "arrived"].slice(0, Math.floor(this.random() * 6));
            for (const name of ways) {
                at += this.random() < 0.2 ? 240 * SECOND : 2 * SECOND * this.random();
                if (at < this.now) this.step(id, name, at);
            }
        }
        for (const name of ["web", "cache", "database"]) this.start("heartbeat", name, {}, begin);
        if (orders) this.plant(begin);
        for (let i = 0; i < long; i++) this.start("order", `x-${String(i).padStart(6, "0")}`, {}, begin);
        for (const task of this.tasks) for (let i = 0; i < 40; i++) this.say(task.name, `${task.name}: request ${i} took ${(this.random() * 20).toFixed(1)} ms`);
    }

    /** Orders that every world has: one given up, one that fails, one that waits, one that is done. */
    plant(begin) {
        const ways = { "o-9001": [], "o-9002": ["pay"], "o-9003": ["pay"], "o-9004": ["pay", "charged", "note", "ship", "arrived"] };
        for (const [id, way] of Object.entries(ways)) {
            this.start("order", id, { cents: 4200 }, begin);
            way.forEach((name, i) => this.step(id, name, begin + (i + 1) ** 4 * SECOND));
        }
        this.find("order", "o-9002").dead = "charge_card";
        this.find("order", "o-9003").attempts = 3;
    }

    step(id, name, at = Date.now()) {
        const payloads = {
            pay: { card: "4242", cents: 1999, gift: false },
            charged: { receipt: "r-" + Math.floor(this.random() * 1e6) },
            note: { remark: "leave it at the door" },
        };
        const instance = this.find("order", id);
        if (!this.transition(instance, name)) return;
        this.send("order", id, name, payloads[name] ?? null, { at, timeout: name === "arrived" });
    }

    /** A moment of life. */
    tick() {
        this.turn++;
        const all = this.of("order").filter((i) => !i.stopped && !i.dead && !/^(quiet|x-|o-9)/.test(i.id));
        const some = all[Math.floor(this.random() * all.length)];
        const next = some && this.takes(some).filter((t) => t.event !== "refund" && t.event !== "cancel" && t.event !== "lost");
        if (next?.length) this.step(some.id, next[Math.floor(this.random() * next.length)].event);
        if (this.turn % 9 === 0) this.start("order", `o-${String(1000 + this.turn)}`, { cents: this.turn * 100 });
        const beats = ["web", "cache", "database"];
        const beat = this.find("heartbeat", beats[this.turn % 3]);
        if (this.transition(beat, "beat")) this.send("heartbeat", beat.id, "beat");
        const task = this.tasks[this.turn % this.tasks.length];
        if (task.state === "running") this.say(task.name, `${task.name}: request ${this.turn} took ${(this.random() * 20).toFixed(1)} ms`);
        const ill = this.tasks.find((t) => t.name === "worker");
        if (ill.next_at && Date.parse(ill.next_at) < Date.now()) {
            ill.restarts++;
            ill.attempt++;
            ill.next_at = iso(Date.now() + 4000);
            this.say("worker", "worker: cannot reach the queue: connection refused", "error");
        }
    }
}

function task(id, name, group, more = {}) {
    return {
        kind: "task", id, name, group, slot: null, type: "process", state: "running", ready: true, healthy: true, attempt: 1,
        failures: 0, restarts: 0, since: null, next_at: null, reason: null, process: 4300 + id, waits_for: null,
        last: { outcome: "none", exit_code: null, signal: null }, ...more,
    };
}

function tasks(now) {
    const since = iso(now - 4 * 3600 * SECOND);
    return [
        task(1, "prepare", null, { state: "completed", process: null, since, last: { outcome: "completed", exit_code: 0, signal: null } }),
        task(2, "database", "back", { since }),
        task(3, "cache", "back", { since, restarts: 2, last: { outcome: "failed", exit_code: null, signal: "SIGKILL" } }),
        task(4, "web", "front", { since: iso(now - 95 * SECOND), restarts: 1 }),
        task(5, "worker", "front", { state: "backoff", process: null, failures: 4, restarts: 6, ready: false, healthy: false, next_at: iso(now + 4 * SECOND), since: iso(now - 2 * SECOND), reason: "exit code 1: cannot reach the queue: connection refused", last: { outcome: "failed", exit_code: 1, signal: null } }),
        task(6, "mailer", "front", { state: "held", process: null, ready: false, healthy: false, since, waits_for: "worker: not healthy yet" }),
        task(7, "report", null, { slot: "batch", since: iso(now - 12 * SECOND), type: "job" }),
    ];
}

function groups() {
    const group = (name, parent, strategy, members, more = {}) => ({ kind: "group", name, parent, strategy, state: "running", members, restarts: 0, restarts_max: 5, window_ns: 3e10, reason: null, ...more });
    return [group("back", null, "rest-for-one", 2), group("front", null, "one-for-one", 3, { restarts: 3, restarts_max: 10 })];
}

function slots(now) {
    const slot = (name, more) => ({ kind: "slot", name, state: "open", durable: false, width: 1, depth: 0, depth_max: 10, owners: 0, owner: null, owner_name: null, since: null, started: 0, rejected: 0, replaced: 0, ...more });
    return [
        slot("batch", { owners: 1, owner: 7, owner_name: "report", since: iso(now - 12 * SECOND), depth: 2, started: 42, rejected: 3 }),
        slot("invoices", { durable: true, width: 4, depth: 7, depth_max: null, owners: 3, owner_name: "inv-0012", started: null, rejected: null, replaced: null }),
        slot("thumbnails", { width: 2, started: 130 }),
    ];
}

function jobs() {
    const states = ["running", "running", "running", "queued", "queued", "failed", "done", "done", "delayed"];
    return states.map((state, i) => ({ id: `inv-${String(12 + i).padStart(4, "0")}`, queue: "invoices", state, attempts: state === "queued" ? 0 : 1 + (i % 3), submitted_at: iso(Date.now() - (9 - i) * 17000), ...(state === "failed" ? { reason: "exit code 1: the printer is out of paper" } : {}) }));
}

export { fail };
