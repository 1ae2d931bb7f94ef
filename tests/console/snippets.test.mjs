// SPDX-License-Identifier: MIT
// Copyright the detent authors

// The files that empty views show: each passes 'detent check', and serves what it promises.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { once } from "node:events";
import test from "node:test";
import { load } from "./module.mjs";

const { SNIPPETS } = await load("snippets.ts");
const { DETENT } = process.env;

/** What proves that the program which runs with it has what the view was empty of. */
const PROOFS = {
    machines: ["start", "job", "first-1"],
    tasks: ["logs", "clock"],
    slots: ["submit", "reports", "--", "true"],
    workers: ["observed", "website"],
    flows: ["flow", "lag", "rows"],
};

/** A folder where 'detent new' was run, as the views for machines and flows ask for. */
function project(text) {
    const folder = mkdtempSync(join(tmpdir(), "detent-snippet-"));
    const detent = (...words) => execFileSync(DETENT, words, { cwd: folder, encoding: "utf8", stdio: "pipe", timeout: 60000 });
    detent("new", "job");
    detent("new", "rows", "--from", "flow");
    writeFileSync(join(folder, "detent.yaml"), text + "\n");
    return { folder, detent };
}

/** Asks until it answers: it takes a moment to begin. */
async function proven(up, ask) {
    for (let tries = 0; ; tries++) {
        try {
            return ask();
        } catch (failure) {
            if (tries === 600 || up.exitCode !== null) throw failure;
        }
        await new Promise((resolve) => setTimeout(resolve, 20));
    }
}

for (const [name, text] of Object.entries(SNIPPETS))
    test(`the file that the empty view of ${name} shows is right, and does what it says`, async () => {
        const { folder, detent } = project(text);
        detent("check", "detent.yaml");
        const up = spawn(DETENT, ["up", "--listen", "none"], { cwd: folder, stdio: "ignore" });
        const ended = once(up, "exit");
        try {
            await proven(up, () => detent(...PROOFS[name]));
        } finally {
            up.kill("SIGINT");
            await ended;
            rmSync(folder, { recursive: true });
        }
    });
