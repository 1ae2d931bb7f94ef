/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* server_error.c - the reaction to an error code of the server, by sqlstate.def. */
#include <string.h>

#include "base/assert.h"
#include "base/text.h"
#include "store/postgres/postgres.h"

static const struct {
    const char *code;
    enum postgres_action action;
    int result;
    const char *text;
} lines[] = {
#define DET_SQLSTATE(code, action, result, text) \
    { code, POSTGRES_##action, DET_ERR_##result, text },
#include "store/sqlstate.def"
#undef DET_SQLSTATE
};

void det_postgres_failure_of(const char *sqlstate, struct postgres_failure *ret)
{
    size_t i = 0;

    /* The last line matches every code. */
    while (strncmp(sqlstate, lines[i].code, strlen(lines[i].code)) != 0)
        i++;
    det_assert(i < sizeof lines / sizeof lines[0]);
    *ret = (struct postgres_failure){ .action = lines[i].action, .result = lines[i].result };
    (void)det_text_copy(ret->sqlstate, sizeof ret->sqlstate, sqlstate);
    (void)det_text_copy(ret->text, sizeof ret->text, lines[i].text);
}
