/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* bank.c - the world outside the shop, made up: it is slow, it fails, it says no, and like a good
 * payment service it remembers the keys of what it has done.
 *
 * How it treats a charge:
 *     order-2    cannot be reached twice; then it charges, but the answer gets lost
 *     order-5    takes a minute and a half
 *     card 0000  says no
 *     others     two seconds, and yes */
#include <string.h>

#include <detent/world.h>

#include "demo.h"

static bool is_of(const char *key, const char *order)
{
    return strstr(key, order) != NULL;
}

/* Remembers a key; false when it was known, and then nothing is to be done. */
static bool is_new(struct bank *bank, const char *key)
{
    for (size_t i = 0; i < bank->key_count; i++) {
        if (strcmp(bank->keys[i], key) == 0) {
            bank->asked_again++;
            return false;
        }
    }
    if (bank->key_count < DEMO_KEYS)
        strncpy(bank->keys[bank->key_count++], key, sizeof bank->keys[0] - 1);
    return true;
}

/* The third attempt for order-2 is the nasty one: the money moves and nobody hears of it. */
static int bank_charge(
    struct shop *shop, const char *key, const struct payment *payment, uint32_t attempt)
{
    struct demo *demo = (struct demo *)shop;
    int r = det_world_sleep(demo->world, is_of(key, "order-5") ? 90 * DET_SECOND : 2 * DET_SECOND);

    if (r < 0)
        return r;
    if (is_of(key, "order-2") && attempt < 3)
        return DET_ERR_IO;
    if (strcmp(payment->card, "0000") == 0)
        return BANK_NO;
    if (is_new(&demo->bank, key))
        demo->bank.charges++;
    else
        screen_print(demo, TONE_QUIET, "bank     knows %s: charged before, not again", key);
    return is_of(key, "order-2") && attempt == 3 ? DET_ERR_TIMEOUT : BANK_YES;
}

static int bank_refund(struct shop *shop, const char *key, const struct order_data *order)
{
    struct demo *demo = (struct demo *)shop;
    int r = det_world_sleep(demo->world, 20 * DET_SECOND);

    (void)order;
    if (r >= 0 && is_new(&demo->bank, key))
        demo->bank.refunds++;
    return r;
}

static int post_mail(struct shop *shop, const char *order, const char *subject)
{
    screen_print((struct demo *)shop, TONE_QUIET, "%s  mail: %s", order, subject);
    return 0;
}

void bank_open(struct demo *demo)
{
    demo->shop = (struct shop){ bank_charge, bank_refund, post_mail };
}
