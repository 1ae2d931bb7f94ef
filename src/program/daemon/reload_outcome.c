/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* reload_outcome.c - names, errors and sentences of the outcomes of a reload. */
#include "daemon/reload_outcome.h"

#include <string.h>

#include <detent/base.h>

#include "base/assert.h"

static const struct {
    const char *name;
    int error;
    const char *sentence;
} outcomes[] = {
#define RELOAD_OUTCOME(id, name, error, sentence) { #name, error, sentence },
#include "daemon/reload_outcome.def"
#undef RELOAD_OUTCOME
};

const char *reload_outcome_name(enum reload_outcome outcome)
{
    det_assert(outcome < RELOAD_OUTCOME_COUNT);
    return outcomes[outcome].name;
}

enum reload_outcome reload_outcome_of(const char *name)
{
    for (unsigned i = 0; i < RELOAD_OUTCOME_COUNT; i++) {
        if (strcmp(outcomes[i].name, name) == 0)
            return (enum reload_outcome)i;
    }
    return RELOAD_FAILED;
}

int reload_outcome_error(enum reload_outcome outcome)
{
    det_assert(outcome < RELOAD_OUTCOME_COUNT);
    return outcomes[outcome].error;
}

const char *reload_outcome_sentence(enum reload_outcome outcome)
{
    det_assert(outcome < RELOAD_OUTCOME_COUNT);
    return outcomes[outcome].sentence;
}
