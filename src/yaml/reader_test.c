/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* reader_test.c - the strict reader of YAML. */
#include "yaml/datum.h"

#include <time.h>

#include "lib/test.h"

struct document {
    struct det_arena arena;
    struct det_datum *root;
    struct det_yaml_error error;
    int result;
};

static struct document read_bytes(const char *text, size_t size)
{
    struct document document = { .result = 0 };

    det_arena_init(&document.arena, NULL);
    document.result = det_yaml_read(&document.arena, text, size, &document.root, &document.error);
    return document;
}

static struct document read_text(const char *text)
{
    return read_bytes(text, strlen(text));
}

static void close_document(struct document *document)
{
    det_arena_deinit(&document->arena);
}

static void refused(const char *text, unsigned line, unsigned column, const char *part)
{
    struct document document = read_text(text);

    assert_true(document.result == DET_ERR_MALFORMED || document.result == DET_ERR_LIMIT);
    if (!strstr(document.error.text, part))
        fail_msg("'%s' does not say '%s'", document.error.text, part);
    assert_int_equal(document.error.line, line);
    assert_int_equal(document.error.column, column);
    close_document(&document);
}

static void yaml_nodes_have_their_places(void **state)
{
    struct document document = read_text("name: x\nlist:\n  - a\n  - \"b c\"\nmap: {k: 1}\n");
    const struct det_datum *list, *map;

    (void)state;
    assert_int_equal(document.result, 0);
    assert_int_equal(document.root->kind, DET_DATUM_MAP);
    assert_int_equal(document.root->count, 3);
    assert_string_equal(det_datum_get(document.root, "name")->text, "x");
    list = det_datum_get(document.root, "list");
    assert_int_equal(list->kind, DET_DATUM_LIST);
    assert_int_equal(list->count, 2);
    assert_true(list->first->is_plain);
    assert_string_equal(list->first->next->text, "b c");
    assert_false(list->first->next->is_plain);
    assert_int_equal(list->first->next->line, 4);
    assert_int_equal(list->first->next->column, 5);
    map = det_datum_get(document.root, "map");
    assert_int_equal(map->key_line, 5);
    assert_int_equal(map->key_column, 1);
    assert_string_equal(map->first->key, "k");
    assert_null(det_datum_get(document.root, "nothing"));
    close_document(&document);
}

static void byte_order_mark_is_skipped(void **state)
{
    struct document document = read_text("\xEF\xBB\xBF"
                                         "a: 1\nb: 2\n");

    (void)state;
    assert_int_equal(document.result, 0);
    assert_string_equal(det_datum_get(document.root, "a")->text, "1");
    close_document(&document);
    refused("\xEF\xBB\xBF", 1, 1, "the text is empty");
}

static void unsupported_yaml_is_refused_at_its_place(void **state)
{
    (void)state;
    refused("a: &x 1\n", 1, 4, "anchors (&x)");
    refused("a:\n\tb: 1\n", 2, 1, "the line begins with a tab; use spaces");
    refused("a:\n  \t- 1\n", 2, 3, "use spaces");
    refused("a:\n  - b: x\n\tc: 1\n", 3, 1, "use spaces");
    refused("a: *x\n", 1, 4, "aliases (*x)");
    refused("a: !!str 1\n", 1, 4, "tags (");
    refused("a: !t [1]\n", 1, 4, "tags (");
    refused("a: !t {b: 1}\n", 1, 4, "tags (");
    refused("a: &x [1]\n", 1, 4, "anchors");
    refused("a: 1\nb: 2\na: 3\n", 3, 1, "duplicate key 'a'; first on line 1");
    refused("<<: {a: 1}\n", 1, 1, "merge keys");
    refused("? [a]\n: 1\n", 1, 3, "a key is a plain word");
    refused("? {a: 1}\n: 1\n", 1, 3, "a key is a plain word");
    refused("a: 1\n---\nb: 2\n", 2, 1, "more than one document");
    refused("", 1, 1, "the text is empty");
    refused("# only a comment\n", 1, 1, "the text is empty");
    refused("a: [1\n", 2, 1, "not YAML");
    refused("a: \"x\\0y\"\n", 1, 4, "NUL");
    refused("a: 1\n\xff\n", 2, 1, "not UTF-8");
}

static void unclosed_brackets_are_refused_quickly(void **state)
{
    static char text[40960];
    clock_t from = clock();
    struct document document;

    (void)state;
    memset(text, '[', sizeof text);
    document = read_bytes(text, sizeof text);
    assert_int_equal(document.result, DET_ERR_LIMIT);
    assert_int_equal(document.error.column, DET_DATUM_DEPTH_MAX + 1);
    /* Processor time, a hundred times the usual; a reader without the limit takes minutes. */
    assert_true(clock() - from < CLOCKS_PER_SEC);
    close_document(&document);
}

static void yaml_depth_is_limited_at_the_exceeding_bracket(void **state)
{
    char text[2 * DET_DATUM_DEPTH_MAX + 8];
    struct document document;

    (void)state;
    memset(text, '[', DET_DATUM_DEPTH_MAX);
    memset(text + DET_DATUM_DEPTH_MAX, ']', DET_DATUM_DEPTH_MAX);
    document = read_bytes(text, (size_t)2 * DET_DATUM_DEPTH_MAX);
    assert_int_equal(document.result, 0);
    close_document(&document);
}

static void nodes_and_bytes_are_limited(void **state)
{
    static char text[DET_DATUM_READ_MAX + 2];
    struct document document;

    (void)state;
    text[0] = '[';
    for (size_t i = 1; i <= (size_t)DET_DATUM_NODES_MAX * 2; i++)
        text[i] = i % 2 ? '1' : ',';
    document = read_bytes(text, (size_t)DET_DATUM_NODES_MAX * 2 + 1);
    assert_int_equal(document.result, DET_ERR_LIMIT);
    assert_non_null(strstr(document.error.text, "more than 1000000"));
    close_document(&document);
    memset(text, 'a', sizeof text);
    document = read_bytes(text, DET_DATUM_READ_MAX + 1);
    assert_int_equal(document.result, DET_ERR_LIMIT);
    assert_non_null(strstr(document.error.text, "16384 KiB"));
    close_document(&document);
}

static int read_scenario(struct det_test_memory *memory, void *argument)
{
    static const char given_text[] = "a: {b: [1, 2, 3], c: text}\nd: 4\n";
    struct det_yaml_error error;
    struct det_arena arena;
    struct det_datum *root = NULL;
    int r;

    (void)argument;
    det_arena_init(&arena, &memory->allocator);
    r = det_yaml_read(&arena, given_text, sizeof given_text - 1, &root, &error);
    assert_true(r == 0 ? root != NULL : root == NULL);
    det_arena_deinit(&arena);
    return r;
}

static void reading_survives_every_failed_allocation(void **state)
{
    (void)state;
    det_test_each_failure(read_scenario, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(yaml_nodes_have_their_places),
        cmocka_unit_test(byte_order_mark_is_skipped),
        cmocka_unit_test(unsupported_yaml_is_refused_at_its_place),
        cmocka_unit_test(unclosed_brackets_are_refused_quickly),
        cmocka_unit_test(yaml_depth_is_limited_at_the_exceeding_bracket),
        cmocka_unit_test(nodes_and_bytes_are_limited),
        cmocka_unit_test(reading_survives_every_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
