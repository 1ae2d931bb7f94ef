/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* long_history_test.c - reading the long history of an instance blocks neither writers nor readers
 * of it; in virtual time, on a real file. */
#include "runtime/runtime_test.h"

/* Several pages of the store. */
#define EVENTS 2000

struct reader {
    struct fixture *f;
    uint64_t seen; /* the sequence of the last row */
    unsigned sends;
};

static struct fixture *file_open(char **ret_folder)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });
    char url[320];

    *ret_folder = det_test_folder();
    snprintf(url, sizeof url, "sqlite:%s/orders.db", *ret_folder);
    det_runtime_close(f->runtime);
    f->runtime = NULL;
    det_store_close(f->store);
    assert_int_equal(
        det_store_open_with(
            url, &(struct det_store_options){ .world = det_sim_world(f->sim) }, &f->store,
            &f->error),
        0);
    fixture_reopen(f, (struct det_runtime_options){ 0 });
    assert_int_equal(start(f, "o-1"), 0);
    for (unsigned i = 0; i < EVENTS; i++)
        assert_int_equal(send_kind(f, "o-1", TOUCH), 0);
    return f;
}

/* A send that waited for the reader would wait for ever: the reader waits for the send. */
static int send_meanwhile(void *context, const struct det_event_record *row)
{
    struct reader *reader = context;

    assert_int_equal(row->sequence, ++reader->seen);
    if (row->sequence % (EVENTS / 4) != 1 || row->sequence > EVENTS)
        return 0;
    assert_int_equal(send_kind(reader->f, "o-1", TOUCH), 0);
    reader->sends++;
    assert_int_equal(get(reader->f, "o-1").sequence, EVENTS + reader->sends);
    return 0;
}

static void sends_succeed_while_the_history_is_read(void **unused)
{
    char *folder;
    struct reader reader = { .f = file_open(&folder) };

    (void)unused;
    assert_int_equal(
        det_runtime_events(
            reader.f->runtime, reader.f->order, "o-1", 0, send_meanwhile, &reader, NULL),
        0);
    assert_int_equal(reader.sends, 4);
    assert_in_range(reader.seen, EVENTS, EVENTS + reader.sends);
    fixture_close(reader.f);
    det_test_folder_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sends_succeed_while_the_history_is_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
