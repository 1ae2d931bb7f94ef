/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* task_journal_test.c - the lines of a journal: written, torn, damaged, not a journal at all. */
#include "task/task_journal_test.h"

static void journal_has_a_line_for_each_event_and_opening(void **state)
{
    static const char expected[] =
        "{\"journal\":1,\"at\":\"2026-01-01T00:00:00Z\",\"synced\":0,\"crc\":\"2498b927\"}\n"
        "{\"sequence\":1,\"at\":\"1970-01-01T00:00:00Z\",\"kind\":\"task_added\",\"id\":5,"
        "\"name\":\"web\",\"synced\":70,\"crc\":\"42bc96a5\"}\n"
        "{\"journal\":1,\"at\":\"2026-01-01T00:00:00Z\",\"synced\":182,\"crc\":\"97e3aa0b\"}\n";
    struct det_sim *sim = open_sim(1);
    struct content content;

    (void)state;
    write_journal(det_sim_world(sim), 1);
    write_journal(det_sim_world(sim), 0);
    content = load(det_sim_world(sim));
    assert_string_equal(expected, content.data);
    unload(content);
    det_sim_close(sim);
}

static void a_turn_without_events_does_not_sync(void **state)
{
    struct det_sim *sim = open_sim(1);
    struct det_sim_disk_faults faults = { .sync_error = 1000000 };
    struct det_task_journal *journal;

    (void)state;
    assert_int_equal(0, det_task_journal_open(det_sim_world(sim), PATH, NULL, &journal, NULL));
    det_sim_set_disk_faults(sim, &faults);
    assert_int_equal(0, turn(journal));
    assert_int_equal(0, append(journal, 1, 1));
    assert_int_equal(DET_ERR_IO, turn(journal));
    det_task_journal_close(journal);
    det_sim_close(sim);
}

static void more_than_the_buffer_holds_is_written_before_the_turn(void **state)
{
    struct det_sim *sim = open_sim(1);
    struct det_task_journal *journal;
    struct content content;
    unsigned lines = 0;

    (void)state;
    assert_int_equal(0, det_task_journal_open(det_sim_world(sim), PATH, NULL, &journal, NULL));
    for (uint64_t i = 1; i <= 3000; i++)
        assert_int_equal(0, append(journal, 1, i));
    assert_int_equal(0, turn(journal));
    det_task_journal_close(journal);
    assert_int_equal(0, try_open(det_sim_world(sim), NULL));
    content = load(det_sim_world(sim));
    for (size_t i = 0; i < content.size; i++)
        lines += content.data[i] == '\n';
    assert_int_equal(3002, lines);
    unload(content);
    det_sim_close(sim);
}

/* Wherever the last turn is torn, the rest is there. */
static void a_torn_tail_is_cut_off(void **state)
{
    struct det_sim *sim = open_sim(1);
    struct det_world *world = det_sim_world(sim);
    struct content whole, now;
    size_t last;

    (void)state;
    write_journal(world, 4);
    whole = load(world);
    last = whole.size - 1;
    while (whole.data[last - 1] != '\n')
        last--;
    for (size_t size = last; size < whole.size; size++) {
        store(world, whole.data, size);
        assert_int_equal(0, try_open(world, NULL));
        now = load(world);
        assert_memory_equal(whole.data, now.data, last);
        assert_memory_equal("{\"journal\":1,", now.data + last, 13);
        unload(now);
    }
    unload(whole);
    det_sim_close(sim);
}

/* A tail of nothing but zeroes or of noise, longer than a line, and than the buffer. */
static void a_long_torn_tail_is_cut_off(void **state)
{
    static const size_t sizes[] = { 1, 511, 4095, 4096, 4097, 65536, 200001 };
    struct det_sim *sim = open_sim(1);
    struct det_world *world = det_sim_world(sim);
    struct content whole, now;
    char *data;

    (void)state;
    write_journal(world, 4);
    whole = load(world);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (int fill = 0; fill < 2; fill++) {
            data = malloc(whole.size + sizes[i]);
            assert_non_null(data);
            memcpy(data, whole.data, whole.size);
            memset(data + whole.size, fill ? 'x' : 0, sizes[i]);
            store(world, data, whole.size + sizes[i]);
            free(data);
            assert_int_equal(0, try_open(world, NULL));
            now = load(world);
            assert_memory_equal(whole.data, now.data, whole.size);
            assert_memory_equal("{\"journal\":1,", now.data + whole.size, 13);
            unload(now);
        }
    }
    unload(whole);
    det_sim_close(sim);
}

/* One bit of each byte in turn: found if a later line exists. */
static void damage_in_the_middle_is_refused_with_its_place(void **state)
{
    struct det_sim *sim = open_sim(1);
    struct det_world *world = det_sim_world(sim);
    struct det_error error;
    struct content whole;
    size_t begin = 0, line = 1, last;
    char place[64];

    (void)state;
    write_journal(world, 3);
    whole = load(world);
    last = whole.size - 1;
    while (whole.data[last - 1] != '\n')
        last--;
    for (size_t i = 0; i < last; i++) {
        bool is_newline = whole.data[i] == '\n';

        whole.data[i] ^= 1;
        store(world, whole.data, whole.size);
        if (begin == 0) {
            /* Also in the first line, which then no longer opens the journal. */
            assert_true(try_open(world, &error) < 0);
        } else {
            assert_int_equal(DET_ERR_CORRUPT, try_open(world, &error));
            snprintf(place, sizeof place, "line %zu at byte %zu is damaged", line, begin);
            assert_non_null(strstr(error.text, place));
            assert_int_equal(begin, error.offset);
        }
        whole.data[i] ^= 1;
        if (is_newline) {
            begin = i + 1;
            line++;
        }
    }
    unload(whole);
    det_sim_close(sim);
}

static void a_file_that_is_no_journal_is_not_touched(void **state)
{
    static const struct {
        const char *text;
        int error;
        const char *words;
    } cases[] = {
        { "hello\n", DET_ERR_MALFORMED, "var/tasks.journal: this is not a journal of tasks" },
        { "{\"sequence\":1,\"synced\":0,\"crc\":\"########\"}\n", DET_ERR_MALFORMED,
          "this is not a journal of tasks" },
        { "{\"journal\":2,\"synced\":0,\"crc\":\"########\"}\n", DET_ERR_VERSION,
          "a journal of format 2; this program supports 1" },
        { "{\"journal\":1,\"synced\":9,\"crc\":\"########\"}\n", DET_ERR_MALFORMED,
          "line 1 records that later bytes were synced" },
        { "{\"journal\":1,\"crc\":\"########\"}\n{\"sequence\":1,\"synced\":9,"
          "\"crc\":\"########\"}\n",
          DET_ERR_CORRUPT, "line 1 at byte 0 is damaged, and line 2 records" },
    };
    struct det_sim *sim = open_sim(1);
    struct det_world *world = det_sim_world(sim);

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct det_error error;
        struct content content;
        char text[256], *crc, digits[9];

        snprintf(text, sizeof text, "%s", cases[i].text);
        while ((crc = strstr(text, "########"))) {
            char *line = crc;

            while (line > text && line[-1] != '\n')
                line--;
            snprintf(
                digits, sizeof digits, "%08x",
                det_task_journal_crc(line, (size_t)(crc - line) - strlen(",\"crc\":\"")));
            memcpy(crc, digits, 8);
        }
        store(world, text, strlen(text));
        assert_int_equal(cases[i].error, try_open(world, &error));
        assert_non_null(strstr(error.text, cases[i].words));
        content = load(world);
        assert_string_equal(text, content.data);
        unload(content);
    }
    det_sim_close(sim);
}

/* The opening itself is torn: the file begins again. */
static void a_torn_opening_is_written_again(void **state)
{
    struct det_sim *sim = open_sim(1);
    struct det_world *world = det_sim_world(sim);
    struct content whole, now;

    (void)state;
    write_journal(world, 0);
    whole = load(world);
    for (size_t size = 0; size < whole.size; size++) {
        char zeroes[512] = { 0 };

        store(world, whole.data, size);
        assert_int_equal(0, try_open(world, NULL));
        now = load(world);
        assert_string_equal(whole.data, now.data);
        unload(now);
        store(world, zeroes, size);
        assert_int_equal(0, try_open(world, NULL));
    }
    unload(whole);
    det_sim_close(sim);
}

/* The n-th operation on files fails; all others are those below. */
static const struct det_world_ops *ops_below;
static unsigned operations, fail_at;

static bool fails(void)
{
    return ++operations == fail_at;
}

static int failing_open(
    struct det_world *world, const char *path, unsigned flags, struct det_file **ret)
{
    return fails() ? DET_ERR_IO : ops_below->file_open(world, path, flags, ret);
}

static int64_t failing_read(
    struct det_world *world, struct det_file *file, uint64_t offset, void *target, size_t size)
{
    return fails() ? DET_ERR_IO : ops_below->file_read(world, file, offset, target, size);
}

static int failing_write(
    struct det_world *world, struct det_file *file, uint64_t offset, const void *data, size_t size)
{
    return fails() ? DET_ERR_IO : ops_below->file_write(world, file, offset, data, size);
}

static int failing_sync(struct det_world *world, struct det_file *file)
{
    return fails() ? DET_ERR_IO : ops_below->file_sync(world, file);
}

static int failing_truncate(struct det_world *world, struct det_file *file, uint64_t size)
{
    return fails() ? DET_ERR_IO : ops_below->file_truncate(world, file, size);
}

static int64_t failing_size(struct det_world *world, struct det_file *file)
{
    return fails() ? DET_ERR_IO : ops_below->file_size(world, file);
}

static int failing_remove(struct det_world *world, const char *path)
{
    return fails() ? DET_ERR_IO : ops_below->file_remove(world, path);
}

static int failing_folder(struct det_world *world, const char *path)
{
    return fails() ? DET_ERR_IO : ops_below->folder_sync(world, path);
}

static struct det_world_ops failing_ops(struct det_world *world)
{
    struct det_world_ops ops = *world->ops;

    ops_below = world->ops;
    ops.file_open = failing_open;
    ops.file_read = failing_read;
    ops.file_write = failing_write;
    ops.file_sync = failing_sync;
    ops.file_truncate = failing_truncate;
    ops.file_size = failing_size;
    ops.file_remove = failing_remove;
    ops.folder_sync = failing_folder;
    return ops;
}

/* Whatever fails: the opening says so, and the next one finds all of it. */
static void an_opening_may_fail_at_each_operation(void **state)
{
    static const char *const tails[] = { NULL, "", "torn" };
    unsigned failures = 0;

    (void)state;
    for (size_t i = 0; i < sizeof tails / sizeof tails[0]; i++) {
        int r = DET_ERR_IO;

        for (fail_at = 1; r < 0; fail_at++) {
            struct det_sim *sim = open_sim(1);
            struct det_world *world = det_sim_world(sim);
            struct det_world_ops ops = failing_ops(world);
            struct content content = { NULL, 0 };
            struct det_error error;

            if (tails[i]) {
                write_journal(world, 3);
                content = load(world);
                memcpy(content.data + content.size - 5, tails[i], strlen(tails[i]));
                store(world, content.data, content.size);
            }
            operations = 0;
            world->ops = &ops;
            r = try_open(world, &error);
            world->ops = ops_below;
            assert_true(r == 0 || r == DET_ERR_IO);
            failures += r < 0;
            if (r < 0)
                assert_non_null(strstr(error.text, "input or output failed"));
            assert_int_equal(0, try_open(world, NULL));
            if (tails[i])
                unload(content);
            det_sim_close(sim);
        }
    }
    assert_true(failures > 20);
}

static int open_and_append(struct det_test_memory *memory, void *argument)
{
    struct det_sim *sim = argument;
    struct det_task_journal *journal = NULL;
    struct det_error error;
    int r;

    r = det_task_journal_open(det_sim_world(sim), PATH, &memory->allocator, &journal, &error);
    if (r == 0) {
        uint64_t calls = memory->calls;

        assert_int_equal(0, append(journal, 1, 1));
        assert_int_equal(0, turn(journal));
        assert_int_equal(calls, memory->calls);
    } else {
        assert_string_equal("out of memory for a journal", error.text);
    }
    det_task_journal_close(journal);
    return r;
}

static void journal_open_survives_every_failed_allocation(void **state)
{
    struct det_sim *sim = open_sim(1);

    (void)state;
    det_test_each_failure(open_and_append, sim);
    det_sim_close(sim);
}

static void journal_on_a_real_disk_is_appended_after_a_reopen(void **state)
{
    char *folder = det_test_folder(), path[512];
    struct det_task_journal *journal;
    struct det_error error;

    (void)state;
    snprintf(path, sizeof path, "%s/journal", folder);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(0, det_task_journal_open(NULL, path, NULL, &journal, NULL));
        assert_int_equal(0, append(journal, 1, 1));
        assert_int_equal(0, turn(journal));
        det_task_journal_close(journal);
    }
    snprintf(path, sizeof path, "%s/none/journal", folder);
    assert_int_equal(DET_ERR_NOT_FOUND, det_task_journal_open(NULL, path, NULL, &journal, &error));
    assert_non_null(strstr(error.text, "/none/journal: not found"));
    det_test_folder_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(journal_has_a_line_for_each_event_and_opening),
        cmocka_unit_test(a_turn_without_events_does_not_sync),
        cmocka_unit_test(more_than_the_buffer_holds_is_written_before_the_turn),
        cmocka_unit_test(a_torn_tail_is_cut_off),
        cmocka_unit_test(a_long_torn_tail_is_cut_off),
        cmocka_unit_test(damage_in_the_middle_is_refused_with_its_place),
        cmocka_unit_test(a_file_that_is_no_journal_is_not_touched),
        cmocka_unit_test(a_torn_opening_is_written_again),
        cmocka_unit_test(an_opening_may_fail_at_each_operation),
        cmocka_unit_test(journal_open_survives_every_failed_allocation),
        cmocka_unit_test(journal_on_a_real_disk_is_appended_after_a_reopen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
