/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* log_file_test.c - output in files: whole lines, rotation by size and by age, a disk that is
 * full. */
#include "lib/test.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/log_file.h"
#include "os/os.h"

static char *folder, path[4096], reported[8192];
static int reported_count;

static int setup(void **state)
{
    (void)state;
    folder = det_test_folder();
    (void)snprintf(path, sizeof path, "%s/web.log", folder);
    reported_count = 0;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    det_test_folder_remove(folder);
    return 0;
}

static void report(void *user, const char *text)
{
    (void)user;
    (void)snprintf(reported, sizeof reported, "%s", text);
    reported_count++;
}

static struct log_file *open_log(uint64_t max_size, uint32_t keep, det_time max_age)
{
    struct log_file *file = log_file_new(
        NULL, det_world_real(), &(struct config_log_file){ path, max_size, keep, max_age }, report,
        NULL);

    assert_non_null(file);
    return file;
}

static void print(struct log_file *file, const char *text, det_time at)
{
    log_file_line(file, &(struct det_line){ .text = text, .size = strlen(text) }, at);
}

static char *read_log(const char *suffix)
{
    char name[4200];

    (void)snprintf(name, sizeof name, "%s%s", path, suffix);
    return det_test_read_file(name, NULL);
}

static bool is_there(const char *suffix)
{
    char name[4200];

    (void)snprintf(name, sizeof name, "%s%s", path, suffix);
    return access(name, F_OK) == 0;
}

static void lines_have_time_and_stream(void **state)
{
    struct log_file *file = open_log(1 << 20, 2, DET_NEVER);
    struct stat status;
    char *text;

    (void)state;
    print(file, "hello", 1500 * DET_MILLISECOND);
    log_file_line(
        file,
        &(struct det_line){ .text = "oh", .size = 2, .stream = DET_STREAM_ERROR, .dropped = 7 },
        2 * DET_SECOND);
    log_file_line(file, &(struct det_line){ .text = "", .is_cut = true, .dropped = 9 }, 0);
    log_file_close(file);
    text = read_log("");
    assert_string_equal(
        text, "1970-01-01T00:00:01.500Z | hello\n"
              "1970-01-01T00:00:02.000Z = 7 bytes of output were dropped: it wrote too fast\n"
              "1970-01-01T00:00:02.000Z ! oh\n"
              "1970-01-01T00:00:00.000Z = 9 bytes of output were dropped: it wrote too fast\n");
    free(text);
    assert_int_equal(0, stat(path, &status));
    assert_int_equal(0600, status.st_mode & 0777);
    assert_int_equal(0, reported_count);
}

static void log_is_rotated_by_size_in_whole_lines(void **state)
{
    struct log_file *file = open_log(100, 2, DET_NEVER);
    char line[16], *text;

    (void)state;
    for (int i = 0; i < 20; i++) {
        (void)snprintf(line, sizeof line, "line %02d", i);
        print(file, line, 0);
        if (i % 3 == 0)
            log_file_flush(file);
    }
    log_file_close(file);
    /* 34 bytes each: two to a file. */
    text = read_log("");
    assert_string_equal(
        text, "1970-01-01T00:00:00.000Z | line 18\n1970-01-01T00:00:00.000Z | line 19\n");
    free(text);
    text = read_log(".2");
    assert_string_equal(
        text, "1970-01-01T00:00:00.000Z | line 14\n1970-01-01T00:00:00.000Z | line 15\n");
    free(text);
    assert_true(is_there(".1"));
    assert_false(is_there(".3"));
    /* An existing file is continued. */
    file = open_log(100, 0, DET_NEVER);
    print(file, "line 20", 0);
    log_file_close(file);
    text = read_log("");
    assert_string_equal(text, "1970-01-01T00:00:00.000Z | line 20\n");
    free(text);
}

static void log_is_rotated_by_age(void **state)
{
    struct log_file *file = open_log(1 << 20, 5, DET_HOUR);
    det_time now = det_world_now(det_world_real(), DET_CLOCK_WALL);

    (void)state;
    print(file, "one", now);
    print(file, "two", now + 30 * DET_MINUTE);
    log_file_flush(file);
    assert_false(is_there(".1"));
    print(file, "three", now + DET_HOUR);
    log_file_flush(file);
    assert_true(is_there(".1"));
    assert_false(is_there(".2"));
    log_file_close(file);
    /* Also that of an earlier run. */
    file = open_log(1 << 20, 5, DET_HOUR);
    print(file, "four", now + 3 * DET_HOUR);
    log_file_close(file);
    assert_true(is_there(".2"));
}

static void full_disk_is_reported_once(void **state)
{
    struct log_file *file;

    (void)state;
    assert_int_equal(0, mkdir(path, 0700));
    file = open_log(1 << 20, 5, DET_NEVER);
    for (int i = 0; i < 5; i++) {
        print(file, "lost", 0);
        log_file_flush(file);
    }
    assert_int_equal(1, reported_count);
    assert_non_null(strstr(reported, "1 line was not written"));
    log_file_close(file);
    assert_int_equal(2, reported_count);
    assert_non_null(strstr(reported, "Is a directory; 4 lines were not written"));
}

/* The file may grow to this size. */
static void limit_files(rlim_t size)
{
    struct rlimit limit;

    assert_int_equal(0, getrlimit(RLIMIT_FSIZE, &limit));
    limit.rlim_cur = size;
    assert_int_equal(0, setrlimit(RLIMIT_FSIZE, &limit));
}

/* A line has 33 bytes here: the disk has room for two and a half of three. */
static void full_disk_leaves_whole_lines_and_counts_the_lost_ones(void **state)
{
    struct log_file *file = open_log(1 << 20, 5, DET_NEVER);
    void (*before)(int) = signal(SIGXFSZ, SIG_IGN);
    char *text;

    (void)state;
    for (int i = 0; i < 3; i++)
        print(file, "early", 0);
    limit_files(2 * 33 + 16);
    log_file_flush(file);
    limit_files(RLIM_INFINITY);
    assert_int_equal(1, reported_count);
    assert_non_null(strstr(reported, "File too large; 1 line was not written"));
    print(file, "later", 0);
    log_file_close(file);
    text = read_log("");
    assert_string_equal(
        text, "1970-01-01T00:00:00.000Z | early\n1970-01-01T00:00:00.000Z | early\n"
              "1970-01-01T00:00:00.000Z | later\n");
    free(text);
    assert_int_equal(1, reported_count);
    (void)signal(SIGXFSZ, before);
}

static void torn_last_line_is_terminated_at_open(void **state)
{
    struct log_file *file;
    char *text;

    (void)state;
    det_test_write_file(path, "whole\nhal", 9);
    file = open_log(1 << 20, 5, DET_NEVER);
    print(file, "next", 0);
    log_file_close(file);
    text = read_log("");
    assert_string_equal(text, "whole\nhal\n1970-01-01T00:00:00.000Z | next\n");
    free(text);
}

static void the_longest_path_is_rotated_to_its_own_names(void **state)
{
    struct log_file *file;
    size_t used = strlen(folder);
    char name[4200];

    (void)state;
    (void)snprintf(path, sizeof path, "%s", folder);
    while (used < LOG_FILE_PATH_MAX - 200) {
        used += (size_t)snprintf(path + used, sizeof path - used, "/%0150d", 0);
        assert_int_equal(0, mkdir(path, 0700));
    }
    (void)snprintf(
        path + used, sizeof path - used, "/%0*d", (int)(LOG_FILE_PATH_MAX - used - 1), 0);
    assert_int_equal(LOG_FILE_PATH_MAX, strlen(path));
    file = open_log(40, 1000, DET_NEVER);
    (void)snprintf(name, sizeof name, "%s.999", path);
    det_test_write_file(name, "x\n", 2);
    print(file, "one", 0);
    print(file, "two", 0);
    log_file_close(file);
    assert_true(is_there(""));
    assert_true(is_there(".1"));
    assert_true(is_there(".1000"));
    assert_int_equal(0, reported_count);
}

/* The lines before are written, and the reason is the one it was. */
static void line_lost_to_allocation_failure_is_reported_at_once(void **state)
{
    struct det_test_memory memory;
    struct log_file *file;
    char *text, *large = calloc(1, 4097);

    (void)state;
    assert_non_null(large);
    memset(large, 'x', 4096);
    det_test_memory_init(&memory);
    file = log_file_new(
        &memory.allocator, det_world_real(),
        &(struct config_log_file){ path, 1 << 20, 5, DET_NEVER }, report, NULL);
    assert_non_null(file);
    print(file, "one", 0);
    (void)det_test_memory_fail(&memory, 1, true);
    print(file, large, 0);
    assert_int_equal(1, reported_count);
    assert_non_null(strstr(reported, "Cannot allocate memory; 1 line was not written"));
    print(file, large, 0);
    (void)det_test_memory_fail(&memory, 0, false);
    print(file, "two", 0);
    log_file_close(file);
    assert_int_equal(2, reported_count);
    assert_non_null(strstr(reported, "Cannot allocate memory; 1 line was not written"));
    text = read_log("");
    assert_string_equal(text, "1970-01-01T00:00:00.000Z | one\n1970-01-01T00:00:00.000Z | two\n");
    free(text);
    free(large);
    det_test_memory_deinit(&memory);
}

static void a_link_is_not_followed(void **state)
{
    struct log_file *file;
    char target[4200];

    (void)state;
    (void)snprintf(target, sizeof target, "%s/target", folder);
    assert_int_equal(0, symlink(target, path));
    file = open_log(1 << 20, 5, DET_NEVER);
    print(file, "x", 0);
    log_file_close(file);
    assert_int_equal(-1, access(target, F_OK));
    assert_true(reported_count > 0);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(lines_have_time_and_stream),
        CASE(log_is_rotated_by_size_in_whole_lines),
        CASE(log_is_rotated_by_age),
        CASE(full_disk_is_reported_once),
        CASE(a_link_is_not_followed),
        CASE(full_disk_leaves_whole_lines_and_counts_the_lost_ones),
        CASE(torn_last_line_is_terminated_at_open),
        CASE(the_longest_path_is_rotated_to_its_own_names),
        CASE(line_lost_to_allocation_failure_is_reported_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
