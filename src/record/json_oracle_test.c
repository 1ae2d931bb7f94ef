/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* json_oracle_test.c - our reader of JSON against jansson, on random documents, right and wrong:
 * both take the same ones and find the same values in them. */
#include <jansson.h>
#include <math.h>

#include "lib/test.h"
#include "record/json.h"
#include "record/number.h"

#define TEXT_MAX 4096

struct document {
    uint64_t seed;
    char text[TEXT_MAX];
    size_t size;
};

static uint32_t below(struct document *document, uint32_t limit)
{
    return (uint32_t)(det_test_random(&document->seed) % limit);
}

static void put(struct document *document, const char *text)
{
    size_t length = strlen(text);

    if (document->size + length < TEXT_MAX) {
        memcpy(document->text + document->size, text, length);
        document->size += length;
    }
}

static void put_scalar(struct document *document)
{
    static const char *const scalars[] = { "0",
                                           "-0",
                                           "1",
                                           "-1",
                                           "18446744073709551615",
                                           "12.5",
                                           "9223372036854775807",
                                           "-9223372036854775808",
                                           "1e5",
                                           "-2.5E-3",
                                           "0.1",
                                           "true",
                                           "false",
                                           "null",
                                           "\"\"",
                                           "\"a b\"",
                                           "\"\\u00e4\\n\\\\\\/\"",
                                           "\"\xe2\x82\xac\"",
                                           "\"\\ud83d\\ude00\"",
                                           "\"\\u0000\"",
                                           "\"\xf0\x9f\x98\x80\"",
                                           "4.9e-324",
                                           "1e308" };

    put(document, scalars[below(document, sizeof scalars / sizeof scalars[0])]);
}

/* A random valid document, built from the outside with a stack of what is open. */
static void make_document(struct document *document, uint64_t seed)
{
    static const char *const spaces[] = { "", "", "", " ", "\n\t", " \r " };
    bool is_object[8];
    unsigned depth = 0;
    char key[24];
    bool first = true;

    *document = (struct document){ .seed = seed };
    for (unsigned i = 0; i < 60; i++) {
        put(document, spaces[below(document, 6)]);
        if (depth > 0 && below(document, 4) == 0) {
            put(document, is_object[--depth] ? "}" : "]");
            first = false;
        } else {
            if (depth > 0 && !first)
                put(document, ",");
            if (depth > 0 && is_object[depth - 1]) {
                snprintf(key, sizeof key, "\"k%u\"%s:", i, spaces[below(document, 6)]);
                put(document, key);
            }
            first = depth < 8 && below(document, 3) == 0;
            if (first) {
                is_object[depth] = below(document, 2);
                put(document, is_object[depth++] ? "{" : "[");
            } else {
                put_scalar(document);
            }
        }
        if (depth == 0)
            return;
    }
    while (depth > 0)
        put(document, is_object[--depth] ? "}" : "]");
}

static void damage(struct document *document)
{
    static const char bytes[] = "{}[]\",:\\u0-.e+ \n\ttfna1\x80\xc3\xed\xff\x01";
    uint32_t at = below(document, (uint32_t)document->size + 1);

    switch (below(document, 3)) {
    case 0:
        if (at < document->size)
            document->text[at] = bytes[below(document, sizeof bytes - 1)];
        break;
    case 1:
        document->size = at;
        break;
    default:
        memmove(
            document->text + at, document->text + at + (at < document->size), document->size - at);
        document->size -= at < document->size;
        break;
    }
}

/* The value of jansson for the current container of our tokens. */
struct level {
    json_t *value;
    size_t index;
};

static void same_string(const json_t *value, struct det_view escaped)
{
    char text[TEXT_MAX];
    size_t size = det_json_unescape(escaped, text, sizeof text);

    assert_true(json_is_string(value));
    assert_int_equal(size, json_string_length(value));
    assert_memory_equal(text, json_string_value(value), size);
}

static void same_number(const json_t *value, struct det_view text)
{
    uint64_t magnitude;
    bool is_negative;
    double number;

    if (json_is_integer(value)) {
        assert_int_equal(det_json_integer(text, &is_negative, &magnitude), 0);
        assert_true(
            (uint64_t)json_integer_value(value) == (is_negative ? 0 - magnitude : magnitude));
        return;
    }
    assert_true(json_is_real(value));
    assert_int_equal(det_parse_double(text, &number), 0);
    assert_true(json_real_value(value) == number);
}

static void same_scalar(const json_t *value, const struct det_json_token *token)
{
    switch (token->kind) {
    case DET_JSON_STRING:
        same_string(value, token->text);
        break;
    case DET_JSON_NUMBER:
        same_number(value, token->text);
        break;
    case DET_JSON_TRUE:
        assert_true(json_is_true(value));
        break;
    case DET_JSON_FALSE:
        assert_true(json_is_false(value));
        break;
    case DET_JSON_NULL:
        assert_true(json_is_null(value));
        break;
    case DET_JSON_END:
    case DET_JSON_OBJECT:
    case DET_JSON_OBJECT_END:
    case DET_JSON_ARRAY:
    case DET_JSON_ARRAY_END:
    case DET_JSON_KEY:
        fail();
    }
}

/* Goes through our tokens and jansson's tree side by side. */
static void compare(json_t *tree, const struct document *document)
{
    struct level levels[DET_JSON_DEPTH_MAX] = { 0 };
    struct det_json_token token;
    struct det_json_scanner json;
    json_t *value = tree;
    unsigned depth = 0;
    char key[64];

    det_json_scanner_init(&json, document->text, document->size);
    for (;;) {
        assert_int_equal(det_json_scan(&json, &token, NULL), 0);
        if (token.kind == DET_JSON_END)
            return;
        if (token.kind == DET_JSON_OBJECT_END || token.kind == DET_JSON_ARRAY_END) {
            depth--;
            assert_int_equal(
                levels[depth].index, token.kind == DET_JSON_OBJECT_END
                                         ? json_object_size(levels[depth].value)
                                         : json_array_size(levels[depth].value));
            continue;
        }
        if (token.kind == DET_JSON_KEY) {
            key[det_json_unescape(token.text, key, sizeof key - 1)] = 0;
            value = json_object_get(levels[depth - 1].value, key);
            levels[depth - 1].index++;
            continue;
        }
        if (depth > 0 && json_is_array(levels[depth - 1].value))
            value = json_array_get(levels[depth - 1].value, levels[depth - 1].index++);
        if (token.kind == DET_JSON_OBJECT || token.kind == DET_JSON_ARRAY)
            levels[depth++] = (struct level){ value, 0 };
        else
            same_scalar(value, &token);
    }
}

static int read_all(const struct document *document)
{
    struct det_json_token token;
    struct det_json_scanner json;
    int r;

    det_json_scanner_init(&json, document->text, document->size);
    do {
        r = det_json_scan(&json, &token, NULL);
    } while (r == 0 && token.kind != DET_JSON_END);
    return r;
}

/* Jansson refuses numbers beyond 64 bits or a double while it parses; to us they are tokens. */
static bool is_number_error(const json_error_t *error)
{
    enum json_error_code code = json_error_code(error);

    return code == json_error_numeric_overflow;
}

static void valid_documents_have_the_same_values(void **state)
{
    const size_t flags = JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES;
    static struct document document;
    json_error_t error;
    size_t compared = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= 20000; seed++) {
        make_document(&document, seed);
        json_t *tree = json_loadb(document.text, document.size, flags, &error);

        assert_int_equal(read_all(&document), 0);
        if (!tree) {
            assert_true(is_number_error(&error));
            continue;
        }
        compare(tree, &document);
        json_decref(tree);
        compared++;
    }
    assert_true(compared > 10000);
}

static void damaged_documents_get_the_same_verdict_as_jansson(void **state)
{
    const size_t flags = JSON_DECODE_ANY | JSON_ALLOW_NUL;
    static struct document document;
    json_error_t error;
    size_t refused = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= 60000; seed++) {
        make_document(&document, seed);
        damage(&document);
        json_t *tree = json_loadb(document.text, document.size, flags, &error);
        int r = read_all(&document);

        if (!tree && is_number_error(&error))
            continue;
        if ((r == 0) != (tree != NULL))
            fail_msg(
                "seed %llu: ours %s, jansson %s: %.*s", (unsigned long long)seed, det_error_name(r),
                tree ? "fine" : error.text, (int)document.size, document.text);
        refused += r < 0;
        json_decref(tree);
    }
    assert_true(refused > 20000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(valid_documents_have_the_same_values),
        cmocka_unit_test(damaged_documents_get_the_same_verdict_as_jansson),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
