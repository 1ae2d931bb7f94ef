/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* yaml_write_test.c - nodes as YAML again: they read the same, and stand where they stood. */
#include "lib/test.h"

#include "base/buffer.h"
#include "yaml/yaml_tree.h"

static struct cli_yaml *read_text(struct det_arena *arena, const char *text)
{
    struct cli_yaml_error error = { 0 };
    struct cli_yaml *root = NULL;

    if (cli_yaml_read(arena, text, strlen(text), &root, &error) < 0)
        fail_msg("%u:%u: %s in: %s", error.line, error.column, error.text, text);
    return root;
}

static bool is_same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* What is told apart: texts, kinds, whether a word may be a number, lines. */
static void assert_same(const struct cli_yaml *a, const struct cli_yaml *b, bool has_columns)
{
    const struct cli_yaml *left[CLI_YAML_DEPTH_MAX + 1] = { a };
    const struct cli_yaml *right[CLI_YAML_DEPTH_MAX + 1] = { b };
    size_t depth = 1;

    while (depth) {
        const struct cli_yaml *x = left[depth - 1], *y = right[depth - 1];

        assert_int_equal(!x, !y);
        if (!x) {
            depth--;
            continue;
        }
        assert_int_equal(x->kind, y->kind);
        assert_true(is_same_text(x->key, y->key));
        if (x->key)
            assert_int_equal(x->key_line, y->key_line);
        if (x->kind == CLI_YAML_SCALAR) {
            bool is_null = x->is_plain && !*x->text;

            assert_int_equal(x->line, y->line);
            assert_string_equal(is_null ? "null" : x->text, y->text);
        }
        /* In the first column a brace may stand before it. */
        if (has_columns && x->key && x->key_column > 1)
            assert_int_equal(x->key_column, y->key_column);
        left[depth - 1] = depth == 1 ? NULL : x->next;
        right[depth - 1] = depth == 1 ? NULL : y->next;
        left[depth] = x->first;
        right[depth++] = y->first;
    }
}

static void round_trip(const char *text, bool has_columns)
{
    struct det_arena arena;
    struct det_buffer written;
    struct cli_yaml *before, *after;

    det_arena_init(&arena, NULL);
    det_buffer_init(&written, NULL);
    before = read_text(&arena, text);
    cli_yaml_write(&written, before);
    assert_int_equal(det_buffer_status(&written), 0);
    after = read_text(&arena, det_buffer_text(&written));
    assert_same(before, after, has_columns);
    det_buffer_deinit(&written);
    det_arena_deinit(&arena);
}

static void it_reads_the_same(void **state)
{
    static const char *const texts[] = {
        "a: 1\n",
        "a:\n  b:\n    - c\n    - d: e\n      f: g\n",
        "children:\n  - name: x\n    kind: y\n    config: {a: [1, 2, {b: c}]}\n  - name: z\n",
        "# comment\n\n\nlate: true\n",
        "list:\n- 1\n- -2\n- 0x1f\n- 1.5\n- .inf\n- -.inf\n- ~\n- null\n- yes\n",
        "list:\n- '12'\n- \"x\\ty\"\n",
        "empty:\nnext: ''\nlast: \"\"\n",
        "nothing: {}\nnone: []\n",
        "text: |\n  one\n  two: three\n\nafter: >\n  folded\n  text\n",
        "words: a, b [c] {d} #e\nquote: 'it''s: \"so\"'\n",
        "umlaut: \xc3\xa4\xc3\xb6\nb: \xe2\x82\xac\n",
        "dash: -a\nplus: +\ndots: ...x\nstar: '*'\n",
        "\"a b\": 1\n\"x: y\": {\"k,\": v}\n",
        "template: \"{{ .IP }}:{{ .PORT }}\"\n",
    };

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        round_trip(texts[i], false);
}

static void keys_stand_where_they_stood(void **state)
{
    (void)state;
    round_trip("a: 1\nbcd:\n  e: 2\n  f:\n    - g: 3\n      h: 4\n    - g: 5\n", true);
}

static void only_what_is_wanted_is_written(void **state)
{
    static const char *const keys[] = { "b", "c", NULL };
    struct det_buffer written;
    struct det_arena arena;
    struct cli_yaml *after;

    (void)state;
    det_arena_init(&arena, NULL);
    det_buffer_init(&written, NULL);
    cli_yaml_write_keys(&written, read_text(&arena, "a: 1\nb:\n  x: y\nd: 2\nc: 3\n"), keys);
    after = read_text(&arena, det_buffer_text(&written));
    assert_int_equal(after->count, 2);
    assert_null(cli_yaml_get(after, "a"));
    assert_int_equal(cli_yaml_get(cli_yaml_get(after, "b"), "x")->line, 3);
    assert_int_equal(cli_yaml_get(after, "c")->line, 5);
    det_buffer_deinit(&written);
    det_buffer_init(&written, NULL);
    cli_yaml_write_keys(&written, read_text(&arena, "a: 1\n"), keys);
    assert_int_equal(read_text(&arena, det_buffer_text(&written))->count, 0);
    det_buffer_deinit(&written);
    det_arena_deinit(&arena);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_reads_the_same),
        cmocka_unit_test(keys_stand_where_they_stood),
        cmocka_unit_test(only_what_is_wanted_is_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
