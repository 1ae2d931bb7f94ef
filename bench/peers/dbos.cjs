// SPDX-License-Identifier: MIT
// Copyright the detent authors

// dbos.cjs - peer of postgres.c: workflows of DBOS transact that do nothing but be durable, so many
// at once. Of several such numbers the one counts with which it is fastest. Without the package the
// exit code is 3.
//
// node dbos.cjs URL COUNT AT_ONCE,AT_ONCE... prints {"nanoseconds": n}.
"use strict";

let DBOS;
try {
    ({ DBOS } = require("@dbos-inc/dbos-sdk"));
} catch {
    process.exit(3);
}

const WARM_UP = 20;

async function runAll(workflow, count, atOnce) {
    let begun = 0;
    const one = async () => {
        while (begun < count)
            await workflow(begun++);
    };
    await Promise.all(Array.from({ length: atOnce }, one));
}

async function measure(workflow, count, atOnce) {
    const began = process.hrtime.bigint();
    await runAll(workflow, count, atOnce);
    return process.hrtime.bigint() - began;
}

async function main(url, count, choices) {
    DBOS.setConfig({ name: "bench", systemDatabaseUrl: url, runAdminServer: false,
        logLevel: "error", systemDatabasePoolSize: 20 });
    const workflow = DBOS.registerWorkflow(async (x) => x + 1, { name: "add_one" });
    await DBOS.launch();
    await runAll(workflow, WARM_UP, 1);
    let best;
    for (const atOnce of choices) {
        const nanoseconds = await measure(workflow, count, atOnce);
        best = best === undefined || nanoseconds < best ? nanoseconds : best;
    }
    await DBOS.shutdown();
    process.stdout.write(`{"nanoseconds": ${best}}\n`, () => process.exit(0));
}

main(process.argv[2], Number(process.argv[3]), process.argv[4].split(",").map(Number)).catch((error) => {
    console.error(error.message);
    process.exit(1);
});
