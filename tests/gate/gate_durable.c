/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* gate_durable.c - durable sends to instances in a SQLite file, from one thread: what is decided,
 * encoded and hashed, and what SQLite makes of it. Waiting for the disk is no instruction. */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>

#include "gate.h"
#include "load.h"

#define INSTANCES 64

static int work(void *argument, unsigned operations)
{
    struct det_runtime *runtime = argument;
    int r = 0;

    for (unsigned i = 0; i < operations && r == 0; i++) {
        char id[LOAD_ID_MAX];

        (void)snprintf(id, sizeof id, "load-%u", i % INSTANCES);
        r = load_send(runtime, id, load_next((struct amount){ .amount = i }), NULL);
    }
    return r;
}

static int run_in(const char *folder, unsigned operations)
{
    /* It has no threads: nothing but the sends takes part. */
    const struct det_runtime_options options = { .is_passive = true };
    DET_SCOPED(store) store = NULL;
    DET_SCOPED(runtime) runtime = NULL;
    char url[64];
    int r;

    (void)snprintf(url, sizeof url, "sqlite:%s/gate.db", folder);
    r = det_store_open(url, &store, NULL);
    if (r == 0)
        r = det_runtime_open(store, &options, &runtime, NULL);
    for (unsigned i = 0; i < INSTANCES && r == 0; i++) {
        char id[LOAD_ID_MAX];

        (void)snprintf(id, sizeof id, "load-%u", i);
        r = det_runtime_start(runtime, &load_machine, id, NULL, NULL, NULL, NULL);
    }
    return r < 0 ? r : gate_measured(work, runtime, operations);
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status;
    (void)kind;
    (void)place;
    return remove(path);
}

int gate_durable(unsigned operations)
{
    char folder[] = "/tmp/detent-gate.XXXXXX";
    int r;

    if (!mkdtemp(folder))
        return DET_ERR_IO;
    r = run_in(folder, operations);
    (void)nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return r;
}
