/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* order.c - the order machine: its table, and the functions that order.fsm names. */
#include "order.h"

#include <stdio.h>

#define FSM_SPEC "order.fsm"
#include <detent/fsm/define.h>
#include <detent/strict.h>

/* A guard answers yes or no and changes nothing. */
static bool pays_in_full(
    const struct det_move *move, const struct order_data *order, const struct order_event *event)
{
    (void)move;
    return event->pay.cents == order->total;
}

/* A hook runs before the commit. When it fails, nothing has happened. */
static int knows_address(
    const struct det_move *move, const struct order_data *order, const struct order_event *event)
{
    (void)move;
    (void)event;
    return order->address[0] == '\0' ? DET_ERR_INVALID : 0;
}

/* An update computes the new data; it is part of the commit. */
static void count_decline(struct order_data *order, const struct order_event *event)
{
    (void)event;
    order->declines++;
}

/* A fill completes the event of a timer when the timer is armed. */
static void promise_date(
    const struct det_move *move, const struct order_data *order, struct order_event *event)
{
    (void)order;
    event->late.promised = move->now + 3 * DET_DAY;
}

/* Effects run after the commit, at least once, and may produce an event. The receipt is made from
 * the key, which is what makes a second attempt harmless. */
static int charge_card(
    struct det_effect_call *call, const struct order_data *order, const struct order_event *event,
    struct order_event *ret)
{
    struct shop *shop = call->move.user;
    struct receipt receipt = { 0 };
    int r = shop->charge(shop, call->key, &event->pay, call->attempt);

    (void)order;
    if (r < 0)
        return r;
    snprintf(receipt.receipt, sizeof receipt.receipt, "%s", call->key);
    *ret = r == BANK_YES ? order_charged(receipt) : order_declined();
    return DET_EFFECT_PRODUCED;
}

static int refund_card(
    struct det_effect_call *call, const struct order_data *order, const struct order_event *event,
    struct order_event *ret)
{
    struct shop *shop = call->move.user;
    int r = shop->refund(shop, call->key, order);

    (void)event;
    if (r < 0)
        return r;
    *ret = order_refunded();
    return DET_EFFECT_PRODUCED;
}

/* What the mail is about depends on what happened, and that is the event. */
static const char *subject_of(enum order_event_kind kind)
{
    switch (kind) {
    case ORDER_CHARGED:
        return "thank you for your payment";
    case ORDER_SHIP:
        return "your parcel is on its way";
    case ORDER_LATE:
        return "sorry, your parcel is late";
    case ORDER_EXPIRED:
        return "your order has expired";
    case ORDER_REFUNDED:
        return "your money is on its way back";
    case ORDER_PAY:
    case ORDER_DELIVER:
    case ORDER_CANCEL:
    case ORDER_MOVE:
    case ORDER_DECLINED:
    case order_event_count:
        break;
    }
    return "about your order";
}

static int send_mail(
    struct det_effect_call *call, const struct order_data *order, const struct order_event *event,
    struct order_event *ret)
{
    struct shop *shop = call->move.user;

    (void)order;
    (void)ret;
    return shop->mail(shop, call->move.instance, subject_of(event->kind));
}
