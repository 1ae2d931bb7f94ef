/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* top_sellers.c - the stages of top_sellers.flow that have no connector, as a module of detent:
 * cc -I. -shared -fPIC top_sellers.c -o top_sellers.so */
#include <stdio.h>
#include <string.h>

#define FLOW_SPEC "top_sellers.flow"
#include <detent/flow/declare.h>
#define FLOW_SPEC "top_sellers.flow"
#include <detent/flow/define.h>
#include <detent/module.h>

#define BEST 3

/* There is a state, a total, for each article. */
static int add_up(struct det_stage_call *call, struct total *state, const struct sale *in)
{
    if (in->pieces == 0)
        return det_stage_reject(call, DET_REJECT_VALIDATION, "a sale has at least one piece");
    snprintf(state->article, sizeof state->article, "%s", in->article);
    snprintf(state->category, sizeof state->category, "%s", in->category);
    state->pieces += in->pieces;
    state->cents += (uint64_t)in->pieces * in->cents;
    return 0;
}

static int add_up_result(struct det_stage_call *call, struct total *state)
{
    return add_up_emit(call, *state);
}

/* Keeps the best totals of a category, the best first; of equals the first one by name. */
static int rank(struct det_stage_call *call, struct ranking *state, const struct total *in)
{
    size_t place = state->best_count;

    (void)call;
    while (place > 0 && (state->best[place - 1].cents < in->cents ||
                         (state->best[place - 1].cents == in->cents &&
                          strcmp(state->best[place - 1].article, in->article) > 0)))
        place--;
    if (place == BEST)
        return 0;
    if (state->best_count < BEST)
        state->best_count++;
    memmove(
        &state->best[place + 1], &state->best[place],
        (state->best_count - place - 1) * sizeof state->best[0]);
    state->best[place] = *in;
    return 0;
}

static int rank_result(struct det_stage_call *call, struct ranking *state)
{
    int r = 0;

    for (uint32_t i = 0; i < state->best_count && r == 0; i++) {
        const struct total *total = &state->best[i];
        struct place place = { .rank = i + 1, .pieces = total->pieces, .cents = total->cents };

        snprintf(place.category, sizeof place.category, "%s", total->category);
        snprintf(place.article, sizeof place.article, "%s", total->article);
        r = rank_emit(call, place);
    }
    return r;
}

DET_MODULE("top_sellers", DET_MODULE_FLOWS(&top_sellers_flow));
