/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* shop.h - the parts of the shop.
 *
 *     main.c    a line in is an order, a line out is a promise
 *     order.c   the machine of an order, and the one effect that it names
 *     bank.c    asks the payment service
 *     bank      the payment service itself: another program, in another language, that fails */
#ifndef SHOP_H
#define SHOP_H

#include <detent/detent.h>

#define FSM_SPEC "order.fsm"
#include <detent/fsm/declare.h>

/* The `user` of the runtime. */
struct shop {
    uint16_t bank_port; /* on 127.0.0.1 */
};

enum bank_answer { BANK_YES, BANK_NO };

/* Asks the bank for money and waits for the answer. A negative error means that it could not be
 * asked, or was not heard; whether it has charged is then not known, so ask again with the same
 * key. Called from several threads at once. */
int bank_charge(const struct shop *shop, const char *key, uint64_t cents);

#endif
