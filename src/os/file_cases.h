/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* file_cases.h - requirements on files and processes in every world. See common_cases.h. */
#ifndef DET_OS_FILE_CASES_H
#define DET_OS_FILE_CASES_H

#include <signal.h>

#include "base/memory.h"
#include "os/common_cases.h"

#define PATH_SIZE 512

/* Writes the path of a file in the folder of the test into `target`, which has PATH_SIZE bytes. */
static inline char *path_to(struct world_fixture *fixture, const char *name, char *target)
{
    (void)snprintf(target, PATH_SIZE, "%s/%s", fixture->folder, name);
    return target;
}

static inline struct det_file *open_file(
    struct world_fixture *fixture, const char *name, unsigned flags)
{
    char path[PATH_SIZE];
    struct det_file *file = NULL;

    assert_int_equal(0, det_file_open(fixture->world, path_to(fixture, name, path), flags, &file));
    return file;
}

static void bytes_that_were_written_are_read(void **state)
{
    struct world_fixture *fixture = *state;
    struct det_world *world = fixture->world;
    struct det_file *file =
        open_file(fixture, "a", DET_FILE_READ | DET_FILE_WRITE | DET_FILE_CREATE);
    char target[16] = { 0 };

    assert_int_equal(0, det_file_size(world, file));
    assert_int_equal(0, det_file_read(world, file, 0, target, sizeof target));
    assert_int_equal(0, det_file_write(world, file, 0, "hello", 5));
    assert_int_equal(0, det_file_write(world, file, 8, "you", 3));
    assert_int_equal(0, det_file_write(world, file, 2, "", 0));
    assert_int_equal(11, det_file_size(world, file));
    assert_int_equal(11, det_file_read(world, file, 0, target, sizeof target));
    assert_memory_equal("hello\0\0\0you", target, 11);
    assert_int_equal(2, det_file_read(world, file, 9, target, sizeof target));
    assert_memory_equal("ou", target, 2);
    assert_int_equal(0, det_file_read(world, file, 100, target, sizeof target));
    assert_int_equal(0, det_file_sync(world, file));
    det_file_close(world, file);
    det_file_close(world, NULL);
}

static void a_truncated_file_grows_with_zeroes(void **state)
{
    struct world_fixture *fixture = *state;
    struct det_world *world = fixture->world;
    struct det_file *file =
        open_file(fixture, "a", DET_FILE_READ | DET_FILE_WRITE | DET_FILE_CREATE);
    char target[16];

    assert_int_equal(0, det_file_write(world, file, 0, "hello", 5));
    assert_int_equal(0, det_file_truncate(world, file, 2));
    assert_int_equal(2, det_file_size(world, file));
    assert_int_equal(0, det_file_truncate(world, file, 4));
    assert_int_equal(4, det_file_read(world, file, 0, target, sizeof target));
    assert_memory_equal("he\0\0", target, 4);
    det_file_close(world, file);
}

static void open_modes_report_missing_and_existing_files(void **state)
{
    struct world_fixture *fixture = *state;
    struct det_world *world = fixture->world;
    char path[PATH_SIZE];
    struct det_file *file;

    path_to(fixture, "a", path);
    assert_int_equal(DET_ERR_NOT_FOUND, det_file_open(world, path, DET_FILE_READ, &file));
    assert_int_equal(DET_ERR_NOT_FOUND, det_file_open(world, "", DET_FILE_READ, &file));
    file = open_file(fixture, "a", DET_FILE_WRITE | DET_FILE_CREATE | DET_FILE_EXCLUSIVE);
    assert_int_equal(0, det_file_write(world, file, 0, "x", 1));
    det_file_close(world, file);
    assert_int_equal(
        DET_ERR_EXISTS,
        det_file_open(world, path, DET_FILE_WRITE | DET_FILE_CREATE | DET_FILE_EXCLUSIVE, &file));
    file = open_file(fixture, "a", DET_FILE_READ | DET_FILE_WRITE | DET_FILE_CREATE);
    assert_int_equal(1, det_file_size(world, file));
    det_file_close(world, file);
}

static void a_file_does_only_what_it_was_opened_for(void **state)
{
    struct world_fixture *fixture = *state;
    struct det_world *world = fixture->world;
    struct det_file *file = open_file(fixture, "a", DET_FILE_WRITE | DET_FILE_CREATE);
    char target[4];

    assert_int_equal(DET_ERR_IO, det_file_read(world, file, 0, target, 4));
    det_file_close(world, file);
    file = open_file(fixture, "a", DET_FILE_READ);
    assert_int_equal(DET_ERR_IO, det_file_write(world, file, 0, "x", 1));
    assert_int_equal(DET_ERR_INVALID, det_file_truncate(world, file, 0));
    det_file_close(world, file);
}

static void offsets_beyond_what_can_be_counted_are_invalid(void **state)
{
    struct world_fixture *fixture = *state;
    struct det_world *world = fixture->world;
    struct det_file *file =
        open_file(fixture, "a", DET_FILE_READ | DET_FILE_WRITE | DET_FILE_CREATE);
    char byte = 0;

    assert_int_equal(DET_ERR_INVALID, det_file_read(world, file, UINT64_MAX, &byte, 1));
    assert_int_equal(DET_ERR_INVALID, det_file_read(world, file, INT64_MAX, &byte, 1));
    assert_int_equal(DET_ERR_INVALID, det_file_write(world, file, UINT64_MAX, &byte, 1));
    assert_int_equal(DET_ERR_INVALID, det_file_write(world, file, INT64_MAX, &byte, 1));
    assert_int_equal(DET_ERR_INVALID, det_file_truncate(world, file, UINT64_MAX));
    assert_int_equal(0, det_file_size(world, file));
    det_file_close(world, file);
}

static void a_renamed_file_takes_the_place_of_the_other(void **state)
{
    struct world_fixture *fixture = *state;
    struct det_world *world = fixture->world;
    char from[PATH_SIZE], to[PATH_SIZE], byte;
    struct det_file *file, *old;

    path_to(fixture, "from", from);
    path_to(fixture, "to", to);
    assert_int_equal(DET_ERR_NOT_FOUND, world->ops->file_rename(world, from, to));
    file = open_file(fixture, "from", DET_FILE_WRITE | DET_FILE_CREATE);
    assert_int_equal(0, det_file_write(world, file, 0, "n", 1));
    det_file_close(world, file);
    file = open_file(fixture, "to", DET_FILE_WRITE | DET_FILE_CREATE);
    assert_int_equal(0, det_file_write(world, file, 0, "o", 1));
    det_file_close(world, file);
    old = open_file(fixture, "to", DET_FILE_READ);
    assert_int_equal(0, world->ops->file_rename(world, from, to));
    assert_int_equal(0, world->ops->file_rename(world, to, to));
    assert_int_equal(DET_ERR_NOT_FOUND, det_file_open(world, from, DET_FILE_READ, &file));
    file = open_file(fixture, "to", DET_FILE_READ);
    assert_int_equal(1, det_file_read(world, file, 0, &byte, 1));
    assert_int_equal('n', byte);
    assert_int_equal(1, det_file_read(world, old, 0, &byte, 1));
    assert_int_equal('o', byte);
    det_file_close(world, old);
    det_file_close(world, file);
}

static void removed_file_stays_readable_while_open(void **state)
{
    struct world_fixture *fixture = *state;
    struct det_world *world = fixture->world;
    char path[PATH_SIZE], byte;
    struct det_file *file =
        open_file(fixture, "a", DET_FILE_READ | DET_FILE_WRITE | DET_FILE_CREATE);
    struct det_file *other;

    path_to(fixture, "a", path);
    assert_int_equal(0, det_file_remove(world, path));
    assert_int_equal(DET_ERR_NOT_FOUND, det_file_remove(world, path));
    assert_int_equal(DET_ERR_NOT_FOUND, det_file_open(world, path, DET_FILE_READ, &other));
    assert_int_equal(0, det_file_write(world, file, 0, "x", 1));
    assert_int_equal(1, det_file_read(world, file, 0, &byte, 1));
    assert_int_equal('x', byte);
    det_file_close(world, file);
}

static void folders_are_made_once_and_are_no_files(void **state)
{
    struct world_fixture *fixture = *state;
    struct det_world *world = fixture->world;
    char path[PATH_SIZE], other[PATH_SIZE];
    struct det_file *file;

    path_to(fixture, "folder", path);
    assert_int_equal(0, world->ops->folder_make(world, path));
    assert_int_equal(DET_ERR_EXISTS, world->ops->folder_make(world, path));
    assert_int_equal(0, det_folder_sync(world, path));
    assert_int_equal(0, det_folder_sync(world, fixture->folder));
    assert_int_equal(DET_ERR_NOT_FOUND, world->ops->folder_make(world, ""));
    assert_int_equal(DET_ERR_IO, det_file_remove(world, path));
    assert_int_equal(DET_ERR_IO, det_file_open(world, path, DET_FILE_WRITE, &file));
    det_file_close(world, open_file(fixture, "a", DET_FILE_WRITE | DET_FILE_CREATE));
    assert_int_equal(
        DET_ERR_IO, world->ops->file_rename(world, path_to(fixture, "a", other), path));
}

static void paths_that_are_empty_or_too_long_are_invalid(void **state)
{
    struct world_fixture *fixture = *state;
    struct det_world *world = fixture->world;
    static char path[DET_PATH_MAX + 1];
    char old[PATH_SIZE];
    struct det_file *file;

    memset(path, 'a', DET_PATH_MAX);
    assert_int_equal(
        DET_ERR_INVALID, det_file_open(world, path, DET_FILE_WRITE | DET_FILE_CREATE, &file));
    assert_int_equal(DET_ERR_INVALID, world->ops->folder_make(world, path));
    assert_int_equal(DET_ERR_INVALID, det_file_replace(world, path, "x", 1));
    assert_int_equal(DET_ERR_INVALID, det_file_replace(world, "", "x", 1));
    det_file_close(world, open_file(fixture, "old", DET_FILE_WRITE | DET_FILE_CREATE));
    path_to(fixture, "old", old);
    assert_int_equal(DET_ERR_INVALID, world->ops->file_rename(world, old, path));
}

static void a_path_knows_its_folder(void **state)
{
    static const struct {
        const char *path, *folder;
    } cases[] = {
        { "a", "." },   { "a/b", "a" },  { "/a", "/" },     { "/a/b", "/a" },
        { "//a", "/" }, { "a//b", "a" }, { "a/b/", "a/b" },
    };
    static char path[DET_PATH_MAX + 8];
    char folder[DET_PATH_MAX];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(0, det_file_folder(cases[i].path, folder));
        assert_string_equal(cases[i].folder, folder);
    }
    assert_int_equal(DET_ERR_INVALID, det_file_folder("", folder));
    memset(path, 'a', DET_PATH_MAX);
    path[DET_PATH_MAX] = '/';
    assert_int_equal(DET_ERR_INVALID, det_file_folder(path, folder));
}

static void load_is(struct world_fixture *fixture, const char *name, const char *expected)
{
    char path[PATH_SIZE], *data;
    size_t size;

    assert_int_equal(
        0, det_file_load(fixture->world, NULL, path_to(fixture, name, path), 100, &data, &size));
    assert_string_equal(expected, data);
    assert_int_equal(strlen(expected), size);
    det_free(NULL, data, size + 1);
}

static void a_replaced_file_has_its_new_content_and_no_leftover(void **state)
{
    struct world_fixture *fixture = *state;
    char path[PATH_SIZE], temporary[PATH_SIZE];
    struct det_file *file;

    path_to(fixture, "a", path);
    path_to(fixture, "a.tmp", temporary);
    file = open_file(fixture, "a.tmp", DET_FILE_WRITE | DET_FILE_CREATE);
    assert_int_equal(0, det_file_write(fixture->world, file, 0, "left from a crash", 17));
    det_file_close(fixture->world, file);
    assert_int_equal(0, det_file_replace(fixture->world, path, "one", 3));
    load_is(fixture, "a", "one");
    assert_int_equal(0, det_file_replace(fixture->world, path, "", 0));
    load_is(fixture, "a", "");
    assert_int_equal(
        DET_ERR_NOT_FOUND, det_file_open(fixture->world, temporary, DET_FILE_READ, &file));
}

static void a_replacement_that_fails_leaves_the_old_file(void **state)
{
    struct world_fixture *fixture = *state;
    char path[PATH_SIZE], temporary[PATH_SIZE];

    path_to(fixture, "a", path);
    assert_int_equal(0, det_file_replace(fixture->world, path, "old", 3));
    assert_int_equal(
        0, fixture->world->ops->folder_make(fixture->world, path_to(fixture, "a.tmp", temporary)));
    assert_int_equal(DET_ERR_IO, det_file_replace(fixture->world, path, "new", 3));
    load_is(fixture, "a", "old");
    path_to(fixture, "b", path);
    assert_int_equal(0, fixture->world->ops->folder_make(fixture->world, path));
    assert_int_equal(DET_ERR_IO, det_file_replace(fixture->world, path, "new", 3));
}

static int load_once(struct det_test_memory *memory, void *argument)
{
    struct world_fixture *fixture = argument;
    char path[PATH_SIZE], *data = NULL;
    size_t size;
    int r;

    r = det_file_load(
        fixture->world, &memory->allocator, path_to(fixture, "a", path), 3, &data, &size);
    if (r < 0) {
        assert_null(data);
        return r;
    }
    assert_string_equal("one", data);
    det_free(&memory->allocator, data, size + 1);
    return 0;
}

static void a_file_is_loaded_up_to_its_limit(void **state)
{
    struct world_fixture *fixture = *state;
    char path[PATH_SIZE], *data;
    size_t size;

    path_to(fixture, "a", path);
    assert_int_equal(DET_ERR_NOT_FOUND, det_file_load(fixture->world, NULL, path, 3, &data, &size));
    assert_int_equal(0, det_file_replace(fixture->world, path, "one", 3));
    assert_int_equal(DET_ERR_LIMIT, det_file_load(fixture->world, NULL, path, 2, &data, &size));
    det_test_each_failure(load_once, fixture);
}

static inline struct det_process *spawn(struct det_world *world, const char *const *argv)
{
    const struct det_process_options options = {
        .argv = argv, .input = -1, .output = -1, .error = -1
    };
    struct det_process *process = NULL;

    assert_int_equal(0, world->ops->process_start(world, &options, &process, NULL));
    return process;
}

static inline struct det_process_end end_of(struct det_world *world, struct det_process *process)
{
    struct det_process_end end;

    assert_int_equal(0, world->ops->process_wait(world, process, DET_NEVER, &end));
    return end;
}

static void a_process_ends_with_its_code(void **state)
{
    struct world_fixture *fixture = *state;
    struct det_world *world = fixture->world;
    struct det_process *yes = spawn(world, (const char *const[]){ "true", NULL });
    struct det_process *no = spawn(world, (const char *const[]){ "false", "really", NULL });

    assert_int_equal(1, end_of(world, no).code);
    assert_int_equal(0, end_of(world, no).signal);
    assert_int_equal(0, end_of(world, yes).code);
    assert_int_equal(0, end_of(world, yes).code);
    assert_int_equal(DET_ERR_NOT_FOUND, world->ops->process_kill(world, yes, SIGTERM));
    world->ops->process_close(world, yes);
    world->ops->process_close(world, no);
}

static void a_killed_process_ends_with_the_signal(void **state)
{
    struct world_fixture *fixture = *state;
    struct det_world *world = fixture->world;
    const int signals[] = { SIGTERM, SIGKILL };

    for (int i = 0; i < 2; i++) {
        struct det_process *process = spawn(world, (const char *const[]){ "sleep", "1000", NULL });
        struct det_process_end end;

        assert_int_equal(
            DET_ERR_TIMEOUT,
            world->ops->process_wait(world, process, monotonic(world) + DET_MILLISECOND, &end));
        assert_int_equal(DET_ERR_TIMEOUT, world->ops->process_wait(world, process, 0, &end));
        assert_int_equal(0, world->ops->process_kill(world, process, 0));
        assert_int_equal(0, world->ops->process_kill(world, process, signals[i]));
        end = end_of(world, process);
        assert_int_equal(-1, end.code);
        assert_int_equal(signals[i], end.signal);
        world->ops->process_close(world, process);
    }
}

static void a_killed_process_can_be_closed_without_a_wait(void **state)
{
    struct world_fixture *fixture = *state;
    struct det_world *world = fixture->world;
    struct det_process *process = spawn(world, (const char *const[]){ "sleep", "1000", NULL });

    assert_int_equal(0, world->ops->process_kill(world, process, SIGKILL));
    world->ops->process_close(world, process);
}

static void missing_program_is_not_found(void **state)
{
    struct world_fixture *fixture = *state;
    const struct det_process_options options = {
        .argv = (const char *const[]){ "no-such-program", NULL },
        .input = -1,
        .output = -1,
        .error = -1,
    };
    struct det_process *process;

    assert_int_equal(
        DET_ERR_NOT_FOUND,
        fixture->world->ops->process_start(fixture->world, &options, &process, NULL));
}

static void a_file_is_locked_by_one_until_it_is_closed(void **state)
{
    struct world_fixture *fixture = *state;
    struct det_world *world = fixture->world;
    unsigned flags = DET_FILE_READ | DET_FILE_WRITE | DET_FILE_CREATE;
    struct det_file *one = open_file(fixture, "lock", flags);
    struct det_file *two = open_file(fixture, "lock", flags);
    struct det_file *other = open_file(fixture, "other", flags);

    assert_int_equal(0, det_file_lock(world, one));
    assert_int_equal(0, det_file_lock(world, one));
    assert_int_equal(DET_ERR_BUSY, det_file_lock(world, two));
    assert_int_equal(0, det_file_lock(world, other));
    det_file_forget(world, one);
    det_file_share(world, one, "nowhere/at/all");
    det_file_close(world, one);
    assert_int_equal(0, det_file_lock(world, two));
    det_file_close(world, two);
    det_file_close(world, other);
    assert_true(det_self_number(world) > 0);
}

static void local_path_is_not_remote(void **state)
{
    struct world_fixture *fixture = *state;
    char path[PATH_SIZE];

    assert_false(det_path_is_remote(fixture->world, path_to(fixture, "a", path)));
    assert_false(det_path_is_remote(fixture->world, "."));
    assert_false(det_path_is_remote(fixture->world, "no/such/place"));
    assert_false(det_path_is_remote(fixture->world, ""));
}

#define FILE_CASES                                                                                \
    WORLD_CASE(bytes_that_were_written_are_read), WORLD_CASE(a_truncated_file_grows_with_zeroes), \
        WORLD_CASE(open_modes_report_missing_and_existing_files),                                 \
        WORLD_CASE(a_file_does_only_what_it_was_opened_for),                                      \
        WORLD_CASE(offsets_beyond_what_can_be_counted_are_invalid),                               \
        WORLD_CASE(a_renamed_file_takes_the_place_of_the_other),                                  \
        WORLD_CASE(removed_file_stays_readable_while_open),                                       \
        WORLD_CASE(folders_are_made_once_and_are_no_files),                                       \
        WORLD_CASE(paths_that_are_empty_or_too_long_are_invalid),                                 \
        WORLD_CASE(a_path_knows_its_folder),                                                      \
        WORLD_CASE(a_replaced_file_has_its_new_content_and_no_leftover),                          \
        WORLD_CASE(a_replacement_that_fails_leaves_the_old_file),                                 \
        WORLD_CASE(a_file_is_loaded_up_to_its_limit),                                             \
        WORLD_CASE(a_file_is_locked_by_one_until_it_is_closed),                                   \
        WORLD_CASE(local_path_is_not_remote)

#define PROCESS_CASES                                                                            \
    WORLD_CASE(a_process_ends_with_its_code), WORLD_CASE(a_killed_process_ends_with_the_signal), \
        WORLD_CASE(a_killed_process_can_be_closed_without_a_wait),                               \
        WORLD_CASE(missing_program_is_not_found)

#endif
