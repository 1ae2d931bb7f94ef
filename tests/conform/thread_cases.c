/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* thread_cases.c - concurrency: separate instances from many threads, and resources with one
 * holder. In a simulated world the threads are fibers, in the order of the seed. */
#include <detent/tool/store.h>

#include "conform/conform.h"

#include "os/os.h"

#define THREADS 8
#define ROUNDS  25

struct tail;

struct worker {
    struct box *box;
    struct det_store *store;
    struct subject *subject;
    int number, result;
    unsigned done;
    struct tail *tail; /* NULL: it does not read the log */
    struct det_thread *thread;
};

static void run_all(struct box *box, struct worker *workers, size_t count, det_thread_fn *run)
{
    for (size_t i = 0; i < count; i++)
        assert_int_equal(
            det_thread_start(box->world, "worker", run, &workers[i], &workers[i].thread), 0);
    for (size_t i = 0; i < count; i++)
        det_thread_join(box->world, workers[i].thread);
}

/* Nothing is asserted on these threads. */
static void write_mine(void *argument)
{
    struct worker *worker = argument;

    for (int i = 0; i < ROUNDS && worker->result == 0; i++) {
        struct draft draft;

        draft_init(&draft, worker->subject);
        draft_event(&draft, PARCEL_COUNT, DET_OUTCOME_STAY, PARCEL_CREATED);
        draft_timer(&draft, DET_STORE_SET, (uint16_t)(i % 2), 100 + i);
        draft_effect(&draft, DET_STORE_SET, draft.head.sequence, 0);
        if (draft.head.sequence > 1)
            draft_effect(&draft, DET_STORE_TAKE, draft.head.sequence - 1, 0);
        worker->result = draft_commit(&draft);
    }
}

static void instances_are_written_from_many_threads_at_once(void **state)
{
    struct box *box = *state;
    struct worker workers[THREADS];
    char id[8];

    for (int i = 0; i < THREADS; i++) {
        snprintf(id, sizeof id, "p%d", i);
        workers[i] = (struct worker){ .box = box, .subject = subject_start(box, id) };
    }
    run_all(box, workers, THREADS, write_mine);
    for (int i = 0; i < THREADS; i++) {
        struct image *image = image_read(box, workers[i].subject->id);

        assert_int_equal(workers[i].result, 0);
        assert_int_equal(image->loaded.head.sequence, ROUNDS);
        assert_int_equal(image->event_count, ROUNDS);
        assert_int_equal(image->timer_count, 2);
        assert_int_equal(image->effect_count, 1);
        assert_int_equal(image->effects[0].row.sequence, ROUNDS);
        for (size_t n = 0; n < ROUNDS; n++)
            assert_int_equal(value_number(&image->events[n].value), n + 1);
        free(image);
    }
}

static void start_the_same(void *argument)
{
    struct worker *worker = argument;
    struct draft draft;

    draft_start(&draft, worker->subject);
    draft_data(&draft, (uint64_t)worker->number);
    worker->result = draft_commit(&draft);
}

static void one_of_many_starts_of_an_id_succeeds(void **state)
{
    struct box *box = *state;
    struct worker workers[THREADS];
    struct parcel_data expected;
    struct image *image;
    int winner = -1;

    for (int i = 0; i < THREADS; i++)
        workers[i] = (struct worker){ .box = box, .number = i, .subject = subject_new(box, "p") };
    run_all(box, workers, THREADS, start_the_same);
    for (int i = 0; i < THREADS; i++) {
        assert_true(workers[i].result == 0 || workers[i].result == DET_ERR_EXISTS);
        assert_true(workers[i].result != 0 || winner < 0);
        if (workers[i].result == 0)
            winner = i;
    }
    assert_true(winner >= 0);
    expected = parcel_data_value((uint64_t)winner);
    image = image_read(box, "p");
    assert_true(parcel_data_equal(&image->data, &expected));
    free(image);
}

static void be_candidate(void *argument)
{
    struct worker *worker = argument;
    struct lender lender = { worker->box, worker->store, "leader", false };
    struct det_store_lease lease;
    char owner[16];

    snprintf(owner, sizeof owner, "candidate %d", worker->number);
    worker->result = lender_ask(&lender, DET_LEASE_ACQUIRE, owner, 0, DET_HOUR, &lease);
}

static void one_of_ten_concurrent_candidates_gets_the_lease(void **state)
{
    struct box *box = *state;
    struct worker workers[10];
    unsigned granted = 0;

    for (int i = 0; i < 10; i++)
        workers[i] = (struct worker){ .box = box, .store = box->store, .number = i };
    run_all(box, workers, 10, be_candidate);
    for (int i = 0; i < 10; i++) {
        assert_true(workers[i].result == 0 || workers[i].result == DET_ERR_LOCKED);
        granted += workers[i].result == 0;
    }
    assert_int_equal(granted, 1);
}

static int count_listed(void *context, const struct det_store_listed *row)
{
    (void)row;
    ++*(unsigned *)context;
    return 0;
}

static int count_due(void *context, const struct det_store_due *row)
{
    (void)row;
    ++*(unsigned *)context;
    return 0;
}

static void look_around(void *argument)
{
    struct worker *worker = argument;
    struct det_store *store = worker->store;
    unsigned listed = 0;
    det_time next;

    for (int i = 0; i < ROUNDS && worker->result == 0; i++) {
        listed = 0;
        worker->result = store->ops->list(
            store, worker->box->machine, &(struct det_store_query){ 0 }, count_listed, &listed);
        if (worker->result == 0 && listed != THREADS - 1)
            worker->result = -1000;
        if (worker->result == 0)
            worker->result = store->ops->due(
                store, worker->box->machine,
                &(struct det_store_due_query){ .before = DET_NEVER, .limit = 10 }, count_due,
                &worker->done, &next);
    }
}

static void write_or_check(void *argument)
{
    struct worker *worker = argument;

    if (worker->number == 0)
        look_around(worker);
    else
        write_mine(worker);
}

static void reads_are_allowed_while_many_write(void **state)
{
    struct box *box = *state;
    struct worker workers[THREADS];
    char id[8];

    for (int i = 0; i < THREADS; i++) {
        snprintf(id, sizeof id, "p%d", i);
        workers[i] = (struct worker){ .box = box,
                                      .store = box->store,
                                      .number = i,
                                      .subject = i ? subject_start(box, id) : NULL };
    }
    run_all(box, workers, THREADS, write_or_check);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(workers[i].result, 0);
}

/* The log, read while it is written. */
struct tail {
    struct det_store *store;
    uint64_t after, last;
    uint64_t sequences[THREADS]; /* that must come next, of each */
    size_t count;
    int result;
};

static int take_logged(void *context, const struct det_store_logged *row)
{
    struct tail *tail = context;
    int which = row->id[1] - '0';

    if (row->position <= tail->last || row->sequence != tail->sequences[which])
        return -1000;
    tail->last = row->position;
    tail->sequences[which]++;
    tail->count++;
    return 0;
}

static void read_tail(struct tail *tail)
{
    const struct det_store_log_query query = { .after = tail->after, .limit = 7 };

    if (tail->result == 0)
        tail->result = det_store_log(tail->store, &query, take_logged, tail, &tail->after);
    if (tail->result == 0 && tail->after < tail->last)
        tail->result = -1001;
}

static void write_or_read(void *argument)
{
    struct worker *worker = argument;

    if (worker->subject)
        write_mine(worker);
    for (int i = 0; worker->tail && i < 4 * ROUNDS; i++)
        read_tail(worker->tail);
}

/* Through an opening for reading, and through two openings for writing, where supported. */
static void concurrent_log_reader_misses_and_repeats_nothing(void **state)
{
    struct box *box = *state;
    struct worker workers[THREADS];
    struct det_store *other = NULL, *reader = NULL;
    struct tail tail = { .store = box->store };
    uint64_t before;

    if (!box->store->ops->log)
        return;
    if (box->driver->is_shared)
        other = box_open_store(box);
    assert_int_equal(
        box_open_with(box, (struct det_store_options){ .is_read_only = true }, &reader, NULL), 0);
    tail.store = reader;
    workers[0] = (struct worker){ .box = box, .tail = &tail };
    for (int i = 1; i < THREADS; i++) {
        char id[8];

        snprintf(id, sizeof id, "p%d", i);
        workers[i] = (struct worker){ .box = box, .subject = subject_start(box, id) };
        if (other && i % 2)
            workers[i].subject = subject_find(box, other, id);
    }
    run_all(box, workers, THREADS, write_or_read);
    do {
        before = tail.after;
        read_tail(&tail);
    } while (tail.after != before);
    assert_int_equal(tail.result, 0);
    assert_int_equal(tail.count, (THREADS - 1) * (ROUNDS + 1));
    for (int i = 1; i < THREADS; i++)
        assert_int_equal(workers[i].result, 0);
    if (other)
        box_close_store(box, other);
    det_store_close(reader);
}

static const struct CMUnitTest threads[] = {
    CASE(instances_are_written_from_many_threads_at_once),
    CASE(one_of_many_starts_of_an_id_succeeds),
    CASE(one_of_ten_concurrent_candidates_gets_the_lease),
    CASE(reads_are_allowed_while_many_write),
    CASE(concurrent_log_reader_misses_and_repeats_nothing),
};
const struct group thread_cases = GROUP_OF(threads);
