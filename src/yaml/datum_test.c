/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* datum_test.c - trees of data: read from YAML, written, compared, copied, merged, hashed. */
#include "yaml/datum.h"
#include "yaml/datum_text.h"

#include "lib/test.h"

struct fixture {
    struct det_test_memory memory;
    struct det_arena arena;
    struct det_buffer buffer;
    struct det_error error;
};

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);

    det_test_memory_init(&fixture->memory);
    det_arena_init(&fixture->arena, &fixture->memory.allocator);
    det_buffer_init(&fixture->buffer, &fixture->memory.allocator);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    det_arena_deinit(&fixture->arena);
    det_buffer_deinit(&fixture->buffer);
    det_test_memory_deinit(&fixture->memory);
    free(fixture);
    return 0;
}

static struct det_datum *read(struct fixture *fixture, const char *yaml)
{
    struct det_datum *datum = NULL;
    int r;

    r = det_datum_from_yaml(&fixture->arena, "text", yaml, strlen(yaml), &datum, &fixture->error);
    if (r != 0)
        print_error("%s: %s\n", yaml, fixture->error.text);
    assert_int_equal(r, 0);
    return datum;
}

static const char *json(struct fixture *fixture, const struct det_datum *datum)
{
    det_buffer_clear(&fixture->buffer);
    det_datum_to_json(datum, &fixture->buffer);
    assert_int_equal(det_buffer_status(&fixture->buffer), 0);
    return det_buffer_text(&fixture->buffer);
}

static void yaml_scalars_have_their_json_values(void **state)
{
    static const struct {
        const char *yaml, *json;
    } rows[] = {
        { "", "null" },
        { "# only a comment\n", "null" },
        { "~", "null" },
        { "null", "null" },
        { "Null", "null" },
        { "nULL", "\"nULL\"" },
        { "a:", "{\"a\": null}" },
        { "true", "true" },
        { "TRUE", "true" },
        { "False", "false" },
        { "yes", "\"yes\"" },
        { "off", "\"off\"" },
        { "\"true\"", "\"true\"" },
        { "'12'", "\"12\"" },
        { "12", "12" },
        { "+12", "12" },
        { "-0", "0" },
        { "007", "7" },
        { "0x1F", "31" },
        { "0o17", "15" },
        { "0x", "\"0x\"" },
        { "-0x1", "\"-0x1\"" },
        { "0o8", "\"0o8\"" },
        { "9223372036854775807", "9223372036854775807" },
        { "9223372036854775808", "9223372036854775808" },
        { "18446744073709551615", "18446744073709551615" },
        { "-9223372036854775808", "-9223372036854775808" },
        { "0xffffffffffffffff", "18446744073709551615" },
        { "1.5", "1.5" },
        { "1.", "1.0" },
        { ".5", "0.5" },
        { "-.5", "-0.5" },
        { "00.5", "0.5" },
        { "1e3", "1000.0" },
        { "1.e+3", "1000.0" },
        { "1e", "\"1e\"" },
        { ".", "\".\"" },
        { ".e3", "\".e3\"" },
        { "1.2.3", "\"1.2.3\"" },
        { ".inf", "null" },
        { "-.INF", "null" },
        { ".nan", "null" },
        { "inf", "\"inf\"" },
        { "10.0.0.1", "\"10.0.0.1\"" },
        { "12:30", "\"12:30\"" },
        { "2026-01-01", "\"2026-01-01\"" },
        { "a b # c", "\"a b\"" },
        { "|\n  a\n  b\n", "\"a\\nb\\n\"" },
        { ">-\n  a\n  b\n", "\"a b\"" },
        { "\"\\u00e9\\n\"", "\"é\\n\"" },
        { "[]", "[]" },
        { "{}", "{}" },
        { "[1, [2, {a: 3}], {}]", "[1, [2, {\"a\": 3}], {}]" },
        { "b: 1\na: 2\n", "{\"b\": 1, \"a\": 2}" },
        { "- a: 1\n  b: [x]\n- c\n", "[{\"a\": 1, \"b\": [\"x\"]}, \"c\"]" },
        { "{\"a\": {\"b\": [true, null]}}", "{\"a\": {\"b\": [true, null]}}" },
        { "1: one\ntrue: two\n", "{\"1\": \"one\", \"true\": \"two\"}" },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_string_equal(json(*state, read(*state, rows[i].yaml)), rows[i].json);
}

static void yaml_is_refused(void **state)
{
    static const struct {
        const char *yaml;
        int code;
        const char *text;
    } rows[] = {
        { "a: &x 1\n", DET_ERR_MALFORMED,
          "text, line 1, column 4: anchors (&x) are not supported" },
        { "a: *x\n", DET_ERR_MALFORMED, "line 1, column 4: aliases (*x) are not supported" },
        { "a: !!str 1\n", DET_ERR_MALFORMED, "line 1, column 4: tags" },
        { "a: 1\nb: 2\na: 3\n", DET_ERR_MALFORMED,
          "line 3, column 1: duplicate key 'a'; first on line 1" },
        { "<<: {a: 1}\n", DET_ERR_MALFORMED, "merge keys" },
        { "[a, b]: 1\n", DET_ERR_MALFORMED, "a key is a plain word or text" },
        { "a: {{ .X }}\n", DET_ERR_MALFORMED, "put quotes around" },
        { "a: 18446744073709551616\n", DET_ERR_MALFORMED, "beyond what 64 bits hold; quote it" },
        { "-9223372036854775809\n", DET_ERR_MALFORMED, "beyond what 64 bits hold" },
        { "1e400\n", DET_ERR_MALFORMED, "beyond what 64 bits hold" },
        { "a: 1\n---\nb: 2\n", DET_ERR_MALFORMED, "more than one document" },
        { "a: [1\n", DET_ERR_MALFORMED, "not YAML" },
        { "a: b: c\n", DET_ERR_MALFORMED, "line 1, column 5: not YAML" },
        { "\"a\\0b\"\n", DET_ERR_MALFORMED, "contains a NUL" },
        { "a: \xff\n", DET_ERR_MALFORMED, "line 1, column 4: the text is not UTF-8" },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fixture *fixture = *state;
        struct det_datum *datum;
        int r;

        r = det_datum_from_yaml(
            &fixture->arena, "text", rows[i].yaml, strlen(rows[i].yaml), &datum, &fixture->error);
        assert_int_equal(r, rows[i].code);
        if (!strstr(fixture->error.text, rows[i].text))
            fail_msg("%s: %s", rows[i].yaml, fixture->error.text);
    }
}

static int read_repeated(
    struct fixture *fixture, const char *part, size_t count, const char *end_part)
{
    struct det_buffer text = { .allocator = NULL };
    struct det_datum *datum;
    int r;

    for (size_t i = 0; i < count; i++)
        det_buffer_append_text(&text, part);
    for (size_t i = 0; i < count; i++)
        det_buffer_append_text(&text, end_part);
    r = det_datum_from_yaml(&fixture->arena, "text", text.data, text.size, &datum, &fixture->error);
    det_buffer_deinit(&text);
    return r;
}

static void limits_hold(void **state)
{
    struct fixture *fixture = *state;
    struct det_datum *datum;
    char *text;

    assert_int_equal(read_repeated(fixture, "[", 64, "]"), 0);
    assert_int_equal(read_repeated(fixture, "[", 65, "]"), DET_ERR_LIMIT);
    assert_int_equal(read_repeated(fixture, "[", 500000, ""), DET_ERR_LIMIT);
    assert_int_equal(read_repeated(fixture, "- 1\n", DET_DATUM_NODES_MAX - 1, ""), 0);
    assert_int_equal(read_repeated(fixture, "- 1\n", DET_DATUM_NODES_MAX, ""), DET_ERR_LIMIT);
    assert_non_null(strstr(fixture->error.text, "more than 1000000 values"));
    text = calloc(1, DET_DATUM_READ_MAX + 1);
    memset(text, ' ', DET_DATUM_READ_MAX + 1);
    assert_int_equal(
        det_datum_from_yaml(
            &fixture->arena, "text", text, DET_DATUM_READ_MAX, &datum, &fixture->error),
        0);
    assert_int_equal(
        det_datum_from_yaml(
            &fixture->arena, "text", text, DET_DATUM_READ_MAX + 1, &datum, &fixture->error),
        DET_ERR_LIMIT);
    free(text);
}

static void large_maps_are_searched_quickly(void **state)
{
    struct fixture *fixture = *state;
    struct det_buffer text = { .allocator = NULL };
    struct det_datum *map;
    char key[32];

    for (int i = 0; i < 20000; i++)
        det_buffer_format(&text, "key%d: %d\n", i, i);
    map = read(fixture, text.data);
    assert_int_equal(map->count, 20000);
    for (int i = 0; i < 20000; i++) {
        snprintf(key, sizeof key, "key%d", i);
        assert_int_equal(det_datum_get(map, key)->as.number, i);
    }
    assert_null(det_datum_get(map, "key20000"));
    det_buffer_append_text(&text, "key7: 1\n");
    assert_int_equal(
        det_datum_from_yaml(&fixture->arena, "text", text.data, text.size, &map, &fixture->error),
        DET_ERR_MALFORMED);
    assert_non_null(strstr(fixture->error.text, "line 20001, column 1: duplicate key 'key7'"));
    det_buffer_deinit(&text);
}

static void datums_keep_their_lines(void **state)
{
    const struct det_datum *map = read(*state, "a: 1\nb:\n  - x\n  - {c: y}\n");
    const struct det_datum *list = det_datum_get(map, "b");
    const struct det_datum *inner = list->first->next;

    assert_int_equal(map->line, 1);
    assert_int_equal(list->line, 3);
    assert_int_equal(list->key_line, 2);
    assert_int_equal(list->key_column, 1);
    assert_int_equal(inner->line, 4);
    assert_int_equal(inner->column, 5);
    assert_int_equal(det_datum_get(inner, "c")->column, 9);
    assert_null(det_datum_get(list, "c"));
    assert_null(det_datum_get(NULL, "c"));
}

static const char *const round_trips[] = {
    "null",
    "[1.0, -0.5, .inf, -.inf, .nan, 1e300]",
    "{a: {b: {c: [[1, 2], [], [[3]]]}}, d: {}, e: []}",
    "- - - x\n- a: 1\n  b: 2\n- \n",
    "'': empty\n'a: b': '# no comment'\n'- x': \"line\\nbreak\\ttab\"\n",
    "[\"\\uFEFF\\uFFFE\\uFFFF\\u0085\\u200e\\u2028\\e\", '{{ .X }}', '\"', '\\', é, 😀]",
    "['true', '12', 'null', '~', '0x1f', '1e3', ' x ', '']",
    "[18446744073709551615, -9223372036854775808, 0]",
};

static void put_scalar(struct det_buffer *buffer, const struct det_datum *scalar)
{
    det_datum_put_scalar(buffer, scalar, false);
}

static void written_yaml_round_trips(void **state)
{
    struct fixture *fixture = *state;

    for (size_t i = 0; i < sizeof round_trips / sizeof round_trips[0]; i++) {
        struct det_datum *datum = read(fixture, round_trips[i]), *again;
        struct det_buffer buffer = { .allocator = &fixture->memory.allocator };

        det_datum_write_yaml(datum, &buffer, put_scalar);
        again = read(fixture, det_buffer_text(&buffer));
        assert_true(det_datum_equal(datum, again));
        assert_int_equal(det_datum_hash(datum), det_datum_hash(again));
        if (i > 1) {
            det_buffer_clear(&buffer);
            det_datum_to_json(datum, &buffer);
            assert_true(det_datum_equal(datum, read(fixture, det_buffer_text(&buffer))));
        }
        det_buffer_deinit(&buffer);
    }
}

static void yaml_output_is_indented(void **state)
{
    struct fixture *fixture = *state;

    det_datum_write_yaml(
        read(fixture, "{a: [1, {b: x}], c: {d: null}, e: []}"), &fixture->buffer, put_scalar);
    assert_string_equal(
        det_buffer_text(&fixture->buffer),
        "\"a\":\n  - 1\n  -\n    \"b\": \"x\"\n\"c\":\n  \"d\": null\n\"e\": []\n");
}

static void equal_is_by_value(void **state)
{
    static const struct {
        const char *a, *b;
        bool is_equal;
    } rows[] = {
        { "{a: 1, b: 2}", "{b: 2, a: 1}", true },
        { "{a: 1, b: 2}", "{a: 1}", false },
        { "{a: 1}", "{b: 1}", false },
        { "{a: {x: 1}, b: 2}", "{a: 1, b: {x: 2}}", false },
        { "[1, 2]", "[2, 1]", false },
        { "[[1], 2]", "[[1, 2]]", false },
        { "[[], [1]]", "[[1], []]", false },
        { "['ab', 'c']", "['a', 'bc']", false },
        { "{a: '', b: c}", "{a: b, c: ''}", false },
        { "1", "1.0", false },
        { "1", "'1'", false },
        { "null", "false", false },
        { "[]", "{}", false },
        { "[]", "null", false },
        { ".nan", ".NaN", true },
        { "18446744073709551615", "-1", false },
        { "{a: [1, {b: [2]}], c: 3}", "{c: 3, a: [1, {b: [2]}]}", true },
        { "[{a: 1}, {b: 2}, 3]", "[{a: 1}, {b: 2}, 4]", false },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct det_datum *a = read(*state, rows[i].a), *b = read(*state, rows[i].b);

        assert_int_equal(det_datum_equal(a, b), rows[i].is_equal);
        assert_int_equal(det_datum_equal(b, a), rows[i].is_equal);
        assert_int_equal(det_datum_hash(a) == det_datum_hash(b), rows[i].is_equal);
    }
}

/* Hashes are compared over restarts and machines: a change would derive everything again. */
static void datum_hash_is_stable(void **state)
{
    assert_int_equal(
        det_datum_hash(read(*state, "{a: [1, x, 2.5, null], b: {c: true}}")),
        det_datum_hash(read(*state, "{b: {c: true}, a: [1, x, 2.5, null]}")));
    assert_int_equal(
        det_datum_hash(read(*state, "{a: [1, x], b: true}")), UINT64_C(0x688228d94646ec02));
}

static void merging(void **state)
{
    static const struct {
        const char *parent, *child, *merged;
    } rows[] = {
        { "{a: 1, b: 2}", "{b: 3, c: 4}", "{\"a\": 1, \"b\": 3, \"c\": 4}" },
        { "{}", "{c: 4}", "{\"c\": 4}" },
        { "{c: 4}", "{}", "{\"c\": 4}" },
        { "{m: {x: 1, y: 2}}", "{m: {z: 3}}", "{\"m\": {\"z\": 3}}" },
        { "{m: {x: 1}}", "{m: null}", "{\"m\": null}" },
        { "{a: 18446744073709551615, b: 1.0}", "{a: '1'}", "{\"a\": \"1\", \"b\": 1.0}" },
    };
    struct fixture *fixture = *state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct det_datum *parent = read(fixture, rows[i].parent);
        const struct det_datum *child = read(fixture, rows[i].child);

        assert_string_equal(
            json(fixture, det_datum_merge(&fixture->arena, parent, child)), rows[i].merged);
    }
    assert_string_equal(json(fixture, det_datum_merge(&fixture->arena, NULL, NULL)), "{}");
}

static void copies_are_deep(void **state)
{
    struct fixture *fixture = *state;
    struct det_arena other;
    struct det_datum *datum = read(fixture, "{a: [1, {b: x, c: 1.5}], z: 3}"), *copy, *merged;

    det_arena_init(&other, &fixture->memory.allocator);
    copy = det_datum_copy(&other, datum);
    merged = det_datum_merge(&other, datum, datum);
    det_arena_deinit(&fixture->arena);
    det_arena_init(&fixture->arena, &fixture->memory.allocator);
    assert_string_equal(json(fixture, copy), "{\"a\": [1, {\"b\": \"x\", \"c\": 1.5}], \"z\": 3}");
    assert_int_equal(copy->first->first->next->column, 9);
    assert_true(det_datum_equal(copy, merged));
    det_arena_deinit(&other);
}

static int use_all(struct det_test_memory *memory, void *argument)
{
    static const char text[] =
        "{a: 1, b: [x, y], c: {d: e}, f: g, h: i, j: k, l: m, n: o, p: q, r: s, t: u}";
    struct det_buffer buffer = { .allocator = &memory->allocator };
    struct det_datum *datum, *copy, *merged;
    struct det_error error = { 0 };
    struct det_arena arena;
    int r;

    (void)argument;
    det_arena_init(&arena, &memory->allocator);
    r = det_datum_from_yaml(&arena, "text", text, sizeof text - 1, &datum, &error);
    if (r == 0) {
        copy = det_datum_copy(&arena, datum);
        merged = det_datum_merge(&arena, datum, copy ? copy : datum);
        if (copy && merged) {
            det_datum_write_yaml(merged, &buffer, put_scalar);
            det_datum_to_json(merged, &buffer);
            r = det_buffer_status(&buffer);
        } else {
            r = DET_ERR_NO_MEMORY;
        }
    } else {
        assert_int_equal(error.code, DET_ERR_NO_MEMORY);
    }
    det_buffer_deinit(&buffer);
    det_arena_deinit(&arena);
    return r;
}

static void allocation_failure_is_reported(void **state)
{
    (void)state;
    det_test_each_failure(use_all, NULL);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE(yaml_scalars_have_their_json_values),
        CASE(yaml_is_refused),
        CASE(limits_hold),
        CASE(large_maps_are_searched_quickly),
        CASE(datums_keep_their_lines),
        CASE(written_yaml_round_trips),
        CASE(yaml_output_is_indented),
        CASE(equal_is_by_value),
        CASE(datum_hash_is_stable),
        CASE(merging),
        CASE(copies_are_deep),
        CASE(allocation_failure_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
