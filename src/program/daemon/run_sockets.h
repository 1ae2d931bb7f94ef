/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* run_sockets.h - the sockets on which a run listens: those of the HTTP API, inherited or bound
 * once, and the one of the project, which commands use. Functions run on the loop's thread.
 *
 * They stay open while the API is paused during a reload: clients wait. */
#ifndef DET_DAEMON_RUN_SOCKETS_H
#define DET_DAEMON_RUN_SOCKETS_H

#include "daemon/host.h"

struct up;
struct up_run_sockets;

/* Takes inherited sockets; call it first. DET_ERR_INVALID: an inherited descriptor is not a
 * listening socket. */
DET_MUST_CHECK int up_run_sockets_open(struct up *up, struct det_error *reterr);
void up_run_sockets_close(struct up *up);
/* The sockets of the HTTP API, inherited or bound. */
const struct serve_sockets *up_sockets(const struct up *up);
/* Binds the addresses before root is dropped; up_run_sockets_bind() then keeps them. */
DET_MUST_CHECK int up_run_sockets_bind_as_root(struct up *up, struct det_error *reterr);
/* Binds the addresses, and the unix socket of the file, which a reload may change. If no address is
 * configured and another project holds the default port, takes one of the next ports. */
DET_MUST_CHECK int up_run_sockets_bind(struct up *up, struct det_error *reterr);
/* Closes the sockets of the HTTP API: new clients are refused. */
void up_run_sockets_refuse(struct up *up);
/* Closes the unix socket of the file. */
void up_run_sockets_close_local(struct up *up);
/* Opens the socket of the project and takes its lock. DET_ERR_EXISTS: another detent holds it. */
DET_MUST_CHECK int up_run_sockets_lock(struct up *up, struct det_error *reterr);
void up_run_sockets_unlock(struct up *up);
/* Calls the function with every descriptor until it fails; `has_local` includes that of the unix
 * socket. */
typedef int up_door_fn(void *user, int descriptor, struct det_error *reterr);
DET_MUST_CHECK int up_run_sockets_each(
    const struct up *up, bool has_local, up_door_fn *each, void *user, struct det_error *reterr);

#endif
