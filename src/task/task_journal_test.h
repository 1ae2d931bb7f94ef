/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* task_journal_test.h - a journal in a simulated world: written, read back, replaced. */
#ifndef DET_TASK_JOURNAL_TEST_H
#define DET_TASK_JOURNAL_TEST_H

#include "base/memory.h"
#include "task/bus_test.h"
#include "task/task_journal.h"

#define PATH "var/tasks.journal"

struct content {
    char *data;
    size_t size;
};

static inline struct content load(struct det_world *world)
{
    struct content content;

    assert_int_equal(0, det_file_load(world, NULL, PATH, 4 << 20, &content.data, &content.size));
    return content;
}

static inline void unload(struct content content)
{
    det_free(NULL, content.data, content.size + 1);
}

static inline void store(struct det_world *world, const char *data, size_t size)
{
    struct det_file *file;

    assert_int_equal(0, det_file_open(world, PATH, DET_FILE_WRITE | DET_FILE_CREATE, &file));
    assert_int_equal(0, det_file_truncate(world, file, 0));
    assert_int_equal(0, det_file_write(world, file, 0, data, size));
    det_file_close(world, file);
}

static inline struct det_sim *open_sim(uint64_t seed)
{
    struct det_sim_options options = { .seed = seed };
    struct det_sim *sim = NULL;

    assert_int_equal(0, det_sim_open(&options, &sim, NULL));
    return sim;
}

static inline int append(struct det_task_journal *journal, uint64_t id, uint64_t sequence)
{
    struct det_subscriber subscriber = det_task_journal_subscriber(journal);
    struct det_task_event event = {
        .sequence = sequence,
        .kind = DET_TASK_EVENT_TASK_ADDED,
        .id = id,
        .name = "web",
    };

    return subscriber.on_event(subscriber.user, &event);
}

static inline int turn(struct det_task_journal *journal)
{
    struct det_subscriber subscriber = det_task_journal_subscriber(journal);

    return subscriber.on_turn(subscriber.user);
}

/* Opens, appends so many events, one a turn, and closes. */
static inline void write_journal(struct det_world *world, uint64_t count)
{
    struct det_task_journal *journal;

    assert_int_equal(0, det_task_journal_open(world, PATH, NULL, &journal, NULL));
    for (uint64_t i = 1; i <= count; i++) {
        assert_int_equal(0, append(journal, 5, i));
        assert_int_equal(0, turn(journal));
    }
    det_task_journal_close(journal);
}

static inline int try_open(struct det_world *world, struct det_error *error)
{
    struct det_task_journal *journal = NULL;
    int r;

    r = det_task_journal_open(world, PATH, NULL, &journal, error);
    det_task_journal_close(journal);
    return r;
}

#endif
