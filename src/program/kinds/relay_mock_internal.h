/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* relay_mock_internal.h - shared by the files of the mock relay: its state, and the answer to a
 * request. */
#ifndef DET_KINDS_RELAY_MOCK_INTERNAL_H
#define DET_KINDS_RELAY_MOCK_INTERNAL_H

#include "base/buffer.h"
#include "kinds/relay_mock.h"
#include "kinds/relay_token.h"
#include "os/os.h"

#define RELAY_MOCK_HEAD_MAX   16384
#define RELAY_MOCK_FAULTS_MAX 64

struct relay_mock_connection {
    struct det_list node;
    struct relay_mock *mock;
    struct det_thread *thread;
    int descriptor;
    bool is_over;
};

/* Fault of the next call of a kind; texts are not copied. */
struct relay_mock_fault {
    int status;          /* 0: the regular one */
    const char *headers; /* "Retry-After: 7\r\n"; NULL: none */
    const char *body;    /* NULL: none */
    uint32_t padding;    /* bytes of 'x' after the body */
    det_time delay;      /* before the call is evaluated */
    bool is_cut_before;  /* the connection breaks before the call has an effect */
    bool is_cut_after;   /* it breaks after the call had its effect */
};

/* Faults of one kind of call: those from `first` on wait. */
struct relay_mock_faults {
    struct relay_mock_fault list[RELAY_MOCK_FAULTS_MAX];
    uint32_t first, count;
};

struct relay_mock {
    struct det_world *world;
    struct det_mutex *mutex;
    struct det_condition *changed;
    struct det_thread *acceptor;
    struct det_list connections;
    int listener;
    bool is_down;
    char url[64];
    /* Under the lock. */
    char hash[RELAY_HASH_TEXT];
    char uuid[65];
    uint64_t token; /* number of the valid token; 0: none */
    uint64_t tokens;
    uint32_t most;      /* messages per pull; 0: all */
    const char *poison; /* a push with these words in a content is answered with 422; NULL: none */
    struct relay_mock_faults faults[RELAY_MOCK_CALLS];
    struct det_list to_pull, pushed;
    uint64_t counts[RELAY_MOCK_COUNTS];
    char heads[RELAY_MOCK_CALLS][RELAY_MOCK_HEAD_MAX];
};

struct relay_mock_request {
    const char *head; /* with the empty line */
    const char *body;
    size_t body_size;
};

void relay_mock_lock(struct relay_mock *mock);
void relay_mock_unlock(struct relay_mock *mock);
/* Answers a request into the buffer. False: the connection is cut instead. */
bool relay_mock_answer(
    struct relay_mock *mock, const struct relay_mock_request *request, struct det_buffer *answer);

#endif
