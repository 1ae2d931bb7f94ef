/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* builder_test.c - the machine of a build, which owns everything that it points to, and builds
 * without memory. */
#include <detent/tool/machine.h>

#include "machine/builder_test.h"

static bool guard_yes(const struct det_move *move, const void *data, const void *event)
{
    (void)move;
    (void)data;
    return event != NULL;
}

static int hook_fine(const struct det_move *move, const void *data, const void *event)
{
    (void)move;
    (void)data;
    (void)event;
    return 0;
}

static void update_nothing(void *data, const void *event)
{
    (void)data;
    (void)event;
}

static int effect_done(struct det_effect_call *call, const void *data, const void *event, void *ret)
{
    (void)call;
    (void)data;
    (void)event;
    (void)ret;
    return DET_EFFECT_DONE;
}

static void fill_nothing(const struct det_move *move, const void *data, void *event)
{
    (void)move;
    (void)data;
    (void)event;
}

/* The order machine with one of everything; it has the information of two overrides. */
static void add_all_rows(struct det_machine_builder *b)
{
    add_order_rows(b);
    det_machine_builder_version(b, 3);
    det_machine_builder_data(b, &payment_record);
    det_machine_builder_unhandled(b, DET_UNHANDLED_DEFER);
    EVENT(b, "NUDGE", .unhandled = DET_UNHANDLED_IGNORE);
    EFFECT(b, "send_mail", .run = effect_done);
    det_machine_builder_guard(b, "can_pay", guard_yes);
    det_machine_builder_hook(b, "look", hook_fine);
    det_machine_builder_hook(b, "leave", NULL);
    det_machine_builder_update(b, "recount", update_nothing);
    det_machine_builder_fill(b, "since", fill_nothing);
    TIMER(b, "reminder", DET_HOUR, "NUDGE", .fill = "since");
    TIMER(b, "alarm", 2 * DET_HOUR, "NUDGE");
    GROUP(b, "open", "CHARGING", "PENDING", "CHARGING");
    EVENT_GROUP(b, "input", "PAY", "CANCEL");
    STAY(b, "PENDING", DET_LIST("NUDGE"), .effects = DET_LIST("send_mail", "send_mail"));
    OVERRIDE(
        b, "PENDING", "PAY", "CHARGING", .guard = "can_pay", .hook = "look", .update = "recount",
        .keeps = DET_LIST("cents", "note"), .effects = DET_LIST("charge_card", "send_mail"),
        .arms = DET_LIST("reminder", "alarm"), .disarms = DET_LIST("alarm"),
        .within = { DET_MINUTE, "DECLINED", "since" });
    STOP(b, "PAID", DET_LIST("CANCEL"), .is_override = true, .reason = "too late");
    AFTER(b, "CHARGING", DET_DAY, "DECLINED", .fill = "since");
    det_machine_builder_entry(b, DET_LIST("PAID", "SHIPPED"), "look");
    det_machine_builder_exit(b, DET_LIST("PAID"), "leave");
    det_machine_builder_event_unhandled(b, "SHIP", DET_UNHANDLED_ERROR);
}

static struct det_machine *build_all(void)
{
    struct det_machine_builder *b = open_builder("order", NULL);

    add_all_rows(b);
    return expect_machine(b, "overrides@33 overrides@34", NULL, NULL);
}

static void things_get_dense_ids_in_order_of_declaration(void **context)
{
    static const char *const states[] = { "pending", "charging", "paid", "shipped", "cancelled" };
    struct det_machine *machine = build_all();

    (void)context;
    assert_string_equal(machine->name, "order");
    assert_int_equal(machine->version, 3);
    assert_int_equal(machine->initial, 0);
    assert_int_equal(machine->state_count, 5);
    assert_int_equal(machine->event_count, 7);
    for (int i = 0; i < 5; i++)
        assert_int_equal(det_machine_find_state(machine, states[i]), i);
    assert_int_equal(machine->states[0].flags, DET_STATE_INITIAL);
    assert_int_equal(machine->states[3].flags, DET_STATE_FINAL);
    assert_string_equal(machine->events[6].name, "NUDGE");
    assert_int_equal(det_machine_find_effect(machine, "send_mail"), 1);
    assert_int_equal(det_machine_find_timer(machine, "alarm"), 1);
    det_machine_close(machine);
}

static void events_have_their_payload_and_policy(void **context)
{
    struct det_machine *machine = build_all();

    (void)context;
    assert_int_equal(machine->event_size, 8 + sizeof(struct payment));
    assert_ptr_equal(det_machine_payload(machine, 0), &payment_record);
    assert_ptr_equal(det_machine_payload(machine, 1), det_empty_record());
    assert_ptr_equal(det_machine_data(machine), &payment_record);
    assert_false(machine->events[0].is_internal);
    assert_true(machine->events[3].is_internal);
    assert_int_equal(machine->events[0].unhandled, DET_UNHANDLED_DEFER);
    assert_int_equal(machine->events[1].unhandled, DET_UNHANDLED_ERROR);
    assert_int_equal(machine->events[6].unhandled, DET_UNHANDLED_IGNORE);
    det_machine_close(machine);
}

static void an_event_struct_without_payloads_has_room_for_the_empty_one(void **context)
{
    struct det_machine_builder *b = open_builder("light", NULL);
    struct det_machine *machine;

    (void)context;
    STATE(b, "on", .flags = DET_STATE_INITIAL | DET_STATE_FINAL);
    EVENT(b, "tick");
    STAY(b, "on", DET_LIST("tick"));
    machine = expect_machine(b, "", NULL, NULL);
    assert_int_equal(machine->event_size, sizeof(unsigned));
    assert_int_equal(machine->version, 1);
    assert_int_equal(machine->events[0].payload_offset, 8);
    assert_ptr_equal(det_machine_data(machine), det_empty_record());
    det_machine_close(machine);
}

static void transitions_have_their_target_and_row(void **context)
{
    struct det_machine *machine = build_all();
    const struct det_transition *transition = det_machine_step(machine, 1, 3);

    (void)context;
    assert_int_equal(transition->outcome, DET_OUTCOME_GOTO);
    assert_int_equal(transition->to, 2);
    assert_int_equal(transition->row, 14);
    assert_null(transition->more);
    transition = det_machine_step(machine, 2, 0);
    assert_int_equal(transition->outcome, DET_OUTCOME_STAY);
    assert_int_equal(transition->to, 2);
    transition = det_machine_step(machine, 2, 2);
    assert_int_equal(transition->outcome, DET_OUTCOME_STOP);
    assert_int_equal(transition->to, 2);
    assert_int_equal(transition->row, 34);
    assert_string_equal(transition->more->reason, "too late");
    transition = det_machine_step(machine, 3, 0);
    assert_int_equal(transition->outcome, DET_OUTCOME_UNHANDLED);
    assert_int_equal(transition->row, 0);
    det_machine_close(machine);
}

static void every_extra_of_a_row_is_kept(void **context)
{
    struct det_machine *machine = build_all();
    const struct det_transition_more *more = det_machine_step(machine, 0, 0)->more;

    (void)context;
    assert_string_equal(more->guard->name, "can_pay");
    assert_string_equal(more->hook->name, "look");
    assert_string_equal(more->update->name, "recount");
    assert_int_equal(more->keep_count, 2);
    assert_string_equal(more->keeps[1].name, "note");
    assert_int_equal(more->effect_count, 2);
    assert_int_equal(more->effects[1], 1);
    assert_int_equal(more->arm_count, 2);
    assert_int_equal(more->arms[0], 0);
    assert_int_equal(more->disarm_count, 1);
    assert_int_equal(more->disarms[0], 1);
    assert_true(more->within->after == DET_MINUTE);
    assert_int_equal(more->within->event, 4);
    assert_string_equal(more->within->fill->name, "since");
    assert_null(more->reason);
    more = det_machine_step(machine, 0, 6)->more;
    assert_int_equal(more->effect_count, 2);
    assert_int_equal(more->effects[0], more->effects[1]);
    assert_null(more->guard);
    assert_null(more->within);
    det_machine_close(machine);
}

static void states_timers_and_effects_have_what_their_rows_say(void **context)
{
    struct det_machine *machine = build_all();

    (void)context;
    assert_true(machine->states[0].timeout.after == 30 * DET_MINUTE);
    assert_int_equal(machine->states[0].timeout.event, 5);
    assert_null(machine->states[0].timeout.fill);
    assert_string_equal(machine->states[1].timeout.fill->name, "since");
    assert_true(machine->states[2].timeout.after == 0);
    assert_string_equal(machine->states[2].entry->name, "look");
    assert_string_equal(machine->states[2].exit->name, "leave");
    assert_ptr_equal(machine->states[2].entry, machine->states[3].entry);
    assert_null(machine->states[3].exit);
    assert_string_equal(machine->timers[0].name, "reminder");
    assert_true(machine->timers[0].timeout.after == DET_HOUR);
    assert_int_equal(machine->effects[0].produces_count, 2);
    assert_int_equal(machine->effects[0].produces[1], 4);
    assert_null(machine->effects[0].run);
    assert_ptr_equal(machine->effects[1].run, effect_done);
    assert_int_equal(machine->effects[1].produces_count, 0);
    det_machine_close(machine);
}

static void groups_list_each_member_once_in_the_order_written(void **context)
{
    struct det_machine *machine = build_all();

    (void)context;
    assert_int_equal(machine->group_count, 1);
    assert_string_equal(machine->groups[0].name, "open");
    assert_int_equal(machine->groups[0].member_count, 2);
    assert_int_equal(machine->groups[0].members[0], 1);
    assert_int_equal(machine->groups[0].members[1], 0);
    assert_int_equal(machine->event_group_count, 1);
    assert_true(det_machine_group_has(&machine->event_groups[0], 2));
    det_machine_close(machine);
}

static void entry_timeout_defaults_to_the_timeout_of_the_state(void **context)
{
    struct det_machine *machine = build_all();

    (void)context;
    assert_true(det_machine_timeout(machine, det_machine_step(machine, 0, 0))->after == DET_MINUTE);
    assert_true(
        det_machine_timeout(machine, det_machine_step(machine, 1, 4))->after == 30 * DET_MINUTE);
    assert_null(det_machine_timeout(machine, det_machine_step(machine, 2, 1)));
    assert_null(det_machine_timeout(machine, det_machine_step(machine, 2, 2)));
    det_machine_close(machine);
}

static void functions_are_bound_by_name_and_walked_in_order(void **context)
{
    struct det_machine *machine = build_all();

    (void)context;
    assert_ptr_equal(det_machine_guard_at(machine, 0)->run, guard_yes);
    assert_null(det_machine_guard_at(machine, 1));
    assert_string_equal(det_machine_hook_at(machine, 0)->name, "look");
    assert_string_equal(det_machine_hook_at(machine, 1)->name, "leave");
    assert_null(det_machine_hook_at(machine, 1)->run);
    assert_null(det_machine_hook_at(machine, 2));
    assert_string_equal(det_machine_update_at(machine, 0)->name, "recount");
    assert_null(det_machine_update_at(machine, 1));
    assert_ptr_equal(det_machine_fill_at(machine, 0)->run, fill_nothing);
    assert_null(det_machine_fill_at(machine, 1));
    assert_int_equal(det_machine_bind_hook(machine, "leave", hook_fine), 0);
    assert_ptr_equal(machine->states[2].exit->run, hook_fine);
    assert_int_equal(det_machine_bind_effect(machine, "charge_card", effect_done), 0);
    assert_ptr_equal(machine->effects[0].run, effect_done);
    assert_int_equal(det_machine_bind_guard(machine, "can_pay", NULL), 0);
    assert_null(det_machine_step(machine, 0, 0)->more->guard->run);
    assert_int_equal(det_machine_bind_update(machine, "recount", update_nothing), 0);
    assert_int_equal(det_machine_bind_fill(machine, "since", fill_nothing), 0);
    assert_int_equal(det_machine_bind_guard(machine, "look", guard_yes), DET_ERR_NOT_FOUND);
    assert_int_equal(det_machine_bind_fill(machine, "", fill_nothing), DET_ERR_NOT_FOUND);
    det_machine_close(machine);
}

static void strings_are_copied_when_a_row_is_given(void **context)
{
    struct det_machine_builder *b = NULL;
    struct det_machine *machine;
    char state[] = "red", event[] = "tick", reason[] = "done", name[] = "light";

    (void)context;
    assert_int_equal(det_machine_builder_open(name, NULL, &b), 0);
    STATE(b, state, .flags = DET_STATE_INITIAL);
    EVENT(b, event);
    STOP(b, state, DET_LIST(event), .reason = reason);
    memset(state, 'x', 3);
    memset(event, 'x', 4);
    memset(reason, 'x', 4);
    memset(name, 'x', 5);
    machine = expect_machine(b, "", NULL, NULL);
    assert_string_equal(machine->name, "light");
    assert_string_equal(machine->states[0].name, "red");
    assert_string_equal(machine->events[0].name, "tick");
    assert_string_equal(det_machine_step(machine, 0, 0)->more->reason, "done");
    det_machine_close(machine);
}

static void closing_null_is_allowed(void **context)
{
    DET_SCOPED(machine_builder) builder = NULL;
    DET_SCOPED(machine) machine = NULL;

    (void)context;
    assert_null(builder);
    assert_null(machine);
}

#define FILES 60

/* Arenas allocate chunks; a shift makes another block the first of a chunk. */
struct shift {
    size_t size;
    bool is_broken;
};

static int build_without_memory(struct det_test_memory *memory, void *argument)
{
    const struct shift *shift = argument;
    struct det_machine_builder *builder = NULL;
    struct det_machine *machine = NULL;
    struct det_diagnostics found = { .count = 77 };
    char filler[2048];
    int r = det_machine_builder_open("order", &memory->allocator, &builder);

    if (r < 0)
        return r;
    memset(filler, 'x', sizeof filler);
    filler[100] = '\0';
    for (size_t i = 0; i < shift->size / 16; i++)
        det_machine_builder_group(
            builder, &(struct det_group_row){ .name = &filler[i], .members = DET_LIST("PAID") });
    EVENT(builder, "KILL");
    STOP(builder, "SHIPPED", DET_LIST("KILL"), .reason = filler);
    add_all_rows(builder);
    if (shift->is_broken) {
        for (size_t i = 0; i < FILES; i++)
            det_machine_builder_report(
                builder, DET_RULE_BAD_DURATION,
                &(struct det_place){ .file = &filler[i], .line = 1 }, "%s", filler);
        ON(builder, "PAYD", "EXPIRED", "PENDING");
    }
    det_machine_builder_report_unhandled(builder);
    r = det_machine_builder_build(builder, &machine, &found);
    assert_int_equal(machine != NULL, r == 0);
    if (r == DET_ERR_NO_MEMORY)
        assert_int_equal(found.count, 0);
    if (r == DET_ERR_DEFINITION) {
        assert_int_equal(found.error_count, FILES + 1);
        r = 0;
    }
    det_machine_close(machine);
    det_machine_builder_close(builder);
    return r;
}

static void build_survives_every_failed_allocation(void **context)
{
    (void)context;
    for (size_t size = 0; size < 1024; size += 16) {
        det_test_each_failure(build_without_memory, &(struct shift){ size, false });
        det_test_each_failure(build_without_memory, &(struct shift){ size, true });
    }
}

static void build_twice(void *argument)
{
    struct det_machine_builder *b = open_order();
    struct det_diagnostics found;
    struct det_machine *machine;

    (void)argument;
    for (int i = 0; i < 2; i++) {
        if (det_machine_builder_build(b, &machine, &found) < 0)
            return;
    }
}

static void add_wrong_flags(void *argument)
{
    (void)argument;
    STATE(open_order(), "LOST", .flags = 64);
}

static void builder_misuse_aborts(void **context)
{
    (void)context;
    assert_true(det_test_aborts(build_twice, NULL, "is_built"));
    assert_true(det_test_aborts(add_wrong_flags, NULL, "flags"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(things_get_dense_ids_in_order_of_declaration),
        cmocka_unit_test(events_have_their_payload_and_policy),
        cmocka_unit_test(an_event_struct_without_payloads_has_room_for_the_empty_one),
        cmocka_unit_test(transitions_have_their_target_and_row),
        cmocka_unit_test(every_extra_of_a_row_is_kept),
        cmocka_unit_test(states_timers_and_effects_have_what_their_rows_say),
        cmocka_unit_test(groups_list_each_member_once_in_the_order_written),
        cmocka_unit_test(entry_timeout_defaults_to_the_timeout_of_the_state),
        cmocka_unit_test(functions_are_bound_by_name_and_walked_in_order),
        cmocka_unit_test(strings_are_copied_when_a_row_is_given),
        cmocka_unit_test(closing_null_is_allowed),
        cmocka_unit_test(build_survives_every_failed_allocation),
        cmocka_unit_test(builder_misuse_aborts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
