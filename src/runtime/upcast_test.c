/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* upcast_test.c - payloads and data of an older version, made new by a function: wherever they are
 * stored.
 *
 *     OPEN --add: stays, keeps the sum, asks for work--   OPEN --finish--> DONE
 *     OPEN defers note, DONE keeps its sum
 *
 * In version 1 sums are euros, in version 2 cents. */
#include "runtime/runtime_test.h"

enum { ADD, NOTE_SUM, FINISH };

/* The upcaster returns 1, but writes an invalid text. */
#define INVALID_TEXT 8

struct sum {
    uint64_t amount;
    char currency[4]; /* in version 2 */
};

struct till_event {
    unsigned kind;
    union {
        struct sum sum;
    } as __attribute__((aligned(8)));
};

static const struct det_field euro_fields[] = {
    { .name = "euros", .kind = DET_KIND_UNSIGNED, .size = 8 },
};
static const struct det_record euros = {
    .name = "sum", .version = 1, .size = sizeof(struct sum), .fields = euro_fields, .field_count = 1
};
/* The field has another place and another meaning: no default can do that. */
static const struct det_field cent_fields[] = {
    { .name = "cents", .kind = DET_KIND_UNSIGNED, .size = 8, .since = 2 },
    { .name = "currency",
      .kind = DET_KIND_TEXT,
      .offset = offsetof(struct sum, currency),
      .size = 4,
      .capacity = 3,
      .since = 2 },
};
static const struct det_record cents = {
    .name = "sum", .version = 2, .size = sizeof(struct sum), .fields = cent_fields, .field_count = 2
};

struct till {
    char *folder;
    struct det_sim *sim;
    struct det_store *store;
    struct det_machine *machine;
    struct det_runtime *runtime;
    struct det_error error;
    /* Data seen by the effect. */
    uint64_t data, event;
    /* Controls the upcaster, and records its calls. */
    int answer;
    unsigned payloads, datas;
};

static int work(struct det_effect_call *call, const void *data, const void *event, void *ret)
{
    struct till *till = call->move.user;

    (void)ret;
    till->data = ((const struct sum *)data)->amount;
    till->event = ((const struct till_event *)event)->as.sum.amount;
    return DET_EFFECT_DONE;
}

static struct det_machine *till_machine(const struct det_record *sum)
{
    struct det_machine_builder *b;

    assert_int_equal(det_machine_builder_open("till", NULL, &b), 0);
    det_machine_builder_data(b, sum);
    det_machine_builder_state(
        b, &(struct det_state_row){ .name = "OPEN", .flags = DET_STATE_INITIAL });
    det_machine_builder_state(b, &(struct det_state_row){ .name = "DONE" });
    det_machine_builder_event(b, &(struct det_event_row){ .name = "ADD", .payload = sum });
    det_machine_builder_event(
        b, &(struct det_event_row){
               .name = "NOTE", .payload = sum, .unhandled = DET_UNHANDLED_DEFER });
    det_machine_builder_event(b, &(struct det_event_row){ .name = "FINISH" });
    det_machine_builder_effect(b, &(struct det_effect_row){ .name = "work", .run = work });
    det_machine_builder_on(
        b, &(struct det_on_row){ .from = DET_LIST("OPEN"),
                                 .events = DET_LIST("ADD"),
                                 .outcome = DET_OUTCOME_STAY,
                                 .keeps = DET_LIST(sum->fields[0].name),
                                 .effects = DET_LIST("work") });
    det_machine_builder_on(
        b, &(struct det_on_row){ .from = DET_LIST("DONE"),
                                 .events = DET_LIST("NOTE"),
                                 .outcome = DET_OUTCOME_STAY,
                                 .keeps = DET_LIST(sum->fields[0].name) });
    order_on(b, "OPEN", "FINISH", "DONE");
    return built(b);
}

static int to_cents(void *user, const struct det_upcast *old, void *ret)
{
    struct till *till = user;
    struct sum before, *after = ret;
    int r;

    assert_string_equal(old->machine->name, "till");
    assert_int_equal(old->version, 1);
    assert_int_equal(after->amount, 0);
    till->payloads += old->event != NULL;
    till->datas += old->event == NULL;
    if (till->answer == INVALID_TEXT) {
        memcpy(after->currency, "\xff", 2);
        return 1;
    }
    if (till->answer != 1)
        return till->answer;
    r = det_record_decode(&euros, old->bytes, old->size, &before, NULL);
    after->amount = before.amount * 100;
    return r < 0 ? r : 1;
}

static void open_runtime(struct till *till, const struct det_record *sum, bool is_passive)
{
    det_runtime_close(till->runtime);
    det_machine_close(till->machine);
    till->machine = till_machine(sum);
    assert_int_equal(
        det_runtime_open(
            till->store,
            &(struct det_runtime_options){ .world = det_sim_world(till->sim),
                                           .is_passive = is_passive,
                                           .upcast = till->answer == 7 ? NULL : to_cents,
                                           .user = till },
            &till->runtime, &till->error),
        0);
}

static int send_sum(struct till *till, unsigned kind, uint64_t amount)
{
    struct till_event event = { .kind = kind, .as.sum.amount = amount };

    return det_runtime_send(till->runtime, till->machine, "t-1", &event, NULL, NULL, NULL);
}

/* A till with something of version 1 in every place. */
static void till_open(struct till *till, int answer)
{
    char url[320];

    *till = (struct till){ .folder = det_test_folder(), .answer = answer };
    assert_int_equal(det_sim_open(NULL, &till->sim, &till->error), 0);
    snprintf(url, sizeof url, "sqlite:%s/tills.db", till->folder);
    assert_int_equal(
        det_store_open_with(
            url, &(struct det_store_options){ .world = det_sim_world(till->sim) }, &till->store,
            &till->error),
        0);
    open_runtime(till, &euros, true);
    assert_int_equal(
        det_runtime_start(till->runtime, till->machine, "t-1", NULL, NULL, NULL, NULL), 0);
    assert_int_equal(send_sum(till, ADD, 3), 0);
    assert_int_equal(send_sum(till, NOTE_SUM, 5), 0);
    assert_int_equal(det_runtime_snapshot(till->runtime, till->machine, "t-1", &till->error), 0);
    assert_int_equal(till->payloads + till->datas, 0);
}

static void till_close(struct till *till)
{
    det_runtime_close(till->runtime);
    det_store_close(till->store);
    det_sim_close(till->sim);
    det_machine_close(till->machine);
    det_test_folder_remove(till->folder);
}

static int get_sum(struct till *till, uint64_t *ret)
{
    struct det_instance instance;
    struct sum sum = { 0 };
    int r;

    r = det_runtime_get(till->runtime, till->machine, "t-1", &instance, &sum, NULL);
    *ret = sum.amount;
    return r;
}

static int add_up(void *context, const struct det_event_record *row)
{
    uint64_t *total = context;

    *total += ((const struct till_event *)row->event_value)->as.sum.amount;
    return 0;
}

static void older_records_are_upcast_everywhere(void **unused)
{
    struct till till;
    uint64_t amount, total = 0;

    (void)unused;
    till_open(&till, 1);
    open_runtime(&till, &cents, false);
    assert_int_equal(get_sum(&till, &amount), 0);
    assert_int_equal(amount, 300);
    assert_int_equal(det_sim_settle(till.sim), 0);
    assert_int_equal(till.data, 300);
    assert_int_equal(till.event, 300);
    assert_int_equal(
        det_runtime_events(till.runtime, till.machine, "t-1", 0, add_up, &total, NULL), 0);
    assert_int_equal(total, 800);
    assert_int_equal(send_sum(&till, FINISH, 0), 0);
    assert_int_equal(get_sum(&till, &amount), 0);
    assert_int_equal(amount, 500);
    till_close(&till);
}

static void converted_data_are_not_converted_again(void **unused)
{
    struct till till;
    uint64_t amount;

    (void)unused;
    till_open(&till, 1);
    open_runtime(&till, &cents, false);
    assert_int_equal(send_sum(&till, ADD, 7), 0);
    assert_int_equal(det_sim_settle(till.sim), 0);
    open_runtime(&till, &cents, false);
    till.payloads = till.datas = 0;
    assert_int_equal(get_sum(&till, &amount), 0);
    assert_int_equal(amount, 7);
    assert_int_equal(till.datas, 0);
    /* The deferred event is as it was. */
    assert_int_equal(till.payloads, 1);
    till_close(&till);
}

static void without_an_upcaster_old_values_are_read_as_usual_or_not_at_all(void **unused)
{
    static const int answers[] = { 0, 7 };
    struct till till;
    uint64_t amount = 1;

    (void)unused;
    for (size_t i = 0; i < 2; i++) {
        till_open(&till, answers[i]);
        open_runtime(&till, &cents, false);
        /* The euros are bytes of no known field: that is damage, unless the upcaster accepts
         * them. */
        assert_int_equal(get_sum(&till, &amount), DET_ERR_CORRUPT);
        assert_int_equal(till.datas > 0, answers[i] == 0);
        till_close(&till);
    }
}

static void failed_upcast_leaves_the_record_unchanged(void **unused)
{
    struct till till;
    uint64_t amount;

    (void)unused;
    till_open(&till, DET_ERR_VERSION);
    open_runtime(&till, &cents, false);
    assert_int_equal(get_sum(&till, &amount), DET_ERR_VERSION);
    till.answer = 1;
    assert_int_equal(get_sum(&till, &amount), 0);
    assert_int_equal(amount, 300);
    till_close(&till);
}

/* The bytes are as they were written: whatever the upcaster returns, that is not damage. */
static void upcast_error_is_not_reported_as_damage(void **unused)
{
    static const int answers[][2] = {
        { DET_ERR_NO_MEMORY, DET_ERR_NO_MEMORY }, { DET_ERR_MALFORMED, DET_ERR_VERSION },
        { DET_ERR_CORRUPT, DET_ERR_VERSION },     { DET_ERR_NOT_FOUND, DET_ERR_VERSION },
        { INVALID_TEXT, DET_ERR_VERSION },
    };

    (void)unused;
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        struct till_event event = { .kind = FINISH };
        struct till till;
        uint64_t amount;

        till_open(&till, answers[i][0]);
        open_runtime(&till, &cents, false);
        assert_int_equal(get_sum(&till, &amount), answers[i][1]);
        assert_int_equal(
            det_runtime_send(till.runtime, till.machine, "t-1", &event, NULL, NULL, &till.error),
            answers[i][1]);
        assert_true(
            answers[i][1] == DET_ERR_NO_MEMORY || strstr(till.error.text, "upcast") != NULL);
        till_close(&till);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(older_records_are_upcast_everywhere),
        cmocka_unit_test(converted_data_are_not_converted_again),
        cmocka_unit_test(without_an_upcaster_old_values_are_read_as_usual_or_not_at_all),
        cmocka_unit_test(failed_upcast_leaves_the_record_unchanged),
        cmocka_unit_test(upcast_error_is_not_reported_as_damage),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
