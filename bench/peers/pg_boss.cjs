// SPDX-License-Identifier: MIT
// Copyright the detent authors

// pg_boss.cjs - peer of postgres.c: jobs of pg-boss from send to completion, so many at once, each
// sent, fetched and completed by itself. Without the package the exit code is 3.
//
// node pg_boss.cjs URL COUNT AT_ONCE prints {"nanoseconds": n}.
"use strict";

let PgBoss;
try {
    const found = require("pg-boss");
    PgBoss = found.PgBoss || found.default || found;
} catch {
    process.exit(3);
}

const QUEUE = "bench";

async function main(url, count, atOnce) {
    const boss = new PgBoss({ connectionString: url, max: 20 });
    boss.on("error", () => {});
    await boss.start();
    await boss.createQueue(QUEUE);
    let begun = 0;
    const one = async () => {
        while (begun < count) {
            await boss.send(QUEUE, { number: begun++ });
            for (const job of await boss.fetch(QUEUE))
                await boss.complete(QUEUE, job.id);
        }
    };
    const began = process.hrtime.bigint();
    await Promise.all(Array.from({ length: atOnce }, one));
    const nanoseconds = process.hrtime.bigint() - began;
    process.stdout.write(`{"nanoseconds": ${nanoseconds}}\n`, () => process.exit(0));
}

main(process.argv[2], Number(process.argv[3]), Number(process.argv[4])).catch((error) => {
    console.error(error.message);
    process.exit(1);
});
