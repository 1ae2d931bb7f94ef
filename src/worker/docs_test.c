/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* docs_test.c - checks docs/formats/workers.md: its YAML is valid, and each row of a template
 * renders to the text after its arrow. */
#include "worker/spec.h"
#include "worker/template.h"

#include "lib/test.h"

#define PAGE DET_SOURCE_DIR "/docs/formats/workers.md"

/* The text between the next fence of the language and its end, which becomes a NUL; NULL: none. */
static char *next_fence(char **page, const char *language)
{
    char *start = strstr(*page, language), *end;

    if (!start)
        return NULL;
    start += strlen(language);
    end = strstr(start, "```");
    assert_non_null(end);
    *end = '\0';
    *page = end + 3;
    return start;
}

static void the_example_is_read(void **state)
{
    char *page = det_test_read_file(PAGE, NULL), *rest = page;
    const char *yaml = next_fence(&rest, "```yaml\n");
    struct det_error error;
    struct det_spec spec;

    (void)state;
    if (det_workers_spec_read(&spec, NULL, yaml, strlen(yaml), &error) != 0)
        fail_msg("%s", error.text);
    assert_int_equal(spec.count, 3);
    assert_string_equal(spec.children[1].name, "valve");
    det_spec_deinit(&spec);
    free(page);
}

static void check_row(const struct det_datum *root, char *row)
{
    struct det_buffer result = { .allocator = NULL };
    struct det_template *template;
    struct det_error error;
    char *arrow = strstr(row, " -> ");
    const char *wanted = arrow ? arrow + 4 : NULL;

    assert_non_null(wanted);
    while (arrow > row && *arrow == ' ')
        *arrow-- = '\0';
    if (det_template_open(NULL, "row", row, strlen(row), &template, &error) != 0 ||
        det_template_render(template, root, &result, &error) != 0)
        fail_msg("%s: %s", row, error.text);
    assert_string_equal(det_buffer_text(&result), wanted);
    det_template_close(template);
    det_buffer_deinit(&result);
}

static void every_documented_template_row_renders(void **state)
{
    char *page = det_test_read_file(PAGE, NULL), *rest = page, *fence, *line, *cursor;
    struct det_datum *root = NULL;
    struct det_arena arena;
    unsigned rows = 0;

    (void)state;
    det_arena_init(&arena, NULL);
    assert_non_null(next_fence(&rest, "```yaml\n"));
    fence = next_fence(&rest, "```yaml\n");
    assert_int_equal(det_datum_from_yaml(&arena, "data", fence, strlen(fence), &root, NULL), 0);
    while ((fence = next_fence(&rest, "```text\n"))) {
        for (line = strtok_r(fence, "\n", &cursor); line; line = strtok_r(NULL, "\n", &cursor)) {
            check_row(root, line);
            rows++;
        }
    }
    assert_int_equal(rows, 22);
    det_arena_deinit(&arena);
    free(page);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_example_is_read),
        cmocka_unit_test(every_documented_template_row_renders),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
