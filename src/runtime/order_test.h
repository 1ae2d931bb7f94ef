/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* order_test.h - the machine of the runtime's suites, which has every feature, and user code that
 * the test controls.
 *
 *     PENDING --pay--> CHARGING --charged--> PAID --ship--> SHIPPED
 *        ^               |  declined, late     |  halt: stop
 *        +---------------+                     +--cancel, and from everywhere--> CANCELLED */
#ifndef DET_RUNTIME_ORDER_TEST_H
#define DET_RUNTIME_ORDER_TEST_H

#include "lib/test.h"

#include <detent/runtime.h>
#include <detent/sim.h>
#include <detent/tool/builder.h>

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
    bool guard_refuses;
    int hook_result, exit_result, entry_result;
    det_time hook_takes; /* in the simulated world */
    struct det_sim *sim;
    /* charge_card: answers for the first attempts, then the product. */
    int effect_failures;
    const char *message; /* of a failure; NULL: nothing */
    unsigned product;    /* a kind */
    bool writes_nothing;
    int effect_result;
    /* Observed by user code. */
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
    /* Reported to the observer. */
    unsigned notes, incidents;
    struct det_note note;
    char cause[300];
    struct det_incident incident;
    char incident_key[300], incident_text[700];
    unsigned incident_counts[DET_INCIDENT_EFFECTS_QUEUED + 1];
};

/* The key of an effect, with or without the store that it is of. */
static inline void assert_key(const char *key, const char *rest)
{
    size_t length = strlen(key), tail = strlen(rest);

    if (length == tail + 17)
        assert_int_equal(strspn(key, "0123456789abcdef"), 16);
    else
        assert_int_equal(length, tail);
    assert_string_equal(key + length - tail, rest);
}

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
    return !control->guard_refuses;
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
    if (control->message)
        memcpy(call->reason, control->message, strnlen(control->message, DET_REASON_MAX));
    if ((int)call->attempt <= control->effect_failures)
        return DET_ERR_IO;
    if (!control->writes_nothing)
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

static inline void order_incident(void *user, const struct det_incident *incident)
{
    struct order_control *control = user;

    control->incidents++;
    control->incident = *incident;
    control->incident_counts[incident->kind]++;
    snprintf(control->incident_text, sizeof control->incident_text, "%s", incident->text);
    control->incident_key[0] = 0;
    if (incident->key)
        snprintf(control->incident_key, sizeof control->incident_key, "%s", incident->key);
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
                                 .outcome = to ? DET_OUTCOME_GOTO : DET_OUTCOME_STAY,
                                 .to = to });
}

static inline void order_rows(struct det_machine_builder *b)
{
    det_machine_builder_on(
        b, &(struct det_on_row){ .from = DET_LIST("PENDING"),
                                 .events = DET_LIST("PAY"),
                                 .outcome = DET_OUTCOME_GOTO,
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
                                 .outcome = DET_OUTCOME_GOTO,
                                 .to = "SHIPPED",
                                 .arms = DET_LIST("reminder") });
    det_machine_builder_on(
        b, &(struct det_on_row){ .from = DET_LIST("PENDING", "CHARGING", "PAID", "SHIPPED"),
                                 .events = DET_LIST("CANCEL"),
                                 .outcome = DET_OUTCOME_GOTO,
                                 .to = "CANCELLED",
                                 .disarms = DET_LIST("reminder") });
    order_on(b, "PENDING", "EXPIRE", "CANCELLED");
    order_on(b, "PENDING", "TOUCH", "PENDING");
    det_machine_builder_on(
        b, &(struct det_on_row){ .from = DET_LIST("PENDING"),
                                 .events = DET_LIST("PING"),
                                 .outcome = DET_OUTCOME_STAY,
                                 .update = "count" });
    det_machine_builder_on(
        b, &(struct det_on_row){ .from = DET_LIST("PAID"),
                                 .events = DET_LIST("HALT"),
                                 .outcome = DET_OUTCOME_STOP,
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

/* With other user code. */
static inline struct det_machine *order_machine_of(
    det_guard_fn *guard, det_hook_fn *hook, det_effect_fn *effect)
{
    struct det_machine *machine = order_machine(false);

    assert_int_equal(det_machine_bind_guard(machine, "can_pay", guard), 0);
    assert_int_equal(det_machine_bind_hook(machine, "check", hook), 0);
    assert_int_equal(det_machine_bind_hook(machine, "leave", hook), 0);
    assert_int_equal(det_machine_bind_hook(machine, "enter", hook), 0);
    assert_int_equal(det_machine_bind_update(machine, "count", order_count), 0);
    assert_int_equal(det_machine_bind_fill(machine, "since", order_since), 0);
    assert_int_equal(det_machine_bind_effect(machine, "charge_card", effect), 0);
    return machine;
}

#endif
