/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* call.h - something that the HTTP API asks of `detent up`, and its answer.
 *
 *     (request) --verb--> call --socket_call_answer--------------------------------> finished
 *                          |  --socket_call_send--> ... --socket_call_send/end-----> finished
 *                          |  --socket_call_fail-----------------------------------> finished
 *                          \--who asked went away: on_gone of a call that is kept--> finished
 *
 * All functions are for the thread of the loop of `up`. */
#ifndef DET_DAEMON_CALL_H
#define DET_DAEMON_CALL_H

#include <jansson.h>

#include <detent/base.h>

struct socket_call;

struct socket_request {
    const char *verb;
    json_t *arguments; /* an object; NULL: none */
};

/* The value of "error". */
json_t *socket_error_value(int code, const char *text);
/* The error of a name, DET_ERR_IO when it is none of ours. */
int socket_error_code(const char *name);

/* What carries a call. */
struct socket_call_ops {
    /* A part of the answer: "data" with a value, "end", or "error" with its value. NULL: there was
     * no memory for it. */
    void (*put)(struct socket_call *call, const char *key, json_t *value_take);
    /* Bytes that wait for who asked. */
    size_t (*waiting)(const struct socket_call *call);
    /* Whether nobody gets it any more. */
    bool (*is_gone)(const struct socket_call *call);
    /* The call is finished. */
    void (*release)(struct socket_call *call);
};

/* The first member of what a carrier keeps of a call. */
struct socket_call {
    const struct socket_call_ops *ops;
    bool is_kept;
    void (*on_gone)(void *user);
    void *user;
};

/* Data are taken in any case; NULL is taken for a lack of memory. After a client went away data are
 * thrown away, and the functions work as before: what a verb does needs no test for it. */
/* The one answer. */
void socket_call_answer(struct socket_call *call, json_t *data_take);
/* A part of the answer. DET_ERR_CLOSED: nobody gets it any more; the call is still to be finished,
 * or will get its on_gone(). */
int socket_call_send(struct socket_call *call, json_t *data_take);
/* How many bytes of answers wait for the client to read them, of all its calls. */
size_t socket_call_waiting(const struct socket_call *call);
/* After the last part. */
void socket_call_end(struct socket_call *call);
void socket_call_fail(struct socket_call *call, int code, const char *format, ...) DET_PRINTF(3, 4);
/* The call will be finished later. `on_gone` comes instead when the client goes away first; then
 * the call is finished too. Not while one of the functions above runs. */
void socket_call_keep(struct socket_call *call, void (*on_gone)(void *user), void *user);

#endif
