/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* change_test.c - any failure of SQLite leaves a change complete or undone. */
/* test: sanitized */
#include "store/jobs_test.h"
#include "store/sqlite/operation_test.h"

static int do_compact(struct shelf *shelf, struct det_buffer *printed)
{
    struct det_store *store = shelf->pad.store;

    (void)printed;
    return store->ops->compact(store, &shelf->error);
}

static int do_new(struct shelf *shelf, struct det_buffer *printed)
{
    struct pad pad = shelf->pad;
    int r;

    (void)printed;
    pad.instance = NULL;
    pad.head = (struct det_store_head){ .visit = 1, .started_at = 7, .last_transition_at = 7 };
    begin(&pad);
    pad.commit.id = "new";
    pad.commit.is_new = true;
    pad.commit.data = &pad.data;
    r = commit(&pad);
    if (r == 0)
        pad.store->ops->release(pad.store, pad.commit.instance);
    return r;
}

/* An event that takes, sets, updates and buries all kinds of rows. */
static int do_send(struct shelf *shelf, struct det_buffer *printed)
{
    struct pad *pad = &shelf->pad;
    struct det_store_head head = pad->head;
    static const uint16_t history[] = { 0, 1 };
    const struct det_store_timer_change timers[] = {
        { DET_STORE_TAKE, { .timer = 0, .event = BARE, .visit = 1, .due = 5 } },
        { DET_STORE_SET, { .timer = DET_STATE_TIMER, .event = BARE, .visit = 9, .due = 50 } },
    };
    struct det_store_effect_change effects[] = {
        { DET_STORE_SET, ring(pad, pad->head.sequence + 1) },
        { DET_STORE_TAKE, ring(pad, 1) },
        { DET_STORE_UPDATE, ring(pad, 2) }, /* which buries it */
        { DET_STORE_TAKE, ring(pad, 3) },   /* which is dead */
        { DET_STORE_UPDATE, ring(pad, 4) }, /* which is dead, and comes back */
    };
    struct det_store_deferred_change deferred = { DET_STORE_TAKE, { .sequence = 2 } };
    int r;

    (void)printed;
    effects[2].effect.is_dead = true;
    begin(pad);
    add_event(pad, BARE);
    pad->commit.data = &pad->data;
    pad->event.event_id = pad->commit.event_id = "id-now";
    pad->commit.timers = timers;
    pad->commit.timer_count = 2;
    pad->commit.effects = effects;
    pad->commit.effect_count = 5;
    pad->commit.deferred = &deferred;
    pad->commit.deferred_count = 1;
    pad->commit.is_snapshot = true;
    pad->commit.history = history;
    pad->commit.history_count = 2;
    r = commit(pad);
    if (r < 0)
        pad->head = head;
    return r;
}

static int do_lease(struct shelf *shelf, struct det_buffer *printed)
{
    struct det_store *store = shelf->pad.store;
    struct det_store_lease lease;

    (void)printed;
    return store->ops->lease(
        store, &(struct det_store_lease_change){ DET_LEASE_ACQUIRE, "new", "me", 0, SPAN }, &lease);
}

static int do_lock(struct shelf *shelf, struct det_buffer *printed)
{
    struct det_store *store = shelf->pad.store;
    struct det_store_lease lease;

    (void)printed;
    return store->ops->lock(
        store, shelf->machine,
        &(struct det_store_lease_change){ DET_LEASE_ACQUIRE, "p", "me", 0, SPAN }, &lease);
}

static int do_prune(struct shelf *shelf, struct det_buffer *printed)
{
    struct det_store *store = shelf->pad.store;
    uint64_t gone;

    (void)printed;
    return store->ops->prune(store, shelf->pad.instance, 3, INT64_MAX, &gone);
}

static int derive_p(
    void *context, struct det_store_instance *instance, struct det_store_loaded *loaded)
{
    struct pad *pad = context;

    (void)instance;
    loaded->head = pad->head;
    loaded->data = &pad->data;
    return 0;
}

static int do_repair(struct shelf *shelf, struct det_buffer *printed)
{
    struct det_store *store = shelf->pad.store;

    (void)printed;
    return store->ops->repair(store, shelf->machine, "p", derive_p, &shelf->pad);
}

static int do_put(struct shelf *shelf, struct det_buffer *printed)
{
    struct det_store *store = shelf->pad.store;
    struct det_job_put job = { "q", "new", "work", "body", 4, 0 };
    struct det_job_place place;

    (void)printed;
    return det_jobs_put(store, &job, &place);
}

static int do_claim(struct shelf *shelf, struct det_buffer *printed)
{
    struct det_store *store = shelf->pad.store;
    struct det_job_claim claim = { "q", 4, SPAN };
    det_time next;

    return det_jobs_claim(store, &claim, print_job, printed, &next);
}

static int do_renew(struct shelf *shelf, struct det_buffer *printed)
{
    struct det_store *store = shelf->pad.store;

    (void)printed;
    return det_jobs_renew(store, "q", 1, 1, 2 * SPAN);
}

static int do_end(struct shelf *shelf, struct det_buffer *printed)
{
    struct det_store *store = shelf->pad.store;

    (void)printed;
    return det_jobs_end(
        store, "q", &(struct det_job_end){ .key = 1, .token = 1, .state = DET_JOB_DONE });
}

static int do_cancel(struct shelf *shelf, struct det_buffer *printed)
{
    struct det_store *store = shelf->pad.store;

    (void)printed;
    return store->ops->jobs->change(
        store, &(struct det_job_change){ DET_JOB_CANCEL, "q", "j2", "enough" });
}

static int do_forget(struct shelf *shelf, struct det_buffer *printed)
{
    struct det_store *store = shelf->pad.store;
    uint64_t gone;

    (void)printed;
    return store->ops->jobs->forget(store, INT64_MAX, &gone);
}

static int do_restore(struct shelf *shelf, struct det_buffer *printed)
{
    struct det_store *store = shelf->pad.store;
    struct det_job_row row = { .queue = "q",
                               .id = "old",
                               .task = "work",
                               .body = "x",
                               .body_size = 1,
                               .owner = "",
                               .submitted_at = 5,
                               .reason = "" };
    bool is_new;

    (void)printed;
    return store->ops->jobs->restore(store, &row, &is_new);
}

static int do_fire(struct shelf *shelf, struct det_buffer *printed)
{
    struct det_store *store = shelf->pad.store;
    struct det_job_put job = { "q", "fired", "work", "", 0, 0 };

    (void)printed;
    return store->ops->jobs->fire(store, &(struct det_job_firing){ "nightly", 1, 200, 100, &job });
}

static const struct action deeds[] = {
    { "compact", do_compact, NULL, true, false },
    { "new", do_new, NULL, true, false },
    { "send", do_send, NULL, true, false },
    { "lease", do_lease, NULL, true, false },
    { "lock", do_lock, NULL, true, false },
    { "prune", do_prune, NULL, true, false },
    { "migrate", do_migrate, NULL, true, true },
    { "repair", do_repair, "UPDATE instances SET checksum = 1 WHERE id = 'p'", true, true },
    { "put", do_put, NULL, true, false },
    { "claim", do_claim, NULL, true, false },
    { "renew", do_renew, NULL, true, false },
    { "end", do_end, NULL, true, false },
    { "cancel", do_cancel, NULL, true, false },
    { "forget", do_forget, NULL, true, false },
    { "restore", do_restore, NULL, true, false },
    { "fire", do_fire, NULL, true, false },
};

static void sqlite_faults_leave_each_change_atomic(void **state)
{
    (void)state;
    try_each(deeds, sizeof deeds / sizeof deeds[0]);
}

/* A foreign trigger stands for any unforeseen failure. Returns true if it was hit. */
static bool refuse(struct trial *trial, const char *verb, const char *table, const char *how)
{
    struct shelf *shelf = &trial->shelf;
    char text[200];
    int r;

    trial_begin(trial);
    snprintf(
        text, sizeof text, "CREATE TRIGGER bad BEFORE %s ON %s BEGIN SELECT raise(%s, 'no'); END",
        verb, table, how);
    shelf_exec(shelf, text);
    r = trial->action->run(shelf, &trial->printed);
    dump(shelf, false, &trial->rows);
    if (r < 0 && !is_same(&trial->rows, &trial->rows_before))
        fail_msg("%s: %s: %s, and it happened", trial->action->name, text, det_error_text(r));
    shelf_exec(shelf, "DROP TRIGGER bad");
    if (r < 0 && trial->action->run(shelf, &trial->printed) != 0)
        fail_msg("%s: %s: it does not go on", trial->action->name, text);
    shelf_close(shelf);
    dump(shelf, true, &trial->counts);
    if (!is_same(&trial->counts, &trial->counts_after))
        fail_msg("%s: %s: only some of it is there", trial->action->name, text);
    return r < 0;
}

static void change_with_a_refused_row_fails_and_can_be_repeated(void **state)
{
    static const char *const verbs[] = { "INSERT", "UPDATE", "DELETE" };
    static const char *const tables[] = { "instances", "events", "starts",   "snapshots",
                                          "timers",    "outbox", "deferred", "dead_letters",
                                          "answers",   "leases", "jobs",     "schedules",
                                          "renames" };
    struct trial trial;

    (void)state;
    trial_init(&trial);
    for (size_t i = 0; i < sizeof deeds / sizeof deeds[0]; i++) {
        trial.action = &deeds[i];
        find_truth(&trial);
        for (size_t k = 0; k < 3 * sizeof tables / sizeof tables[0]; k++) {
            if (!refuse(&trial, verbs[k % 3], tables[k / 3], "ABORT"))
                continue;
            trial.points++;
            /* With this one SQLite rolls back by itself. */
            assert_true(refuse(&trial, verbs[k % 3], tables[k / 3], "ROLLBACK"));
        }
    }
    printf("             %u rows refused\n", trial.points);
    assert_true(trial.points > 30);
    trial_deinit(&trial);
}

/* A batch of more commits than rows go into one statement. */

#define COUNT (2 * SQLITE_ROWS + 5)

struct many {
    char ids[COUNT][16];
    struct pad_event values[COUNT];
    struct det_store_head heads[COUNT];
    struct det_store_event events[COUNT];
    struct det_store_commit commits[COUNT];
};

/* Payloads of all sizes; every fourth has an event id. */
static void make_commit(struct many *many, unsigned i, const struct pad *pad)
{
    struct pad_event *value = &many->values[i];

    value->kind = i % 2 ? SMALL : TEXT;
    if (i % 2)
        value->as.small = i;
    else
        snprintf(value->as.note.text, sizeof value->as.note.text, "%0*u", (int)(2 * i + 1), i);
    many->heads[i] = (struct det_store_head){ .sequence = 1,
                                              .visit = 2,
                                              .transition_count = 1,
                                              .state = 1,
                                              .started_at = 7,
                                              .last_transition_at = 7 };
    many->events[i] = (struct det_store_event){ .sequence = 1,
                                                .visit = 2,
                                                .to = 1,
                                                .event = (uint16_t)value->kind,
                                                .outcome = DET_OUTCOME_GOTO,
                                                .at = 100 + i,
                                                .value = value,
                                                .event_id = i % 4 ? NULL : many->ids[i] };
    many->commits[i] = (struct det_store_commit){ .machine = pad->machine,
                                                  .id = many->ids[i],
                                                  .is_new = true,
                                                  .head = &many->heads[i],
                                                  .data = &pad->data,
                                                  .events = &many->events[i],
                                                  .event_count = 1 };
}

/* Starts COUNT instances, each with an event; returns the number of acknowledged ones. */
static int send_many(struct shelf *shelf, const char *prefix, int64_t *ret_good)
{
    struct many *many = calloc(1, sizeof *many);
    struct det_store_commit *commits[COUNT];
    struct pad *pad = &shelf->pad;
    int r;

    assert_non_null(many);
    for (unsigned i = 0; i < COUNT; i++) {
        snprintf(many->ids[i], sizeof many->ids[i], "%s-%u", prefix, i);
        make_commit(many, i, pad);
        commits[i] = &many->commits[i];
    }
    r = pad->store->ops->commit(pad->store, commits, COUNT);
    *ret_good = 0;
    for (unsigned i = 0; i < COUNT; i++) {
        *ret_good += r == 0 && commits[i]->result == 0;
        if (commits[i]->instance)
            pad->store->ops->release(pad->store, commits[i]->instance);
    }
    free(many);
    return r;
}

static void check_many(struct trial *trial, int r, int64_t good)
{
    struct shelf *shelf = &trial->shelf;
    struct findings *findings;
    int64_t there = shelf_ask(shelf, "SELECT count(*) FROM instances WHERE id LIKE 'm-%'");

    if (!may_answer(trial->lack, r))
        blame(trial, r, "that is not what is wrong");
    if (there != shelf_ask(
                     shelf, "SELECT count(*) FROM events JOIN instances ON key = instance "
                            "WHERE id LIKE 'm-%'"))
        blame(trial, r, "and there are instances without their events");
    if (r == 0 && there != good)
        blame(trial, r, "and what is there is not what was acknowledged");
    if (r < 0 && there != 0 && (r != DET_ERR_IO || there != COUNT))
        blame(trial, r, "and some of it is there");
    open_again(shelf);
    findings = shelf_check(shelf);
    if (findings->count)
        blame(trial, r, findings->texts);
    shelf_close(shelf);
}

/* Returns true if a request failed. Warm: the statements are already prepared. */
static bool try_many(struct trial *trial)
{
    struct shelf *shelf = &trial->shelf;
    bool has_failed;
    int64_t good;
    int r;

    trial_begin(trial);
    if (trial->is_warm)
        assert_int_equal(send_many(shelf, "w", &good), 0);
    lack_at(trial->lack, trial->point);
    r = send_many(shelf, "m", &good);
    has_failed = lack_nothing();
    shelf_close(shelf);
    check_many(trial, r, good);
    if (!has_failed)
        assert_int_equal(good, COUNT);
    return has_failed;
}

static void sqlite_faults_lose_no_acknowledged_batch_commit(void **state)
{
    static const struct action many = { "send many", NULL, NULL, true, false };
    struct trial trial;

    (void)state;
    trial_init(&trial);
    trial.action = &many;
    for (int i = 0; i < 2 * LACK_COUNT; i++) {
        trial.lack = (enum lack)(i / 2);
        trial.is_warm = i % 2;
        trial.point = trial.lack == LACK_ALL_MEMORY && !trial.is_warm ? 21 : 1;
        for (; try_many(&trial); trial.point += stride_of(&trial))
            trial.points++;
    }
    printf("             %u failures\n", trial.points);
    assert_true(trial.points > 100);
    trial_deinit(&trial);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sqlite_faults_leave_each_change_atomic),
        cmocka_unit_test(change_with_a_refused_row_fails_and_can_be_repeated),
        cmocka_unit_test(sqlite_faults_lose_no_acknowledged_batch_commit),
    };

    make_scarce();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
