/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* runtime_test.h - what the suites of the runtime share: a machine that has everything, user code
 * that does as it is told, and a fixture in a simulated world.
 *
 *     PENDING --pay--> CHARGING --charged--> PAID --ship--> SHIPPED
 *        ^               |  declined, late     |  halt: stop
 *        +---------------+                     +--cancel, and from everywhere--> CANCELLED */
#ifndef DET_RUNTIME_TEST_H
#define DET_RUNTIME_TEST_H

#include "lib/test.h"

#include <detent/builder.h>
#include <detent/runtime.h>
#include <detent/sim.h>

#include "os/os.h"

struct payment {
    uint64_t cents;
    char card[25];
};

struct order_data {
    uint64_t cents;
    char card[25];
    uint64_t updates;
};

enum { PENDING, CHARGING, PAID, SHIPPED, CANCELLED };
enum {
    PAY,
    CHARGED,
    DECLINED,
    SHIP,
    CANCEL,
    EXPIRE,
    LATE,
    REMIND,
    TOUCH,
    PING,
    HALT,
    NOTE,
    NOISE,
    JUNK
};

struct order_event {
    unsigned kind;
    union {
        struct payment pay;
        struct payment remind;
    } as __attribute__((aligned(8)));
};

/* How user code behaves, and what it saw. */
struct order_control {
    bool guard_says_no;
    int hook_result, exit_result, entry_result;
    det_time hook_takes; /* in the simulated world */
    struct det_sim *sim;
    /* charge_card: answers for the first attempts, then the product. */
    int effect_failures;
    unsigned product; /* a kind */
    int effect_result;
    /* What was seen. */
    char trace[512];
    unsigned guards, hooks, effects;
    struct det_move move;
    struct order_data data;
    struct order_event event;
    char key[300];
    uint32_t attempt;
    /* Called from the guard and from the effect, if set. */
    void (*in_guard)(void *context);
    void (*in_effect)(void *context);
    void *context;
    /* What the observer was told. */
    unsigned notes, troubles;
    struct det_note note;
    char cause[300];
    struct det_trouble trouble;
    char trouble_key[300];
    unsigned trouble_counts[5];
};

static inline void order_trace(struct order_control *control, const char *word)
{
    size_t length = strlen(control->trace);

    snprintf(
        control->trace + length, sizeof control->trace - length, "%s%s", length ? " " : "", word);
}

static inline bool order_can_pay(const struct det_move *move, const void *data, const void *event)
{
    struct order_control *control = move->user;

    control->guards++;
    control->move = *move;
    memcpy(&control->data, data, sizeof control->data);
    memcpy(&control->event, event, sizeof control->event);
    if (control->in_guard)
        control->in_guard(control->context);
    return !control->guard_says_no;
}

static inline int order_check(const struct det_move *move, const void *data, const void *event)
{
    struct order_control *control = move->user;

    (void)data;
    (void)event;
    control->hooks++;
    control->move = *move;
    order_trace(control, "hook");
    if (control->hook_takes)
        assert_int_equal(det_sim_advance(control->sim, control->hook_takes), 0);
    return control->hook_result;
}

static inline int order_leave(const struct det_move *move, const void *data, const void *event)
{
    struct order_control *control = move->user;

    (void)data;
    (void)event;
    order_trace(control, "exit");
    return control->exit_result;
}

static inline int order_enter(const struct det_move *move, const void *data, const void *event)
{
    struct order_control *control = move->user;

    (void)data;
    order_trace(control, event ? "entry" : "start");
    return control->entry_result;
}

static inline void order_count(void *data, const void *event)
{
    (void)event;
    ((struct order_data *)data)->updates++;
}

static inline void order_since(const struct det_move *move, const void *data, void *event)
{
    struct order_event *filled = event;

    (void)move;
    filled->as.remind.cents = ((const struct order_data *)data)->cents + 1;
}

static inline int order_charge(
    struct det_effect_call *call, const void *data, const void *event, void *ret)
{
    struct order_control *control = call->move.user;
    struct order_event *product = ret;

    control->effects++;
    control->attempt = call->attempt;
    control->move = call->move;
    snprintf(control->key, sizeof control->key, "%s", call->key);
    memcpy(&control->data, data, sizeof control->data);
    memcpy(&control->event, event, sizeof control->event);
    if (control->in_effect)
        control->in_effect(control->context);
    if ((int)call->attempt <= control->effect_failures)
        return DET_ERR_IO;
    product->kind = control->product;
    return control->effect_result;
}

static inline void order_observe(void *user, const struct det_note *note)
{
    struct order_control *control = user;

    control->notes++;
    control->note = *note;
    control->cause[0] = 0;
    if (note->cause)
        snprintf(control->cause, sizeof control->cause, "%s", note->cause);
}

static inline void order_trouble(void *user, const struct det_trouble *trouble)
{
    struct order_control *control = user;

    control->troubles++;
    control->trouble = *trouble;
    control->trouble_counts[trouble->kind]++;
    control->trouble_key[0] = 0;
    if (trouble->key)
        snprintf(control->trouble_key, sizeof control->trouble_key, "%s", trouble->key);
}

static const struct det_field payment_fields[] = {
    { .name = "cents",
      .kind = DET_KIND_UNSIGNED,
      .offset = offsetof(struct payment, cents),
      .size = 8 },
    { .name = "card",
      .kind = DET_KIND_TEXT,
      .offset = offsetof(struct payment, card),
      .size = 25,
      .capacity = 24 },
};
static const struct det_record payment_record = {
    .name = "payment", .size = sizeof(struct payment), .fields = payment_fields, .field_count = 2
};
static const struct det_field order_data_fields[] = {
    { .name = "cents",
      .kind = DET_KIND_UNSIGNED,
      .offset = offsetof(struct order_data, cents),
      .size = 8 },
    { .name = "card",
      .kind = DET_KIND_TEXT,
      .offset = offsetof(struct order_data, card),
      .size = 25,
      .capacity = 24 },
    { .name = "updates",
      .kind = DET_KIND_UNSIGNED,
      .offset = offsetof(struct order_data, updates),
      .size = 8 },
};
static const struct det_record order_data_record = { .name = "order_data",
                                                     .size = sizeof(struct order_data),
                                                     .fields = order_data_fields,
                                                     .field_count = 3 };

static inline void order_names(struct det_machine_builder *b, bool is_bound)
{
    static const char *const states[] = { "PENDING", "CHARGING", "PAID", "SHIPPED", "CANCELLED" };
    static const struct det_event_row events[] = {
        { .name = "PAY", .payload = &payment_record },
        { .name = "CHARGED", .is_internal = true },
        { .name = "DECLINED", .is_internal = true },
        { .name = "SHIP" },
        { .name = "CANCEL" },
        { .name = "EXPIRE" },
        { .name = "LATE", .is_internal = true },
        { .name = "REMIND", .payload = &payment_record },
        { .name = "TOUCH" },
        { .name = "PING" },
        { .name = "HALT" },
        { .name = "NOTE", .unhandled = DET_UNHANDLED_DEFER },
        { .name = "NOISE", .unhandled = DET_UNHANDLED_IGNORE },
        { .name = "JUNK", .unhandled = DET_UNHANDLED_DEAD_LETTER },
    };

    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++)
        det_machine_builder_state(
            b, &(struct det_state_row){ .name = states[i],
                                        .flags = i == 0           ? DET_STATE_INITIAL
                                                 : i == CANCELLED ? DET_STATE_FINAL
                                                                  : 0 });
    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++)
        det_machine_builder_event(b, &events[i]);
    det_machine_builder_guard(b, "can_pay", is_bound ? order_can_pay : NULL);
    det_machine_builder_hook(b, "check", is_bound ? order_check : NULL);
    det_machine_builder_hook(b, "leave", is_bound ? order_leave : NULL);
    det_machine_builder_hook(b, "enter", is_bound ? order_enter : NULL);
    det_machine_builder_update(b, "count", is_bound ? order_count : NULL);
    det_machine_builder_fill(b, "since", is_bound ? order_since : NULL);
    det_machine_builder_effect(
        b, &(struct det_effect_row){ .name = "charge_card",
                                     .run = is_bound ? order_charge : NULL,
                                     .produces = DET_LIST("CHARGED", "DECLINED") });
    det_machine_builder_timer(
        b, &(struct det_timer_row){
               .name = "reminder",
               .timeout = { .after = DET_HOUR, .event = "REMIND", .fill = "since" } });
}

static inline void order_on(
    struct det_machine_builder *b, const char *from, const char *event, const char *to)
{
    det_machine_builder_on(
        b, &(struct det_on_row){ .from = DET_LIST(from),
                                 .events = DET_LIST(event),
                                 .outcome = to ? DET_GOTO : DET_STAY,
                                 .to = to });
}

static inline void order_rows(struct det_machine_builder *b)
{
    det_machine_builder_on(
        b, &(struct det_on_row){ .from = DET_LIST("PENDING"),
                                 .events = DET_LIST("PAY"),
                                 .outcome = DET_GOTO,
                                 .to = "CHARGING",
                                 .guard = "can_pay",
                                 .hook = "check",
                                 .keeps = DET_LIST("cents", "card"),
                                 .effects = DET_LIST("charge_card") });
    order_on(b, "CHARGING", "CHARGED", "PAID");
    order_on(b, "CHARGING", "DECLINED", "PENDING");
    order_on(b, "CHARGING", "LATE", "PENDING");
    det_machine_builder_on(
        b, &(struct det_on_row){ .from = DET_LIST("PAID"),
                                 .events = DET_LIST("SHIP"),
                                 .outcome = DET_GOTO,
                                 .to = "SHIPPED",
                                 .arms = DET_LIST("reminder") });
    det_machine_builder_on(
        b, &(struct det_on_row){ .from = DET_LIST("PENDING", "CHARGING", "PAID", "SHIPPED"),
                                 .events = DET_LIST("CANCEL"),
                                 .outcome = DET_GOTO,
                                 .to = "CANCELLED",
                                 .disarms = DET_LIST("reminder") });
    order_on(b, "PENDING", "EXPIRE", "CANCELLED");
    order_on(b, "PENDING", "TOUCH", "PENDING");
    det_machine_builder_on(
        b, &(struct det_on_row){ .from = DET_LIST("PENDING"),
                                 .events = DET_LIST("PING"),
                                 .outcome = DET_STAY,
                                 .update = "count" });
    det_machine_builder_on(
        b, &(struct det_on_row){ .from = DET_LIST("PAID"),
                                 .events = DET_LIST("HALT"),
                                 .outcome = DET_STOP,
                                 .reason = "done" });
    order_on(b, "PAID", "NOTE", NULL);
    order_on(b, "PAID", "NOISE", NULL);
    order_on(b, "PAID", "JUNK", NULL);
    order_on(b, "SHIPPED", "REMIND", NULL);
    det_machine_builder_entry(b, DET_LIST("PENDING", "CHARGING", "CANCELLED"), "enter");
    det_machine_builder_exit(b, DET_LIST("PENDING"), "leave");
    det_machine_builder_after(
        b, DET_LIST("PENDING"),
        &(struct det_timeout_row){ .after = 30 * DET_MINUTE, .event = "EXPIRE" });
    det_machine_builder_after(
        b, DET_LIST("CHARGING"),
        &(struct det_timeout_row){ .after = 10 * DET_MINUTE, .event = "LATE" });
}

static inline struct det_machine *built(struct det_machine_builder *b)
{
    struct det_diagnostics diagnostics;
    struct det_machine *machine = NULL;
    int r;

    r = det_machine_builder_build(b, &machine, &diagnostics);
    for (size_t i = 0; r < 0 && i < diagnostics.count; i++)
        print_error("%s\n", diagnostics.items[i].text);
    assert_int_equal(r, 0);
    det_machine_builder_close(b);
    return machine;
}

static inline struct det_machine *order_machine(bool is_bound)
{
    struct det_machine_builder *b;

    assert_int_equal(det_machine_builder_open("order", NULL, &b), 0);
    det_machine_builder_data(b, &order_data_record);
    order_names(b, is_bound);
    order_rows(b);
    return built(b);
}

/* A simulated world with a store, a runtime and one order machine in it. */
struct fixture {
    struct order_control control;
    struct det_machine *order;
    struct det_sim *sim;
    struct det_store *store;
    struct det_runtime *runtime;
    struct det_error error;
    struct det_sent sent;
};

static inline void fixture_reopen(struct fixture *f, struct det_runtime_options options)
{
    options.world = det_sim_world(f->sim);
    options.user = options.observer = &f->control;
    options.trouble = order_trouble;
    det_runtime_close(f->runtime);
    f->runtime = NULL;
    assert_int_equal(det_runtime_open(f->store, &options, &f->runtime, &f->error), 0);
}

static inline struct fixture *fixture_open(struct det_runtime_options options)
{
    struct fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    f->control.product = CHARGED;
    f->control.effect_result = DET_PRODUCED;
    f->order = order_machine(true);
    assert_int_equal(det_sim_open(&(struct det_sim_options){ .seed = 7 }, &f->sim, &f->error), 0);
    f->control.sim = f->sim;
    assert_int_equal(
        det_store_open_with(
            "memory:", &(struct det_store_options){ .world = det_sim_world(f->sim) }, &f->store,
            &f->error),
        0);
    fixture_reopen(f, options);
    return f;
}

static inline void fixture_close(struct fixture *f)
{
    det_runtime_close(f->runtime);
    det_store_close(f->store);
    det_sim_close(f->sim);
    det_machine_close(f->order);
    free(f);
}

static inline int start(struct fixture *f, const char *id)
{
    return det_runtime_start(
        f->runtime, f->order, id, NULL, &(struct det_send_options){ .error = &f->error }, &f->sent);
}

static inline int send_with(
    struct fixture *f, const char *id, unsigned kind, struct det_send_options options)
{
    struct order_event event = { .kind = kind };

    if (kind == PAY)
        event.as.pay = (struct payment){ .cents = 1999, .card = "4242" };
    options.error = &f->error;
    return det_runtime_send(f->runtime, f->order, id, &event, &options, &f->sent);
}

static inline int send_kind(struct fixture *f, const char *id, unsigned kind)
{
    return send_with(f, id, kind, (struct det_send_options){ 0 });
}

static inline struct det_instance get(struct fixture *f, const char *id)
{
    struct det_instance instance;

    assert_int_equal(det_runtime_get(f->runtime, f->order, id, &instance, NULL), 0);
    return instance;
}

static inline void settle(struct fixture *f)
{
    assert_int_equal(det_sim_settle(f->sim), 0);
}

static inline void advance(struct fixture *f, det_time span)
{
    assert_int_equal(det_sim_advance(f->sim, span), 0);
}

static inline struct det_runtime_counts counts(struct fixture *f)
{
    struct det_runtime_counts all;

    det_runtime_counts(f->runtime, &all);
    return all;
}

/* Virtual time passes for the calling thread; for user code on the pool. */
static inline void wait_in(struct det_world *world, det_time span)
{
    det_time until = det_world_now(world, DET_CLOCK_MONOTONIC) + span;
    struct det_mutex *mutex;
    struct det_condition *never;
    int r = 0;

    assert_int_equal(det_mutex_open(world, &mutex), 0);
    assert_int_equal(det_condition_open(world, &never), 0);
    det_mutex_lock(world, mutex);
    while (r == 0)
        r = det_condition_wait(world, never, mutex, until);
    det_mutex_unlock(world, mutex);
    det_condition_close(world, never);
    det_mutex_close(world, mutex);
    assert_int_equal(r, DET_ERR_TIMEOUT);
}

/* Runs a test in a fixture of its own, with default options. */
static inline void in_fixture(void (*test)(struct fixture *f))
{
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });

    test(f);
    fixture_close(f);
}

/* The events of an instance, as they were recorded. */
struct recorded {
    size_t count;
    struct {
        uint64_t sequence, visit;
        unsigned from, to, event, outcome;
        bool is_timeout;
        char event_id[DET_ID_MAX + 1], cause[300];
        det_time at;
        struct order_event value;
    } rows[80];
};

static inline int record_row(void *context, const struct det_event_record *row)
{
    struct recorded *all = context;
    size_t i = all->count++;

    assert_true(i < sizeof all->rows / sizeof all->rows[0]);
    memset(&all->rows[i], 0, sizeof all->rows[i]);
    all->rows[i].sequence = row->sequence;
    all->rows[i].visit = row->visit;
    all->rows[i].from = row->from;
    all->rows[i].to = row->to;
    all->rows[i].event = row->event;
    all->rows[i].outcome = row->outcome;
    all->rows[i].is_timeout = row->is_timeout;
    all->rows[i].at = row->at;
    if (row->event_id)
        snprintf(all->rows[i].event_id, sizeof all->rows[i].event_id, "%s", row->event_id);
    if (row->cause)
        snprintf(all->rows[i].cause, sizeof all->rows[i].cause, "%s", row->cause);
    if (row->event_value)
        memcpy(&all->rows[i].value, row->event_value, sizeof all->rows[i].value);
    return 0;
}

static inline const struct recorded *events_after(struct fixture *f, const char *id, uint64_t after)
{
    static struct recorded all;

    all.count = 0;
    assert_int_equal(det_runtime_events(f->runtime, f->order, id, after, record_row, &all), 0);
    return &all;
}

struct listed_timers {
    size_t count;
    struct {
        char name[32];
        unsigned event;
        uint64_t visit;
        det_time due;
    } rows[4];
};

static inline int list_timer(void *context, const struct det_timer_record *row)
{
    struct listed_timers *all = context;
    size_t i = all->count++;

    assert_true(i < 4);
    snprintf(all->rows[i].name, sizeof all->rows[i].name, "%s", row->name);
    all->rows[i].event = row->event;
    all->rows[i].visit = row->visit;
    all->rows[i].due = row->due;
    return 0;
}

static inline const struct listed_timers *timers(struct fixture *f, const char *id)
{
    static struct listed_timers all;

    all.count = 0;
    assert_int_equal(det_runtime_timers(f->runtime, f->order, id, list_timer, &all), 0);
    return &all;
}

struct listed_effects {
    size_t count;
    struct det_pending_effect first;
    char key[300];
};

static inline int list_effect(void *context, const struct det_pending_effect *row)
{
    struct listed_effects *all = context;

    if (all->count++ == 0) {
        all->first = *row;
        snprintf(all->key, sizeof all->key, "%s", row->key);
    }
    return 0;
}

static inline const struct listed_effects *effects(struct fixture *f, const char *id)
{
    static struct listed_effects all;

    memset(&all, 0, sizeof all);
    assert_int_equal(det_runtime_effects(f->runtime, f->order, id, list_effect, &all), 0);
    return &all;
}

#endif
