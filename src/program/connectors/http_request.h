/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* http_request.h - one request of a sink, tried again until it succeeds, is refused, or the time is
 * over. */
#ifndef DET_CONNECTORS_HTTP_REQUEST_H
#define DET_CONNECTORS_HTTP_REQUEST_H

#include <detent/flow.h>

#include "http/client.h"

enum http_outcome {
    HTTP_DONE,      /* 2xx */
    HTTP_CANCELLED, /* the stage is to end; the outcome is unknown */
    HTTP_REFUSED,   /* an answer that would be the same next time */
    HTTP_SHUT_OUT,  /* 401, 403, 407: the credentials */
    HTTP_FAILED,    /* no good answer in time */
};

struct http_sender {
    struct det_stage_call *call; /* of the function that runs now */
    struct http_client *client;
    det_time retry_for;
    struct det_buffer *answer; /* gets the body of a good answer; NULL: it is dropped */
    unsigned status;           /* of the last answer; 0: none */
    char text[320];            /* of the last failure: neither path nor header nor body */
};

/* `socket_path`: of a unix socket whose server must be of this user or root; NULL: none. */
DET_MUST_CHECK int http_sender_open(
    struct http_sender *sender, struct det_stage_call *call, const char *socket_path);
void http_sender_close(struct http_sender *sender);
/* `wanted` has all but the parts that belong to the answer. The first bytes of a body that refuses
 * are kept in the text. */
enum http_outcome http_sender_send(struct http_sender *sender, const struct http_call *wanted);
/* Pure: what an answer means; `ret_retries` is set if a later try may succeed. */
enum http_outcome http_outcome_of(unsigned status, bool *ret_retries);

#endif
