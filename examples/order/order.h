/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* order.h - the order machine as its callers see it, and the shop that it works for. */
#ifndef ORDER_H
#define ORDER_H

#define FSM_SPEC "order.fsm"
#include <detent/fsm/declare.h>

/* What the bank says. A negative error means that it could not be asked, or was not heard. */
enum bank_answer { BANK_YES, BANK_NO };

/* The world outside, behind three functions, so that a demo or a test can play it. It is the `user`
 * of the runtime. `key` is the same on every attempt of one effect: a bank that knows it already
 * gives its first answer again, and nobody pays twice. All three are called from pool threads. */
struct shop {
    int (*charge)(
        struct shop *shop, const char *key, const struct payment *payment, uint32_t attempt);
    int (*refund)(struct shop *shop, const char *key, const struct order_data *order);
    int (*mail)(struct shop *shop, const char *order, const char *subject);
};

#endif
