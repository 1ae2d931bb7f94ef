/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* relay.h - the calls of a relay over HTTP: login, pull, push. docs/communicator.md specifies the
 * protocol.
 *
 * HTTP/1.1 on one keep-alive connection; certificates are checked; redirects are not followed; a
 * proxy comes from the environment (http_proxy, https_proxy, no_proxy), except for this machine
 * itself. One caller at a time, on any thread; a call blocks. */
#ifndef DET_KINDS_RELAY_H
#define DET_KINDS_RELAY_H

#include <detent/world.h>

#include "kinds/channel.h"
#include "kinds/relay_error.h"

#define RELAY_BODY_MAX 1048576 /* maximum bytes of an answer */
#define RELAY_TEXT_MAX 160
#define RELAY_UUID_MAX 64
#define RELAY_NAME_MAX 128

struct relay;

struct relay_options {
    struct det_world *world;
    const struct det_allocator *allocator;
    const char *url; /* relay_url_is_valid() */
};
/* Opens no connection yet. DET_ERR_NO_MEMORY, DET_ERR_IO. */
DET_MUST_CHECK int relay_open(const struct relay_options *options, struct relay **ret);
void relay_close(struct relay *relay);

/* The limits of one call. */
struct relay_call {
    det_time timeout;                 /* of the whole call */
    bool (*is_cancelled)(void *user); /* called at least 20 times a second; NULL: never */
    void *user;
};

/* The reason of a failure. */
struct relay_failure {
    enum relay_class class;
    long status; /* 0: no answer */
    det_time retry_after;
    char text[RELAY_TEXT_MAX + 1]; /* "push: server_error, status 503: busy" */
};

/* Each returns 0, or with a failure: DET_ERR_IO, DET_ERR_TIMEOUT, DET_ERR_LIMIT (the answer is too
 * large), DET_ERR_MALFORMED (or not what it must be), DET_ERR_REFUSED (a status), and
 * DET_ERR_CANCELLED, DET_ERR_NO_MEMORY (or descriptors), which say nothing about the relay. */

struct relay_instance {
    char uuid[RELAY_UUID_MAX + 1];
    char name[RELAY_NAME_MAX + 1];
};
/* Fetches a new token, and keeps it for the calls below; a failure keeps the old one. */
DET_MUST_CHECK int relay_login(
    struct relay *relay, const struct relay_call *call, const char *auth_token,
    struct relay_instance *ret, struct relay_failure *failure);
struct relay_pulled {
    size_t bytes;   /* of the body */
    uint32_t count; /* of the messages */
    /* Messages that are invalid or too large, or for which there is no memory: the relay has handed
     * them out, and they are lost. */
    uint32_t useless;
};
/* Appends the messages to a list of struct channel_message. An invalid one does not affect the
 * others. */
DET_MUST_CHECK int relay_pull(
    struct relay *relay, const struct relay_call *call, struct det_list *messages,
    struct relay_pulled *ret, struct relay_failure *failure);
/* A message without an instance belongs to the instance that has logged in. */
DET_MUST_CHECK int relay_push(
    struct relay *relay, const struct relay_call *call, struct channel_message *const *list,
    uint32_t count, size_t *ret_bytes, struct relay_failure *failure);

/* Discards the connection and the state of libcurl; keeps the token. */
DET_MUST_CHECK int relay_reset(struct relay *relay);
bool relay_has_token(const struct relay *relay);
void relay_forget_token(struct relay *relay);

#endif
