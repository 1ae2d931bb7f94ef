// SPDX-License-Identifier: MIT
// Copyright the detent authors

// The daemon of the tests: `detent up` on a copy of a project, which can be killed and comes back on
// the same port with what was committed. We talk to it by its unix socket, where our user needs no
// token; the code of its link is for the browser.
import { spawn } from "node:child_process";
import { appendFileSync, cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** For what hangs; a busy machine takes less. */
const SETTLED_MS = 300000;

/** A port of its own, so that the daemon comes back where it was. */
function freePort() {
    return new Promise((resolve) => {
        const server = createServer().listen(0, "127.0.0.1", () => {
            const { port } = server.address();
            server.close(() => resolve(port));
        });
    });
}

/** A request on a connection of its own: a kept one would be cut by the kill before. */
export function once(options, body) {
    return new Promise((resolve, reject) => {
        const asked = request({ ...options, agent: false }, async (response) => {
            let text = "";
            for await (const piece of response) text += piece;
            resolve({ status: response.statusCode, answer: text && JSON.parse(text) });
        });
        asked.on("error", reject);
        asked.end(body);
    });
}

export class Daemon {
    constructor(program, project, log = null) {
        this.program = program;
        this.log = log;
        this.root = mkdtempSync(join(tmpdir(), "detent-console-"));
        this.folder = join(this.root, "shop");
        cpSync(project, this.folder, { recursive: true });
    }

    file(name, text) {
        writeFileSync(join(this.folder, name), text);
    }

    append(name, text) {
        appendFileSync(join(this.folder, name), text);
    }

    /** What the daemon says is kept beside the pictures: who is refused by it does not know why. */
    note(text) {
        if (this.log) appendFileSync(this.log, text);
    }

    async start() {
        this.port ??= await freePort();
        this.base = `http://127.0.0.1:${this.port}`;
        this.child = spawn(this.program, ["up", "--listen", `127.0.0.1:${this.port}`], { cwd: this.folder, stdio: ["ignore", "pipe", "pipe"] });
        this.code = await this.link();
    }

    /** `detent up` says where the console is, once it serves. */
    link() {
        return new Promise((resolve, reject) => {
            let text = "";
            const heard = (piece) => {
                text += piece;
                this.note(piece);
                const found = /http:\/\/127\.0\.0\.1:\d+\/#code=([^\s"]+)/.exec(text);
                if (found) resolve(found[1]);
            };
            const child = this.child;
            child.stdout.on("data", heard);
            child.stderr.on("data", heard);
            child.on("exit", (code, signal) => {
                this.note(`ended: ${signal ?? code}\n`);
                if (!child.wanted_end) reject(new Error("detent up has ended:\n" + text));
            });
        });
    }

    async kill() {
        const ended = new Promise((resolve) => this.child.once("exit", resolve));
        this.child.wanted_end = true;
        if (this.child.exitCode !== null || this.child.signalCode !== null || !this.child.kill("SIGKILL")) return;
        await ended;
    }

    async end() {
        await this.kill();
        rmSync(this.root, { recursive: true, force: true });
    }

    async ask(method, path, body) {
        const options = { method, path: "/v1" + path, socketPath: join(this.folder, ".detent/detent.sock"), headers: { host: "localhost", "content-type": "application/json" } };
        const { status, answer } = await once(options, body && JSON.stringify(body));
        if (status >= 300) throw new Error(`${path}: ${answer.error.text}`);
        return answer;
    }

    /** Whether the daemon takes a token. */
    async takes(token) {
        const { status } = await once({ host: "127.0.0.1", port: this.port, path: "/v1/status", headers: { authorization: "Bearer " + token } });
        return status === 200;
    }

    begin(machine, id, data) {
        return this.ask("POST", `/machines/${machine}/instances`, { id, data });
    }

    send(machine, id, event, data) {
        return this.ask("POST", `/machines/${machine}/instances/${id}/events`, data ? { event, data } : { event });
    }

    submit(slot, name, ...run) {
        return this.ask("POST", `/slots/${slot}/submissions`, { name, run });
    }

    /** Asks until the answer is as wanted. */
    async settled(path, holds) {
        for (const end = Date.now() + SETTLED_MS; ; ) {
            const answer = await this.ask("GET", path);
            if (holds(answer)) return answer;
            if (Date.now() > end) throw new Error(`${path} did not come to: ${holds}\n${JSON.stringify(answer)}`);
            await new Promise((resolve) => setTimeout(resolve, 30));
        }
    }
}
