/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* folder_test.h - a run of the program in a separate folder, for tests of code that reads and
 * writes files. */
#ifndef DET_TERMINAL_FOLDER_TEST_H
#define DET_TERMINAL_FOLDER_TEST_H

#include "lib/test.h"

#include "os/os.h"
#include "terminal/input.h"

/* A run in a separate folder; its messages are kept. */
struct fixture {
    struct cli cli;
    char *folder;
    char path[512];
    char *printed;
    size_t printed_size;
};

static inline int open_fixture(void **state)
{
    static struct fixture fixture;

    fixture = (struct fixture){ .cli = { .world = det_world_real() } };
    fixture.folder = det_test_folder();
    fixture.cli.in = fopen("/dev/null", "r");
    fixture.cli.out = fopen("/dev/null", "w");
    fixture.cli.err = open_memstream(&fixture.printed, &fixture.printed_size);
    assert_non_null(fixture.cli.in);
    assert_non_null(fixture.cli.out);
    assert_non_null(fixture.cli.err);
    *state = &fixture;
    return 0;
}

static inline int close_fixture(void **state)
{
    struct fixture *fixture = *state;

    fclose(fixture->cli.in);
    fclose(fixture->cli.out);
    fclose(fixture->cli.err);
    free(fixture->printed);
    det_test_folder_remove(fixture->folder);
    return 0;
}

/* Returns the path of a file in the fixture's folder; valid until the next call. */
static inline const char *path_of(struct fixture *fixture, const char *name)
{
    snprintf(fixture->path, sizeof fixture->path, "%s/%s", fixture->folder, name);
    return fixture->path;
}

static inline void put_text(struct fixture *fixture, const char *name, const char *text)
{
    det_test_write_file(path_of(fixture, name), text, strlen(text));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fixture, close_fixture)

#endif
