/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* quick_code_test.c - the quick send with user code does what a turn does: the same calls in the
 * same order, the same data, errors, timers and counts; and what it does when its commit fails. */
#include "runtime/faulty_test.h"

enum { RISE, SINK };

struct weight {
    uint64_t grams;
};

struct lift_data {
    uint64_t grams, rides;
    char label[8];
};

struct lift_event {
    unsigned kind;
    struct weight weight;
};

/* Controls the user code, and records its calls. */
struct script {
    struct det_world *world;
    uint64_t limit;
    int exit_fails, hook_fails;
    bool is_slow;
    char calls[32];
    size_t call_count;
};

static void call(const struct det_move *move, char letter)
{
    struct script *script = move->user;

    if (script->call_count + 1 < sizeof script->calls)
        script->calls[script->call_count++] = letter;
}

static bool is_light(const struct det_move *move, const void *data, const void *event)
{
    const struct script *script = move->user;
    const struct lift_event *it = event;

    (void)data;
    call(move, 'g');
    return it->weight.grams <= script->limit;
}

static int leaves(const struct det_move *move, const void *data, const void *event)
{
    const struct script *script = move->user;

    (void)data;
    (void)event;
    call(move, 'x');
    return script->exit_fails;
}

static int moves(const struct det_move *move, const void *data, const void *event)
{
    const struct script *script = move->user;

    (void)data;
    (void)event;
    call(move, 'h');
    if (script->is_slow)
        wait_in(script->world, 6 * DET_SECOND);
    return script->hook_fails;
}

static int arrives(const struct det_move *move, const void *data, const void *event)
{
    (void)data;
    (void)event;
    call(move, 'e');
    return 0;
}

/* An odd weight makes a label that is not valid text. */
static void count_ride(void *data, const void *event)
{
    struct lift_data *lift = data;
    const struct lift_event *it = event;

    lift->rides++;
    memcpy(lift->label, it->weight.grams % 16 == 15 ? "\xff***" : "ride", 5);
}

static const struct det_field weight_fields[] = {
    { .name = "grams", .kind = DET_KIND_UNSIGNED, .size = 8 },
};
static const struct det_record weight_record = {
    .name = "weight", .size = sizeof(struct weight), .fields = weight_fields, .field_count = 1
};
static const struct det_field lift_fields[] = {
    { .name = "grams", .kind = DET_KIND_UNSIGNED, .size = 8 },
    { .name = "rides",
      .kind = DET_KIND_UNSIGNED,
      .offset = offsetof(struct lift_data, rides),
      .size = 8 },
    { .name = "label",
      .kind = DET_KIND_TEXT,
      .offset = offsetof(struct lift_data, label),
      .size = 8,
      .capacity = 7 },
};
static const struct det_record lift_record = {
    .name = "lift_data", .size = sizeof(struct lift_data), .fields = lift_fields, .field_count = 3
};

static void lift_names(struct det_machine_builder *b)
{
    static const char *const events[] = { "RISE", "SINK", "WEIGH", "FILE_IT", "LONGER" };

    det_machine_builder_data(b, &lift_record);
    det_machine_builder_state(
        b, &(struct det_state_row){ .name = "LOW", .flags = DET_STATE_INITIAL });
    det_machine_builder_state(b, &(struct det_state_row){ .name = "HIGH" });
    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++)
        det_machine_builder_event(
            b, &(struct det_event_row){ .name = events[i], .payload = &weight_record });
    det_machine_builder_event(b, &(struct det_event_row){ .name = "OVERDUE", .is_internal = true });
    det_machine_builder_guard(b, "is_light", is_light);
    det_machine_builder_hook(b, "leaves", leaves);
    det_machine_builder_hook(b, "moves", moves);
    det_machine_builder_hook(b, "arrives", arrives);
    det_machine_builder_update(b, "count_ride", count_ride);
}

static struct det_machine *lift_machine(void)
{
    struct det_machine_builder *b;

    assert_int_equal(det_machine_builder_open("lift", NULL, &b), 0);
    lift_names(b);
    det_machine_builder_on(
        b, &(struct det_on_row){ .from = DET_LIST("LOW", "HIGH"),
                                 .events = DET_LIST("RISE"),
                                 .outcome = DET_OUTCOME_GOTO,
                                 .to = "HIGH",
                                 .guard = "is_light",
                                 .hook = "moves",
                                 .keeps = DET_LIST("grams"),
                                 .update = "count_ride" });
    order_on(b, "HIGH", "SINK", "LOW");
    det_machine_builder_on(
        b, &(struct det_on_row){ .from = DET_LIST("LOW", "HIGH"),
                                 .events = DET_LIST("WEIGH"),
                                 .outcome = DET_OUTCOME_STAY,
                                 .guard = "is_light",
                                 .keeps = DET_LIST("grams") });
    det_machine_builder_on(
        b, &(struct det_on_row){ .from = DET_LIST("LOW"),
                                 .events = DET_LIST("FILE_IT"),
                                 .outcome = DET_OUTCOME_STAY,
                                 .keeps = DET_LIST("grams") });
    det_machine_builder_on(
        b, &(struct det_on_row){ .from = DET_LIST("HIGH"),
                                 .events = DET_LIST("LONGER"),
                                 .outcome = DET_OUTCOME_GOTO,
                                 .to = "HIGH",
                                 .within = { .after = 2 * DET_MINUTE, .event = "OVERDUE" } });
    order_on(b, "HIGH", "OVERDUE", "LOW");
    det_machine_builder_exit(b, DET_LIST("HIGH"), "leaves");
    det_machine_builder_entry(b, DET_LIST("HIGH", "LOW"), "arrives");
    det_machine_builder_after(
        b, DET_LIST("HIGH"), &(struct det_timeout_row){ .after = DET_MINUTE, .event = "OVERDUE" });
    return built(b);
}

struct lift {
    struct script script;
    struct det_sim *sim;
    struct det_store *store;
    struct det_runtime *runtime;
    struct det_machine *machine;
    struct det_sent sent;
    struct det_error error;
};

static void see_nothing(void *user, const struct det_note *note)
{
    (void)user;
    (void)note;
}

static struct lift *lift_open(bool is_observed)
{
    struct lift *lift = calloc(1, sizeof *lift);

    assert_non_null(lift);
    assert_int_equal(det_sim_open(&(struct det_sim_options){ .seed = 3 }, &lift->sim, NULL), 0);
    lift->script.world = det_sim_world(lift->sim);
    lift->script.limit = 100;
    lift->machine = lift_machine();
    assert_int_equal(
        det_store_open_with(
            "memory:", &(struct det_store_options){ .world = lift->script.world }, &lift->store,
            NULL),
        0);
    assert_int_equal(
        det_runtime_open(
            lift->store,
            &(struct det_runtime_options){ .world = lift->script.world,
                                           .observe = is_observed ? see_nothing : NULL,
                                           .user = &lift->script },
            &lift->runtime, NULL),
        0);
    assert_int_equal(
        det_runtime_start(lift->runtime, lift->machine, "a", NULL, NULL, NULL, NULL), 0);
    return lift;
}

static void lift_close(struct lift *lift)
{
    det_runtime_close(lift->runtime);
    det_store_close(lift->store);
    det_machine_close(lift->machine);
    det_sim_close(lift->sim);
    free(lift);
}

static int lift_send(struct lift *lift, unsigned kind, uint64_t grams)
{
    struct lift_event event = { .kind = kind, .weight = { grams } };

    memset(&lift->sent, 0, sizeof lift->sent);
    memset(&lift->error, 0, sizeof lift->error);
    lift->script.call_count = 0;
    memset(lift->script.calls, 0, sizeof lift->script.calls);
    return det_runtime_send(
        lift->runtime, lift->machine, "a", &event, NULL, &lift->sent, &lift->error);
}

static struct det_instance lift_get(struct lift *lift, struct lift_data *data)
{
    struct det_instance instance;

    assert_int_equal(det_runtime_get(lift->runtime, lift->machine, "a", &instance, data, NULL), 0);
    return instance;
}

static struct det_runtime_counts lift_counts(struct lift *lift)
{
    struct det_runtime_counts all;

    det_runtime_counts(lift->runtime, &all);
    return all;
}

static void assert_alike(struct lift *a, struct lift *b)
{
    struct lift_data first_data = { 0 }, second_data = { 0 };
    struct det_instance first = lift_get(a, &first_data), second = lift_get(b, &second_data);

    assert_memory_equal(&first, &second, sizeof first);
    assert_memory_equal(&first_data, &second_data, sizeof first_data);
    assert_int_equal(a->sent.outcome, b->sent.outcome);
    assert_int_equal(a->sent.state, b->sent.state);
    assert_int_equal(a->sent.sequence, b->sent.sequence);
    assert_int_equal(a->sent.visit, b->sent.visit);
    assert_string_equal(a->script.calls, b->script.calls);
    assert_int_equal(a->error.code, b->error.code);
    assert_string_equal(a->error.text, b->error.text);
    assert_int_equal(a->error.cause, b->error.cause);
    assert_ptr_equal(!a->error.action, !b->error.action);
}

static void randomize(struct script *script, uint64_t *seed)
{
    script->exit_fails = det_test_random(seed) % 16 ? 0 : -71;
    script->hook_fails = det_test_random(seed) % 16 ? 0 : -72;
    script->is_slow = det_test_random(seed) % 16 == 0;
}

static void quick_send_with_code_equals_the_full_turn(void **state)
{
    struct lift *quick = lift_open(false), *slow = lift_open(true);
    uint64_t seed = 5, answers[2] = { 0 };

    (void)state;
    for (int i = 0; i < 3000; i++) {
        unsigned kind = (unsigned)(det_test_random(&seed) % 5);
        uint64_t grams = det_test_random(&seed) % 110;
        det_time span = (det_time)(det_test_random(&seed) % 50) * DET_SECOND;
        uint64_t same = seed;
        int r;

        randomize(&quick->script, &same);
        randomize(&slow->script, &seed);
        r = lift_send(quick, kind, grams);
        assert_int_equal(r, lift_send(slow, kind, grams));
        answers[r < 0]++;
        quick->script.is_slow = slow->script.is_slow = false;
        assert_alike(quick, slow);
        assert_int_equal(det_sim_advance(quick->sim, span), 0);
        assert_int_equal(det_sim_advance(slow->sim, span), 0);
        assert_alike(quick, slow);
    }
    assert_true(answers[0] > 1000 && answers[1] > 300);
    assert_true(lift_counts(quick).timeouts_fired > 50);
    assert_int_equal(lift_counts(quick).timeouts_fired, lift_counts(slow).timeouts_fired);
    assert_int_equal(lift_counts(quick).transitions, lift_counts(slow).transitions);
    assert_int_equal(lift_counts(quick).refused, lift_counts(slow).refused);
    lift_close(quick);
    lift_close(slow);
}

/* The order stays and counts: user code, and new data. */
static uint64_t updates(struct fixture *f)
{
    struct det_instance instance;
    struct order_data data;

    assert_int_equal(det_runtime_get(f->runtime, f->order, "o", &instance, &data, NULL), 0);
    assert_int_equal(instance.sequence, data.updates);
    return data.updates;
}

static void a_quick_commit_with_code_that_fails_changes_nothing_or_is_found(void **state)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });
    struct faulty faulty;

    (void)state;
    faulty_wrap(&faulty, f, true);
    assert_int_equal(start(f, "o"), 0);
    assert_int_equal(send_kind(f, "o", PING), 0);
    faulty_set(&faulty, FAULT_BEFORE, DET_ERR_NO_MEMORY, 0);
    assert_int_equal(send_kind(f, "o", PING), DET_ERR_NO_MEMORY);
    assert_int_equal(updates(f), 1);
    faulty_set(&faulty, FAULT_BEFORE, DET_ERR_IO, 0);
    assert_int_equal(send_kind(f, "o", PING), DET_ERR_IO);
    assert_int_equal(updates(f), 1);
    faulty_set(&faulty, FAULT_AFTER, DET_ERR_IO, 0);
    assert_int_equal(send_kind(f, "o", PING), DET_ERR_IO);
    assert_int_equal(updates(f), 2);
    faulty_set(&faulty, FAULT_BEFORE, DET_ERR_CONFLICT, 0);
    assert_int_equal(send_kind(f, "o", PING), 0);
    assert_int_equal(updates(f), 3);
    assert_int_equal(f->sent.sequence, 3);
    fixture_close(f);
}

static int without_memory(struct det_test_memory *memory, void *argument)
{
    struct det_machine *machine = argument;
    struct script script = { .limit = 100 };
    struct poor poor;
    int r;

    r = poor_open(&poor, memory, &script);
    if (r == 0)
        r = det_runtime_start(poor.runtime, machine, "a", NULL, NULL, NULL, NULL);
    for (unsigned i = 0; r == 0 && i < 10; i++) {
        struct lift_event event = { .kind = i % 2 ? SINK : RISE, .weight = { i } };
        struct det_instance before, after;
        struct lift_data data;

        assert_int_equal(det_runtime_get(poor.runtime, machine, "a", &before, NULL, NULL), 0);
        r = det_runtime_send(poor.runtime, machine, "a", &event, NULL, NULL, NULL);
        assert_int_equal(det_runtime_get(poor.runtime, machine, "a", &after, &data, NULL), 0);
        assert_int_equal(after.sequence, before.sequence + (r == 0));
        assert_int_equal(data.rides, (after.sequence + 1) / 2);
    }
    poor_close(&poor);
    return r;
}

static void quick_send_with_code_survives_failed_allocations(void **state)
{
    struct det_machine *machine = lift_machine();

    (void)state;
    det_test_each_failure(without_memory, machine);
    det_machine_close(machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quick_send_with_code_equals_the_full_turn),
        cmocka_unit_test(a_quick_commit_with_code_that_fails_changes_nothing_or_is_found),
        cmocka_unit_test(quick_send_with_code_survives_failed_allocations),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
