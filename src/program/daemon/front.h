/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* front.h - the functions of the HTTP API that the daemon calls. The API belongs to a layer above
 * this one and provides the table; the daemon calls it on its loop, unless a comment says
 * otherwise. */
#ifndef DET_DAEMON_FRONT_H
#define DET_DAEMON_FRONT_H

#include <detent/base.h>
#include <stdatomic.h>

#define UP_LINK_TEXT 256

struct api;
struct up;

/* On the daemon's loop, except notice(). */
struct up_front {
    /* Binds the addresses, reads certificates and tokens: all steps that can refuse a start. Call
     * it before anything is served, so that a refused start runs no effect. */
    int (*prepare)(struct up *up, struct det_error *reterr);
    /* Starts to listen; call close() even after an error. */
    int (*open)(struct up *up, struct det_error *reterr);
    /* Until resume() the API uses neither the machines nor the store. Connections, streams and
     * calls that wait for the daemon stay open; `is_end` refuses new calls. Turns the loop. */
    void (*pause)(struct up *up, bool is_end);
    /* Continues with the current file; `has_new_http`: its section `http` has changed. After an
     * error the API is still paused. Turns the loop. */
    int (*resume)(struct up *up, bool has_new_http, struct det_error *reterr);
    /* Refuses new requests and answers pending ones. Turns the loop. */
    void (*close)(struct up *up);
    /* Call it after closing the machines: their last sends return calls. */
    void (*free)(struct up *up);
    /* Reads certificate and key again, for new connections. */
    void (*renew)(struct up *up);
    /* True when one of these files has changed since it was read. */
    bool (*has_new_files)(const struct up *up);
    /* Prints a link to the console. */
    void (*print)(struct up *up);
    /* The first address for a browser, "http://127.0.0.1:7788"; NULL: none. */
    const char *(*address)(const struct up *up);
    /* Reports a commit to streams of the log. Any thread, also while the API is closed and opened
     * again. */
    void (*notice)(struct up *up);
    /* Reports new rows in the journal of a flow to streams. Any thread, as notice(). */
    void (*notice_flow)(struct up *up);
    /* Writes a link that signs in to the console, of UP_LINK_TEXT bytes. False: no address for
     * browsers. */
    bool (*console_link)(const struct up *up, char *target, size_t size);
};

/* Counts per step over the last day, in a ring: rates.c. On the http thread. */
#define UP_RATES      4
#define UP_RATE_STEPS 17280
struct up_rates {
    uint32_t steps[UP_RATES][UP_RATE_STEPS];
    size_t next, taken;
    uint64_t last[UP_RATES];
    det_time sampled_at; /* wall */
};

/* The HTTP API of this run. */
struct up_api_place {
    struct api *api;                /* NULL: it does not listen */
    _Atomic(struct api *) listener; /* the same, for threads that commit; changed under the lock */
    struct det_mutex *listener_lock;
    struct tokens *tokens; /* NULL: not open yet; kept across reloads */
    struct up_rates rates;
};

#endif
