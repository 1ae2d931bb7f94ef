// SPDX-License-Identifier: MIT
// Copyright the detent authors

// graphile_worker.cjs - peer of jobs.c: jobs of graphile-worker on PostgreSQL. AT_ONCE of them run
// concurrently. The exit code is 3 where the package is not installed.
//
// node graphile_worker.cjs URL COUNT finish AT_ONCE prints {"nanoseconds": n}.
"use strict";

let worker;
try {
    worker = require("graphile-worker");
} catch {
    process.exit(3);
}

async function main(connectionString, count, atOnce) {
    const logger = new worker.Logger(() => () => {});
    const utils = await worker.makeWorkerUtils({ connectionString, logger });
    await utils.migrate();
    for (let first = 0; first < count; first += 1000)
        await utils.withPgClient((client) =>
            client.query(
                "SELECT count(graphile_worker.add_job('bench', json_build_object('number', n))) " +
                    "FROM generate_series($1::int, $2::int) n",
                [first + 1, Math.min(first + 1000, count)],
            ),
        );
    await utils.release();
    let left = count, done;
    const finished = new Promise((resolve) => (done = resolve));
    const began = process.hrtime.bigint();
    const runner = await worker.run({
        connectionString,
        logger,
        concurrency: atOnce,
        maxPoolSize: 20,
        noHandleSignals: true,
        pollInterval: 100,
        taskList: {
            bench: async () => {
                if (--left === 0) done();
            },
        },
    });
    await finished;
    const nanoseconds = process.hrtime.bigint() - began;
    await runner.stop();
    process.stdout.write(`{"nanoseconds": ${nanoseconds}}\n`, () => process.exit(0));
}

main(process.argv[2], Number(process.argv[3]), Number(process.argv[5])).catch((error) => {
    console.error(error.message);
    process.exit(1);
});
