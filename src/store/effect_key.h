/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* effect_key.h - the key of an effect: docs/effects.md says what it is for.
 *
 *     <store>/<machine>/<instance>/<sequence>/<index>
 *
 * <store> are the first 16 digits of the store's identity. Rows from before keys had it do not have
 * it, so that an effect which was attempted then keeps its key: the highest bit of the index, as it
 * is stored, tells the two apart. */
#ifndef DET_STORE_EFFECT_KEY_H
#define DET_STORE_EFFECT_KEY_H

#include <stdio.h>

#include <detent/driver/store.h>

#define DET_KEY_HAS_STORE 0x8000u
#define DET_KEY_STORE     16 /* digits */

/* As stored: that of an effect which is asked for now. */
static inline uint16_t det_effect_index(const struct det_store *store, uint16_t index)
{
    return (uint16_t)(store->identity[0] ? index | DET_KEY_HAS_STORE : index);
}

/* As snprintf() does. */
static inline int det_effect_key(
    char *target, size_t capacity, const struct det_store *store, const char *machine,
    const char *id, const struct det_store_effect *row)
{
    bool has_store = row->index & DET_KEY_HAS_STORE;

    return snprintf(
        target, capacity, "%.*s%s%s/%s/%llu/%u", has_store ? DET_KEY_STORE : 0, store->identity,
        has_store ? "/" : "", machine, id, (unsigned long long)row->sequence,
        row->index & ~DET_KEY_HAS_STORE);
}

#endif
