/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* corpus_test.c - every spec under tests/corpus has the findings that it declares.
 *
 *     good/<name>.fsm   a machine without errors and warnings, already formatted
 *     bad/<name>.fsm    first line: expect: rule | words of the compilers | part of our sentence;
 *                       the finding is on the line with the comment "here", if any
 *     text/<name>.fsm   text/<name>.expect: rule | [file:]line:column | part of our sentence */
#include "lib/test.h"

#include <dirent.h>

#include <detent/tool/spec.h>

#define CORPUS    DET_SOURCE_DIR "/tests/corpus/"
#define PATH_SIZE 1024

/* The expected finding of a spec. Line 0: any. */
struct expectation {
    char rule[64];
    char file[PATH_SIZE];
    unsigned line, column;
    char part[256];
};

typedef void check_fn(const char *path, const char *text, size_t size);

static int read_file(void *context, const char *path, const char **ret, size_t *ret_size)
{
    FILE *file = fopen(path, "rb");

    (void)context;
    if (file == NULL)
        return DET_ERR_NOT_FOUND;
    (void)fclose(file);
    *ret = det_test_read_file(path, ret_size);
    return 0;
}

static void release_file(void *context, const char *data, size_t size)
{
    char *bytes;

    (void)context;
    (void)size;
    memcpy(&bytes, &data, sizeof bytes);
    free(bytes);
}

static struct det_spec *read_spec(const char *path, const char *text, size_t size)
{
    static const struct det_spec_files known = { read_file, release_file, NULL };
    struct det_spec_options options = { .files = &known };
    struct det_spec *spec;

    assert_int_equal(det_spec_read(path, text, size, &options, &spec), 0);
    return spec;
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);

    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

static void check_file(const char *folder, const char *name, check_fn *check)
{
    char path[PATH_SIZE];
    size_t size;
    char *text;

    assert_true((size_t)snprintf(path, sizeof path, "%s/%s", folder, name) < sizeof path);
    text = det_test_read_file(path, &size);
    check(path, text, size);
    free(text);
}

static void check_folder(const char *name, size_t least, check_fn *check)
{
    char folder[PATH_SIZE];
    struct dirent **entries;
    size_t count = 0;
    int found;

    (void)snprintf(folder, sizeof folder, "%s%s", CORPUS, name);
    found = scandir(folder, &entries, NULL, alphasort);
    assert_true(found > 0);
    for (int i = 0; i < found; i++) {
        if (ends_with(entries[i]->d_name, ".fsm")) {
            check_file(folder, entries[i]->d_name, check);
            count++;
        }
        free(entries[i]);
    }
    free((void *)entries);
    assert_true(count >= least);
}

static bool is_expected(const struct expectation *expected, const struct det_diagnostic *found)
{
    return strcmp(det_rule_id(found->rule), expected->rule) == 0 &&
           strstr(found->text, expected->part) != NULL &&
           (expected->line == 0 || found->place.line == expected->line) &&
           (expected->column == 0 || found->place.column == expected->column) &&
           (expected->line == 0 || strcmp(found->place.file, expected->file) == 0);
}

static void check_findings(const struct det_spec *spec, const struct expectation *expected)
{
    const struct det_diagnostics *found = det_spec_diagnostics(spec);

    for (size_t i = 0; i < found->count; i++) {
        if (is_expected(expected, &found->items[i]))
            return;
    }
    for (size_t i = 0; i < found->count; i++)
        print_message(
            "%s:%u:%u: %s: %s\n", found->items[i].place.file, found->items[i].place.line,
            found->items[i].place.column, det_rule_id(found->items[i].rule), found->items[i].text);
    fail_msg(
        "%s:%u:%u does not say %s: %s", expected->file, expected->line, expected->column,
        expected->rule, expected->part);
}

/* Copies the part of `text` between two marks, without the blanks around it. */
static void copy_between(
    const char *text, const char *from, const char *to, char *target, size_t capacity)
{
    const char *start = strstr(text, from), *end;
    size_t size;

    assert_non_null(start);
    start += strlen(from);
    end = strstr(start, to);
    assert_non_null(end);
    while (*start == ' ')
        start++;
    while (end > start && end[-1] == ' ')
        end--;
    size = (size_t)(end - start);
    assert_true(size < capacity);
    memcpy(target, start, size);
    target[size] = '\0';
}

static unsigned line_of(const char *text, const char *mark)
{
    const char *at = strstr(text, mark);
    unsigned line = at != NULL ? 1 : 0;

    for (; at != NULL && at > text; at--)
        line += at[-1] == '\n';
    return line;
}

static void check_good(const char *path, const char *text, size_t size)
{
    struct det_spec *spec = read_spec(path, text, size);
    const struct det_diagnostics *found = det_spec_diagnostics(spec);
    char *formatted = malloc(size + 2);

    if (found->error_count + found->warning_count > 0)
        fail_msg(
            "%s:%u: %s", found->items[0].place.file, found->items[0].place.line,
            found->items[0].text);
    assert_non_null(det_spec_machine(spec));
    assert_non_null(formatted);
    assert_int_equal(det_spec_format(text, size, formatted, size + 2, NULL), size);
    assert_string_equal(formatted, text);
    free(formatted);
    det_spec_close(spec);
}

static void check_bad(const char *path, const char *text, size_t size)
{
    struct expectation expected = { .column = 0 };
    struct det_spec *spec = read_spec(path, text, size);
    const char *sentence;

    copy_between(text, "/* expect:", "|", expected.rule, sizeof expected.rule);
    sentence = strchr(strchr(text, '|') + 1, '|');
    assert_non_null(sentence);
    copy_between(sentence, "|", "*/", expected.part, sizeof expected.part);
    (void)snprintf(expected.file, sizeof expected.file, "%s", path);
    expected.line = line_of(text, "/* here */");
    assert_null(det_spec_machine(spec));
    assert_true(det_spec_diagnostics(spec)->error_count > 0);
    check_findings(spec, &expected);
    det_spec_close(spec);
}

/* "7:24" or "parts/x.fsm:7:24". */
static void read_place(const char *path, const char *text, struct expectation *expected)
{
    const char *last = strrchr(text, ':'), *before = last;
    size_t folder = (size_t)(strrchr(path, '/') - path) + 1;

    assert_non_null(last);
    while (before > text && before[-1] != ':')
        before--;
    expected->line = (unsigned)strtoul(before, NULL, 10);
    expected->column = (unsigned)strtoul(last + 1, NULL, 10);
    if (before == text)
        (void)snprintf(expected->file, sizeof expected->file, "%s", path);
    else
        (void)snprintf(
            expected->file, sizeof expected->file, "%.*s%.*s", (int)folder, path,
            (int)(before - text - 1), text);
}

static void check_text(const char *path, const char *text, size_t size)
{
    struct expectation expected = { .column = 0 };
    struct det_spec *spec = read_spec(path, text, size);
    char sidecar[PATH_SIZE], place[PATH_SIZE];
    char *line;
    size_t line_size;

    (void)snprintf(sidecar, sizeof sidecar, "%.*s.expect", (int)(strlen(path) - 4), path);
    line = det_test_read_file(sidecar, &line_size);
    copy_between(strchr(line, '|') + 1, "|", "\n", expected.part, sizeof expected.part);
    copy_between(line, "|", "|", place, sizeof place);
    *strchr(line, ' ') = '\0';
    (void)snprintf(expected.rule, sizeof expected.rule, "%s", line);
    free(line);
    read_place(path, place, &expected);
    check_findings(spec, &expected);
    det_spec_close(spec);
}

static void every_good_spec_is_a_machine_and_is_formatted(void **state)
{
    (void)state;
    check_folder("good", 12, check_good);
}

static void every_bad_spec_is_refused_by_its_rule_at_its_place(void **state)
{
    (void)state;
    check_folder("bad", 100, check_bad);
}

static void every_bad_text_is_refused_by_its_rule_at_its_place(void **state)
{
    (void)state;
    check_folder("text", 50, check_text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_good_spec_is_a_machine_and_is_formatted),
        cmocka_unit_test(every_bad_spec_is_refused_by_its_rule_at_its_place),
        cmocka_unit_test(every_bad_text_is_refused_by_its_rule_at_its_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
