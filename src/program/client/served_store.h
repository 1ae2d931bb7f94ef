/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* served_store.h - a store that the `detent up` of this project serves, read through its HTTP API.
 * It has the read operations of driver/store.h, so commands print the same in both cases:
 *
 *     command --> inspect --> ops of a store --> SQLite, PostgreSQL
 *                                           \--> HTTP over the unix socket --> detent up
 *
 * Without a process that serves the store, even if a stale socket exists, the command opens the
 * store itself. */
#ifndef DET_CLIENT_SERVED_STORE_H
#define DET_CLIENT_SERVED_STORE_H

#include "client/daemon_client.h"
#include "inspect/store_url.h"

/* As cli_store_open(), for a command that may read through the process that serves the store. */
DET_MUST_CHECK int served_store_open(
    struct cli *cli, const struct store_request *request, struct cli_store *store);
/* Opens a separate connection to the process that serves the opened store. */
DET_MUST_CHECK int served_store_connect(
    struct cli_store *store, struct daemon_client **ret, struct det_error *reterr);

#endif
