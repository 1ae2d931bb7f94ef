/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* arch_test.c - every rule of arch_rules.def has a snippet that breaks it and one that does not:
 *
 *     tests/corpus/arch/bad/<rule>.c or .worker    breaks this rule only, on the line with "here"
 *     tests/corpus/arch/good/<rule>.c or .worker   breaks none
 *
 * A snippet without a .worker file belongs to tests/corpus/arch/link.worker. */
#include "lib/test.h"

#include <detent/tool/spec.h>

#include "worker/arch.h"

#define CORPUS DET_SOURCE_DIR "/tests/corpus/arch/"

struct subject {
    char *spec_bytes, *source_bytes;
    struct det_arch_text spec_text, source_text;
    struct det_worker_spec *spec;
    struct det_arch *arch;
    const struct det_arch_report *report;
};

static char *read_if_there(const char *kind, const char *id, const char *end, size_t *ret_size)
{
    char path[1024];
    FILE *file;

    (void)snprintf(path, sizeof path, CORPUS "%s%s%s", kind, id, end);
    file = fopen(path, "rb");
    if (file == NULL)
        return NULL;
    (void)fclose(file);
    return det_test_read_file(path, ret_size);
}

static void check_texts(struct subject *s, const char *spec_path)
{
    size_t count = s->source_bytes != NULL ? 1 : 0;

    s->spec_text.path = spec_path;
    s->spec_text.text = s->spec_bytes;
    s->source_text.path = "link.c";
    s->source_text.text = s->source_bytes;
    assert_int_equal(
        det_worker_spec_read(spec_path, s->spec_bytes, s->spec_text.size, NULL, &s->spec), 0);
    assert_true(det_worker_spec_is_valid(s->spec));
    assert_int_equal(
        det_arch_check(s->spec, &s->spec_text, &s->source_text, count, NULL, &s->arch), 0);
    s->report = det_arch_report(s->arch);
}

static void close_subject(struct subject *s)
{
    det_arch_close(s->arch);
    det_worker_spec_close(s->spec);
    free(s->spec_bytes);
    free(s->source_bytes);
}

static void open_subject(struct subject *s, const char *kind, const char *id, const char *path)
{
    *s = (struct subject){ .arch = NULL };
    s->source_bytes = read_if_there(kind, id, ".c", &s->source_text.size);
    s->spec_bytes = read_if_there(kind, id, ".worker", &s->spec_text.size);
    if (s->source_bytes == NULL && s->spec_bytes == NULL)
        fail_msg("the rule %s has no snippet %s%s.c or .worker", id, kind, id);
    if (s->spec_bytes == NULL)
        s->spec_bytes = read_if_there("", "link", ".worker", &s->spec_text.size);
    check_texts(s, path);
}

/* Sources in memory, for the tests below. */
static void open_source(struct subject *s, const char *source)
{
    *s = (struct subject){ .arch = NULL };
    s->spec_bytes = read_if_there("", "link", ".worker", &s->spec_text.size);
    s->source_bytes = malloc(strlen(source) + 1);
    memcpy(s->source_bytes, source, strlen(source) + 1);
    s->source_text.size = strlen(source);
    check_texts(s, "link.worker");
}

static void print_findings(const struct det_arch_report *report)
{
    for (size_t i = 0; i < report->count; i++)
        print_message(
            "%s:%u:%u: %s: %s\n", report->findings[i].place.file, report->findings[i].place.line,
            report->findings[i].place.column, det_arch_rule_text(report->findings[i].rule)->id,
            report->findings[i].text);
}

static unsigned line_of(const char *text, const char *mark)
{
    const char *at = text != NULL ? strstr(text, mark) : NULL;
    unsigned line = at != NULL ? 1 : 0;

    for (; at != NULL && at > text; at--)
        line += at[-1] == '\n';
    return line;
}

static void every_rule_has_a_snippet_that_breaks_it_alone(void **state)
{
    (void)state;
    for (int i = 0; i < DET_ARCH_RULE_COUNT; i++) {
        const char *id = det_arch_rule_text((enum det_arch_rule)i)->id;
        const char *path = i == DET_ARCH_FILE_NAME ? "lnk.worker" : "link.worker";
        struct subject s;
        unsigned line;

        open_subject(&s, "bad/", id, path);
        line = line_of(s.source_bytes != NULL ? s.source_bytes : s.spec_bytes, "here");
        if (s.report->count != 1 || (int)s.report->findings[0].rule != i ||
            s.report->findings[0].place.line != line) {
            print_findings(s.report);
            fail_msg("bad/%s must have one finding, of its rule, at line %u", id, line);
        }
        assert_int_equal(s.report->error_count + s.report->warning_count, 1);
        assert_non_null(s.report->findings[0].place.source);
        close_subject(&s);
    }
}

static void every_rule_has_a_snippet_that_is_right(void **state)
{
    (void)state;
    for (int i = 0; i < DET_ARCH_RULE_COUNT; i++) {
        const char *id = det_arch_rule_text((enum det_arch_rule)i)->id;
        struct subject s;

        open_subject(&s, "good/", id, "link.worker");
        if (s.report->count > 0) {
            print_findings(s.report);
            fail_msg("good/%s must have no finding", id);
        }
        close_subject(&s);
    }
}

static void every_rule_has_a_description_reason_and_example(void **state)
{
    (void)state;
    for (int i = 0; i < DET_ARCH_RULE_COUNT; i++) {
        const struct det_arch_rule_text *text = det_arch_rule_text((enum det_arch_rule)i);

        assert_true(strlen(text->what) > 20 && text->what[strlen(text->what) - 1] == '.');
        assert_true(strlen(text->why) > 20 && text->why[strlen(text->why) - 1] == '.');
        assert_true(strlen(text->example) > 10);
        for (int k = 0; k < i; k++)
            assert_string_not_equal(text->id, det_arch_rule_text((enum det_arch_rule)k)->id);
    }
}

/* The page shows the list as it is. */
static void every_rule_is_documented(void **state)
{
    size_t size;
    char *page = det_test_read_file(DET_SOURCE_DIR "/docs/formats/worker.md", &size);

    (void)state;
    for (int i = 0; i < DET_ARCH_RULE_COUNT; i++) {
        const struct det_arch_rule_text *text = det_arch_rule_text((enum det_arch_rule)i);
        char line[512];

        (void)snprintf(line, sizeof line, "| `%s` | %s |\n", text->id, text->what);
        if (!strstr(page, line))
            fail_msg("docs/formats/worker.md lacks the line %s", line);
    }
    free(page);
}

static void transitions_are_found_with_their_reasons(void **state)
{
    struct subject s;

    (void)state;
    open_source(
        &s, "static struct link_next lost(void) { return link_goto(LINK_CONNECTING, \"lost\"); }\n"
            "static struct link_next link_in_up(const struct link_view *view) {\n"
            "if (view->observed->is_up) return link_goto(LINK_CLOSING,"
            " det_reason(view->all, \"%u left\", 1u));\n"
            "return lost(); }\n");
    assert_int_equal(s.report->state_functions, 1);
    assert_int_equal(s.report->transition_count, 2);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(s.report->transitions[i].from, 2);
    assert_int_equal(s.report->transitions[0].to + s.report->transitions[1].to, 1 + 3);
    close_subject(&s);
}

static void recursive_helper_functions_are_followed_once(void **state)
{
    struct subject s;

    (void)state;
    open_source(
        &s, "static int b(int n);\nstatic int a(int n) { return b(n); }\n"
            "static int b(int n) { return n ? a(n - 1) : time(0); }\n"
            "static struct link_next link_in_up(const struct link_view *view) {\n"
            "return a(1) ? link_hold(\"x\") : link_hold(\"y\"); }\n");
    assert_int_equal(s.report->count, 1);
    assert_int_equal(s.report->findings[0].rule, DET_ARCH_PURE_CLOCK);
    assert_non_null(strstr(s.report->findings[0].text, "called from link_in_up"));
    close_subject(&s);
}

static void a_source_of_another_worker_is_left_alone(void **state)
{
    struct subject s;

    (void)state;
    open_source(&s, "static int count;\nint main(void) { return puts(\"hello\"); }\n");
    assert_int_equal(s.report->state_functions, 0);
    assert_int_equal(s.report->count, 0);
    close_subject(&s);
}

/* Whatever the bytes are, reading comes to an end and stays inside of them. */
static void any_bytes_are_read(void **state)
{
    static const char *const parts[] = {
        "static struct link_next link_in_up(const struct link_view *view)",
        "{",
        "}",
        "(",
        ")",
        "[",
        "]",
        ";",
        "\"",
        "'",
        "/*",
        "*/",
        "//",
        "\n",
        "\\",
        "#define X",
        "return link_goto(LINK_UP, ",
        "for",
        "while",
        "do",
        "static",
        "int link_do_connect(struct det_worker_context *c, struct link_deps *deps, int x)",
        "deps->a = 1",
        "det_worker_lock",
        ",",
        "\xff",
        "/* detent: allow pure-io because */",
        "/* detent: allow */",
        "= {",
        "(struct x *)view",
        "link_hold(",
        "int link_collect(struct link_deps *deps)",
        "\"%",
    };
    uint64_t seed = 1;

    (void)state;
    for (int round = 0; round < 3000; round++) {
        char text[2048] = "";
        struct subject s;
        size_t count = det_test_random(&seed) % 24, used = 0;

        for (size_t i = 0; i < count; i++) {
            const char *part = parts[det_test_random(&seed) % (sizeof parts / sizeof *parts)];

            used += (size_t)snprintf(text + used, sizeof text - used, "%s ", part);
        }
        open_source(&s, text);
        close_subject(&s);
    }
}

static int check_in_memory(struct det_test_memory *memory, void *argument)
{
    const struct subject *s = argument;
    struct det_arch *arch = NULL;
    int r = det_arch_check(s->spec, &s->spec_text, &s->source_text, 1, &memory->allocator, &arch);

    det_arch_close(arch);
    return r;
}

static void allocation_failures_are_reported_and_leak_nothing(void **state)
{
    struct subject s;

    (void)state;
    open_subject(&s, "bad/", "deps-unlocked", "link.worker");
    det_test_each_failure(check_in_memory, &s);
    close_subject(&s);
    open_subject(&s, "good/", "state-stop-asked", "link.worker");
    det_test_each_failure(check_in_memory, &s);
    close_subject(&s);
}

static void a_worker_that_is_broken_is_refused(void **state)
{
    struct det_worker_spec *spec;
    struct det_arch *arch;
    struct det_arch_text text = { "link.worker", "", 0 };

    (void)state;
    assert_int_equal(det_worker_spec_read("link.worker", "", 0, NULL, &spec), 0);
    assert_int_equal(det_arch_check(spec, &text, NULL, 0, NULL, &arch), DET_ERR_INVALID);
    det_worker_spec_close(spec);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rule_has_a_snippet_that_breaks_it_alone),
        cmocka_unit_test(every_rule_has_a_snippet_that_is_right),
        cmocka_unit_test(every_rule_has_a_description_reason_and_example),
        cmocka_unit_test(every_rule_is_documented),
        cmocka_unit_test(transitions_are_found_with_their_reasons),
        cmocka_unit_test(recursive_helper_functions_are_followed_once),
        cmocka_unit_test(a_source_of_another_worker_is_left_alone),
        cmocka_unit_test(any_bytes_are_read),
        cmocka_unit_test(allocation_failures_are_reported_and_leak_nothing),
        cmocka_unit_test(a_worker_that_is_broken_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
