/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* draw_test_order.h - the machine that the tests of drawings draw: a little of everything, as
 * tables. */
#ifndef DET_MACHINE_DRAW_TEST_ORDER_H
#define DET_MACHINE_DRAW_TEST_ORDER_H

#include <detent/tool/draw.h>

enum order_state { PENDING, CHARGING, PAID, SHIPPED, CANCELLED, EXPIRED, ORDER_STATES };
enum order_event { PAY, CHARGED, DECLINED, CANCEL, EXPIRE, SHIP, PING, HALT, ORDER_EVENTS };

static const struct det_guard_def order_guard = { .name = "has_card" };
static const struct det_hook_def order_audit = { .name = "audit" };
static const struct det_hook_def order_seal = { .name = "seal" };
static const struct det_effect_def order_effects[] = {
    { .name = "charge_card" },
    { .name = "send_mail" },
};
static const struct det_timer_def order_timers[] = {
    { .name = "reminder", .timeout = { .after = 10 * DET_MINUTE, .event = PING } },
};
static const uint16_t order_both_effects[] = { 0, 1 };
static const uint16_t order_reminder[] = { 0 };
static const struct det_timeout order_within = { .after = 90 * DET_MINUTE, .event = EXPIRE };

static const struct det_transition_more order_pay = {
    .guard = &order_guard,
    .effects = order_both_effects,
    .effect_count = 2,
};
static const struct det_transition_more order_declined = {
    .arms = order_reminder,
    .arm_count = 1,
};
static const struct det_transition_more order_reopen = {
    .disarms = order_reminder,
    .disarm_count = 1,
    .within = &order_within,
};
static const struct det_transition_more order_fraud = { .reason = "fraud" };

static const struct det_state_def order_states[ORDER_STATES] = {
    [PENDING] = {
        .name = "pending",
        .flags = DET_STATE_INITIAL,
        .timeout = { .after = 30 * DET_MINUTE, .event = EXPIRE },
    },
    [CHARGING] = { .name = "charging", .entry = &order_audit, .exit = &order_seal },
    [PAID] = { .name = "paid" },
    [SHIPPED] = { .name = "shipped", .flags = DET_STATE_FINAL },
    [CANCELLED] = { .name = "cancelled", .flags = DET_STATE_FINAL },
    [EXPIRED] = { .name = "expired" },
};

static const struct det_event_def order_events[ORDER_EVENTS] = {
    [PAY] = { .name = "pay" },
    [CHARGED] = { .name = "charged", .is_internal = true },
    [DECLINED] = { .name = "declined", .is_internal = true },
    [CANCEL] = { .name = "cancel" },
    [EXPIRE] = { .name = "expire", .is_internal = true },
    [SHIP] = { .name = "ship" },
    [PING] = { .name = "ping" },
    [HALT] = { .name = "halt" },
};

#define ORDER_CELL(state, event) [(state)*ORDER_EVENTS + (event)]

static const struct det_transition order_table[ORDER_STATES * ORDER_EVENTS] = {
    ORDER_CELL(PENDING, PAY) = { .outcome = DET_OUTCOME_GOTO, .to = CHARGING, .more = &order_pay },
    ORDER_CELL(PENDING, CANCEL) = { .outcome = DET_OUTCOME_GOTO, .to = CANCELLED },
    ORDER_CELL(PENDING, EXPIRE) = { .outcome = DET_OUTCOME_GOTO, .to = EXPIRED },
    ORDER_CELL(PENDING, PING) = { .outcome = DET_OUTCOME_STAY, .to = PENDING },
    ORDER_CELL(CHARGING, CHARGED) = { .outcome = DET_OUTCOME_GOTO, .to = PAID },
    ORDER_CELL(CHARGING, DECLINED) = { .outcome = DET_OUTCOME_GOTO,
                                       .to = PENDING,
                                       .more = &order_declined },
    ORDER_CELL(CHARGING, CANCEL) = { .outcome = DET_OUTCOME_GOTO, .to = CANCELLED },
    ORDER_CELL(
        PAID, CANCEL) = { .outcome = DET_OUTCOME_GOTO, .to = PENDING, .more = &order_reopen },
    ORDER_CELL(PAID, SHIP) = { .outcome = DET_OUTCOME_GOTO, .to = SHIPPED },
    ORDER_CELL(PAID, PING) = { .outcome = DET_OUTCOME_GOTO, .to = PAID },
    ORDER_CELL(PAID, HALT) = { .outcome = DET_OUTCOME_STOP, .to = PAID, .more = &order_fraud },
    ORDER_CELL(EXPIRED, HALT) = { .outcome = DET_OUTCOME_STOP, .to = EXPIRED },
};

static const uint16_t order_open[] = { PENDING, CHARGING, PAID };
static const uint16_t order_billing[] = { CHARGING, PAID };
static const uint16_t order_done[] = { PAID, SHIPPED };
static const struct det_group_def order_groups[] = {
    { .name = "billing", .members = order_billing, .member_count = 2 },
    { .name = "open", .members = order_open, .member_count = 3 },
    { .name = "done", .members = order_done, .member_count = 2 },
};

static const struct det_machine order_machine = {
    .name = "order",
    .version = 1,
    .state_count = ORDER_STATES,
    .event_count = ORDER_EVENTS,
    .effect_count = 2,
    .timer_count = 1,
    .group_count = 3,
    .initial = PENDING,
    .table = order_table,
    .states = order_states,
    .events = order_events,
    .effects = order_effects,
    .timers = order_timers,
    .groups = order_groups,
};

/* 2026-01-31T10:00:00Z */
#define ORDER_TIME (1769853600 * DET_SECOND)

static const struct det_draw_step order_steps[] = {
    { .sequence = 1, .from = PENDING, .to = PENDING, .event = PING, .outcome = DET_OUTCOME_STAY },
    {
        .sequence = 2,
        .from = PENDING,
        .to = CHARGING,
        .event = PAY,
        .outcome = DET_OUTCOME_GOTO,
        .at = ORDER_TIME,
        .detail = "payment{card={redacted}, cents=1999}",
    },
    { .sequence = 3, .from = CHARGING, .to = PAID, .event = CHARGED, .outcome = DET_OUTCOME_GOTO },
    {
        .sequence = 4,
        .from = PAID,
        .to = PENDING,
        .event = CANCEL,
        .outcome = DET_OUTCOME_GOTO,
        .at = ORDER_TIME + DET_MINUTE,
    },
    {
        .sequence = 5,
        .from = PENDING,
        .to = EXPIRED,
        .event = EXPIRE,
        .outcome = DET_OUTCOME_GOTO,
        .is_timeout = true,
        .at = ORDER_TIME + 91 * DET_MINUTE,
    },
};

static const struct det_draw_trace order_trace = {
    .instance = "order-42",
    .initial = PENDING,
    .current = EXPIRED,
    .steps = order_steps,
    .step_count = sizeof order_steps / sizeof order_steps[0],
};

#endif
