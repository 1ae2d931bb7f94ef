/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* parse_test.h - specs in memory and their findings, for the tests of the reader. */
#ifndef DET_MACHINE_PARSE_TEST_H
#define DET_MACHINE_PARSE_TEST_H

#include "lib/test.h"

#include <detent/tool/spec.h>

#define HEAD  "#define FSM_NAME order\n#define FSM_PREFIX ORDER\n"
#define BASE  "STATE(PENDING, pending, INITIAL)\nSTATE(PAID, paid, FINAL)\nEVENT(PAY, pay)\n"
#define MOVE  "ON(PENDING, PAY, PAID)\n"
#define ORDER HEAD BASE MOVE

/* A file for the reader; an `error` other than 0 replaces its text. */
struct test_file {
    const char *path;
    const char *text;
    int error;
};

/* Files, terminated by one with a NULL path; counts reads and releases. */
struct test_files {
    const struct test_file *files;
    unsigned read_count, release_count;
};

static inline int test_read(void *context, const char *path, const char **ret, size_t *ret_size)
{
    struct test_files *files = context;

    for (const struct test_file *file = files->files; file->path != NULL; file++) {
        if (strcmp(file->path, path) != 0)
            continue;
        if (file->error != 0)
            return file->error;
        files->read_count++;
        *ret = file->text;
        *ret_size = strlen(file->text);
        return 0;
    }
    return DET_ERR_NOT_FOUND;
}

static inline void test_release(void *context, const char *data, size_t size)
{
    struct test_files *files = context;

    assert_int_equal(strlen(data), size);
    files->release_count++;
}

static inline struct det_spec *test_spec_of(const char *text, const struct test_file *list)
{
    struct test_files files = { .files = list };
    struct det_spec_files callbacks = { test_read, test_release, &files };
    struct det_spec_options options = { .files = list != NULL ? &callbacks : NULL };
    struct det_spec *spec;

    assert_int_equal(det_spec_read("specs/order.fsm", text, strlen(text), &options, &spec), 0);
    assert_int_equal(files.read_count, files.release_count);
    return spec;
}

static inline struct det_spec *test_spec(const char *text)
{
    return test_spec_of(text, NULL);
}

static inline void test_print_findings(const struct det_spec *spec)
{
    const struct det_diagnostics *found = det_spec_diagnostics(spec);

    for (size_t i = 0; i < found->count; i++)
        print_message(
            "%s:%u:%u: %s: %s\n", found->items[i].place.file, found->items[i].place.line,
            found->items[i].place.column, det_rule_id(found->items[i].rule), found->items[i].text);
}

/* Returns the finding of this rule with this part in its sentence; fails the test without one. */
static inline const struct det_diagnostic *test_finding(
    const struct det_spec *spec, enum det_rule rule, const char *part)
{
    static const struct det_diagnostic none = { .text = "" };
    const struct det_diagnostics *found = det_spec_diagnostics(spec);

    for (size_t i = 0; i < found->count; i++) {
        if (found->items[i].rule == rule && strstr(found->items[i].text, part) != NULL)
            return &found->items[i];
    }
    test_print_findings(spec);
    fail_msg("no finding of %s says %s", det_rule_id(rule), part);
    return &none;
}

/* Expects one finding of the spec, by one rule at one place. */
static inline void test_only(
    const char *text, const struct test_file *list, enum det_rule rule, const char *place,
    const char *part)
{
    struct det_spec *spec = test_spec_of(text, list);
    const struct det_diagnostic *found = test_finding(spec, rule, part);
    char reported[128];

    (void)snprintf(
        reported, sizeof reported, "%s:%u:%u", found->place.file, found->place.line,
        found->place.column);
    assert_string_equal(reported, place);
    assert_null(det_spec_machine(spec));
    if (det_spec_diagnostics(spec)->error_count != 1)
        test_print_findings(spec);
    assert_int_equal(det_spec_diagnostics(spec)->error_count, 1);
    det_spec_close(spec);
}

static inline struct det_machine *test_machine(struct det_spec *spec)
{
    if (det_spec_machine(spec) == NULL)
        test_print_findings(spec);
    assert_non_null(det_spec_machine(spec));
    return det_spec_machine(spec);
}

#endif
