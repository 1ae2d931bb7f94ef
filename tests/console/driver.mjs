// SPDX-License-Identifier: MIT
// Copyright the detent authors

// The server of the live tests: the mock, or `detent up` on a copy of an example.
//
// Both can start instances, send events, be killed and come back on the same port with what was
// committed.
import { spawn } from "node:child_process";
import { appendFileSync, cpSync, mkdtempSync, rmSync } from "node:fs";
import { request } from "node:http";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Mock } from "./mock.mjs";

/** A port of its own, so that the daemon comes back where it was. */
function freePort() {
    return new Promise((resolve) => {
        const server = createServer().listen(0, "127.0.0.1", () => {
            const { port } = server.address();
            server.close(() => resolve(port));
        });
    });
}

export async function driver() {
    const made = process.env.DETENT ? new Daemon(process.env.DETENT, process.env.DETENT_PROJECT) : new Stand(process.env.DETENT_DIST ?? "dist");
    await made.again();
    return made;
}

/** Something to supervise, beside the machines of the example. */
const MORE = `
slots:
  batch: {width: 1, depth: 10}
tasks:
  ticker: {run: [sh, -c, "echo ticks; exec sleep 1000"], restart: always}
`;

/** A request on a connection of its own: a kept one would be cut by the kill before. */
function once(url, options, body) {
    return new Promise((resolve, reject) => {
        const asked = request(url, { ...options, agent: false }, async (response) => {
            let text = "";
            for await (const piece of response) text += piece;
            resolve({ status: response.statusCode, answer: JSON.parse(text) });
        });
        asked.on("error", reject);
        asked.end(body);
    });
}

/** What both have: requests with a token. */
class Server {
    async ask(method, path, body) {
        const headers = { "content-type": "application/json", ...(this.token ? { authorization: "Bearer " + this.token } : {}) };
        const { status, answer } = await once(this.base + path, { method, headers }, body && JSON.stringify(body));
        if (status >= 300) throw new Error(`${path}: ${answer.error.text}`);
        return answer;
    }

    start(machine, id, data) {
        return this.ask("POST", `/v1/machines/${machine}/instances`, { id, data });
    }

    send(machine, id, event, data) {
        return this.ask("POST", `/v1/machines/${machine}/instances/${id}/events`, data ? { event, data } : { event });
    }

    /** Brings an order to where nothing happens any more; how many rows its log has then. */
    async finish(id) {
        await this.settle(id);
        for (;;) {
            const { items } = await this.ask("GET", `/v1/machines/order/instances/${id}/history?limit=1000`);
            const { final, sequence } = await this.ask("GET", `/v1/machines/order/instances/${id}`);
            if (final && items.length === sequence + 1) return items.length;
            await new Promise((resolve) => setTimeout(resolve, 50));
        }
    }
}

class Stand extends Server {
    constructor(dist) {
        super();
        this.mock = new Mock(dist, { orders: 8 });
        this.token = this.mock.token;
        this.task = "web";
    }

    async again() {
        this.base = await this.mock.start();
    }

    kill() {
        return this.mock.kill();
    }

    end() {
        return this.mock.kill();
    }

    async code() {
        const code = `c${Math.random()}`;
        this.mock.codes.add(code);
        return code;
    }

    async settle(id) {
        for (const event of ["charged", "note", "arrived"]) this.mock.world.step(id, event);
    }
}

class Daemon extends Server {
    constructor(program, project) {
        super();
        this.program = program;
        this.folder = mkdtempSync(join(tmpdir(), "detent-console-"));
        cpSync(project, this.folder, { recursive: true });
        appendFileSync(join(this.folder, "detent.yaml"), MORE);
        this.task = "ticker";
        this.links = [];
    }

    async again() {
        this.port ??= await freePort();
        this.child = spawn(this.program, ["up", "--listen", `127.0.0.1:${this.port}`], { cwd: this.folder, stdio: ["ignore", "pipe", "pipe"] });
        const link = await this.link();
        this.base = new URL(link).origin;
        this.links.push(new URLSearchParams(new URL(link).hash.slice(1)).get("code"));
        if (!this.token) this.token = (await this.ask("POST", "/v1/session", { code: this.links.pop() })).token;
    }

    /** `detent up` says where the console is. */
    link() {
        return new Promise((resolve, reject) => {
            let text = "";
            const heard = (piece) => {
                text += piece;
                const found = /http:\/\/127\.0\.0\.1:\d+\/#code=[^\s"]+/.exec(text);
                if (found) resolve(found[0]);
            };
            this.child.stdout.on("data", heard);
            this.child.stderr.on("data", heard);
            this.child.on("exit", () => reject(new Error("detent up has ended:\n" + text)));
        });
    }

    /** A code works once: each page needs one of its own. */
    async code() {
        if (!this.links.length) {
            await this.kill();
            await this.again();
        }
        return this.links.pop();
    }

    async kill() {
        const ended = new Promise((resolve) => this.child.once("exit", resolve));
        this.child.kill("SIGKILL");
        await ended;
    }

    async end() {
        await this.kill();
        rmSync(this.folder, { recursive: true, force: true });
    }

    /** Its own effects and timers bring an order to its end. */
    async settle() {}
}
