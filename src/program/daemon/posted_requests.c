/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* posted_requests.c - verbs that are asked for by another thread, which has posted them. */
#include <string.h>

#include "base/assert.h"
#include "daemon/verbs.h"

void up_run_errand(struct up *up, struct up_errand *errand, const char *verb, json_t *arguments)
{
    const struct socket_request request = { .verb = verb, .arguments = arguments };
    const struct socket_verb *found = up_verbs;

    det_list_init(&errand->node);
    det_list_append(&up->errands, &errand->node);
    while (found->name && strcmp(found->name, verb) != 0)
        found++;
    det_assert(found->name);
    found->run(up, &request, &errand->call);
}

void up_errands_over(struct up *up)
{
    while (!det_list_is_empty(&up->errands)) {
        struct up_errand *errand = DET_CONTAINER(up->errands.next, struct up_errand, node);

        if (errand->call.on_gone)
            errand->call.on_gone(errand->call.user);
        socket_call_fail(&errand->call, DET_ERR_CLOSED, CLI_SHUTDOWN);
    }
}
