/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* template_test.c - the machine of the template equals that of the reader. */
#include <detent/detent.h>
#include <detent/tool/machine.h>
#include <detent/tool/spec.h>

#define FSM_SPEC "machine/template_test.fsm"
#include <detent/fsm/declare.h>
#define FSM_SPEC "machine/template_test.fsm"
#include <detent/fsm/define.h>

#include "lib/test.h"
#include "machine/same_machine_test.h"

static bool has_title(
    const struct det_move *move, const struct ticket_data *data, const struct ticket_event *event)
{
    (void)move;
    (void)data;
    return event->report.title[0] != '\0';
}

static bool is_urgent(
    const struct det_move *move, const struct ticket_data *data, const struct ticket_event *event)
{
    (void)move;
    (void)event;
    return data->urgency == URGENCY_HIGH;
}

static bool is_old(
    const struct det_move *move, const struct ticket_data *data, const struct ticket_event *event)
{
    (void)move;
    (void)event;
    return data->reopened > 9;
}

static int check_quota(
    const struct det_move *move, const struct ticket_data *data, const struct ticket_event *event)
{
    (void)move;
    (void)data;
    (void)event;
    return 0;
}

static int greet(
    const struct det_move *move, const struct ticket_data *data, const struct ticket_event *event)
{
    (void)move;
    (void)data;
    (void)event;
    return 0;
}

static void count_reopen(struct ticket_data *data, const struct ticket_event *event)
{
    (void)event;
    data->reopened++;
}

static void note_time(
    const struct det_move *move, const struct ticket_data *data, struct ticket_event *event)
{
    (void)data;
    event->remind.armed_at = move->now;
}

static int notify(
    struct det_effect_call *call, const struct ticket_data *data, const struct ticket_event *event,
    struct ticket_event *ret)
{
    (void)call;
    (void)data;
    (void)event;
    *ret = ticket_notified();
    return DET_EFFECT_PRODUCED;
}

static int index_it(
    struct det_effect_call *call, const struct ticket_data *data, const struct ticket_event *event,
    struct ticket_event *ret)
{
    (void)call;
    (void)data;
    (void)event;
    (void)ret;
    return DET_EFFECT_DONE;
}

static const struct det_transition *step(enum ticket_state state, enum ticket_event_kind event)
{
    return det_machine_step(&ticket_machine, state, event);
}

static void a_template_gives_names_versions_and_counts(void **unused)
{
    (void)unused;
    assert_string_equal(ticket_machine.name, "ticket");
    assert_int_equal(ticket_machine.version, 3);
    assert_int_equal(ticket_machine.state_count, 6);
    assert_int_equal(ticket_machine.event_count, 12);
    assert_int_equal(ticket_machine.initial, TICKET_NEW);
    assert_string_equal(ticket_machine.states[TICKET_NEW].name, "new_ticket");
    assert_int_equal(
        ticket_machine.states[TICKET_ARCHIVED].flags, DET_STATE_FINAL | DET_STATE_NEUTRAL);
    assert_int_equal(ticket_machine.states[TICKET_BLOCKED].flags, DET_STATE_BAD);
    assert_int_equal(ticket_machine.states[TICKET_DONE].flags, 0);
    assert_true(ticket_machine.events[TICKET_REMIND].is_internal);
    assert_ptr_equal(det_machine_data(&ticket_machine), ticket_data_record());
    assert_ptr_equal(det_machine_payload(&ticket_machine, TICKET_REPORT), report_record());
    assert_ptr_equal(det_machine_payload(&ticket_machine, TICKET_VOTE), det_empty_record());
}

static void list_rows_cover_every_pair(void **unused)
{
    static const enum ticket_state open[] = { TICKET_NEW, TICKET_WORKING, TICKET_BLOCKED };

    (void)unused;
    for (size_t i = 0; i < sizeof open / sizeof open[0]; i++)
        assert_int_equal(step(open[i], TICKET_VOTE)->outcome, DET_OUTCOME_STAY);
    assert_int_equal(step(TICKET_DONE, TICKET_VOTE)->outcome, DET_OUTCOME_UNHANDLED);
    assert_int_equal(step(TICKET_DONE, TICKET_VOTE)->to, TICKET_DONE);
    assert_int_equal(step(TICKET_BLOCKED, TICKET_REJECT)->to, TICKET_ARCHIVED);
    assert_true(ticket_is_open(TICKET_BLOCKED));
    assert_false(ticket_is_active(TICKET_TRIAGE));
    assert_true(ticket_event_is_chatter(TICKET_VOTE));
    assert_false(ticket_event_is_chatter(TICKET_REPORT));
}

static void an_override_replaces_all_of_what_it_overrides(void **unused)
{
    (void)unused;
    assert_int_equal(step(TICKET_NEW, TICKET_REJECT)->to, TICKET_NEW);
    assert_string_equal(step(TICKET_NEW, TICKET_REJECT)->more->hook->name, "check_quota");
    assert_int_equal(step(TICKET_TRIAGE, TICKET_VOTE)->outcome, DET_OUTCOME_STAY);
    assert_null(step(TICKET_TRIAGE, TICKET_VOTE)->more);
    assert_int_equal(step(TICKET_BLOCKED, TICKET_COMMENT)->outcome, DET_OUTCOME_STOP);
    assert_string_equal(step(TICKET_BLOCKED, TICKET_COMMENT)->more->reason, "said \"no\"");
    assert_int_equal(step(TICKET_BLOCKED, TICKET_COMMENT)->more->effect_count, 0);
}

static void extras_reach_the_table(void **unused)
{
    const struct det_transition_more *more = step(TICKET_NEW, TICKET_REPORT)->more;
    const struct det_timeout *within = step(TICKET_WORKING, TICKET_BLOCK)->more->within;

    (void)unused;
    assert_string_equal(more->guard->name, "has_title");
    assert_string_equal(more->hook->name, "check_quota");
    assert_int_equal(more->effect_count, 2);
    assert_string_equal(ticket_machine.effects[more->effects[1]].name, "index_it");
    assert_int_equal(within->after, 90 * DET_MINUTE);
    assert_int_equal(within->event, TICKET_STALE);
    assert_int_equal(step(TICKET_TRIAGE, TICKET_ACCEPT)->more->arm_count, 2);
    assert_int_equal(step(TICKET_BLOCKED, TICKET_FINISH)->more->disarm_count, 2);
    assert_string_equal(ticket_machine.timers[0].timeout.fill->name, "note_time");
    assert_int_equal(ticket_machine.states[TICKET_TRIAGE].timeout.after, 3 * DET_DAY);
    assert_string_equal(ticket_machine.states[TICKET_WORKING].entry->name, "greet");
    assert_string_equal(ticket_machine.states[TICKET_BLOCKED].exit->name, "check_quota");
}

static const struct det_choice *choice_after(
    enum ticket_state state, enum ticket_event_kind event, const struct det_choice *after)
{
    return det_machine_choice(&ticket_machine, state, event, after);
}

static void alternatives_are_tried_in_the_order_of_the_rows(void **unused)
{
    const struct det_choice *choice = NULL;

    (void)unused;
    assert_string_equal(step(TICKET_BLOCKED, TICKET_ACCEPT)->more->guard->name, "has_title");
    choice = choice_after(TICKET_BLOCKED, TICKET_ACCEPT, choice);
    assert_string_equal(choice->transition.more->guard->name, "is_urgent");
    assert_int_equal(choice->transition.to, TICKET_DONE);
    choice = choice_after(TICKET_BLOCKED, TICKET_ACCEPT, choice);
    assert_int_equal(choice->transition.outcome, DET_OUTCOME_STAY);
    assert_int_equal(choice->transition.to, TICKET_BLOCKED);
    assert_int_equal(choice->transition.more->effect_count, 1);
    choice = choice_after(TICKET_BLOCKED, TICKET_ACCEPT, choice);
    assert_int_equal(choice->transition.to, TICKET_TRIAGE);
    assert_null(choice->transition.more->guard);
    assert_null(choice_after(TICKET_BLOCKED, TICKET_ACCEPT, choice));
    assert_null(choice_after(TICKET_BLOCKED, TICKET_UNBLOCK, NULL));
}

static void alternatives_come_with_lists_overrides_and_all_extras(void **unused)
{
    const struct det_choice *choice = choice_after(TICKET_DONE, TICKET_REOPEN, NULL);

    (void)unused;
    assert_string_equal(step(TICKET_DONE, TICKET_REOPEN)->more->guard->name, "is_old");
    assert_int_equal(choice->transition.outcome, DET_OUTCOME_STOP);
    assert_string_equal(choice->transition.more->reason, "too late");
    choice = choice_after(TICKET_NEW, TICKET_REPORT, NULL);
    assert_int_equal(choice->transition.more->keep_count, 2);
    assert_int_equal(choice->transition.more->within->after, DET_HOUR);
    assert_int_equal(ticket_machine.choice_count, 9);
    assert_int_equal(choice_after(TICKET_NEW, TICKET_BLOCK, NULL)->transition.to, TICKET_TRIAGE);
    assert_null(choice_after(TICKET_DONE, TICKET_ACCEPT, NULL)->transition.more);
}

static void policies_come_from_the_machine_or_from_the_event(void **unused)
{
    (void)unused;
    assert_int_equal(ticket_machine.events[TICKET_VOTE].unhandled, DET_UNHANDLED_IGNORE);
    assert_int_equal(ticket_machine.events[TICKET_REJECT].unhandled, DET_UNHANDLED_DEFER);
    assert_int_equal(ticket_machine.events[TICKET_COMMENT].unhandled, DET_UNHANDLED_DEAD_LETTER);
}

static void functions_are_called_with_their_own_types(void **unused)
{
    struct ticket_event event = ticket_report((struct report){ .title = "It leaks" });
    struct ticket_event filled = { .kind = TICKET_REMIND };
    struct det_move move = { .now = 7 };
    struct ticket_data data = { .reopened = 4 };

    (void)unused;
    assert_true(step(TICKET_NEW, TICKET_REPORT)->more->guard->run(&move, &data, &event));
    event.report.title[0] = '\0';
    assert_false(step(TICKET_NEW, TICKET_REPORT)->more->guard->run(&move, &data, &event));
    step(TICKET_DONE, TICKET_REOPEN)->more->update->run(&data, &event);
    assert_int_equal(data.reopened, 5);
    ticket_machine.timers[0].timeout.fill->run(&move, &data, &filled);
    assert_int_equal(filled.remind.armed_at, 7);
}

static void assert_kept(const struct det_machine *machine)
{
    const struct det_transition *report = det_machine_step(machine, TICKET_NEW, TICKET_REPORT);
    struct ticket_event event =
        ticket_report((struct report){ .title = "It leaks",
                                       .urgency = URGENCY_HIGH,
                                       .has_attachment = true,
                                       .attachment = { .size = 2, .data = { 0xca, 0xfe } },
                                       .tags_count = 2,
                                       .tags = { "pipe", "sink" } });
    struct ticket_data data = { .reopened = 1 };

    assert_int_equal(det_machine_apply(machine, report, &data, &event, NULL), 0);
    assert_string_equal(data.title, "It leaks");
    assert_int_equal(data.urgency, URGENCY_HIGH);
    assert_true(data.has_attachment);
    assert_int_equal(data.attachment.size, 2);
    assert_int_equal(data.attachment.data[1], 0xfe);
    assert_int_equal(data.tags_count, 2);
    assert_string_equal(data.tags[1], "sink");
    assert_int_equal(data.reopened, 1);
}

static void keep_copies_fields_with_their_presence_and_count(void **unused)
{
    (void)unused;
    assert_kept(&ticket_machine);
}

static void assert_same_layout(const struct det_record *a, const struct det_record *b)
{
    for (size_t i = 0; i < a->field_count; i++) {
        assert_int_equal(a->fields[i].offset, b->fields[i].offset);
        assert_int_equal(a->fields[i].presence, b->fields[i].presence);
    }
}

static void reader_builds_the_same_machine_as_the_template(void **unused)
{
    const char *path = DET_SOURCE_DIR "/src/machine/template_test.fsm";
    const struct det_machine *read;
    struct det_spec *spec = NULL;
    size_t size;
    char *text = det_test_read_file(path, &size);

    (void)unused;
    assert_int_equal(det_spec_read(path, text, size, &(struct det_spec_options){ 0 }, &spec), 0);
    read = det_spec_machine(spec);
    assert_non_null(read);
    assert_same_machine(&ticket_machine, read);
    assert_int_equal(read->event_size, ticket_machine.event_size);
    assert_same_layout(det_machine_data(&ticket_machine), det_machine_data(read));
    for (unsigned e = 0; e < read->event_count; e++)
        assert_same_layout(det_machine_payload(&ticket_machine, e), det_machine_payload(read, e));
    assert_kept(read);
    for (unsigned i = 0; i < read->choice_count; i++) {
        assert_int_equal(read->choices[i].state, ticket_machine.choices[i].state);
        assert_int_equal(read->choices[i].event, ticket_machine.choices[i].event);
    }
    det_spec_close(spec);
    free(text);
}

static void template_and_reader_write_the_same_text(void **unused)
{
    const char *path = DET_SOURCE_DIR "/src/machine/template_test.fsm";
    struct det_spec *spec = NULL;
    static char of_template[16384], of_reader[16384];
    size_t size;
    char *text = det_test_read_file(path, &size);
    int64_t length;

    (void)unused;
    assert_int_equal(det_spec_read(path, text, size, &(struct det_spec_options){ 0 }, &spec), 0);
    length = det_machine_write(&ticket_machine, NULL, of_template, sizeof of_template, NULL);
    assert_true(length > 0 && (size_t)length < sizeof of_template);
    assert_int_equal(
        det_machine_write(det_spec_machine(spec), NULL, of_reader, sizeof of_reader, NULL), length);
    assert_string_equal(of_template, of_reader);
    det_spec_close(spec);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_template_gives_names_versions_and_counts),
        cmocka_unit_test(list_rows_cover_every_pair),
        cmocka_unit_test(an_override_replaces_all_of_what_it_overrides),
        cmocka_unit_test(extras_reach_the_table),
        cmocka_unit_test(alternatives_are_tried_in_the_order_of_the_rows),
        cmocka_unit_test(alternatives_come_with_lists_overrides_and_all_extras),
        cmocka_unit_test(policies_come_from_the_machine_or_from_the_event),
        cmocka_unit_test(functions_are_called_with_their_own_types),
        cmocka_unit_test(keep_copies_fields_with_their_presence_and_count),
        cmocka_unit_test(reader_builds_the_same_machine_as_the_template),
        cmocka_unit_test(template_and_reader_write_the_same_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
