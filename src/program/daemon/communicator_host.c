/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* communicator_host.c - reads the environment of communicators: the address of the relay, its
 * token, and whether to add a communicator that is not in the file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/daemon.h"
#include "daemon/workers_internal.h"

#define SWITCH "USE_FSMV2_TRANSPORT"
#define NAME   "communicator"

static const char *variable_or_empty(const char *name)
{
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): the environment is not changed */
    const char *value = getenv(name);

    return value ? value : "";
}

void up_communicator_read_defaults(struct communicator_defaults *ret)
{
    *ret = (struct communicator_defaults){
        .relay_url = variable_or_empty(COMMUNICATOR_URL_VARIABLE),
        .auth_token = variable_or_empty(COMMUNICATOR_TOKEN_VARIABLE),
    };
}

/* A communicator of the file serves the same purpose. */
static int put_communicator(struct up_workers *workers, struct det_error *reterr)
{
    const struct det_child_spec spec = { .name = NAME, .kind = communicator_kind.name };
    int r = det_workers_upsert(workers->supervisor, NULL, &spec, reterr);

    return r == DET_ERR_EXISTS ? 0 : r;
}

/* Keeps a communicator of the file. */
static int delete_communicator(struct up_workers *workers, struct det_error *reterr)
{
    char id[DET_WORKER_NAME_MAX + sizeof "/" NAME];
    int r;

    (void)snprintf(id, sizeof id, "%s/" NAME, workers->name);
    r = det_workers_delete(workers->supervisor, id, reterr);
    return r == DET_ERR_NOT_FOUND || r == DET_ERR_INVALID ? 0 : r;
}

int up_communicator_switch(struct up_workers *workers, struct det_error *reterr)
{
    const char *value = variable_or_empty(SWITCH);

    if (!*value)
        return 0;
    if (strcmp(value, "true") == 0)
        return put_communicator(workers, reterr);
    if (strcmp(value, "false") == 0)
        return delete_communicator(workers, reterr);
    up_note(
        workers->up, "workers", SWITCH " is '%s': it must be true or false; nothing was changed",
        value);
    return 0;
}
