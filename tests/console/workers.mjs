// SPDX-License-Identifier: MIT
// Copyright the detent authors

// Workers for the mock: a tree with one of every phase, and with everything that can be the matter.

const iso = (ms) => new Date(ms).toISOString();

function worker(now, id, kind, more = {}) {
    const names = id.split("/");
    return {
        kind: "worker", id, parent: names.length > 1 ? names.slice(0, -1).join("/") : null, name: names.at(-1), worker_kind: kind,
        path: id, depth: names.length - 1, children: 0, state: "running", phase: "running", life: "live", reason: "healthy", degraded_by: null,
        freshness: "fresh", since: iso(now - 95000), observed_at: iso(now - 800), stop_wanted: false, shutdown_wanted: false, disabled: false,
        circuit_open: false, action_pending: false, by_hand: false,
        counts: { transitions: 2, observations: 95, startups: 3, collector_restarts: 0, restarts: 0, actions_done: 1, actions_failed: 0, failures: 0 },
        ...more,
    };
}

export class Workers {
    constructor(now, many = 0) {
        this.items = [
            worker(now, "plant", "application", { reason: "3 of 7 are healthy", phase: "degraded", state: "degraded" }),
            worker(now, "plant/press", "machine", { circuit_open: true, phase: "degraded", state: "degraded", reason: "children failed too often" }),
            worker(now, "plant/press/valve", "valve", { phase: "starting", state: "trying_to_open", reason: "not open yet, 4 failures", counts: { transitions: 1, observations: 9, startups: 1, collector_restarts: 0, restarts: 2, actions_done: 0, actions_failed: 4, failures: 4 } }),
            worker(now, "plant/press/gauge", "gauge", { freshness: "stale", observed_at: iso(now - 14000), reason: "pressure is 4.2 bar" }),
            worker(now, "plant/oven", "machine", { degraded_by: 'config, line 3: there is no field "tmeperature"; did you mean "temperature"?' }),
            worker(now, "plant/lamp", "lamp", { phase: "stopped", state: "stopped", disabled: true, stop_wanted: true, reason: "is disabled" }),
            worker(now, "plant/pump", "pump", { phase: "stopping", state: "trying_to_stop", stop_wanted: true, action_pending: true, reason: "waits for the pressure to fall" }),
            worker(now, "plant/spare", "lamp", { by_hand: true }),
            worker(now, "plant/meter", "gauge", { life: "down", phase: "stopped", state: "stopped", freshness: "never", observed_at: null, reason: "too many restarts" }),
        ];
        for (let i = 0; i < many; i++) this.items.push(worker(now, `plant/cell-${String(Math.floor(i / 20)).padStart(3, "0")}${i % 20 ? `/device-${i % 20}` : ""}`, i % 20 ? "device" : "cell"));
        this.sync = 40;
        this.deltas = [];
        this.listeners = new Set();
        this.count();
    }

    count() {
        for (const item of this.items) item.children = 0;
        const all = new Map(this.items.map((item) => [item.id, item]));
        for (const item of this.items) if (item.parent) all.get(item.parent).children++;
    }

    find(name) {
        const id = name.replaceAll("~", "/");
        return this.items.find((item) => item.id === id || item.id === "plant/" + id);
    }

    unwell(item) {
        return item.phase === "degraded" || item.freshness === "stale" || item.circuit_open || item.degraded_by !== null || item.life === "down" || item.counts.failures >= 3;
    }

    page(query, limit) {
        const fits = (item) =>
            (!query.phase || item.phase === query.phase) && (!query.kind || item.worker_kind === query.kind) &&
            (!query.below || item.id === query.below || item.id.startsWith(query.below + "/")) &&
            (query.unwell === undefined || String(this.unwell(item)) === query.unwell);
        const rows = this.items.filter(fits);
        const from = Number(query.after?.split("~")[0] ?? 0);
        // As the daemon, which ends a page at so many bytes.
        const items = rows.slice(from, from + Math.min(limit, 290));
        const end = from + items.length;
        return { items, next: end < rows.length ? `${end}~${items.at(-1).id}` : null };
    }

    detail(item) {
        const fields = item.id === "plant/oven" ? { temperature: 180, fan: true } : { address: "10.0.0.7:502" };
        const gap = item.id === "plant/oven" ? { temperature: { desired: 180, observed: 162 } } : {};
        const observed = item.freshness === "never" ? {} : { ...fields, ...(gap.temperature && { temperature: 162 }), since_boot_s: 18446744073709551615n };
        return { ...item, desired: fields, observed, gap, metrics: { reads: 9511, seconds: 0.25 }, states: { stopped: { entered: 1, total_ms: 12 }, [item.state]: { entered: 2, total_ms: 95000 } } };
    }

    history() {
        return [
            { kind: "worker_history", at: iso(Date.now() - 3000), action: "open", result: "TIMEOUT", took_ms: 30000, reason: "the valve does not answer" },
            { kind: "worker_history", at: iso(Date.now() - 9000), action: "open", result: "OK", took_ms: 12 },
            { kind: "worker_history", at: iso(Date.now() - 95000), from: "stopped", to: "trying_to_open", reason: "is to run" },
        ];
    }

    /** Something has changed; who follows is told. */
    change(item, more) {
        Object.assign(item, more);
        const delta = { sync: ++this.sync, at: iso(Date.now()), id: item.id, worker_kind: item.worker_kind, role: "observed", change: "changed", version: 2, delta: { modified: {} } };
        this.deltas.push(delta);
        for (const listener of this.listeners) listener(delta);
    }

    put(id, body) {
        const item = worker(Date.now(), id.replaceAll("~", "/"), body.kind, { by_hand: true });
        this.items.push(item);
        this.count();
        this.change(item, {});
        return { kind: "worker_put", id: item.id };
    }

    remove(item) {
        this.items = this.items.filter((one) => one !== item);
        this.count();
        this.change(item, {});
        return { kind: "worker_deleted", id: item.id };
    }

    order(item, order) {
        if (order === "disable") this.change(item, { disabled: true, stop_wanted: true, phase: "stopped", state: "stopped", reason: "is disabled" });
        else this.change(item, { disabled: false, stop_wanted: false, phase: "running", state: "running", reason: "healthy" });
        return { kind: "worker_order", id: item.id, order };
    }

    summary() {
        const by_phase = { stopped: 0, starting: 0, running: 0, degraded: 0, stopping: 0 };
        for (const item of this.items) by_phase[item.phase]++;
        const of = (holds) => this.items.filter(holds).length;
        return { workers: this.items.length, by_phase, stale: of((i) => i.freshness === "stale"), degraded: of((i) => i.degraded_by), circuits_open: of((i) => i.circuit_open), hung: 0, actions_running: 1, actions_queued: 0 };
    }

    stuck() {
        return this.items.filter((i) => this.unwell(i)).slice(0, 20).map((i) => ({ about: "worker", name: i.id, machine: null, id: null, why: i.degraded_by ?? i.reason }));
    }
}
