/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* race_test.h - a store that others change while its events are walked through: old ones are
 * deleted in the midst of a walk, or new ones come before it. */
#ifndef DET_CLI_RACE_TEST_H
#define DET_CLI_RACE_TEST_H

#include "cli/store_test.h"

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
    uint64_t between, and;
    bool is_lasting; /* the hole stays as it is */
    void (*before)(unsigned walk);
} race;

static inline int race_visit(void *context, const struct det_store_event *event)
{
    bool has_hole = race.is_lasting || race.walk == race.at;

    (void)context;
    if (race.at && race.walk >= race.at && event->sequence < race.and
        &&(!has_hole || event->sequence > race.between))
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
    return race.events(store, instance, after, race_visit, NULL);
}

static inline void race_begin(struct shop *shop)
{
    race = (struct race){ .ops = *shop->store.store->ops };
    race.events = race.ops.events;
    race.ops.events = race_events;
    shop->store.ops = &race.ops;
}

static inline void race_end(struct shop *shop)
{
    shop->store.ops = shop->store.store->ops;
}

#endif
