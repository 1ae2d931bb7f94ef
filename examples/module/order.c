/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* order.c - what order.fsm names, as a module: cc -I. -shared -fPIC order.c -o order.so */
#include <stdio.h>
#include <unistd.h>

#define FSM_SPEC "order.fsm"
#include <detent/fsm/declare.h>
#define FSM_SPEC "order.fsm"
#include <detent/fsm/define.h>
#include <detent/module.h>

/* Where the bank keeps what it has charged, one file for each key. */
static char ledger[256];

static bool pays_in_full(
    const struct det_move *move, const struct order_data *order, const struct order_event *event)
{
    (void)move;
    return event->pay.cents == order->total;
}

/* It may run twice, so the key is all that counts: the same file is the same charge. */
static int charge_card(
    struct det_effect_call *call, const struct order_data *order, const struct order_event *event,
    struct order_event *ret)
{
    struct receipt receipt = { .receipt = "" };
    char path[512];
    FILE *file;

    (void)order;
    snprintf(
        receipt.receipt, sizeof receipt.receipt, "%s-%llu", call->move.instance,
        (unsigned long long)call->move.sequence);
    snprintf(path, sizeof path, "%s/%s", (char *)det_module_context(&call->move), receipt.receipt);
    file = access(ledger, W_OK) == 0 ? fopen(path, "w") : NULL;
    if (!file || fprintf(file, "%llu\n", (unsigned long long)event->pay.cents) < 0 || fclose(file))
        return snprintf(call->reason, DET_REASON_MAX, "the bank is closed"), DET_ERR_IO;
    *ret = order_charged(receipt);
    return DET_EFFECT_PRODUCED;
}

static int open_ledger(
    const struct det_module_settings *settings, void **ret, struct det_error *reterr)
{
    (void)reterr;
    snprintf(ledger, sizeof ledger, "%s/bank", settings->folder);
    *ret = ledger;
    return 0;
}

DET_MODULE("order", DET_MODULE_MACHINES(&order_machine), .open = open_ledger);
