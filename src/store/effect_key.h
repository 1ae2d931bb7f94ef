/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* effect_key.h - the key of an effect; docs/effects.md describes its use.
 *
 *     <store>/<machine>/<instance>/<sequence>/<index>
 *
 * <store> is the first 16 digits of the identity of the store in which the effect was requested.
 * An attempted effect keeps its key:
 *
 * - Rows of older versions have a key without <store>. The highest bit of the stored index
 *   distinguishes the two forms.
 * - An imported row has the digits of the other store in `origin`. */
#ifndef DET_STORE_EFFECT_KEY_H
#define DET_STORE_EFFECT_KEY_H

#include <stdio.h>

#include <detent/driver/store.h>

#define DET_KEY_HAS_STORE 0x8000u
#define DET_KEY_STORE     (DET_ORIGIN_SIZE - 1) /* digits of <store> */

/* The stored index of a new effect. */
static inline uint16_t det_effect_index(const struct det_store *store, uint16_t index)
{
    return (uint16_t)(store->identity[0] ? index | DET_KEY_HAS_STORE : index);
}

/* <store> of a row's key: 16 digits, or the whole identity if it is this store; "": none. */
static inline const char *det_effect_store(
    const struct det_store *store, const struct det_store_effect *row)
{
    if (!(row->index & DET_KEY_HAS_STORE))
        return "";
    return row->origin[0] ? row->origin : store->identity;
}

/* Like snprintf(). */
static inline int det_effect_key(
    char *target, size_t capacity, const struct det_store *store, const char *machine,
    const char *id, const struct det_store_effect *row)
{
    const char *origin = det_effect_store(store, row);

    return snprintf(
        target, capacity, "%.*s%s%s/%s/%llu/%u", DET_KEY_STORE, origin, origin[0] ? "/" : "",
        machine, id, (unsigned long long)row->sequence, row->index & ~DET_KEY_HAS_STORE);
}

#endif
