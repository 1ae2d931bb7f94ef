/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* fault_test.c - what a commit does when the server refuses, goes away, or comes back
 * otherwise. Every code of the server is raised by the server itself: a trigger on the events
 * raises it as often as a sequence says, since sequences are not rolled back. */
/* test: threads */
/* test: sanitized */
#include "store/postgres/postgres_test.h"

#include "lib/patience.h"
#include "lib/proxy.h"
#include "os/os.h"

/* From now on the next `times` inserts of an event fail with this code. */
static void raise(struct det_store *store, const char *code, unsigned times)
{
    char text[1024];

    snprintf(
        text, sizeof text,
        "CREATE SEQUENCE IF NOT EXISTS @raised; ALTER SEQUENCE @raised RESTART; "
        "CREATE OR REPLACE FUNCTION @fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "IF nextval('@raised') <= %u THEN RAISE EXCEPTION 'raised' USING ERRCODE = '%s'; END IF; "
        "RETURN NEW; END $$; DROP TRIGGER IF EXISTS fail ON @events; CREATE TRIGGER fail BEFORE "
        "INSERT ON @events FOR EACH ROW EXECUTE FUNCTION @fail()",
        times, code);
    free(sql(store, text));
}

/* At the end of the transaction, after the answer of the statement: a deferred trigger. */
static void at_commit(struct det_store *store, const char *what)
{
    char text[1024];

    snprintf(
        text, sizeof text,
        "CREATE SEQUENCE IF NOT EXISTS @reached; ALTER SEQUENCE @reached RESTART; "
        "CREATE OR REPLACE FUNCTION @last() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "PERFORM nextval('@reached'); %s RETURN NEW; END $$; "
        "DROP TRIGGER IF EXISTS last ON @events; CREATE CONSTRAINT TRIGGER last AFTER INSERT ON "
        "@events DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION @last()",
        what);
    free(sql(store, text));
}

static uint64_t sequence_of(struct pad *pad)
{
    char *text = sql(pad->store, "SELECT sequence FROM @instances WHERE id = 'p'");
    uint64_t sequence = strtoull(text, NULL, 10);

    free(text);
    return sequence;
}

/* Shortens the timeout of the client; the settings of the server stay. */
static void hurry(struct pad *pad, det_time timeout)
{
    postgres_store_of(pad->store)->timeout = timeout;
}

static void transient_errors_are_retried(void **state)
{
    static const char *const codes[] = { "40001", "40P01", "55P03", "57014", "23505",
                                         "57P01", "57P03", "53300", "25006", "26000" };
    struct pad *pad = desk_open();

    (void)state;
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        raise(pad->store, codes[i], 2);
        assert_int_equal(send(pad, BARE, NULL), 0);
        assert_int_equal(sequence_of(pad), i + 1);
    }
    desk_close(pad);
}

static void permanent_errors_are_reported_and_change_nothing(void **state)
{
    static const struct {
        const char *code;
        int result;
    } cases[] = {
        { "53100", DET_ERR_NO_SPACE },  { "53200", DET_ERR_NO_MEMORY },
        { "42501", DET_ERR_READ_ONLY }, { "54000", DET_ERR_LIMIT },
        { "23514", DET_ERR_INVALID },   { "XX001", DET_ERR_CORRUPT },
        { "58030", DET_ERR_IO },        { "40003", DET_ERR_IO },
        { "08006", DET_ERR_IO },
    };
    struct pad *pad = desk_open();

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pad before = *pad;

        raise(pad->store, cases[i].code, 1);
        assert_int_equal(send(pad, BARE, NULL), cases[i].result);
        *pad = before;
        assert_int_equal(sequence_of(pad), 0);
    }
    assert_int_equal(send(pad, BARE, NULL), 0);
    desk_close(pad);
}

static void permanently_transient_error_is_finally_reported(void **state)
{
    struct pad *pad = desk_open();

    (void)state;
    raise(pad->store, "40001", 1000000);
    assert_int_equal(send(pad, BARE, NULL), DET_ERR_BUSY);
    assert_int_equal(sequence_of(pad), 0);
    desk_close(pad);
}

/* Whoever was first is seen when it is tried again, and that is a conflict, with its sequence. A
 * row that is still in the way then belongs to nothing. */
static void orphaned_duplicate_row_is_damage_not_a_conflict(void **state)
{
    struct pad *pad = desk_open();
    struct pad before = *pad;

    (void)state;
    free(
        sql(pad->store,
            "INSERT INTO @events (instance, sequence, version, visit, from_state, to_state, event, "
            "outcome, choice, timeout, at, hash) SELECT key, 1, 1, 2, 'A', 'B', 'BARE', 'goto', 0, "
            "false, 1, '' FROM @instances"));
    assert_int_equal(send(pad, BARE, NULL), DET_ERR_CORRUPT);
    assert_int_equal(sequence_of(pad), 0);
    *pad = before;
    free(sql(pad->store, "DELETE FROM @events"));
    assert_int_equal(send(pad, BARE, NULL), 0);
    desk_close(pad);
}

static void error_at_commit_time_refuses_the_commit(void **state)
{
    struct pad *pad = desk_open();
    struct pad before = *pad;

    (void)state;
    at_commit(pad->store, "RAISE EXCEPTION 'no' USING ERRCODE = '53100';");
    assert_int_equal(send(pad, BARE, NULL), DET_ERR_NO_SPACE);
    *pad = before;
    assert_int_equal(sequence_of(pad), 0);
    at_commit(
        pad->store,
        "IF currval('@reached') < 3 THEN RAISE EXCEPTION 'no' USING ERRCODE = '40001'; END IF;");
    assert_int_equal(send(pad, BARE, NULL), 0);
    assert_int_equal(sequence_of(pad), 1);
    desk_close(pad);
}

/* The statement was answered, the Sync was not. */
static void a_commit_without_an_answer_is_unknown_and_sent_once(void **state)
{
    struct pad *pad = desk_open();
    struct pad before = *pad;
    char *text;

    (void)state;
    at_commit(pad->store, "PERFORM pg_terminate_backend(pg_backend_pid());");
    assert_int_equal(send(pad, BARE, NULL), DET_ERR_IO);
    *pad = before;
    text = sql(pad->store, "SELECT last_value FROM @reached");
    assert_string_equal(text, "1");
    free(text);
    /* A later question finds the truth, on another connection. */
    at_commit(pad->store, "");
    assert_int_equal(send(pad, BARE, NULL), 0);
    desk_close(pad);
}

/* The server reports the reason before the statement is complete: so it did not happen. */
static void a_commit_that_was_cut_in_its_statement_is_tried_again(void **state)
{
    struct pad *pad = desk_open();

    (void)state;
    free(
        sql(pad->store,
            "CREATE SEQUENCE @cuts; CREATE FUNCTION @cut() RETURNS trigger LANGUAGE plpgsql AS $$ "
            "BEGIN IF nextval('@cuts') < 3 THEN PERFORM pg_terminate_backend(pg_backend_pid()); "
            "END IF; RETURN NEW; END $$; CREATE TRIGGER cut BEFORE INSERT ON @events FOR EACH ROW "
            "EXECUTE FUNCTION @cut()"));
    assert_int_equal(send(pad, BARE, NULL), 0);
    assert_int_equal(sequence_of(pad), 1);
    desk_close(pad);
}

/* The session has the lock timeout as a setting, so this test opens a new one. */
static void a_row_that_stays_locked_is_busy_in_the_end(void **state)
{
    char *url = det_test_postgres_url(server, NULL);
    struct pad *pad = desk_at(url, NULL);
    PGconn *other = PQconnectdb(det_test_postgres_conninfo(server));
    struct det_store *patient = pad->store;
    char *text;

    (void)state;
    pad->store =
        store_at(url, &(struct det_store_options){ .timeout = 2 * DET_SECOND * det_test_load() });
    text =
        det_postgres_qualify(postgres_store_of(pad->store), "SELECT 1 FROM @instances FOR UPDATE");
    PQclear(PQexec(other, "BEGIN"));
    PQclear(PQexec(other, text));
    assert_int_equal(send(pad, BARE, NULL), DET_ERR_BUSY);
    PQfinish(other);
    det_free_string(NULL, text);
    assert_int_equal(sequence_of(pad), 0);
    det_store_close(pad->store);
    pad->store = patient;
    desk_close(pad);
    free(url);
}

static void store_reconnects_to_a_restarted_server(void **state)
{
    struct pad *pad = desk_open();
    struct det_store_lease held;
    struct found found;

    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(send(pad, BARE, NULL), 0);
        det_test_postgres_crash(server);
        det_test_postgres_start(server, NULL);
        if (i == 1)
            assert_int_equal(look_up(pad, "p", &found), 0);
        if (i == 2)
            assert_int_equal(
                pad->store->ops->lease(
                    pad->store,
                    &(struct det_store_lease_change){ DET_LEASE_ACQUIRE, "l", "me", 0, DET_SECOND },
                    &held),
                0);
    }
    assert_int_equal(send(pad, BARE, NULL), 0);
    assert_int_equal(sequence_of(pad), 4);
    desk_close(pad);
}

static void a_server_that_stays_away_is_an_error_in_time(void **state)
{
    struct pad *pad = desk_open();
    struct pad before;
    struct found found;
    char why[100] = "";

    (void)state;
    assert_false(pad->store->ops->is_unreachable(pad->store, why, sizeof why));
    assert_string_equal(why, "");
    det_test_postgres_crash(server);
    hurry(pad, 300 * DET_MILLISECOND);
    before = *pad;
    assert_int_equal(send(pad, BARE, NULL), DET_ERR_IO);
    *pad = before;
    assert_int_equal(look_up(pad, "p", &found), DET_ERR_IO);
    assert_true(pad->store->ops->is_unreachable(pad->store, why, sizeof why));
    assert_true(why[0]);
    assert_false(pad->store->ops->is_lost(pad->store));
    det_test_postgres_start(server, NULL);
    hurry(pad, DET_TEST_HANG);
    assert_int_equal(send(pad, BARE, NULL), 0);
    assert_false(pad->store->ops->is_unreachable(pad->store, why, sizeof why));
    desk_close(pad);
}

static void cut_all(void)
{
    free(det_test_postgres_execute(
        server, "SELECT count(pg_terminate_backend(pid, 30000)) FROM pg_stat_activity "
                "WHERE application_name = 'detent'"));
}

/* A standby took over without an acknowledged commit. */
static void a_server_that_went_back_in_time_gets_no_commit(void **state)
{
    struct pad *pad = desk_open();
    struct pad before;
    struct found found;

    (void)state;
    assert_int_equal(send(pad, BARE, NULL), 0);
    assert_int_equal(send(pad, BARE, NULL), 0);
    free(sql(pad->store, "UPDATE @instances SET sequence = 1"));
    cut_all();
    before = *pad;
    assert_int_equal(send(pad, BARE, NULL), DET_ERR_IO);
    *pad = before;
    free(sql(pad->store, "UPDATE @instances SET sequence = 2"));
    assert_int_equal(send(pad, BARE, NULL), DET_ERR_IO);
    assert_true(pad->store->ops->is_lost(pad->store));
    *pad = before;
    assert_int_equal(look_up(pad, "p", &found), 0);
    desk_close(pad);
}

static void another_store_in_the_same_place_gets_no_commit(void **state)
{
    struct pad *pad = desk_open();

    (void)state;
    free(sql(pad->store, "UPDATE @store SET identity = '0123456789abcdef0123456789abcdef'"));
    cut_all();
    assert_int_equal(send(pad, BARE, NULL), DET_ERR_FOREIGN);
    assert_int_equal(sequence_of(pad), 0);
    desk_close(pad);
}

/* Threads that send to separate instances, so that batches form. */
struct sender {
    struct pad pad;
    struct det_thread *thread;
    char id[16];
    unsigned sends, timers;
    int r;
};

static void run_sender(void *argument)
{
    struct sender *sender = argument;

    sender->r = start(&sender->pad, sender->id);
    for (unsigned i = 0; sender->r == 0 && i < sender->sends; i++) {
        const struct det_store_timer_change timer = {
            DET_STORE_SET, { .event = SMALL, .visit = 1, .due = 1000 + (det_time)i }
        };

        begin(&sender->pad);
        add_event(&sender->pad, i % 2 ? SMALL : BARE);
        if (sender->timers && i % sender->timers == 0) {
            sender->pad.commit.timers = &timer;
            sender->pad.commit.timer_count = 1;
        }
        sender->r = commit(&sender->pad);
    }
}

static int no_finding(void *context, const struct det_store_finding *row)
{
    (void)context;
    fail_msg("%s: %s", row->id ? row->id : "", row->text);
    return 1;
}

static void run_senders(struct pad *pad, unsigned count, unsigned sends)
{
    struct det_world *world = det_world_real();
    struct sender *senders = calloc(count, sizeof *senders);

    assert_non_null(senders);
    for (unsigned i = 0; i < count; i++) {
        senders[i].pad.machine = pad->machine;
        senders[i].pad.store = pad->store;
        senders[i].sends = sends;
        senders[i].timers = i % 3;
        snprintf(senders[i].id, sizeof senders[i].id, "s%u", i);
        assert_int_equal(
            det_thread_start(world, "sender", run_sender, &senders[i], &senders[i].thread), 0);
    }
    for (unsigned i = 0; i < count; i++) {
        det_thread_join(world, senders[i].thread);
        assert_int_equal(senders[i].r, 0);
        assert_int_equal(senders[i].pad.head.sequence, sends);
        pad->store->ops->release(pad->store, senders[i].pad.instance);
    }
    assert_int_equal(pad->store->ops->check(pad->store, no_finding, NULL, NULL), 0);
    free(senders);
}

static void many_threads_commit_together(void **state)
{
    struct pad *pad = desk_open();
    char *text;

    (void)state;
    run_senders(pad, 24, 20);
    text = sql(pad->store, "SELECT count(*) FROM @events");
    assert_string_equal(text, "480");
    free(text);
    desk_close(pad);
}

/* Two nodes send to the same instances: the recorded events equal the acknowledged ones. */
struct fighter {
    struct pad *pad;
    struct det_thread *thread;
    unsigned done;
};

static void run_fighter(void *argument)
{
    struct fighter *fighter = argument;
    struct pad *pad = fighter->pad;
    const struct det_store_rows rows = { 0 };

    for (int i = 0; i < 60; i++) {
        struct pad before = *pad;
        int r = send(pad, BARE, NULL);

        if (r == 0) {
            fighter->done++;
            continue;
        }
        *pad = before;
        if (r == DET_ERR_CONFLICT) {
            struct det_store_loaded loaded = { .data = &pad->data };

            pad->store->ops->release(pad->store, pad->instance);
            assert_int_equal(
                pad->store->ops->load(pad->store, pad->machine, "p", &rows, &loaded), 0);
            pad->instance = loaded.instance;
            pad->head = loaded.head;
        }
    }
}

static void two_nodes_on_one_instance_commit_each_event_once(void **state)
{
    struct det_world *world = det_world_real();
    char *url = det_test_postgres_url(server, NULL), *text, expected[16];
    struct pad *one = desk_at(url, NULL), *other = neighbour(one, url);
    struct fighter fighters[2] = { { .pad = one }, { .pad = other } };

    (void)state;
    for (int i = 0; i < 2; i++)
        assert_int_equal(
            det_thread_start(world, "fighter", run_fighter, &fighters[i], &fighters[i].thread), 0);
    for (int i = 0; i < 2; i++)
        det_thread_join(world, fighters[i].thread);
    text = sql(one->store, "SELECT count(*) FROM @events");
    snprintf(expected, sizeof expected, "%u", fighters[0].done + fighters[1].done);
    assert_string_equal(text, expected);
    free(text);
    assert_int_equal(one->store->ops->check(one->store, no_finding, NULL, NULL), 0);
    desk_close(other);
    desk_close(one);
    free(url);
}

/* Two connections of the server for all of it. */
static void transaction_pooler_is_supported(void **state)
{
    char url[256];
    struct pad *pad, *other;
    struct det_store_lease held;

    (void)state;
    snprintf(
        url, sizeof url, "postgres://postgres@/postgres?host=%s&schema=pooled&pooler=yes",
        det_test_postgres_pooler(server, 2));
    pad = desk_at(url, NULL);
    other = neighbour(pad, url);
    run_senders(pad, 8, 10);
    assert_int_equal(send(other, BARE, NULL), 0);
    assert_int_equal(send(pad, BARE, "x"), DET_ERR_CONFLICT);
    assert_int_equal(
        pad->store->ops->lease(
            pad->store,
            &(struct det_store_lease_change){ DET_LEASE_ACQUIRE, "l", "me", 0, DET_SECOND }, &held),
        0);
    assert_int_equal(
        pad->store->ops->lease(
            pad->store, &(struct det_store_lease_change){ DET_LEASE_RELEASE, "l", NULL, 1, 0 },
            &held),
        0);
    pad->store->ops->listen(pad->store, NULL, NULL);
    desk_close(other);
    desk_close(pad);
}

/* A wake-up that a thread can wait for. */
struct bell {
    struct det_world *world;
    struct det_mutex *mutex;
    struct det_condition *rung;
    unsigned count;
};

static void ring_bell(void *context)
{
    struct bell *bell = context;

    det_mutex_lock(bell->world, bell->mutex);
    bell->count++;
    det_condition_broadcast(bell->world, bell->rung);
    det_mutex_unlock(bell->world, bell->mutex);
}

static void await_bell(struct bell *bell, unsigned count)
{
    det_time deadline = det_world_now(bell->world, DET_CLOCK_MONOTONIC) + DET_TEST_HANG;
    int r = 0;

    det_mutex_lock(bell->world, bell->mutex);
    while (bell->count < count && r == 0)
        r = det_condition_wait(bell->world, bell->rung, bell->mutex, deadline);
    det_mutex_unlock(bell->world, bell->mutex);
    assert_int_equal(r, 0);
}

static void released_lock_notifies_listeners(void **state)
{
    char *url = det_test_postgres_url(server, NULL);
    struct pad *pad = desk_at(url, NULL), *other = neighbour(pad, url);
    struct bell bell = { .world = det_world_real() };
    struct det_store_lease held;

    (void)state;
    assert_int_equal(det_mutex_open(bell.world, &bell.mutex), 0);
    assert_int_equal(det_condition_open(bell.world, &bell.rung), 0);
    pad->store->ops->listen(pad->store, ring_bell, &bell);
    await_bell(&bell, 1); /* it listens now */
    assert_int_equal(
        other->store->ops->lock(
            other->store, other->machine,
            &(struct det_store_lease_change){ DET_LEASE_ACQUIRE, "p", "me", 0, DET_SECOND }, &held),
        0);
    assert_int_equal(
        other->store->ops->lock(
            other->store, other->machine,
            &(struct det_store_lease_change){ DET_LEASE_RELEASE, "p", NULL, held.token, 0 }, &held),
        0);
    await_bell(&bell, 2);
    /* It reconnects by itself and wakes the listeners, since notifications may be lost. */
    cut_all();
    await_bell(&bell, 3);
    pad->store->ops->listen(pad->store, NULL, NULL);
    det_condition_close(bell.world, bell.rung);
    det_mutex_close(bell.world, bell.mutex);
    desk_close(other);
    desk_close(pad);
    free(url);
}

static void no_wake(void *context)
{
    (void)context;
}

/* The connection is silent and does not end: closing does not wait for it. */
static void unanswered_listener_does_not_delay_close(void **state)
{
    struct det_world *world = det_world_real();
    struct det_test_proxy *proxy = det_test_proxy_open(server);
    char *url = det_test_postgres_url(server, NULL), *through = det_test_proxy_url(proxy, url);
    struct pad *pad = desk_at(through, NULL);
    det_time begun;

    (void)state;
    det_test_proxy_mute(proxy, "LISTEN ");
    hurry(pad, DET_HOUR);
    pad->store->ops->listen(pad->store, no_wake, NULL);
    while (!det_test_proxy_was_mute(proxy))
        assert_int_equal(det_world_sleep(world, DET_MILLISECOND), 0);
    begun = det_world_now(world, DET_CLOCK_MONOTONIC);
    pad->store->ops->listen(pad->store, NULL, NULL);
    assert_true(det_world_now(world, DET_CLOCK_MONOTONIC) - begun < DET_TEST_HANG);
    desk_close(pad);
    det_test_proxy_close(proxy);
    free(through);
    free(url);
}

static int count_row(void *context, const struct det_sql_row *row)
{
    (void)row;
    ++*(unsigned *)context;
    return 0;
}

static void question_that_reads_whole_tables_may_take_longer(void **state)
{
    struct pad *pad = desk_open();
    unsigned rows = 0;
    const struct det_sql_question question = {
        .statement = DET_SQL_COUNT_ALL, .read = count_row, .context = &rows, .is_scan = true
    };

    (void)state;
    free(
        sql(pad->store, "ALTER TABLE @definitions RENAME TO quick; CREATE VIEW @definitions AS "
                        "SELECT quick.* FROM @quick, pg_sleep(0.2)"));
    hurry(pad, DET_MILLISECOND);
    assert_int_equal(det_sql_ask(pad->store, &question, 1, NULL), 0);
    assert_int_equal(rows, 2);
    desk_close(pad);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(transient_errors_are_retried),
        cmocka_unit_test(permanent_errors_are_reported_and_change_nothing),
        cmocka_unit_test(permanently_transient_error_is_finally_reported),
        cmocka_unit_test(orphaned_duplicate_row_is_damage_not_a_conflict),
        cmocka_unit_test(error_at_commit_time_refuses_the_commit),
        cmocka_unit_test(a_commit_without_an_answer_is_unknown_and_sent_once),
        cmocka_unit_test(a_commit_that_was_cut_in_its_statement_is_tried_again),
        cmocka_unit_test(a_row_that_stays_locked_is_busy_in_the_end),
        cmocka_unit_test(question_that_reads_whole_tables_may_take_longer),
        cmocka_unit_test(store_reconnects_to_a_restarted_server),
        cmocka_unit_test(a_server_that_stays_away_is_an_error_in_time),
        cmocka_unit_test(a_server_that_went_back_in_time_gets_no_commit),
        cmocka_unit_test(another_store_in_the_same_place_gets_no_commit),
        cmocka_unit_test(many_threads_commit_together),
        cmocka_unit_test(two_nodes_on_one_instance_commit_each_event_once),
        cmocka_unit_test(transaction_pooler_is_supported),
        cmocka_unit_test(released_lock_notifies_listeners),
        cmocka_unit_test(unanswered_listener_does_not_delay_close),
    };

    return cmocka_run_group_tests(tests, open_server, close_server);
}
