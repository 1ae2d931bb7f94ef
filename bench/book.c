/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* book.c - instances in a durable store, and crowds that send to them. */
#include "book.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define FSM_SPEC "book.fsm"
#include <detent/fsm/define.h>
#include <detent/strict.h>

#define FILL_THREADS 64
#define WAIT_SENDERS 256

static void add_entry(struct book_data *data, const struct book_event *event)
{
    data->entries++;
    data->balance += event->enter.amount;
}

static void count_run(const struct det_effect_call *call)
{
    struct book *book = call->move.user;

    atomic_fetch_add(&book->effect_runs, 1);
}

static int notify_owner(
    struct det_effect_call *call, const struct book_data *data, const struct book_event *event,
    struct book_event *ret)
{
    (void)data;
    (void)event;
    (void)ret;
    count_run(call);
    return DET_EFFECT_DONE;
}

static int ask_owner(
    struct det_effect_call *call, const struct book_data *data, const struct book_event *event,
    struct book_event *ret)
{
    (void)data;
    (void)event;
    count_run(call);
    *ret = book_answered();
    return DET_EFFECT_PRODUCED;
}

void book_id(uint32_t number, char id[BOOK_ID_MAX])
{
    char digits[10];
    size_t count = 0;

    /* Hand-written: the sender's own work is not measured. */
    do
        digits[count++] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    memcpy(id, "book-", 5);
    for (size_t i = 0; i < count; i++)
        id[5 + i] = digits[count - 1 - i];
    id[5 + count] = '\0';
}

static struct entry entry_of(uint64_t amount)
{
    return (struct entry){ .amount = amount % 10000,
                           .text = "standing order, monthly, for services rendered" };
}

struct book_event book_entry(uint64_t amount)
{
    return book_enter(entry_of(amount));
}

int book_open(
    struct book *book, const char *url, const struct det_store_options *store_options,
    const struct det_runtime_options *options, uint32_t count, struct det_error *reterr)
{
    struct det_runtime_options own = *options;
    int r;

    memset(book, 0, sizeof *book);
    book->count = count;
    own.user = book;
    r = det_store_open_with(url, store_options, &book->store, reterr);
    if (r == 0)
        r = det_runtime_open(book->store, &own, &book->runtime, reterr);
    if (r == 0)
        r = det_runtime_serve(book->runtime, &book_machine, reterr);
    if (r < 0)
        book_close(book);
    return r;
}

void book_close(struct book *book)
{
    det_runtime_close(book->runtime);
    det_store_close(book->store);
    memset(book, 0, sizeof *book);
}

uint32_t book_next(const struct book *book, unsigned senders, unsigned sender, uint64_t *seed)
{
    return sender + senders * (uint32_t)(bench_random(seed) % (book->count / senders));
}

/* Threads that wait. */

struct worker {
    pthread_t thread;
    struct book *book;
    unsigned number, workers;
    uint64_t operations;
    int r;
};

static void *run_worker(void *argument)
{
    struct worker *worker = argument;
    uint64_t seed = worker->number + 1;

    for (uint64_t i = 0; i < worker->operations && worker->r == 0; i++) {
        struct book_event event = book_entry(i);
        char id[BOOK_ID_MAX];

        book_id(book_next(worker->book, worker->workers, worker->number, &seed), id);
        worker->r = book_send(worker->book->runtime, id, event, NULL);
    }
    return NULL;
}

static void *run_filler(void *argument)
{
    const struct book_data data = { .owner = "the owner of this account" };
    struct worker *worker = argument;
    struct book *book = worker->book;

    for (uint32_t i = worker->number; i < book->count && worker->r == 0; i += worker->workers) {
        char id[BOOK_ID_MAX];

        book_id(i, id);
        worker->r = det_runtime_start(book->runtime, &book_machine, id, &data, NULL, NULL, NULL);
    }
    return NULL;
}

static int run_workers(
    struct book *book, unsigned count, uint64_t operations, void *(*run)(void *argument))
{
    struct worker *workers = calloc(count, sizeof *workers);
    unsigned started = 0;
    int r = workers ? 0 : DET_ERR_NO_MEMORY;

    while (r == 0 && started < count) {
        struct worker *worker = &workers[started];

        *worker = (struct worker){ .book = book, .number = started, .workers = count };
        worker->operations = operations / count + (started < operations % count);
        if (pthread_create(&worker->thread, NULL, run, worker) == 0)
            started++;
        else
            r = DET_ERR_NO_MEMORY;
    }
    for (unsigned i = 0; i < started; i++) {
        (void)pthread_join(workers[i].thread, NULL);
        r = r < 0 ? r : workers[i].r;
    }
    free(workers);
    return r;
}

int book_fill(struct book *book)
{
    return run_workers(book, FILL_THREADS, book->count, run_filler);
}

int book_block(struct book *book, unsigned senders, uint64_t operations)
{
    return run_workers(book, senders, operations, run_worker);
}

int book_single(struct book *book, uint64_t operations, uint64_t *seed)
{
    int r = 0;

    for (uint64_t i = 0; i < operations && r == 0; i++) {
        struct book_event event = book_entry(i);
        char id[BOOK_ID_MAX];

        book_id(book_next(book, 1, 0, seed), id);
        r = book_send(book->runtime, id, event, NULL);
    }
    return r;
}

/* Senders that do not wait: each submits its next send when the last one is done. */

struct crowd {
    struct book *book;
    unsigned senders;
    bool is_in_turn; /* sends the event to one instance after the other, not entries to random
                      * ones */
    struct book_event event; /* with an entry, unless they are sent in turn */
    pthread_mutex_t mutex;
    pthread_cond_t ended;
    _Atomic uint64_t begun;
    uint64_t operations;
    atomic_int result;
    unsigned running; /* under the mutex */
};

struct sender {
    struct det_send send;
    struct crowd *crowd;
    unsigned number;
    uint64_t seed;
    struct book_event event;
    char id[BOOK_ID_MAX];
};

static void leave(struct crowd *crowd)
{
    (void)pthread_mutex_lock(&crowd->mutex);
    if (--crowd->running == 0)
        (void)pthread_cond_signal(&crowd->ended);
    (void)pthread_mutex_unlock(&crowd->mutex);
}

static void send_next(struct sender *sender)
{
    struct crowd *crowd = sender->crowd;
    uint64_t number = atomic_fetch_add(&crowd->begun, 1);
    int r = 0;

    if (number >= crowd->operations || atomic_load(&crowd->result) < 0) {
        leave(crowd);
        return;
    }
    if (crowd->is_in_turn) {
        book_id((uint32_t)number, sender->id);
    } else {
        sender->event.enter.amount = number % 10000;
        book_id(book_next(crowd->book, crowd->senders, sender->number, &sender->seed), sender->id);
    }
    r = det_runtime_submit(crowd->book->runtime, &sender->send);
    if (r < 0) {
        atomic_store(&crowd->result, r);
        leave(crowd);
    }
}

static void sent(struct det_send *send)
{
    struct sender *sender = send->user;

    if (send->result < 0)
        atomic_store(&sender->crowd->result, send->result);
    send_next(sender);
}

static int run_crowd(struct crowd *crowd)
{
    struct sender *senders = calloc(crowd->senders, sizeof *senders);

    if (!senders)
        return DET_ERR_NO_MEMORY;
    (void)pthread_mutex_init(&crowd->mutex, NULL);
    (void)pthread_cond_init(&crowd->ended, NULL);
    crowd->running = crowd->senders;
    for (unsigned i = 0; i < crowd->senders; i++) {
        senders[i] = (struct sender){ .crowd = crowd, .number = i, .seed = i + 1 };
        senders[i].event = crowd->event;
        senders[i].send = (struct det_send){ .machine = &book_machine,
                                             .instance = senders[i].id,
                                             .event = &senders[i].event,
                                             .done = sent,
                                             .user = &senders[i] };
        send_next(&senders[i]);
    }
    (void)pthread_mutex_lock(&crowd->mutex);
    while (crowd->running > 0)
        (void)pthread_cond_wait(&crowd->ended, &crowd->mutex);
    (void)pthread_mutex_unlock(&crowd->mutex);
    (void)pthread_cond_destroy(&crowd->ended);
    (void)pthread_mutex_destroy(&crowd->mutex);
    free(senders);
    return atomic_load(&crowd->result);
}

int book_submit(struct book *book, unsigned senders, uint64_t operations)
{
    struct crowd crowd = {
        .book = book, .senders = senders, .operations = operations, .event = book_entry(0)
    };

    return run_crowd(&crowd);
}

int book_effects(struct book *book, unsigned senders, uint64_t operations, bool has_answer)
{
    struct crowd crowd = {
        .book = book,
        .senders = senders,
        .operations = operations,
        .event = has_answer ? book_ask(entry_of(0)) : book_notify(entry_of(0)),
    };
    int r = run_crowd(&crowd);

    return r < 0 ? r : det_runtime_settle(book->runtime, DET_MINUTE);
}

static int send_to_all(struct book *book, uint32_t count, struct book_event event)
{
    struct crowd crowd = { .book = book,
                           .senders = WAIT_SENDERS,
                           .operations = count,
                           .is_in_turn = true,
                           .event = event };

    return run_crowd(&crowd);
}

int book_wait_all(struct book *book, uint32_t count)
{
    return send_to_all(book, count, book_wait());
}

int book_lend_all(struct book *book, uint32_t count)
{
    return send_to_all(book, count, book_lend());
}
