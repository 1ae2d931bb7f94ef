// SPDX-License-Identifier: MIT
// Copyright the detent authors

// A stand-in for the daemon: serves the console and answers as src/program/api/openapi.yaml says, from
// a world in memory. It is for states that are rare in the real one, and for quick tests.
//
//   node mock.mjs DIST [PORT]    prints the link, and lives until it is ended
import { createServer } from "node:http";
import { readFileSync, existsSync, statSync } from "node:fs";
import { extname, join, normalize } from "node:path";
import { pathToFileURL } from "node:url";
import { fail, World } from "./world.mjs";

const TYPES = { ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml" };
const POLICY =
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
    "font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const TOKEN = "det_mock_token";

function writeJson(value) {
    return JSON.stringify(value, (_, v) => (typeof v === "bigint" ? `\u0001${v}\u0001` : v)).replace(/"\\u0001(-?\d+)\\u0001"/g, "$1");
}

/** Digits that a double cannot hold stay digits. */
function readJson(text) {
    return JSON.parse(text.replace(/(:\s*)(-?\d{16,})(?=\s*[,}])/g, '$1"\\u0001$2"'), (_, v) =>
        typeof v === "string" && v.startsWith("\u0001") ? BigInt(v.slice(1)) : v);
}

export class Mock {
    constructor(dist, options = {}) {
        this.dist = dist;
        this.world = options.world ?? new World(options);
        this.codes = new Set(["first"]);
        this.token = TOKEN;
        this.scopes = options.scopes ?? ["read", "send", "admin"];
        this.port = options.port ?? 0;
        this.pace_ms = options.pace_ms ?? 0;
        /** Paths that fail, for tests: path -> {status, code, text}, or {cut}: it happens, and nobody is told. */
        this.faults = new Map();
        this.requests = [];
        this.sockets = new Set();
    }

    async start() {
        this.server = createServer((request, response) => void this.serve(request, response));
        this.server.on("connection", (socket) => {
            this.sockets.add(socket);
            socket.on("close", () => this.sockets.delete(socket));
        });
        await new Promise((resolve) => this.server.listen(this.port, "127.0.0.1", resolve));
        this.port = this.server.address().port;
        if (this.pace_ms) this.timer = setInterval(() => this.world.tick(), this.pace_ms);
        return `http://127.0.0.1:${this.port}`;
    }

    /** As kill -9 does it: connections are cut in the middle. The world is the disk and stays. */
    async kill() {
        clearInterval(this.timer);
        for (const socket of this.sockets) socket.destroy();
        await new Promise((resolve) => this.server.close(resolve));
    }

    async serve(request, response) {
        const url = new URL(request.url, "http://127.0.0.1");
        this.requests.push(request.method + " " + request.url);
        try {
            if (url.pathname === "/livez") return this.text(response, "ok\n");
            if (!url.pathname.startsWith("/v1")) return this.file(url.pathname, response);
            const body = await this.body(request);
            await this.api(request, response, url, body);
        } catch (error) {
            if (!error.status) console.error(error);
            this.json(response, error.status ?? 500, { error: { code: error.code ?? "FAILED", text: error.message } });
        }
    }

    async body(request) {
        let text = "";
        for await (const piece of request) text += piece;
        return text ? readJson(text) : null;
    }

    text(response, text) {
        response.writeHead(200, { "content-type": "text/plain" }).end(text);
    }

    json(response, status, value) {
        response.writeHead(status, { "content-type": "application/json", "cache-control": "no-store" }).end(writeJson(value));
    }

    file(path, response) {
        const wanted = join(this.dist, normalize(path));
        const name = path !== "/" && existsSync(wanted) && statSync(wanted).isFile() ? wanted : join(this.dist, "index.html");
        response.writeHead(200, {
            "content-type": TYPES[extname(name)] ?? "application/octet-stream",
            "content-security-policy": POLICY,
            "x-content-type-options": "nosniff",
            "referrer-policy": "no-referrer",
        });
        response.end(readFileSync(name));
    }

    async api(request, response, url, body) {
        const parts = url.pathname.split("/").slice(2).map(decodeURIComponent);
        if (parts[0] === "session" && request.method === "POST") return this.session(response, body);
        if (request.headers.authorization !== "Bearer " + this.token)
            throw fail(401, "DENIED", request.headers.authorization ? "this token is not known, or it has expired" : "a token is needed");
        const fault = this.faults.get(url.pathname);
        if (fault?.status) throw fail(fault.status, fault.code ?? "FAILED", fault.text ?? "it failed");
        const query = Object.fromEntries(url.searchParams);
        if (parts[0] === "events") return this.events(request, response, query);
        if (parts[0] === "tasks" && parts[2] === "logs" && query.follow === "true") return this.follow(request, response, parts[1], query);
        if (parts[0] === "deltas" && query.follow === "true") return this.deltas(request, response);
        if (parts[0] === "session") return request.method === "GET" ? this.json(response, 200, { scopes: this.scopes }) : this.leave(response);
        if (parts[0] === "flows" && parts[2] === "stream") return this.rows(request, response, parts[1], query);
        const answer = request.method !== "GET" ? this.write(parts, body, request) : this.read(parts, query);
        if (fault?.cut) return request.socket.destroy();
        this.json(response, request.method === "POST" && parts[3] === undefined && parts[2] === "instances" ? 201 : 200, answer);
    }

    session(response, body) {
        if (!this.codes.delete(body?.code)) throw fail(401, "DENIED", "this code is not known, or it was used already");
        this.json(response, 200, { token: this.token, expires: new Date(Date.now() + 864e5).toISOString(), scopes: ["read", "send", "admin"] });
    }

    /** The token of a link ends with its session. */
    leave(response) {
        this.token = "another";
        response.writeHead(204).end();
    }

    read(parts, query) {
        const { world } = this;
        const limit = Number(query.limit ?? 100);
        const [first, name, , id, part] = parts;
        const every = () => [...world.instances.values()].filter((i) => !query.machine || i.machine === query.machine);
        const tag = (instance) => (item) => ({ ...item, machine: instance.machine, id: instance.id });
        switch (first) {
            case "status": return world.status();
            case "overview": return world.overview();
            case "rates": return world.rateHistory(Number(query.span_s ?? 3600));
            case "tree": return { groups: world.groups, tasks: world.tasks };
            case "timers": {
                const items = every().flatMap((i) => world.timers(i).map(tag(i)));
                return this.page(items.sort((a, b) => a.due.localeCompare(b.due)), query, limit);
            }
            case "effects": {
                const items = every().flatMap((i) => world.effects(i).map(tag(i)));
                return this.page(items.filter((e) => query.dead === undefined || String(e.dead) === query.dead), query, limit);
            }
            case "flows": return this.flows(parts, query, limit);
            case "workers": return this.workers(parts, query, limit);
            case "locks": return this.page(every().map((i) => world.lock(i)).filter(Boolean), query, limit);
            case "log": return this.log(query, limit);
            case "slots":
                if (name === undefined) return { items: world.slots };
                return { items: world.jobs.filter((j) => j.queue === name && (!query.state || j.state === query.state)), next: null };
            case "tasks": {
                if (name === undefined) return { items: world.tasks };
                const task = world.tasks.find((t) => t.name === name);
                if (!task) throw fail(404, "NOT_FOUND", `there is no task '${name}'`);
                return parts[2] === "logs" ? { items: world.lines.get(name) ?? [] } : { ...task, backoff: world.backoff(task) };
            }
            case "machines": {
                if (name === undefined) return { items: [...world.machines.values()].map((m) => world.summary(m)) };
                const machine = world.machines.get(name);
                if (!machine) throw fail(404, "NOT_FOUND", `there is no machine '${name}'`);
                if (parts.length === 2) return machine;
                if (id === undefined) return this.instances(name, query, limit);
                return this.instance(world.find(name, id), part, query, limit);
            }
        }
        throw fail(404, "NOT_FOUND", "there is no such place");
    }

    flow(name) {
        const flow = this.world.flows.find(name);
        if (!flow) throw fail(404, "NOT_FOUND", `there is no flow '${name}'`);
        return flow;
    }

    flows(parts, query, limit) {
        if (parts[1] === undefined) return { items: this.world.flows.items.map((flow) => flow.summary) };
        const flow = this.flow(parts[1]);
        if (parts[2] === "rows") return flow.page(query, limit);
        if (parts[2] === "facts") return flow.page({ ...query, stream: "system" }, limit);
        if (parts[2] !== "stages") return flow.full();
        const stage = this.world.flows.stage(flow, parts[3]);
        if (!stage) throw fail(404, "NOT_FOUND", `the flow '${parts[1]}' has no stage '${parts[3]}'`);
        return stage;
    }

    /** Rows after the place of the follower; its id is run~position. */
    rows(request, response, name, query) {
        const flow = this.flow(name);
        const send = this.stream(request, response);
        const place = request.headers["last-event-id"] ?? query.after;
        const from = place === undefined ? flow.position : Number(place.split("~")[1]);
        const listener = (row) => (!query.stream || row.stream === query.stream) && send("row", row, `1~${row.position}`);
        if (place === undefined) send("hello", { run: 1 }, `1~${from}`);
        flow.rows.filter((row) => row.position > from).forEach(listener);
        flow.listeners.add(listener);
        response.on("close", () => flow.listeners.delete(listener));
    }

    workers(parts, query, limit) {
        const { workers } = this.world;
        if (!workers) throw fail(501, "UNSUPPORTED", "this detent up has no workers; add a section 'workers' to detent.yaml");
        if (parts[1] === undefined) return workers.page(query, limit);
        const item = workers.find(parts[1]);
        if (!item) throw fail(404, "NOT_FOUND", `there is no worker '${parts[1]}'`);
        return parts[2] === "history" ? { items: workers.history() } : workers.detail(item);
    }

    /** A page of a list; where the next one begins is for the server to read. */
    page(items, query, limit) {
        const from = Number(query.after?.slice(1) ?? 0);
        const end = from + limit;
        return { items: items.slice(from, end), next: items.length > end ? `p${end}` : null, left_out: this.left_out ?? 0 };
    }

    instances(name, query, limit) {
        const all = this.world.of(name)
            .filter((i) => (!query.state || i.state === query.state) && (query.stopped === undefined || String(i.stopped) === query.stopped))
            .map((i) => this.world.row(i))
            .sort((a, b) => (a.id < b.id ? -1 : 1))
            .filter((i) => !query.after || i.id > query.after);
        return { items: all.slice(0, limit), next: all.length > limit ? all[limit - 1].id : null };
    }

    instance(instance, part, query, limit) {
        if (part === undefined) return this.world.full(instance);
        if (part === "why") return this.world.why(instance);
        if (part === "history") {
            const rows = instance.rows.filter((row) => row.sequence > Number(query.after ?? -1));
            const items = rows.slice(0, limit).map(({ data, position, ...row }) => (query.data === "true" || row.type === "start" ? { ...row, data } : row));
            return { items, next: rows.length > limit ? items[items.length - 1].sequence : null };
        }
        throw fail(404, "NOT_FOUND", "there is no such place");
    }

    log(query, limit) {
        const backward = query.backward === "true";
        const after = query.after === undefined ? (backward ? Infinity : 0) : Number(query.after);
        const fits = (row) =>
            (!query.machine || row.machine === query.machine) && (!query.id || row.id === query.id) && (!query.event || row.event === query.event) &&
            (!query.state || (row.to ?? row.state) === query.state) && (!query.since || row.at >= query.since) && (!query.until || row.at < query.until);
        const rows = this.world.log.filter((row) => (backward ? row.position < after : row.position > after) && fits(row));
        if (backward) rows.reverse();
        const items = rows.slice(0, limit).map(({ data, ...row }) => (row.type === "start" ? { ...row, data } : row));
        return { items, next: rows.length > limit ? items[items.length - 1].position : null, position: this.world.position };
    }

    write(parts, body, request) {
        const { world } = this;
        const key = request.headers["idempotency-key"] ?? null;
        const [first, name, , id, part] = parts;
        if (first === "definitions") return this.check(body.spec);
        if (first === "machines" && id === undefined) {
            const made = world.start(name, body.id, body.data);
            return { type: "sent", machine: name, id: made.id, event: null, outcome: "goto", state: made.state, sequence: 0, visit: 1, duplicate: false };
        }
        if (first === "machines" && part === "events") return world.send(name, id, body.event, body.payload ?? null, { key });
        if (first === "machines" && part === "cancel") return world.cancel(name, id, body.reason);
        if (first === "machines" && part === "retry") {
            const instance = world.find(name, id);
            instance.dead = null;
            world.send(name, id, "charged", { receipt: "r-late" });
            return { kind: "retried" };
        }
        if (first === "tasks") return this.order(parts[1], parts[2]);
        if (first === "flows") return this.flow(name).order(parts[2]);
        if (first === "workers") {
            const item = world.workers.find(name);
            if (request.method === "PUT") return world.workers.put(name, body);
            return request.method === "DELETE" ? world.workers.remove(item) : world.workers.order(item, body.order);
        }
        if (first === "slots") return this.submit(parts, body);
        throw fail(404, "NOT_FOUND", "there is no such place");
    }

    order(name, what) {
        const { world } = this;
        const members = world.tasks.filter((t) => t.name === name || t.group === name);
        if (!members.length) throw fail(404, "NOT_FOUND", `there is no task or group '${name}'`);
        for (const task of members) {
            Object.assign(task, { since: new Date().toISOString(), next_at: null, reason: null, failures: 0 });
            Object.assign(task, what === "restart" ? { state: "running", process: 5000 + task.id, ready: true, healthy: true, restarts: task.restarts + 1 } : { state: "stopped", process: null, ready: false, healthy: false });
        }
        this.tell("task", { kind: "event", event: "task_" + what, name });
        return { kind: "done", count: members.length };
    }

    submit(parts, body) {
        const slot = this.world.slots.find((s) => s.name === parts[1]);
        if (!slot) throw fail(404, "NOT_FOUND", `there is no slot '${parts[1]}'`);
        if (parts[4]) {
            const job = this.world.jobs.find((j) => j.id === parts[3]);
            job.state = parts[4] === "retry" ? "queued" : "failed";
            return { kind: "changed" };
        }
        if (slot.depth_max !== null && slot.depth >= slot.depth_max) throw fail(409, "REFUSED", `${slot.name}: its queue is full`);
        slot.depth++;
        this.tell("task", { kind: "event", event: "task_added", name: body.name ?? body.run[0] });
        return { kind: "submitted", id: 99, name: body.name ?? body.run[0] + "-1", started: false, depth: slot.depth };
    }

    check(spec) {
        if (!spec.includes("FSM_NAME")) return { machine: null, dot: null, findings: [{ line: 1, column: 1, severity: "error", rule: "name", text: "a machine needs #define FSM_NAME" }] };
        const names = [...spec.matchAll(/STATE\(\w+,\s*(\w+)([^)]*)\)/g)];
        const wires = new Map([...spec.matchAll(/(?:STATE|EVENT)\((\w+),\s*(\w+)/g)].map((m) => [m[1], m[2]]));
        const states = names.map((m) => ({ name: m[1], initial: m[2].includes("INITIAL"), final: m[2].includes("FINAL"), timeout: null }));
        for (const m of spec.matchAll(/AFTER\((\w+),\s*SECONDS\((\d+)\),\s*(\w+)/g)) states.find((s) => s.name === wires.get(m[1])).timeout = { after_ms: m[2] * 1000, event: wires.get(m[3]) };
        const events = [...spec.matchAll(/EVENT\(\w+,\s*(\w+)/g)].map((m) => ({ name: m[1], internal: false, unhandled: "error", payload: null }));
        const transitions = [...spec.matchAll(/ON\((\w+),\s*(\w+),\s*(\w+)/g)].map((m) => ({ from: wires.get(m[1]), event: wires.get(m[2]), outcome: "goto", to: wires.get(m[3]) }));
        const machine = { type: "machine", name: /FSM_NAME (\w+)/.exec(spec)[1], version: 1, served: false, initial: states.find((s) => s.initial)?.name ?? states[0].name, states, events, effects: [], transitions, records: [], data: null };
        return { machine, dot: "", findings: [] };
    }

    /** To all who listen. */
    tell(event, data) {
        for (const send of this.streams ?? []) send(event, data, null);
    }

    stream(request, response) {
        response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
        const send = (event, data, id) => response.write(`${id !== null ? `id: ${id}\n` : ""}event: ${event}\ndata: ${writeJson(data)}\n\n`);
        response.write(": hello\n\n");
        return send;
    }

    events(request, response, query) {
        const { world } = this;
        const send = this.stream(request, response);
        const last = request.headers["last-event-id"] ?? query.after;
        // Who has read further than this log goes has read another one.
        const from = last === undefined ? world.position : Math.min(Number(last), world.position);
        const strip = ({ data, ...row }) => (row.type === "start" ? { ...row, data } : row);
        send("hello", { position: from }, null);
        send("status", { state: "running", away: null }, null);
        for (const row of world.log) if (row.position > from) send("log", strip(row), row.position);
        const listener = (row) => send("log", strip(row), row.position);
        world.listeners.add(listener);
        this.streams ??= new Set();
        this.streams.add(send);
        response.on("close", () => {
            world.listeners.delete(listener);
            this.streams.delete(send);
        });
    }

    deltas(request, response) {
        const { workers } = this.world;
        if (!workers) throw fail(501, "UNSUPPORTED", "no store is configured, so no worker is stored");
        const send = this.stream(request, response);
        const from = Number(request.headers["last-event-id"] ?? workers.sync);
        const listener = (delta) => send("delta", delta, delta.sync);
        send("hello", { position: from }, null);
        workers.deltas.filter((delta) => delta.sync > from).forEach(listener);
        workers.listeners.add(listener);
        response.on("close", () => workers.listeners.delete(listener));
    }

    follow(request, response, name, query) {
        const send = this.stream(request, response);
        for (const line of (this.world.lines.get(name) ?? []).slice(-Number(query.lines ?? 100))) send("line", line, null);
        const listener = (line) => line.name === name && send("line", line, null);
        this.world.lineListeners.add(listener);
        response.on("close", () => this.world.lineListeners.delete(listener));
    }
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
    const mock = new Mock(process.argv[2], { port: Number(process.argv[3] ?? 7788), pace_ms: 400 });
    console.log(`${await mock.start()}/#code=first`);
}
