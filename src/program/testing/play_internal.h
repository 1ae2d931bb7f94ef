/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* play_internal.h - a running case, shared by the files of the player. */
#ifndef DET_TESTING_PLAY_INTERNAL_H
#define DET_TESTING_PLAY_INTERNAL_H

#include "testing/play.h"
#include "testing/simulated_runtime.h"
#include "testing/stubs.h"

#define PLAY_INSTANCE "case"

/* A call of an effect that waits for an answer; on the stack of its thread. */
struct play_call {
    struct play_call *next; /* the one that began to wait after this one */
    unsigned effect;
    const struct case_answer *answer; /* NULL: none yet */
};

struct play {
    const struct det_machine *machine;
    const struct play_options *options;
    struct play_result *result;
    struct cli_stage stage;

    /* Current answers of the functions, by their index. */
    bool guards[CLI_STUBS_MAX];
    int hooks[CLI_STUBS_MAX];
    const struct case_fields *updates[CLI_STUBS_MAX];
    const struct case_fields *fills[CLI_STUBS_MAX];
    const struct case_answer *effects[CLI_STUBS_MAX];
    char expected[PLAY_TEXT_MAX]; /* of the current expectation */
    const char *idle_update;      /* the last that ran without an answer; NULL: none */

    struct play_call *waiting; /* under the mutex of the stage */

    /* Result of the last send or stop. */
    int sent_result;
    struct det_sent sent;
    struct det_error sent_error;
};

/* play_stubs.c: what the functions of the definition do. */
struct cli_stubs play_stubs(struct play *play);
void play_set(struct play *play, const struct case_setting *settings);
/* Answers the call of this effect that waits longest; false when none does. */
bool play_answer(struct play *play, unsigned effect, const struct case_answer *answer);

/* play_expect.c: whether all expectations hold; false with those that do not in the result. */
bool play_expect(struct play *play, const struct case_expect *expect);
/* Records a failure; returns false. */
bool play_fail(struct play *play, const struct det_datum *node, const char *format, ...)
    DET_PRINTF(3, 4);

#endif
