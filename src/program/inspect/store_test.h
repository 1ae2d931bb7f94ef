/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* store_test.h - a store in memory and virtual time, with an order machine, as the commands on
 * stores see it: for their tests. */
#ifndef DET_INSPECT_STORE_TEST_H
#define DET_INSPECT_STORE_TEST_H

#include "lib/test.h"

#include <detent/runtime.h>
#include <detent/sim.h>
#include <detent/tool/machine.h>

#include "inspect/store_internal.h"
#include "inspect/stored_instance.h"

#define ORDER_SPEC                                                                     \
    "#define FSM_NAME order\n"                                                         \
    "#define FSM_PREFIX ORDER\n"                                                       \
    "#define FSM_DATA order_data\n"                                                    \
    "RECORD(payment)\n FIELD(card, str(24), SENSITIVE)\n FIELD(cents, u64)\nEND\n"     \
    "RECORD(order_data)\n FIELD(cents, u64)\n OPTIONAL(note, str(40))\nEND\n"          \
    "STATE(PENDING, pending, INITIAL)\n"                                               \
    "STATE(CHARGING, charging)\n"                                                      \
    "STATE(PAID, paid)\n"                                                              \
    "STATE(GONE, gone, FINAL)\n"                                                       \
    "EVENT(PAY, pay, payment)\n"                                                       \
    "EVENT(PING, ping)\n"                                                              \
    "EVENT(SHIP, ship)\n"                                                              \
    "EVENT(HALT, halt)\n"                                                              \
    "EVENT(NOISE, noise)\n"                                                            \
    "EVENT(JUNK, junk)\n"                                                              \
    "INTERNAL(CHARGED, charged)\n"                                                     \
    "INTERNAL(EXPIRED, expired)\n"                                                     \
    "INTERNAL(REMIND, remind)\n"                                                       \
    "EFFECT(charge_card, CHARGED)\n"                                                   \
    "TIMER(reminder, HOURS(1), REMIND)\n"                                              \
    "UNHANDLED(SHIP, DEFER)\nUNHANDLED(NOISE, IGNORE)\nUNHANDLED(JUNK, DEAD_LETTER)\n" \
    "ON(PENDING, PAY, CHARGING, KEEP(cents), DO(charge_card), ARM(reminder))\n"        \
    "STAY(PENDING, PING)\n"                                                            \
    "ON(CHARGING, CHARGED, PAID, DISARM(reminder))\n"                                  \
    "STAY(CHARGING, REMIND)\n"                                                         \
    "ON(CHARGING, PING, PENDING)\n"                                                    \
    "ON(PENDING, EXPIRED, GONE)\n"                                                     \
    "ON(PAID, SHIP, GONE)\n"                                                           \
    "STOP(CHARGING, HALT, REASON(\"halted\"))\n"                                       \
    "STAY(PAID, ANY(NOISE, JUNK))\n"                                                   \
    "AFTER(PENDING, MINUTES(30), EXPIRED)\n"

#define PARCEL_SPEC                                                                              \
    "#define FSM_NAME parcel\n"                                                                  \
    "#define FSM_PREFIX PARCEL\n"                                                                \
    "STATE(HERE, here, INITIAL)\nSTATE(THERE, there, FINAL)\nEVENT(MOVE, move)\nON(HERE, MOVE, " \
    "THERE)\n"

/* A store as the commands have it, and a runtime to fill it with. */
struct shop {
    struct cli cli;
    char *text; /* what was printed and said */
    size_t size;
    struct det_sim *sim;
    struct cli_store store;
    struct det_runtime *runtime;
    struct det_machine *order, *parcel;
};

/* A machine as if the store had kept its definition. */
static inline struct det_machine *shop_define(struct shop *shop, const char *name, const char *spec)
{
    struct det_machine *machine = NULL;

    assert_int_equal(cli_store_define(&shop->store, name, spec, &machine), CLI_OK);
    return machine;
}

static inline void shop_open_with(struct shop *shop, const struct det_allocator *allocator)
{
    struct det_error error;

    *shop = (struct shop){ .cli = { .allocator = allocator } };
    shop->cli.out = open_memstream(&shop->text, &shop->size);
    assert_non_null(shop->cli.out);
    shop->cli.err = shop->cli.out;
    assert_int_equal(det_sim_open(&(struct det_sim_options){ .seed = 3 }, &shop->sim, &error), 0);
    shop->cli.world = det_sim_world(shop->sim);
    shop->store =
        (struct cli_store){ .cli = &shop->cli, .url = "test:", .request.is_writing = true };
    det_arena_init(&shop->store.arena, allocator);
    det_arena_init(&shop->store.project.arena, allocator);
    assert_int_equal(
        det_store_open_with(
            "memory:", &(struct det_store_options){ .world = shop->cli.world }, &shop->store.store,
            &error),
        0);
    shop->store.ops = shop->store.store->ops;
}

static inline void shop_run(struct shop *shop)
{
    struct det_error error;

    assert_int_equal(
        det_runtime_open(
            shop->store.store,
            &(struct det_runtime_options){ .world = shop->cli.world, .is_passive = true },
            &shop->runtime, &error),
        0);
}

/* With both machines, and a runtime on them. */
static inline void shop_open(struct shop *shop)
{
    shop_open_with(shop, NULL);
    shop->order = shop_define(shop, "order", ORDER_SPEC);
    shop->parcel = shop_define(shop, "parcel", PARCEL_SPEC);
    shop_run(shop);
}

static inline void shop_close(struct shop *shop)
{
    det_runtime_close(shop->runtime);
    cli_store_close(&shop->store);
    det_sim_close(shop->sim);
    fclose(shop->cli.out);
    free(shop->text);
}

/* Returns the output since the last call; valid until the next call. */
static inline const char *shop_printed(struct shop *shop)
{
    static char printed[65536];

    fflush(shop->cli.out);
    snprintf(printed, sizeof printed, "%s", shop->text);
    fclose(shop->cli.out);
    free(shop->text);
    shop->cli.out = open_memstream(&shop->text, &shop->size);
    assert_non_null(shop->cli.out);
    shop->cli.err = shop->cli.out;
    return printed;
}

static inline void shop_start(struct shop *shop, const struct det_machine *machine, const char *id)
{
    assert_int_equal(det_runtime_start(shop->runtime, machine, id, NULL, NULL, NULL, NULL), 0);
}

static inline void shop_send_with(
    struct shop *shop, const char *id, const char *name, const char *json, const char *event_id)
{
    const struct det_machine *machine = shop->order;
    int kind = det_machine_find_event(machine, name);
    char *event = calloc(1, machine->event_size);

    assert_non_null(event);
    assert_true(kind >= 0);
    memcpy(event, &(unsigned){ (unsigned)kind }, sizeof(unsigned));
    if (json)
        assert_int_equal(
            det_record_from_json(
                det_machine_payload(machine, (unsigned)kind), json, strlen(json), 0,
                event + machine->events[kind].payload_offset, NULL),
            0);
    assert_int_equal(
        det_runtime_send(
            shop->runtime, machine, id, event, &(struct det_send_options){ .event_id = event_id },
            NULL, NULL),
        0);
    free(event);
}

static inline void shop_send(struct shop *shop, const char *id, const char *name)
{
    const char *pay = strcmp(name, "pay") == 0 ? "{\"card\":\"4242\",\"cents\":1999}" : NULL;

    shop_send_with(shop, id, name, pay, NULL);
}

/* Commits a change of what is pending of an instance. */
static inline void shop_change(
    struct shop *shop, const char *id, const struct det_store_timer_change *timer,
    const struct det_store_effect_change *effect)
{
    struct instance instance;
    struct det_store_commit commit = { .machine = shop->order,
                                       .id = id,
                                       .timers = timer,
                                       .timer_count = timer != NULL,
                                       .effects = effect,
                                       .effect_count = effect != NULL },
                            *one = &commit;

    assert_int_equal(instance_find(&shop->store, id, &instance), CLI_OK);
    commit.instance = instance.loaded.instance;
    commit.head = &instance.loaded.head;
    assert_int_equal(shop->store.ops->commit(shop->store.store, &one, 1), 0);
    assert_int_equal(commit.result, 0);
    instance_close(&instance);
}

/* Changes the first timer of an instance as an attempt would. */
static inline void shop_fail_timer(
    struct shop *shop, const char *id, uint32_t attempts, int error, const char *reason,
    bool is_dead)
{
    struct det_store_timer_change change = { .kind = DET_STORE_UPDATE };
    struct instance instance;

    assert_int_equal(instance_find(&shop->store, id, &instance), CLI_OK);
    change.timer = instance.timers->row;
    change.timer.attempts = attempts;
    change.timer.last_error = error;
    change.timer.reason = reason;
    change.timer.next = instance.now + 4 * DET_SECOND;
    change.timer.is_dead = is_dead;
    shop_change(shop, id, &change, NULL);
    instance_close(&instance);
}

/* Fails its first effect likewise. */
static inline void shop_fail_effect(
    struct shop *shop, const char *id, uint32_t attempts, int error, const char *reason,
    bool is_dead)
{
    struct instance instance;
    struct det_store_effect_change change = { .kind = DET_STORE_UPDATE };

    assert_int_equal(instance_find(&shop->store, id, &instance), CLI_OK);
    change.effect = instance.effects->row;
    change.effect.attempts = attempts;
    change.effect.last_error = error;
    change.effect.reason = reason;
    change.effect.next = instance.now + 4 * DET_SECOND;
    change.effect.is_dead = is_dead;
    shop_change(shop, id, NULL, &change);
    instance_close(&instance);
}

static inline void shop_advance(struct shop *shop, det_time span)
{
    assert_int_equal(det_sim_advance(shop->sim, span), 0);
}

#endif
