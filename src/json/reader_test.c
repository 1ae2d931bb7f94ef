/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* reader_test.c - JSON as a tree: values, exact numbers, refused texts, limits, no memory. */
#include "json/reader.h"

#include "lib/test.h"

struct document {
    struct det_arena arena;
    const struct det_json_value *root;
    struct det_error error;
    int result;
};

static struct document read_view(struct det_view text)
{
    struct document document = { 0 };

    det_arena_init(&document.arena, NULL);
    document.result = det_json_read(&document.arena, text, &document.root, &document.error);
    return document;
}

static struct document read_text(const char *text)
{
    return read_view(det_view_text(text));
}

static void close_document(struct document *document)
{
    det_arena_deinit(&document->arena);
}

static void refused(const char *text, int code, uint64_t offset, const char *part)
{
    struct document document = read_text(text);

    if (document.result != code || document.error.offset != offset ||
        !strstr(document.error.text, part))
        fail_msg(
            "%s: %s at %llu: %s", text, det_error_name(document.result),
            (unsigned long long)document.error.offset, document.error.text);
    close_document(&document);
}

static void values_have_their_kind_and_order(void **state)
{
    struct document document = read_text(
        " {\"t\": \"a\\u0062\\ud83d\\ude00\", \"n\":12, \"list\":[true, false ,null, [],{}], "
        "\"o\":{\"x\":[1, {}]}} ");
    const struct det_json_value *list = det_json_get(document.root, "list");
    static const enum det_json_kind kinds[] = { DET_JSON_TRUE, DET_JSON_FALSE, DET_JSON_NULL,
                                                DET_JSON_ARRAY, DET_JSON_OBJECT };
    size_t i = 0;

    (void)state;
    assert_int_equal(document.result, 0);
    assert_int_equal(document.root->count, 4);
    assert_string_equal(det_json_get_text(document.root, "t"), "ab\xf0\x9f\x98\x80");
    assert_int_equal(det_json_get_number(document.root, "n"), 12);
    assert_int_equal(list->count, 5);
    DET_JSON_EACH (item, list)
        assert_int_equal(item->kind, kinds[i++]);
    assert_int_equal(i, 5);
    assert_true(det_view_is(det_json_get(document.root, "o")->raw, "{\"x\":[1, {}]}"));
    assert_true(det_view_is(det_json_first(document.root)->key, "t"));
    assert_true(document.root->raw.data[0] == '{');
    assert_true(document.root->raw.data[document.root->raw.size - 1] == '}');
    close_document(&document);
}

static void missing_member_is_null(void **state)
{
    struct document document = read_text("{\"t\":\"a\\u0000b\",\"n\":1.5,\"s\":\"text\"}");
    uint64_t number = 7;

    (void)state;
    assert_null(det_json_get(document.root, "none"));
    assert_null(det_json_get(det_json_get(document.root, "none"), "deeper"));
    assert_null(det_json_get(det_json_get(document.root, "s"), "deeper"));
    assert_null(det_json_get_text(document.root, "t"));
    assert_null(det_json_get_text(document.root, "n"));
    assert_int_equal(det_json_get_number(document.root, "s"), 0);
    assert_int_equal(det_json_value_u64(NULL, &number), DET_ERR_TYPE);
    assert_int_equal(det_json_value_u64(det_json_get(document.root, "n"), &number), DET_ERR_TYPE);
    assert_int_equal(number, 7);
    assert_false(det_json_get_bool(document.root, "n"));
    assert_int_equal(det_json_get_time(document.root, "s"), 0);
    DET_JSON_EACH (item, NULL)
        fail();
    close_document(&document);
}

static void numbers_are_exact(void **state)
{
    struct document document = read_text(
        "{\"u\":18446744073709551615,\"o\":18446744073709551616,\"i\":-9223372036854775808,"
        "\"j\":-9223372036854775809,\"z\":-0,\"d\":0.1,\"l\":1.10}");
    const struct det_json_value *root = document.root;
    uint64_t number = 0;
    int64_t whole = 0;

    (void)state;
    assert_true(det_json_get_number(root, "u") == UINT64_MAX);
    assert_int_equal(det_json_value_u64(det_json_get(root, "o"), &number), DET_ERR_RANGE);
    assert_int_equal(det_json_value_u64(det_json_get(root, "i"), &number), DET_ERR_RANGE);
    assert_int_equal(det_json_value_u64(det_json_get(root, "z"), &number), 0);
    assert_true(det_json_get_signed(root, "i") == INT64_MIN);
    assert_int_equal(det_json_value_i64(det_json_get(root, "j"), &whole), DET_ERR_RANGE);
    assert_int_equal(det_json_value_i64(det_json_get(root, "u"), &whole), DET_ERR_RANGE);
    assert_true(det_view_is(det_json_get(root, "d")->text, "0.1"));
    assert_int_equal(det_json_value_u64(det_json_get(root, "d"), &number), DET_ERR_TYPE);
    assert_true(det_view_is(det_json_get(root, "l")->text, "1.10"));
    close_document(&document);
}

static void malformed_json_is_refused_at_its_offset(void **state)
{
    (void)state;
    refused("", DET_ERR_TRUNCATED, 0, "a value");
    refused("{\"a\":1", DET_ERR_TRUNCATED, 6, "a comma or a closing bracket");
    refused("{} {}", DET_ERR_MALFORMED, 3, "the end of the text");
    refused("[1,]", DET_ERR_MALFORMED, 3, "a value");
    refused("{\"a\":1,}", DET_ERR_MALFORMED, 7, "the name of a member");
    refused("\"\xff\"", DET_ERR_MALFORMED, 1, "UTF-8");
    refused("\"\\ud800\"", DET_ERR_MALFORMED, 1, "the second half of a surrogate pair");
    refused("\"\\udc00\"", DET_ERR_MALFORMED, 1, "the first half of a surrogate pair");
    refused("[01]", DET_ERR_MALFORMED, 2, "a comma or a closing bracket");
    refused("{\"a\":1,\"a\":2}", DET_ERR_DUPLICATE_FIELD, 11, "duplicate key 'a'");
    refused("{\"a\":1,\"b\":{},\"\\u0061\":2}", DET_ERR_DUPLICATE_FIELD, 23, "duplicate key 'a'");
    refused("{\"a\\/b\":1,\"a/b\":2}", DET_ERR_DUPLICATE_FIELD, 16, "duplicate key 'a/b'");
    refused("[{\"x\":{\"a\":1,\"a\":1}}]", DET_ERR_DUPLICATE_FIELD, 17, "duplicate key 'a'");
}

static void keys_are_compared_exactly(void **state)
{
    struct document document = read_text("{\"a\":1,\"A\":2,\"a\\u0000\":3}");

    (void)state;
    assert_int_equal(document.result, 0);
    assert_int_equal(det_json_get_number(document.root, "a"), 1);
    close_document(&document);
}

/* Returns {"k0":0,"k1":1,...}; with `is_twice` the last key is a duplicate. */
static char *many_members(size_t count, bool is_twice)
{
    size_t capacity = count * 32 + 32, size = 1;
    char *text = malloc(capacity);

    assert_non_null(text);
    text[0] = '{';
    for (size_t i = 0; i < count; i++)
        size +=
            (size_t)snprintf(text + size, capacity - size, "%s\"k%zu\":%zu", i ? "," : "", i, i);
    snprintf(text + size, capacity - size, is_twice ? ",\"k%zu\":0}" : "}", count - 1);
    return text;
}

static void large_objects_find_members_and_refuse_duplicates(void **state)
{
    static const size_t counts[] = { 1, 15, 16, 17, 63, 5000 };

    (void)state;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        char *text = many_members(counts[i], false), key[32];
        struct document document = read_text(text);

        assert_int_equal(document.result, 0);
        for (size_t k = 0; k < counts[i]; k++) {
            snprintf(key, sizeof key, "k%zu", k);
            assert_int_equal(det_json_get_number(document.root, key), k);
        }
        assert_null(det_json_get(document.root, "k"));
        close_document(&document);
        free(text);
        text = many_members(counts[i], true);
        document = read_text(text);
        assert_int_equal(document.result, DET_ERR_DUPLICATE_FIELD);
        close_document(&document);
        free(text);
    }
}

static void depth_and_values_are_limited(void **state)
{
    static char text[2 * DET_JSON_VALUES_MAX + 8];
    struct document document;

    (void)state;
    memset(text, '[', DET_JSON_DEPTH_MAX);
    memset(text + DET_JSON_DEPTH_MAX, ']', DET_JSON_DEPTH_MAX);
    document = read_view(det_view_of(text, (size_t)2 * DET_JSON_DEPTH_MAX));
    assert_int_equal(document.result, 0);
    close_document(&document);
    memset(text, '[', DET_JSON_DEPTH_MAX + 1);
    document = read_view(det_view_of(text, DET_JSON_DEPTH_MAX + 1));
    assert_int_equal(document.result, DET_ERR_LIMIT);
    assert_int_equal(document.error.offset, DET_JSON_DEPTH_MAX);
    close_document(&document);
    text[0] = '[';
    for (size_t i = 1; i <= (size_t)2 * DET_JSON_VALUES_MAX; i++)
        text[i] = i % 2 ? '1' : ',';
    document = read_view(det_view_of(text, (size_t)2 * DET_JSON_VALUES_MAX));
    assert_int_equal(document.result, DET_ERR_LIMIT);
    assert_non_null(strstr(document.error.text, "more than 1000000 values"));
    close_document(&document);
}

static int read_in(struct det_test_memory *memory, void *argument)
{
    char *text = many_members(20, false);
    const struct det_json_value *root = NULL;
    struct det_arena arena;
    int r;

    (void)argument;
    det_arena_init(&arena, &memory->allocator);
    r = det_json_read(&arena, det_view_text(text), &root, NULL);
    if (r == 0)
        r = det_json_read(
            &arena, det_view_text("{\"\\u0061\":[\"text\",{\"b\":\"\\n\"}]}"), &root, NULL);
    assert_true(r == 0 ? root != NULL : r == DET_ERR_NO_MEMORY);
    det_arena_deinit(&arena);
    free(text);
    return r;
}

static void reading_survives_every_failed_allocation(void **state)
{
    (void)state;
    det_test_each_failure(read_in, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_have_their_kind_and_order),
        cmocka_unit_test(missing_member_is_null),
        cmocka_unit_test(numbers_are_exact),
        cmocka_unit_test(malformed_json_is_refused_at_its_offset),
        cmocka_unit_test(keys_are_compared_exactly),
        cmocka_unit_test(large_objects_find_members_and_refuse_duplicates),
        cmocka_unit_test(depth_and_values_are_limited),
        cmocka_unit_test(reading_survives_every_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
