/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* order.c - the machine of an order: its table, and the effect that order.fsm names. */
#include "shop.h"

#include <stdio.h>

#define FSM_SPEC "order.fsm"
#include <detent/fsm/define.h>
#include <detent/strict.h>

/* Runs after the commit, at least once, always with the same key: also when the process was killed
 * between the bank's answer and the next commit. */
static int charge_card(
    struct det_effect_call *call, const struct order_data *order, const struct order_event *event,
    struct order_event *ret)
{
    struct receipt receipt = { 0 };
    int r = bank_charge(call->move.user, call->key, order->cents);

    (void)event;
    if (r < 0)
        return r;
    snprintf(receipt.receipt, sizeof receipt.receipt, "%s", call->key);
    *ret = r == BANK_YES ? order_charged(receipt) : order_refused();
    return DET_EFFECT_PRODUCED;
}
