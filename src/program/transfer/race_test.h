/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* race_test.h - a store that others change while its events are walked through: old ones are
 * deleted in the midst of a walk, or new ones come before it; or that cannot be read. */
#ifndef DET_TRANSFER_RACE_TEST_H
#define DET_TRANSFER_RACE_TEST_H

#include "inspect/store_test.h"

static struct race {
    struct det_store_ops ops;
    int (*events)(
        struct det_store *store, struct det_store_instance *instance, uint64_t after,
        int (*visit)(void *context, const struct det_store_event *event), void *context);
    int (*visit)(void *context, const struct det_store_event *event);
    void *context;
    unsigned walk; /* the number of this one */
    /* In walk `at`, those between the two are gone when it comes to them; then all before. */
    unsigned at;
    uint64_t low, high;
    bool is_lasting; /* the hole stays as it is */
    int error;       /* of walk `at`, in place of all that; 0: none */
    int load_error;  /* of the load `at` */
    unsigned loads;
    int (*load)(
        struct det_store *store, const struct det_machine *machine, const char *id,
        const struct det_store_rows *rows, struct det_store_loaded *ret);
    void (*before)(unsigned walk);
} race;

static inline int race_visit(void *context, const struct det_store_event *event)
{
    bool has_hole = race.is_lasting || race.walk == race.at;

    (void)context;
    if (race.at && race.walk >= race.at && event->sequence < race.high &&
        (!has_hole || event->sequence > race.low))
        return 0;
    return race.visit(race.context, event);
}

static inline int race_events(
    struct det_store *store, struct det_store_instance *instance, uint64_t after,
    int (*visit)(void *context, const struct det_store_event *event), void *context)
{
    race.walk++;
    race.visit = visit;
    race.context = context;
    if (race.before)
        race.before(race.walk);
    if (race.error && race.walk == race.at)
        return race.error;
    return race.events(store, instance, after, race_visit, NULL);
}

static inline int race_load(
    struct det_store *store, const struct det_machine *machine, const char *id,
    const struct det_store_rows *rows, struct det_store_loaded *ret)
{
    if (++race.loads == race.at && race.load_error)
        return race.load_error;
    return race.load(store, machine, id, rows, ret);
}

static inline void race_begin(struct shop *shop)
{
    race = (struct race){ .ops = *shop->store.store->ops };
    race.events = race.ops.events;
    race.ops.events = race_events;
    race.load = race.ops.load;
    race.ops.load = race_load;
    shop->store.ops = &race.ops;
}

static inline void race_hole(unsigned at, uint64_t low, uint64_t high)
{
    race.at = at;
    race.low = low;
    race.high = high;
}

/* Events of which every fourth is another one than those before it. */
static inline void race_send(struct shop *shop, const char *id, int count)
{
    for (int i = 0; i < count; i++)
        shop_send(shop, id, i % 4 == 0 ? "pay" : "ping");
}

static inline void race_end(struct shop *shop)
{
    shop->store.ops = shop->store.store->ops;
}

#endif
