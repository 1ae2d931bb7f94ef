/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* contract_argument_test.c - arguments of every kind that are not valid, and definitions: which are
 * served, which are not, and that names and not numbers are kept. */
#include <detent/tool/machine.h>
#include <detent/tool/spec.h>

#include "runtime/contract_test.h"

static void an_id_has_1_to_128_bytes(void **unused)
{
    struct lab *lab = lab_open();
    struct det_send_options options = { 0 };
    char id[DET_ID_MAX + 2];
    struct det_instance at;

    (void)unused;
    memset(id, 'x', sizeof id);
    id[DET_ID_MAX + 1] = '\0';
    assert_int_equal(
        probe_instance_start(lab->runtime, id, (struct probe_data){ 0 }, NULL), DET_ERR_INVALID);
    assert_int_equal(
        probe_instance_start(lab->runtime, "", (struct probe_data){ 0 }, NULL), DET_ERR_INVALID);
    assert_int_equal(probe_send(lab->runtime, id, lab_go(), NULL), DET_ERR_INVALID);
    assert_int_equal(probe_send(lab->runtime, "", lab_go(), NULL), DET_ERR_INVALID);
    assert_int_equal(probe_instance_cancel(lab->runtime, id, "no", NULL), DET_ERR_INVALID);
    assert_true(probe_instance_get(lab->runtime, id, &at, NULL) < 0);
    lab_start(lab, "a");
    options.event_id = id;
    assert_int_equal(
        probe_send_with(lab->runtime, "a", lab_go(), &options, NULL, NULL), DET_ERR_INVALID);
    options.event_id = "";
    assert_int_equal(
        probe_send_with(lab->runtime, "a", lab_go(), &options, NULL, NULL), DET_ERR_INVALID);
    assert_int_equal(lab_get(lab, "a").sequence, 0);
    id[DET_ID_MAX] = '\0';
    lab_start(lab, id);
    lab_start(lab, id + 1);
    options.event_id = id;
    assert_int_equal(probe_send_with(lab->runtime, id, lab_go(), &options, NULL, NULL), 0);
    options.event_id = id + 1;
    assert_int_equal(probe_send_with(lab->runtime, id, probe_touch(), &options, NULL, NULL), 0);
    assert_int_equal(lab_get(lab, id).sequence, 2);
    assert_int_equal(lab_get(lab, id + 1).sequence, 0);
    lab_close(lab);
}

static void id_allows_only_letters_digits_and_four_signs(void **unused)
{
    struct lab *lab = lab_open();

    (void)unused;
    lab_start(lab, "a");
    for (int byte = 1; byte < 256; byte++) {
        bool is_good = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                       (byte >= '0' && byte <= '9') || strchr("._:-", byte) != NULL;
        char id[] = { 'i', (char)byte, 'd', '\0' };
        struct det_send_options options = { .event_id = id };
        int expected = is_good ? 0 : DET_ERR_INVALID;

        assert_int_equal(
            probe_instance_start(lab->runtime, id, (struct probe_data){ 0 }, NULL), expected);
        assert_int_equal(
            probe_send_with(lab->runtime, "a", probe_touch(), &options, NULL, NULL), expected);
    }
    lab_close(lab);
}

static int send_kind(struct lab *lab, unsigned kind, struct det_error *error)
{
    struct probe_event event = { .kind = (enum probe_event_kind)kind };

    return probe_send_with(lab->runtime, "a", event, NULL, NULL, error);
}

static void unknown_or_internal_event_is_invalid(void **unused)
{
    static const unsigned kinds[] = { probe_event_count, probe_event_count + 1, 0x7fffffff,
                                      PROBE_EXPIRE,      PROBE_WORKED,          PROBE_NUDGE,
                                      PROBE_REMIND };
    struct lab *lab = lab_open();
    struct lab_picture *before;

    (void)unused;
    lab_busy(lab, "a");
    before = lab_picture(lab, "a");
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct det_error error = { 0 };

        assert_int_equal(send_kind(lab, kinds[i], &error), DET_ERR_INVALID);
        assert_int_equal(error.code, DET_ERR_INVALID);
        assert_true(strlen(error.text) > 0);
    }
    lab_assert_unchanged(lab, "a", before);
    lab_close(lab);
}

static void a_payload_or_data_that_cannot_be_encoded_is_invalid(void **unused)
{
    struct probe_event endless = lab_go(), broken = lab_go();
    struct probe_data data = { 0 };
    struct lab *lab = lab_open();

    (void)unused;
    lab_start(lab, "a");
    memset(endless.go.note, 'x', sizeof endless.go.note);
    broken.go.note[0] = (char)0xff;
    assert_int_equal(probe_send(lab->runtime, "a", endless, NULL), DET_ERR_INVALID);
    assert_int_equal(probe_send(lab->runtime, "a", broken, NULL), DET_ERR_INVALID);
    assert_int_equal(lab_get(lab, "a").sequence, 0);
    memset(data.note, 'x', sizeof data.note);
    assert_int_equal(probe_instance_start(lab->runtime, "b", data, NULL), DET_ERR_INVALID);
    assert_int_equal(probe_send(lab->runtime, "b", lab_go(), NULL), DET_ERR_NOT_FOUND);
    lab_close(lab);
}

static int try_open(struct lab *lab, struct det_runtime_options options)
{
    struct det_runtime *runtime = NULL;
    struct det_error error = { 0 };
    int r;

    if (options.world == NULL)
        options.world = lab->world;
    r = det_runtime_open(lab->store, &options, &runtime, &error);
    if (r == 0)
        det_runtime_close(runtime);
    else
        assert_int_equal(error.code, r);
    return r;
}

static void options_that_make_no_sense_are_refused(void **unused)
{
    struct lab *lab = lab_open();
    const struct det_runtime_options bad[] = {
        { .shards = 3 },
        { .shards = 48 },
        { .history_kept = DET_HISTORY_MAX + 1 },
        { .world = det_world_real() },
        { .hook_deadline = -1 },
        { .send_deadline = -1 },
        { .effects.backoff_first = -1 },
        { .effects.deadline = -1 },
    };

    (void)unused;
    det_runtime_close(lab->runtime);
    lab->runtime = NULL;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(try_open(lab, bad[i]), DET_ERR_INVALID);
    assert_int_equal(try_open(lab, (struct det_runtime_options){ .shards = 1 }), 0);
    assert_int_equal(try_open(lab, (struct det_runtime_options){ .shards = 64 }), 0);
    lab_close(lab);
}

static void a_store_serves_one_runtime_at_a_time(void **unused)
{
    struct lab *lab = lab_open();

    (void)unused;
    assert_int_equal(try_open(lab, (struct det_runtime_options){ 0 }), DET_ERR_BUSY);
    lab_start(lab, "a");
    det_runtime_close(lab->runtime);
    lab->runtime = NULL;
    assert_int_equal(try_open(lab, (struct det_runtime_options){ 0 }), 0);
    lab_close(lab);
}

static void a_store_is_opened_by_a_url_that_is_known(void **unused)
{
    struct det_store_options big = { .events_kept = 65537 }, wide = { .event_ids_kept = 65537 };
    struct det_store_options most = { .events_kept = 65536, .event_ids_kept = 65536 };
    struct det_store *store = NULL;

    (void)unused;
    assert_int_equal(det_store_open("postcard:", &store, NULL), DET_ERR_UNSUPPORTED);
    assert_int_equal(det_store_open("memory:somewhere", &store, NULL), DET_ERR_INVALID);
    assert_int_equal(det_store_open_with("memory:", &big, &store, NULL), DET_ERR_INVALID);
    assert_int_equal(det_store_open_with("memory:", &wide, &store, NULL), DET_ERR_INVALID);
    assert_null(store);
    assert_int_equal(det_store_open_with("memory:", &most, &store, NULL), 0);
    det_store_close(store);
    assert_int_equal(det_store_open("memory:", &store, NULL), 0);
    det_store_close(store);
    det_store_close(NULL);
    det_runtime_close(NULL);
}

static void another_definition_of_a_served_name_is_invalid(void **unused)
{
    struct lab *lab = lab_open();
    struct det_machine another = probe_machine;
    struct det_error error = { 0 };
    struct probe_event event = lab_go();

    (void)unused;
    another.version = 3;
    lab_start(lab, "a");
    assert_int_equal(det_runtime_serve(lab->runtime, &probe_machine, &error), 0);
    assert_int_equal(det_runtime_serve(lab->runtime, &another, &error), DET_ERR_INVALID);
    assert_int_equal(error.code, DET_ERR_INVALID);
    assert_int_equal(
        det_runtime_send(lab->runtime, &another, "a", &event, NULL, NULL, NULL), DET_ERR_INVALID);
    assert_int_equal(
        det_runtime_start(lab->runtime, &another, "b", NULL, NULL, NULL, NULL), DET_ERR_INVALID);
    lab_close(lab);
}

static void definition_that_does_not_fit_the_store_is_refused(void **unused)
{
    struct lab *lab = lab_open();
    struct det_state_def states[probe_state_count];
    struct det_machine renamed = probe_machine;
    struct det_error error = { 0 };

    (void)unused;
    memcpy(states, probe_machine.states, sizeof states);
    states[PROBE_BUSY].name = "occupied";
    renamed.states = states;
    lab_busy(lab, "a");
    det_runtime_close(lab->runtime);
    lab_runtime_open(lab);
    for (renamed.version = 1; renamed.version <= 3; renamed.version++) {
        assert_int_equal(det_runtime_serve(lab->runtime, &renamed, &error), DET_ERR_VERSION);
        assert_int_equal(error.code, DET_ERR_VERSION);
    }
    assert_int_equal(det_runtime_serve(lab->runtime, &probe_machine, NULL), 0);
    assert_int_equal(lab_get(lab, "a").state, PROBE_BUSY);
    lab_close(lab);
}

#define DOOR_HEAD "#define FSM_NAME door\n#define FSM_PREFIX DOOR\n"
#define DOOR_ROWS                             \
    "EVENT(OPEN, open) EVENT(CLOSE, close)\n" \
    "ON(SHUT, OPEN, AJAR) ON(AJAR, CLOSE, SHUT)\n"

static struct det_spec *read_spec(const char *text)
{
    struct det_spec *spec = NULL;

    assert_int_equal(
        det_spec_read("door.fsm", text, strlen(text), &(struct det_spec_options){ 0 }, &spec), 0);
    assert_non_null(det_spec_machine(spec));
    return spec;
}

/* What a store that cannot convert may do is refuse; never may it find another state. */
static void assert_ajar_or_refused(const char *text)
{
    struct det_spec *first =
        read_spec(DOOR_HEAD "STATE(SHUT, shut, INITIAL) STATE(AJAR, ajar)\n" DOOR_ROWS);
    struct det_spec *second = read_spec(text);
    struct lab *lab = lab_open();
    const struct det_machine *machine = det_spec_machine(first);
    unsigned event = (unsigned)det_machine_find_event(machine, "open");
    struct det_instance at;
    int r;

    assert_int_equal(det_runtime_start(lab->runtime, machine, "d", NULL, NULL, NULL, NULL), 0);
    assert_int_equal(det_runtime_send(lab->runtime, machine, "d", &event, NULL, NULL, NULL), 0);
    det_runtime_close(lab->runtime);
    lab_runtime_open(lab);
    machine = det_spec_machine(second);
    r = det_runtime_serve(lab->runtime, machine, NULL);
    if (r == 0) {
        assert_int_equal(det_runtime_get(lab->runtime, machine, "d", &at, NULL, NULL), 0);
        assert_string_equal(machine->states[at.state].name, "ajar");
        assert_string_equal(machine->states[at.previous].name, "shut");
    } else {
        assert_int_equal(r, DET_ERR_VERSION);
    }
    lab_close(lab);
    det_spec_close(first);
    det_spec_close(second);
}

static void an_instance_keeps_its_state_by_name(void **unused)
{
    (void)unused;
    assert_ajar_or_refused(DOOR_HEAD "STATE(SHUT, shut, INITIAL) STATE(AJAR, ajar)\n" DOOR_ROWS);
    assert_ajar_or_refused(DOOR_HEAD "#define FSM_VERSION 2\n"
                                     "STATE(AJAR, ajar) STATE(SHUT, shut, INITIAL)\n" DOOR_ROWS);
    assert_ajar_or_refused(DOOR_HEAD "STATE(AJAR, ajar) STATE(SHUT, shut, INITIAL)\n" DOOR_ROWS);
}

static void an_unbound_function_is_reported(void **unused)
{
    struct det_spec *spec =
        read_spec(DOOR_HEAD "STATE(SHUT, shut, INITIAL) STATE(AJAR, ajar) HOOK(creak)\n"
                            "ENTRY(AJAR, creak)\n" DOOR_ROWS);
    const struct det_machine *machine = det_spec_machine(spec);
    unsigned event = (unsigned)det_machine_find_event(machine, "open");
    struct lab *lab = lab_open();
    struct det_instance at;

    (void)unused;
    assert_int_equal(det_runtime_start(lab->runtime, machine, "d", NULL, NULL, NULL, NULL), 0);
    assert_int_equal(
        det_runtime_send(lab->runtime, machine, "d", &event, NULL, NULL, NULL), DET_ERR_UNBOUND);
    assert_int_equal(det_runtime_get(lab->runtime, machine, "d", &at, NULL, NULL), 0);
    assert_int_equal(at.sequence, 0);
    lab_close(lab);
    det_spec_close(spec);
}

static void machines_of_different_names_share_a_runtime_and_ids(void **unused)
{
    struct det_spec *spec =
        read_spec(DOOR_HEAD "STATE(SHUT, shut, INITIAL) STATE(AJAR, ajar)\n" DOOR_ROWS);
    const struct det_machine *machine = det_spec_machine(spec);
    unsigned event = (unsigned)det_machine_find_event(machine, "open");
    struct lab *lab = lab_open();
    struct det_instance at;

    (void)unused;
    lab_start(lab, "a");
    assert_int_equal(det_runtime_start(lab->runtime, machine, "a", NULL, NULL, NULL, NULL), 0);
    assert_int_equal(det_runtime_send(lab->runtime, machine, "a", &event, NULL, NULL, NULL), 0);
    assert_int_equal(lab_get(lab, "a").sequence, 0);
    assert_int_equal(det_runtime_get(lab->runtime, machine, "a", &at, NULL, NULL), 0);
    assert_int_equal(at.sequence, 1);
    lab_close(lab);
    det_spec_close(spec);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_id_has_1_to_128_bytes),
        cmocka_unit_test(id_allows_only_letters_digits_and_four_signs),
        cmocka_unit_test(unknown_or_internal_event_is_invalid),
        cmocka_unit_test(a_payload_or_data_that_cannot_be_encoded_is_invalid),
        cmocka_unit_test(options_that_make_no_sense_are_refused),
        cmocka_unit_test(a_store_serves_one_runtime_at_a_time),
        cmocka_unit_test(a_store_is_opened_by_a_url_that_is_known),
        cmocka_unit_test(another_definition_of_a_served_name_is_invalid),
        cmocka_unit_test(definition_that_does_not_fit_the_store_is_refused),
        cmocka_unit_test(an_instance_keeps_its_state_by_name),
        cmocka_unit_test(an_unbound_function_is_reported),
        cmocka_unit_test(machines_of_different_names_share_a_runtime_and_ids),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
