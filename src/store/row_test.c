/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* row_test.c - names and records are converted to a row and back. */
#include "store/row.h"

#include "store/pad_test.h"

static void names_are_found_and_those_of_another_definition_are_not(void **state)
{
    struct det_machine *machine = pad_machine(1);
    uint16_t id = 7;

    (void)state;
    assert_int_equal(det_row_state_find(machine, "B", &id), 0);
    assert_int_equal(id, 1);
    assert_int_equal(det_row_event_find(machine, "BARE", &id), 0);
    assert_int_equal(id, BARE);
    assert_int_equal(det_row_event_find(machine, NULL, &id), 0);
    assert_int_equal(id, UINT16_MAX);
    assert_int_equal(det_row_timer_find(machine, "", &id), 0);
    assert_int_equal(id, DET_STATE_TIMER);
    assert_int_equal(det_row_timer_find(machine, "later", &id), 0);
    assert_int_equal(id, 0);
    assert_int_equal(det_row_effect_find(machine, "ring", &id), 0);
    assert_int_equal(det_row_state_find(machine, "C", &id), DET_ERR_VERSION);
    assert_int_equal(det_row_event_find(machine, "GONE", &id), DET_ERR_VERSION);
    assert_int_equal(det_row_timer_find(machine, "gone", &id), DET_ERR_VERSION);
    assert_int_equal(det_row_effect_find(machine, "gone", &id), DET_ERR_VERSION);
    assert_null(det_row_event_name(machine, UINT16_MAX));
    assert_string_equal(det_row_event_name(machine, SMALL), "SMALL");
    assert_string_equal(det_row_timer_name(machine, DET_STATE_TIMER), "");
    assert_string_equal(det_row_timer_name(machine, 0), "later");
    det_machine_close(machine);
}

static void definition_without_a_spec_form_has_no_text(void **state)
{
    struct det_machine *machine = pad_machine(1);
    struct det_machine odd = *machine;
    struct det_state_def states[8];
    struct det_buffer spec;

    (void)state;
    det_buffer_init(&spec, NULL);
    assert_int_equal(det_row_spec(machine, &spec), 0);
    assert_non_null(strstr(det_buffer_text(&spec), "#define FSM_NAME pad"));
    det_buffer_clear(&spec);
    assert_true(machine->state_count <= 8);
    memcpy(states, machine->states, machine->state_count * sizeof *states);
    states[machine->initial].flags = DET_STATE_INITIAL | DET_STATE_FINAL;
    odd.states = states;
    assert_int_equal(det_row_spec(&odd, &spec), 0);
    assert_string_equal(det_buffer_text(&spec), "");
    det_buffer_deinit(&spec);
    det_machine_close(machine);
}

static const struct det_store no_store;

static int round_trip(struct det_test_memory *memory, void *argument)
{
    struct det_machine *machine = argument;
    struct pad_event value = { .kind = TEXT }, back;
    struct det_chain_bytes bytes[3], none;
    struct det_buffer buffer;
    uint64_t data = 42, data_back = 0;
    int r;

    det_buffer_init(&buffer, &memory->allocator);
    value.as.note.number = 9;
    memset(value.as.note.text, 'x', 99);
    r = det_row_payload_encode(machine, &value, &buffer, &bytes[0]);
    if (r == 0)
        r = det_row_data_encode(machine, &data, &buffer, &bytes[1]);
    if (r == 0) {
        /* The buffer may have moved; the length is still valid. */
        bytes[0].data = buffer.data;
        assert_int_equal(buffer.size, bytes[0].size + bytes[1].size);
        assert_int_equal(det_row_payload_decode(&no_store, machine, TEXT, bytes[0], &back), 0);
        assert_memory_equal(&back.as.note, &value.as.note, sizeof value.as.note);
        assert_int_equal(det_row_data_decode(&no_store, machine, bytes[1], &data_back), 0);
        assert_int_equal(data_back, 42);
        assert_int_equal(det_row_payload_decode(&no_store, machine, SMALL, bytes[0], &back) < 0, 1);
        assert_int_equal(det_row_data_decode(&no_store, machine, bytes[0], &data_back) < 0, 1);
    }
    value.kind = BARE;
    assert_int_equal(det_row_payload_encode(machine, NULL, &buffer, &none), 0);
    assert_null(none.data);
    assert_int_equal(det_row_payload_encode(machine, &value, &buffer, &none), 0);
    assert_null(none.data);
    assert_int_equal(det_row_payload_decode(&no_store, machine, SMALL, none, &back), 0);
    assert_int_equal(back.kind, SMALL);
    assert_int_equal(back.as.small, 0);
    det_buffer_deinit(&buffer);
    return r;
}

static void records_round_trip_and_empty_records_have_no_bytes(void **state)
{
    struct det_machine *machine = pad_machine(1);

    (void)state;
    det_test_each_failure(round_trip, machine);
    det_machine_close(machine);
}

static void head_round_trips_through_the_chain_row(void **state)
{
    struct det_machine *machine = pad_machine(1);
    const struct det_store_head head = { .sequence = 7,
                                         .visit = 5,
                                         .transition_count = 4,
                                         .started_at = 10,
                                         .last_transition_at = 20,
                                         .state = 1,
                                         .is_stopped = true };
    struct det_chain_head row = det_row_chain_head(machine, "p", &head);
    char long_reason[DET_REASON_MAX + 2] = "";
    uint64_t data = 42, found = 0;
    struct det_store_loaded loaded = { .data = &found, .history_count = 3 };
    struct det_buffer buffer;

    (void)state;
    det_buffer_init(&buffer, NULL);
    assert_int_equal(det_row_data_encode(machine, &data, &buffer, &row.data), 0);
    row.reason = "enough";
    assert_int_equal(det_row_head_read(&no_store, machine, &row, &loaded), 0);
    assert_memory_equal(&loaded.head, &head, offsetof(struct det_store_head, is_stopped) + 1);
    assert_string_equal(loaded.reason, "enough");
    assert_int_equal(loaded.history_count, 0);
    assert_int_equal(found, 42);
    row.reason = NULL;
    assert_int_equal(det_row_head_read(&no_store, machine, &row, &loaded), 0);
    assert_string_equal(loaded.reason, "");
    row.state = "GONE";
    assert_int_equal(det_row_head_read(&no_store, machine, &row, &loaded), DET_ERR_VERSION);
    memset(long_reason, 'x', DET_REASON_MAX + 1);
    row.reason = long_reason;
    assert_int_equal(det_row_head_read(&no_store, machine, &row, &loaded), DET_ERR_CORRUPT);
    det_buffer_deinit(&buffer);
    det_machine_close(machine);
}

static void invalid_record_leaves_the_buffer_unchanged(void **state)
{
    struct det_machine *machine = pad_machine(1);
    struct pad_event value = { .kind = TEXT };
    struct det_chain_bytes bytes;
    struct det_buffer buffer;

    (void)state;
    det_buffer_init(&buffer, NULL);
    det_buffer_append_text(&buffer, "before");
    memset(value.as.note.text, 'x', sizeof value.as.note.text);
    assert_int_equal(det_row_payload_encode(machine, &value, &buffer, &bytes), DET_ERR_INVALID);
    value.kind = 77;
    assert_int_equal(det_row_payload_encode(machine, &value, &buffer, &bytes), DET_ERR_INVALID);
    assert_string_equal(det_buffer_text(&buffer), "before");
    buffer.limit = 8;
    value.kind = SMALL;
    value.as.small = UINT64_MAX;
    assert_int_equal(det_row_payload_encode(machine, &value, &buffer, &bytes), DET_ERR_LIMIT);
    assert_int_equal(det_row_payload_encode(machine, &value, &buffer, &bytes), DET_ERR_LIMIT);
    det_buffer_deinit(&buffer);
    det_machine_close(machine);
}

static void history_is_stored_as_state_names(void **state)
{
    struct det_machine *machine = pad_machine(1);
    const uint16_t history[] = { 1, 0, 1 };
    struct det_store_loaded loaded = { .history_count = 0 };
    struct det_buffer buffer;
    char huge[DET_NAME_MAX + 2];

    (void)state;
    det_buffer_init(&buffer, NULL);
    assert_int_equal(det_row_history_write(machine, history, 3, &buffer), 0);
    assert_string_equal(det_buffer_text(&buffer), "B A B");
    assert_int_equal(det_row_history_read(machine, "", &loaded), 0);
    assert_int_equal(det_row_history_read(machine, "B A B", &loaded), 0);
    assert_int_equal(loaded.history_count, 3);
    assert_memory_equal(loaded.history, history, sizeof history);
    loaded.history_count = DET_HISTORY_MAX - 1;
    assert_int_equal(det_row_history_read(machine, "A B", &loaded), 0);
    assert_int_equal(loaded.history_count, DET_HISTORY_MAX);
    loaded.history_count = 0;
    assert_int_equal(det_row_history_read(machine, "A C", &loaded), DET_ERR_VERSION);
    assert_int_equal(det_row_history_read(machine, "A  B", &loaded), DET_ERR_CORRUPT);
    memset(huge, 'x', sizeof huge - 1);
    huge[sizeof huge - 1] = 0;
    assert_int_equal(det_row_history_read(machine, huge, &loaded), DET_ERR_CORRUPT);
    det_buffer_deinit(&buffer);
    det_machine_close(machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_found_and_those_of_another_definition_are_not),
        cmocka_unit_test(definition_without_a_spec_form_has_no_text),
        cmocka_unit_test(records_round_trip_and_empty_records_have_no_bytes),
        cmocka_unit_test(head_round_trips_through_the_chain_row),
        cmocka_unit_test(invalid_record_leaves_the_buffer_unchanged),
        cmocka_unit_test(history_is_stored_as_state_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
