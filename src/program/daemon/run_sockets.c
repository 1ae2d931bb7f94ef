/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* run_sockets.c - opens, binds and closes the sockets on which a run listens. */
#include "daemon/run_sockets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "config/socket_place.h"
#include "daemon/run.h"

/* Default address of the API; further projects take the next ports. */
#define HOST  "127.0.0.1"
#define PORT  7788
#define PORTS 10

struct up_run_sockets {
    struct serve_sockets sockets;
    bool are_bound;              /* bound, or no address to bind */
    struct serve_local local;    /* the unix socket of the file */
    struct socket_listener door; /* .detent/detent.sock, and the lock of the project */
};

int up_run_sockets_open(struct up *up, struct det_error *reterr)
{
    struct up_run_sockets *run_sockets = DET_NEW(up->cli->allocator, struct up_run_sockets);

    if (!run_sockets)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory");
    run_sockets->door = (struct socket_listener){ .folder = -1, .lock = -1, .descriptor = -1 };
    up->run_sockets = run_sockets;
    return serve_sockets_given(&run_sockets->sockets, reterr);
}

void up_run_sockets_close(struct up *up)
{
    if (!up->run_sockets)
        return;
    serve_sockets_close(&up->run_sockets->sockets);
    DET_DELETE(up->cli->allocator, up->run_sockets);
    up->run_sockets = NULL;
}

const struct serve_sockets *up_sockets(const struct up *up)
{
    static const struct serve_sockets none;

    return up->run_sockets ? &up->run_sockets->sockets : &none;
}

/* Binding. */

/* True if no address is configured: neither given, in the file, by --listen nor by
 * DETENT_LISTEN. */
static bool is_anywhere(const struct up *up)
{
    const struct config_http *config = &up_config(up)->http;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): the environment is not changed */
    const char *variable = getenv("DETENT_LISTEN");

    return !up->options->is_serving && !up->run_sockets->sockets.is_given && !config->listen_node &&
           config->listen[0] && !up->options->listen && !(variable && *variable);
}

/* Reports the holder of the default port. */
static void note_move(struct up *up)
{
    const char *text = up->run_sockets->sockets.items[0].text, *port = strrchr(text, ':');
    char holder[SERVE_HOLDER_TEXT];

    serve_holder(PORT, holder);
    up_note(
        up, UP_NAME, HOST ":%d is taken%s%s: listens on %s", PORT, *holder ? " by " : "", holder,
        port ? port + 1 : text);
}

/* Another project may hold the port: tries the next ones, then any. */
static int bind_anywhere(struct up *up, struct det_error *reterr)
{
    char text[32];
    const char *const listen[] = { text, NULL };
    const struct config_http config = { .listen = listen };
    struct det_error first = { 0 };
    int r = DET_ERR_EXISTS;

    for (unsigned i = 0; r == DET_ERR_EXISTS && i <= PORTS; i++) {
        snprintf(text, sizeof text, HOST ":%u", i < PORTS ? PORT + i : 0);
        r = serve_sockets_bind(&up->run_sockets->sockets, &config, i == 0 ? &first : reterr);
    }
    if (r == 0 && first.code)
        note_move(up);
    else if (r < 0 && first.code == r)
        *reterr = first;
    return r;
}

int up_run_sockets_bind_as_root(struct up *up, struct det_error *reterr)
{
    return serve_sockets_bind(&up->run_sockets->sockets, &up_config(up)->http, reterr);
}

int up_run_sockets_bind(struct up *up, struct det_error *reterr)
{
    const struct config_http *config = &up_config(up)->http;
    struct up_run_sockets *run_sockets = up->run_sockets;
    int r = 0;

    /* Once: the addresses do not change, even if there are none. */
    if (!run_sockets->are_bound && run_sockets->sockets.count == 0)
        r = is_anywhere(up) ? bind_anywhere(up, reterr)
                            : serve_sockets_bind(&run_sockets->sockets, config, reterr);
    run_sockets->are_bound = true;
    return r < 0 ? r : serve_local_bind(&run_sockets->local, config->socket, reterr);
}

int up_run_sockets_lock(struct up *up, struct det_error *reterr)
{
    return socket_listen(up_folder(up), &up->run_sockets->door, reterr);
}

/* Closing. */

void up_run_sockets_unlock(struct up *up)
{
    if (up->run_sockets->door.descriptor >= 0)
        socket_unlisten(&up->run_sockets->door);
}

void up_run_sockets_refuse(struct up *up)
{
    if (up->run_sockets)
        serve_sockets_close(&up->run_sockets->sockets);
}

void up_run_sockets_close_local(struct up *up)
{
    serve_local_close(&up->run_sockets->local);
}

int up_run_sockets_each(
    const struct up *up, bool has_local, up_door_fn *each, void *user, struct det_error *reterr)
{
    const struct up_run_sockets *run_sockets = up->run_sockets;
    int r = each(user, run_sockets->door.descriptor, reterr);

    for (size_t i = 0; r == 0 && i < run_sockets->sockets.count; i++)
        r = each(user, run_sockets->sockets.items[i].descriptor, reterr);
    return r < 0 || !has_local ? r : each(user, run_sockets->local.descriptor, reterr);
}
