/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* recorder_cases.h - what holds of a recorder in every world. See os/common_cases.h. */
#ifndef DET_WORKER_RECORDER_CASES_H
#define DET_WORKER_RECORDER_CASES_H

#include <detent/tool/documents.h>

#include "worker/recorder_office_cases.h"

static void recordings_are_saved_off_the_loop_and_reported_on_it(void **state)
{
    struct world_fixture *fixture = *state;
    struct office office;

    office_init(&office, fixture->world, false);
    for (size_t count = 1; count <= 4; count++)
        assert_int_equal(0, office_write(&office, 'a', count, 0));
    turn_until_reported(&office);
    assert_int_equal(10, office.fake.latest);
    assert_ptr_not_equal(det_thread_self(fixture->world), office.fake.saved_on);
    office_deinit(&office);
    det_recorder_close(NULL);
}

/* The first one is on its way when the others come. */
static void waiting_recordings_share_one_call(void **state)
{
    struct world_fixture *fixture = *state;
    struct det_recorder_waiting waiting;
    struct office office;

    office_init(&office, fixture->world, false);
    office_hold(&office);
    write_many(&office, 'a', 1);
    gate_wait(&office.fake.called, 1);
    write_many(&office, 'a', 1200);
    det_recorder_waiting(office.recorder, &waiting);
    assert_int_equal(1201, waiting.count);
    assert_true(waiting.bytes > 1201 * sizeof(struct det_document_save));
    office_go_on(&office);
    turn_until_reported(&office);
    assert_int_equal(4, office.fake.calls);
    assert_int_equal(1, office.fake.saves_of[0]);
    assert_int_equal(512, office.fake.saves_of[1]);
    assert_int_equal(512, office.fake.saves_of[2]);
    assert_int_equal(176, office.fake.saves_of[3]);
    office_deinit(&office);
}

static void a_call_has_no_more_bytes_than_it_may(void **state)
{
    struct world_fixture *fixture = *state;
    struct office office;

    office_init(&office, fixture->world, false);
    office_hold(&office);
    write_many(&office, 'a', 1);
    gate_wait(&office.fake.called, 1);
    for (int i = 0; i < 5; i++)
        assert_int_equal(0, office_write(&office, 'a', 4, 1 << 20));
    office_go_on(&office);
    turn_until_reported(&office);
    assert_int_equal(4, office.fake.calls);
    assert_int_equal(DET_RECORDER_BYTES_MAX, office.fake.bytes_of[1]);
    assert_int_equal(DET_RECORDER_BYTES_MAX, office.fake.bytes_of[2]);
    assert_int_equal(4, office.fake.saves_of[3]);
    office_deinit(&office);
}

static void invalid_recording_fails_alone(void **state)
{
    struct world_fixture *fixture = *state;
    struct office office;

    office_init(&office, fixture->world, false);
    office_hold(&office);
    write_many(&office, 'a', 1);
    gate_wait(&office.fake.called, 1);
    write_many(&office, 'a', 150);
    write_many(&office, 'i', 1);
    write_many(&office, 'a', 300);
    write_many(&office, 'c', 1);
    write_many(&office, 'i', 1);
    office_go_on(&office);
    turn_until_reported(&office);
    assert_int_equal(2, office.invalid);
    assert_int_equal(1, office.conflicts);
    assert_int_equal(451, office.fake.latest);
    assert_true(office.fake.calls < 40);
    write_many(&office, 'c', 1);
    turn_until_reported(&office);
    assert_int_equal(2, office.conflicts);
    assert_string_equal("c7 was changed; read it", office.text);
    /* All of them. */
    write_many(&office, 'i', 40);
    turn_until_reported(&office);
    assert_int_equal(42, office.invalid);
    office_deinit(&office);
}

static void store_failure_is_reported_and_not_retried(void **state)
{
    struct world_fixture *fixture = *state;
    struct office office;

    office_init(&office, fixture->world, false);
    office_hold(&office);
    write_many(&office, 'a', 1);
    gate_wait(&office.fake.called, 1);
    write_many(&office, 'a', 700);
    office.fake.fail = DET_ERR_IO;
    office.fake.fails_left = 2;
    office_go_on(&office);
    turn_until_reported(&office);
    assert_int_equal(3, office.fake.calls);
    assert_int_equal(513, office.failed);
    assert_string_equal("the disk is on fire; buy another one", office.text);
    assert_int_equal(188, office.fake.latest);
    office.fake.fail = DET_ERR_BUSY;
    office.fake.fails_left = 1;
    office.fake.is_silent = true;
    write_many(&office, 'a', 1);
    turn_until_reported(&office);
    assert_string_equal(
        "the store did not save 1 document, the first is \"a62\": in use; try again", office.text);
    office_deinit(&office);
}

struct question {
    struct det_recorder_job job;
    struct office *office;
    uint64_t seen;
    const void *asked_on;
    struct det_recorder_waiting waiting;
    bool is_answered;
};

static inline int question_run(void *argument, struct det_store *store)
{
    struct question *question = argument;

    question->seen = ((struct fake_store *)store)->latest;
    question->asked_on = det_thread_self(store->world);
    return 42;
}

static inline void question_done(void *argument, int code)
{
    struct question *question = argument;

    question->is_answered = code == 42 && question->office->reported == question->seen;
}

static inline void question_init(
    struct question *question, struct office *office,
    int (*run)(void *argument, struct det_store *store))
{
    *question = (struct question){
        .job = { .run = run, .done = question_done, .argument = question },
        .office = office,
    };
}

static inline void ask(struct office *office, struct question *question)
{
    question_init(question, office, question_run);
    det_recorder_send(office->recorder, &question->job);
}

static void recorder_calls_run_between_recordings(void **state)
{
    struct world_fixture *fixture = *state;
    struct question questions[3];
    struct office office;

    office_init(&office, fixture->world, false);
    office_hold(&office);
    ask(&office, &questions[0]);
    for (int i = 1; i < 3; i++) {
        write_many(&office, 'a', 10);
        ask(&office, &questions[i]);
    }
    write_many(&office, 'a', 10);
    office_go_on(&office);
    turn_until_reported(&office);
    for (uint64_t i = 0; i < 3; i++) {
        assert_true(questions[i].is_answered);
        assert_int_equal(10 * i, questions[i].seen);
        assert_ptr_not_equal(det_thread_self(fixture->world), questions[i].asked_on);
    }
    office_deinit(&office);
}

static inline int count_waiting(void *argument, struct det_store *store)
{
    struct question *question = argument;

    question->seen = ((struct fake_store *)store)->latest;
    det_recorder_waiting(question->office->recorder, &question->waiting);
    return 42;
}

/* A job sees itself only. */
static void finished_recordings_do_not_wait(void **state)
{
    struct world_fixture *fixture = *state;
    struct question question;
    struct office office;

    office_init(&office, fixture->world, false);
    write_many(&office, 'a', 3);
    question_init(&question, &office, count_waiting);
    det_recorder_send(office.recorder, &question.job);
    while (!question.is_answered)
        assert_true(det_loop_turn(office.loop, DET_NEVER) > 0);
    assert_int_equal(3, question.seen);
    assert_int_equal(1, question.waiting.count);
    assert_int_equal(0, question.waiting.bytes);
    office_deinit(&office);
}

static void close_saves_pending_recordings(void **state)
{
    struct world_fixture *fixture = *state;
    struct question question;
    struct office office;

    office_init(&office, fixture->world, false);
    write_many(&office, 'a', 600);
    write_many(&office, 'i', 1);
    write_many(&office, 'a', 5);
    ask(&office, &question);
    office_deinit(&office);
    assert_int_equal(605, office.fake.latest);
    assert_int_equal(605, question.seen);
    assert_int_equal(1, office.invalid);
}

static inline void open_when_called(void *argument)
{
    struct office *office = argument;

    gate_wait(&office->fake.called, 1);
    office_go_on(office);
}

/* One call is under way, others wait after it. */
static void closing_waits_for_the_store(void **state)
{
    struct world_fixture *fixture = *state;
    struct det_thread *thread;
    struct office office;

    office_init(&office, fixture->world, false);
    office_hold(&office);
    write_many(&office, 'a', 20);
    thread = start(fixture->world, open_when_called, &office);
    det_recorder_close(office.recorder);
    office.recorder = NULL;
    det_thread_join(fixture->world, thread);
    office_deinit(&office);
    assert_int_equal(20, office.fake.latest);
}

/* The texts are those of the caller, and nothing is left to wait for. */
static void inline_recording_is_saved_at_once_and_reported_later(void **state)
{
    struct world_fixture *fixture = *state;
    struct det_recorder_waiting waiting;
    struct question question;
    struct office office;

    office_init(&office, fixture->world, true);
    write_many(&office, 'a', 2);
    assert_int_equal(2, office.fake.latest);
    write_many(&office, 'i', 1);
    write_many(&office, 'a', 1);
    assert_int_equal(3, office.fake.latest);
    assert_ptr_equal(det_thread_self(fixture->world), office.fake.saved_on);
    assert_int_equal(0, office.reported);
    det_recorder_waiting(office.recorder, &waiting);
    assert_int_equal(0, waiting.count);
    ask(&office, &question);
    assert_int_equal(3, question.seen);
    assert_int_equal(5, det_loop_turn(office.loop, 0));
    assert_int_equal(1, office.invalid);
    write_many(&office, 'a', 1);
    office_deinit(&office);
}

static inline int remember_sync(void *context, const struct det_document *document)
{
    *(uint64_t *)context = document->sync;
    return strcmp(document->kind, "k") == 0 ? 7 : 0;
}

static void stored_documents_can_be_read(void **state)
{
    struct world_fixture *fixture = *state;
    struct det_document_query query = { .kind = "k" };
    struct det_recorder *recorder = NULL;
    struct det_store_ops without = { 0 };
    struct office office;
    uint64_t sync = 0;

    office_init(&office, fixture->world, false);
    office.fake.latest = 17;
    assert_int_equal(7, det_recorder_load(office.recorder, &query, remember_sync, &sync));
    assert_int_equal(17, sync);
    office_deinit(&office);
    assert_int_equal(
        DET_ERR_UNSUPPORTED,
        det_recorder_open(
            fixture->world, NULL, &(struct det_store){ .ops = &without, .world = fixture->world },
            office.loop, false, &recorder));
}

struct memo {
    uint64_t versions[2];
    int code;
    unsigned reported;
};

static inline void memo_reported(void *argument, const struct det_recorded *recorded)
{
    struct memo *memo = argument;

    memo->reported++;
    memo->code = recorded->code;
    for (size_t i = 0; recorded->code == 0 && i < recorded->count; i++)
        memo->versions[i] = recorded->saved[i].version;
}

static inline int count_document(void *context, const struct det_document *document)
{
    unsigned *count = context;

    *count += document->size == strlen("{\"up\":true}");
    return 0;
}

/* The recorder's thread counts, the loop's thread gets the answer. */
struct delta_count {
    unsigned count;
    bool is_answered;
};

static inline int count_delta(void *context, const struct det_delta *delta)
{
    struct delta_count *deltas = context;

    (void)delta;
    deltas->count++;
    return 0;
}

static inline int count_deltas(void *argument, struct det_store *store)
{
    return det_store_documents_deltas(store, NULL, count_delta, argument, NULL);
}

static inline void deltas_counted(void *argument, int code)
{
    struct delta_count *deltas = argument;

    assert_int_equal(0, code);
    deltas->is_answered = true;
}

static void submit_memo(
    struct det_recorder *recorder, struct memo *memo, const char *text, uint64_t expected)
{
    struct det_document_save saves[] = {
        { .kind = "link", .id = "a/b", .role = DET_DOCUMENT_DESIRED, .text = text },
        { .kind = "link", .id = "a/b", .role = DET_DOCUMENT_OBSERVED, .text = text },
    };

    saves[0].size = saves[1].size = strlen(text);
    saves[1].has_expected = true;
    saves[1].expected = expected;
    assert_int_equal(
        0,
        det_recorder_submit(
            recorder, &(struct det_recording){
                          .saves = saves, .count = 2, .done = memo_reported, .argument = memo }));
}

/* Over a store in memory, with a thread and without. */
static void a_real_store_keeps_what_was_recorded(void **state)
{
    struct world_fixture *fixture = *state;
    struct det_store_options options = { .world = fixture->world };
    struct det_document_query query = { .kind = "link" };
    struct det_recorder *recorder;
    struct det_store *store;
    struct det_loop *loop;

    for (int is_inline = 0; is_inline < 2; is_inline++) {
        struct memo memos[4] = { 0 };
        struct delta_count deltas = { 0 };
        unsigned documents = 0;
        struct det_recorder_job job = { .run = count_deltas, .done = deltas_counted };

        assert_int_equal(0, det_store_open_with("memory:", &options, &store, NULL));
        assert_int_equal(0, det_loop_open(fixture->world, NULL, &loop));
        assert_int_equal(
            0, det_recorder_open(fixture->world, NULL, store, loop, is_inline, &recorder));
        submit_memo(recorder, &memos[0], "{\"up\":false}", 0);
        submit_memo(recorder, &memos[1], "{\"up\":", 1);
        submit_memo(recorder, &memos[2], "{\"up\":null}", 7);
        submit_memo(recorder, &memos[3], "{\"up\":true}", 1);
        job.argument = &deltas;
        det_recorder_send(recorder, &job);
        while (!deltas.is_answered)
            assert_true(det_loop_turn(loop, DET_NEVER) > 0);
        assert_int_equal(0, det_recorder_load(recorder, &query, count_document, &documents));
        det_recorder_close(recorder);
        det_loop_close(loop);
        det_store_close(store);
        for (int i = 0; i < 4; i++)
            assert_int_equal(1, memos[i].reported);
        assert_true(memos[0].code == 0 && memos[0].versions[0] == 1 && memos[0].versions[1] == 1);
        assert_int_equal(DET_ERR_INVALID, memos[1].code);
        assert_int_equal(DET_ERR_CONFLICT, memos[2].code);
        assert_true(memos[3].code == 0 && memos[3].versions[0] == 2 && memos[3].versions[1] == 2);
        assert_int_equal(2, documents);
        assert_int_equal(4, deltas.count);
    }
}

/* Without a callback. */
static void recording_without_a_callback_is_saved(void **state)
{
    struct world_fixture *fixture = *state;
    struct det_document_save save = { .kind = "k", .id = "a1", .text = "1", .size = 1 };
    struct office office;

    for (int is_inline = 0; is_inline < 2; is_inline++) {
        office_init(&office, fixture->world, is_inline);
        assert_int_equal(
            0, det_recorder_submit(
                   office.recorder, &(struct det_recording){ .saves = &save, .count = 1 }));
        office_deinit(&office);
        assert_int_equal(1, office.fake.latest);
    }
}

/* By a caller that turns the loop now and then. */
static void ten_thousand_come_in_order(void **state)
{
    struct world_fixture *fixture = *state;
    struct office office;

    office_init(&office, fixture->world, false);
    for (int i = 0; i < 10000; i++) {
        write_many(&office, i % 1000 == 999 ? 'i' : 'a', 1);
        if (i % 100 == 0)
            assert_true(det_loop_turn(office.loop, 0) >= 0);
    }
    turn_until_reported(&office);
    assert_int_equal(9990, office.fake.latest);
    assert_int_equal(10, office.invalid);
    office_deinit(&office);
}

#define RECORDER_CASES                                                                           \
    WORLD_CASE(recordings_are_saved_off_the_loop_and_reported_on_it),                            \
        WORLD_CASE(waiting_recordings_share_one_call),                                           \
        WORLD_CASE(a_call_has_no_more_bytes_than_it_may),                                        \
        WORLD_CASE(invalid_recording_fails_alone),                                               \
        WORLD_CASE(store_failure_is_reported_and_not_retried),                                   \
        WORLD_CASE(recorder_calls_run_between_recordings),                                       \
        WORLD_CASE(finished_recordings_do_not_wait), WORLD_CASE(close_saves_pending_recordings), \
        WORLD_CASE(closing_waits_for_the_store),                                                 \
        WORLD_CASE(inline_recording_is_saved_at_once_and_reported_later),                        \
        WORLD_CASE(stored_documents_can_be_read),                                                \
        WORLD_CASE(a_real_store_keeps_what_was_recorded),                                        \
        WORLD_CASE(recording_without_a_callback_is_saved)

#endif
