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

/* The uuid of the next logins. At most 64 bytes. */
void relay_mock_set_uuid(struct relay_mock *mock, const char *uuid);
/* Queues a message to be pulled. */
DET_MUST_CHECK int relay_mock_queue(struct relay_mock *mock, const struct det_message *text);

uint64_t relay_mock_count(struct relay_mock *mock, enum relay_mock_count which);

#endif
