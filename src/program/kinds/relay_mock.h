/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* relay_mock.h - a relay for tests and for the scenario `communicator`: login, pull and push over
 * real HTTP on a free port of 127.0.0.1, on separate threads. It authenticates clients, records
 * messages, and fails as configured. All functions are for any thread. */
#ifndef DET_KINDS_RELAY_MOCK_H
#define DET_KINDS_RELAY_MOCK_H

#include <detent/base.h>

#include "kinds/channel.h"

struct relay_mock;

enum relay_mock_call {
    RELAY_MOCK_LOGIN,
    RELAY_MOCK_PULL,
    RELAY_MOCK_PUSH,
    RELAY_MOCK_CALLS,
};

/* Counters. */
enum relay_mock_count {
    RELAY_MOCK_LOGINS, /* requests, successful or not; likewise the next two */
    RELAY_MOCK_PULLS,
    RELAY_MOCK_PUSHES,
    RELAY_MOCK_PULLED, /* messages handed out */
    RELAY_MOCK_PUSHED, /* messages received */
    RELAY_MOCK_CONNECTIONS,
    RELAY_MOCK_STRANGERS, /* calls with a wrong token */
    RELAY_MOCK_COUNTS,
};

/* Opens and starts it. `auth_token` is that of the user; the mock stores only its hash. */
DET_MUST_CHECK int relay_mock_open(const char *auth_token, struct relay_mock **ret);
void relay_mock_close(struct relay_mock *mock);
/* "http://127.0.0.1:40001". */
const char *relay_mock_url(const struct relay_mock *mock);

/* Simulates a kill: connections break, and new ones are refused. Its state remains. */
void relay_mock_stop(struct relay_mock *mock);
/* Starts again at the same address. */
DET_MUST_CHECK int relay_mock_start(struct relay_mock *mock);

/* Fault of the next call of a kind; texts are not copied. Several faults are queued. */
struct relay_mock_fault {
    int status;          /* 0: the regular one */
    const char *headers; /* "Retry-After: 7\r\n"; NULL: none */
    const char *body;    /* NULL: none */
    uint32_t padding;    /* bytes of 'x' after the body */
    det_time delay;      /* before the call is evaluated */
    bool is_cut_before;  /* the connection breaks before the call has an effect */
    bool is_cut_after;   /* it breaks after the call had its effect */
};
/* DET_ERR_LIMIT: 64 faults are queued. */
DET_MUST_CHECK int relay_mock_fail(
    struct relay_mock *mock, enum relay_mock_call call, const struct relay_mock_fault *fault);
/* From now on a push with these words in a content is answered with 422; NULL: none is. */
void relay_mock_poison(struct relay_mock *mock, const char *words);
/* Revokes every token: calls are answered with 401 until a client logs in. */
void relay_mock_expire(struct relay_mock *mock);
/* The uuid of the next logins. At most 64 bytes. */
void relay_mock_set_uuid(struct relay_mock *mock, const char *uuid);
/* Queues a message to be pulled, `most` per pull; 0: all. */
DET_MUST_CHECK int relay_mock_queue(struct relay_mock *mock, const struct det_message *text);
void relay_mock_set_most(struct relay_mock *mock, uint32_t most);

uint64_t relay_mock_count(struct relay_mock *mock, enum relay_mock_count which);
/* Waits until the count is at least so much: 0, or DET_ERR_TIMEOUT at the monotonic deadline. */
DET_MUST_CHECK int relay_mock_wait(
    struct relay_mock *mock, enum relay_mock_count which, uint64_t at_least, det_time deadline);
/* Returns a received message by its index, from 0; it lives as long as the mock. NULL: not yet. */
const struct channel_message *relay_mock_pushed(struct relay_mock *mock, uint64_t index);
/* The head of the last call of a kind, as it was sent; cut if it is long. */
void relay_mock_head(
    struct relay_mock *mock, enum relay_mock_call call, char *target, size_t capacity);

#endif
