/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* piggy_bank.c - the stages of piggy_bank.flow that have no connector, as a module of detent:
 * cc -I. -shared -fPIC piggy_bank.c -o piggy_bank.so */
#include <stdio.h>
#include <string.h>

#define FLOW_SPEC "piggy_bank.flow"
#include <detent/flow/declare.h>
#define FLOW_SPEC "piggy_bank.flow"
#include <detent/flow/define.h>
#include <detent/module.h>

/* A booking for an account that nobody has opened is dropped: the join is INNER. */
static int find_owner(
    struct det_stage_call *call, const struct account *reference, const struct booking *in)
{
    struct posting posting = { .cents = in->cents };

    snprintf(posting.account, sizeof posting.account, "%s", in->account);
    snprintf(posting.owner, sizeof posting.owner, "%s", reference->owner);
    return find_owner_emit(call, posting);
}

/* There is a state, a balance, for each account. */
static int book(struct det_stage_call *call, struct balance *state, const struct posting *in)
{
    int64_t cents;

    if (__builtin_add_overflow(state->cents, in->cents, &cents) || cents < 0)
        return det_stage_reject(
            call, DET_REJECT_DOMAIN, "the account has %lld cents", (long long)state->cents);
    snprintf(state->account, sizeof state->account, "%s", in->account);
    snprintf(state->owner, sizeof state->owner, "%s", in->owner);
    state->bookings++;
    state->cents = cents;
    return 0;
}

static int book_result(struct det_stage_call *call, struct balance *state)
{
    return book_emit(call, *state);
}

DET_MODULE("piggy_bank", DET_MODULE_FLOWS(&piggy_bank_flow));
