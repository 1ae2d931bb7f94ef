/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* document_test.c - fields of documents, differences of two, and one call of save: written
 * examples, and random ones compared with a model. */
#include "store/document.h"

#include "lib/test.h"

#define TEXT_MAX 8192

static int read_text(struct det_document_fields *fields, const char *text, struct det_error *reterr)
{
    return det_document_fields_read(fields, text, strlen(text), reterr);
}

static bool are_equal(const char *left, const char *right)
{
    struct det_document_fields a, b;
    bool is_equal;

    det_document_fields_init(&a, NULL);
    det_document_fields_init(&b, NULL);
    assert_int_equal(read_text(&a, left, NULL), 0);
    assert_int_equal(read_text(&b, right, NULL), 0);
    is_equal = det_document_fields_equal(&a, &b);
    det_document_fields_deinit(&a);
    det_document_fields_deinit(&b);
    return is_equal;
}

static bool are_equal_values(const char *left, const char *right)
{
    char a[256], b[256];

    snprintf(a, sizeof a, "{\"v\":%s}", left);
    snprintf(b, sizeof b, "{\"v\":%s}", right);
    return are_equal(a, b);
}

static void numbers_are_equal_by_value(void **state)
{
    static const char *const groups[][6] = {
        { "0", "-0", "0.0", "0e5", "-0.00E-99999999999999999999", NULL },
        { "1", "1.0", "10e-1", "0.1e1", "0.001E+3", NULL },
        { "-1", "-1.0", "-10e-1", "-100e-2", NULL },
        { "10", "1e1", "10.0", "0.1e2", NULL },
        { "100", "1e2", "100.00", NULL },
        { "1.5", "15e-1", "1.50", "0.15e1", NULL },
        { "0.05", "5e-2", "0.050", "0.5E-1", NULL },
        { "105", "1.05e2", "105.0", NULL },
        { "18446744073709551615", "18446744073709551615.0", "1844674407370955161.5e1", NULL },
        { "18446744073709551614", NULL },
        { "9007199254740993", NULL },
        { "9007199254740992", "9007199254740992e0", NULL },
        { "-9223372036854775808", NULL },
        { "-9223372036854775807", NULL },
        { "1e999999999999999999999", NULL },
        { "1e-999999999999999999999", NULL },
        { "123456789012345678901234567890", "12345678901234567890123456789.0e1", NULL },
    };
    const size_t count = sizeof groups / sizeof groups[0];

    (void)state;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < count; k++)
            for (size_t a = 0; groups[i][a]; a++)
                for (size_t b = 0; groups[k][b]; b++)
                    if (are_equal_values(groups[i][a], groups[k][b]) != (i == k))
                        fail_msg("%s and %s", groups[i][a], groups[k][b]);
}

static void values_of_different_kinds_are_different(void **state)
{
    static const char *const values[] = {
        "null",       "true",    "false",         "0",         "1",
        "\"\"",       "\"0\"",   "\"null\"",      "[]",        "{}",
        "[null]",     "[[]]",    "[{}]",          "{\"a\":1}", "[0]",
        "{\"a\":{}}", "[\"a\"]", "[1,[2]]",       "[[1],2]",   "\"\\u0000\"",
        "[1,2]",      "[12]",    "\"1,2\"",       "[\"1\"]",   "{\"\":0}",
        "{\"a\":[]}", "[true]",  "[\"a\",\"b\"]", "[\"ab\"]",  "[\"\",\"ab\"]",
    };
    const size_t count = sizeof values / sizeof values[0];

    (void)state;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < count; k++)
            if (are_equal_values(values[i], values[k]) != (i == k))
                fail_msg("%s and %s", values[i], values[k]);
}

static void member_order_is_ignored_and_element_order_matters(void **state)
{
    (void)state;
    assert_true(
        are_equal("{\"a\":1,\"b\":{\"x\":1,\"y\":2}}", "{\"b\":{\"y\":2,\"x\":1},\"a\":1}"));
    assert_true(are_equal_values(
        "[{\"b\":1,\"a\":[{\"d\":1,\"c\":2}]}]", "[{\"a\":[{\"c\":2,\"d\":1}],\"b\":1}]"));
    assert_false(are_equal_values("[1,2]", "[2,1]"));
    assert_false(are_equal("{\"a\":1,\"b\":2}", "{\"a\":2,\"b\":1}"));
    /* A name that is a prefix of another one. */
    assert_true(are_equal("{\"ab\":1,\"a\":2}", "{\"a\":2,\"ab\":1}"));
    assert_false(are_equal("{\"ab\":1}", "{\"a\":1}"));
}

static void assert_delta(const char *old, const char *new, const char *expected)
{
    struct det_document_fields a, b;
    struct det_buffer text;

    det_document_fields_init(&a, NULL);
    det_document_fields_init(&b, NULL);
    det_buffer_init(&text, NULL);
    if (old)
        assert_int_equal(read_text(&a, old, NULL), 0);
    if (new)
        assert_int_equal(read_text(&b, new, NULL), 0);
    det_document_write_delta(old ? &a : NULL, new ? &b : NULL, &text);
    assert_string_equal(det_buffer_text(&text), expected);
    det_buffer_deinit(&text);
    det_document_fields_deinit(&a);
    det_document_fields_deinit(&b);
}

static void delta_contains_the_differences(void **state)
{
    (void)state;
    assert_delta(NULL, "{}", "{}");
    assert_delta("{}", NULL, "{}");
    assert_delta("{\"a\":1}", "{ \"a\" : 1.0 }", "{}");
    assert_delta(NULL, "{\"b\":1,\"a\":[ 1 ]}", "{\"added\":{\"a\":[ 1 ],\"b\":1}}");
    assert_delta("{\"b\":1,\"a\":\"\\u0061\"}", NULL, "{\"removed\":{\"a\":\"\\u0061\",\"b\":1}}");
    assert_delta(
        "{\"a\":1,\"b\":{\"x\":true},\"c\":null,\"d\":3}",
        "{\"e\":5,\"d\":4,\"b\":{\"x\":false},\"a\":1,\"0\":0}",
        "{\"added\":{\"0\":0,\"e\":5},"
        "\"modified\":{\"b\":{\"old\":{\"x\":true},\"new\":{\"x\":false}},"
        "\"d\":{\"old\":3,\"new\":4}},"
        "\"removed\":{\"c\":null}}");
    assert_delta("{\"\":1}", "{\"\":\"\"}", "{\"modified\":{\"\":{\"old\":1,\"new\":\"\"}}}");
}

static void invalid_document_is_refused_with_a_reason(void **state)
{
    static const struct {
        const char *text, *reason;
    } bad[] = {
        { "", "not JSON, at byte 0" },
        { "[1]", "not a JSON object" },
        { "3", "not a JSON object" },
        { "{\"a\":1", "not JSON, at byte 6" },
        { "{\"a\":1,\"b\":2,\"a\":3}", "duplicate field \"a\"" },
        { "{\"a\":1,\"\\u0061\":3}", "duplicate field" },
        { "{\"x\":[{\"q\":1,\"b\":2,\"q\":3}]}", "duplicate field \"q\"" },
    };
    struct det_document_fields fields;
    struct det_error error;
    char deep[200];

    (void)state;
    det_document_fields_init(&fields, NULL);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(read_text(&fields, bad[i].text, &error), DET_ERR_INVALID);
        if (!strstr(error.text, bad[i].reason))
            fail_msg("%s: %s", bad[i].text, error.text);
    }
    snprintf(
        deep, sizeof deep, "{\"a\":%.*s", 90,
        "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["
        "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[");
    assert_int_equal(read_text(&fields, deep, &error), DET_ERR_INVALID);
    assert_int_equal(read_text(&fields, "{\"a\":1}", NULL), 0);
    det_document_fields_deinit(&fields);
}

/* Random documents: a model of the values, independent of their spelling. */

#define MEMBERS 4

/* Each in three spellings. */
static const char *const leaves[][3] = {
    { "null", "null", "null" },
    { "true", "true", "true" },
    { "false", "false", "false" },
    { "0", "-0", "0.0" },
    { "7", "7.0", "0.7e1" },
    { "-250", "-2.5e2", "-250.00" },
    { "18446744073709551615", "18446744073709551615", "18446744073709551615.0" },
    { "18446744073709551614", "18446744073709551614", "1844674407370955161.4E1" },
    { "\"\"", "\"\"", "\"\"" },
    { "\"a/b\"", "\"\\u0061\\/b\"", "\"a/\\u0062\"" },
    { "\"7\"", "\"\\u0037\"", "\"7\"" },
    { "\"\xf0\x9f\x98\x80\"", "\"\\ud83d\\ude00\"", "\"\\uD83D\\uDE00\"" },
};

/* A value in a plain form, for comparison, and in some spelling. */
struct spelling {
    uint64_t style; /* the chance by which it is spelled */
    char plain[TEXT_MAX], text[TEXT_MAX];
    size_t plain_size, size;
};

static uint32_t below(uint64_t *seed, uint32_t limit)
{
    return (uint32_t)(det_test_random(seed) % limit);
}

static void put_plain(struct spelling *spelling, const char *text)
{
    spelling->plain_size += (size_t)snprintf(
        spelling->plain + spelling->plain_size, TEXT_MAX - spelling->plain_size, "%s", text);
    assert_true(spelling->plain_size < TEXT_MAX);
}

static void put_text(struct spelling *spelling, const char *text)
{
    const char *space = below(&spelling->style, 3) ? "" : below(&spelling->style, 2) ? " " : "\n\t";

    spelling->size += (size_t)snprintf(
        spelling->text + spelling->size, TEXT_MAX - spelling->size, "%s%s", space, text);
    assert_true(spelling->size < TEXT_MAX);
}

static uint32_t leaf_of(uint64_t seed)
{
    return below(&seed, sizeof leaves / sizeof leaves[0]);
}

static void put_leaf_text(struct spelling *spelling, uint64_t seed)
{
    put_text(spelling, leaves[leaf_of(seed)][below(&spelling->style, 3)]);
}

/* A leaf, or a flat array or object, whose members are written from either end. */
static void put_value(struct spelling *spelling, uint64_t seed)
{
    static const char *const keys[][2] = { { "\"p\":", "\"\\u0070\":" },
                                           { "\"q\":", "\"q\" :" },
                                           { "\"qr\":", "\"q\\u0072\":" } };
    uint32_t kind = below(&seed, 6), count = below(&seed, 4);
    bool is_object = kind == 1, is_back = is_object && below(&spelling->style, 2);

    if (kind > 1) {
        put_plain(spelling, leaves[leaf_of(seed)][0]);
        put_leaf_text(spelling, seed);
        return;
    }
    put_plain(spelling, is_object ? "{" : "[");
    put_text(spelling, is_object ? "{" : "[");
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = is_back ? count - 1 - i : i;

        put_plain(spelling, is_object ? keys[i][0] : ",");
        put_plain(spelling, leaves[leaf_of(seed + i)][0]);
        put_text(spelling, i ? "," : "");
        put_text(spelling, is_object ? keys[at][below(&spelling->style, 2)] : "");
        put_leaf_text(spelling, seed + at);
    }
    put_text(spelling, is_object ? "}" : "]");
}

struct model {
    uint64_t values[MEMBERS]; /* seeds; 0: there is none */
};

static const char *const names[MEMBERS] = { "a", "aa", "b", "\xc3\xa4" };

static void spell(uint64_t seed, uint64_t style, struct spelling *ret)
{
    *ret = (struct spelling){ .style = style };
    put_value(ret, seed);
}

static void write_document(
    const struct model *model, uint64_t *chance, char text[4 * TEXT_MAX],
    char spelled[MEMBERS][TEXT_MAX])
{
    static const char *const escaped[MEMBERS] = { "\\u0061", "a\\u0061", "b", "\\u00e4" };
    static struct spelling spelling;
    uint32_t first = below(chance, MEMBERS);
    const char *separator = "";
    int size = snprintf(text, 4 * TEXT_MAX, "{");

    for (uint32_t i = 0; i < MEMBERS; i++) {
        uint32_t at = (first + i) % MEMBERS;

        if (!model->values[at])
            continue;
        spell(model->values[at], det_test_random(chance), &spelling);
        snprintf(spelled[at], TEXT_MAX, "%s", spelling.text + strspn(spelling.text, " \n\t"));
        size += snprintf(
            text + size, (size_t)(4 * TEXT_MAX - size), "%s\"%s\" :%s", separator,
            below(chance, 2) ? escaped[at] : names[at], spelling.text);
        separator = " , ";
    }
    snprintf(text + size, (size_t)(4 * TEXT_MAX - size), "}");
}

static bool is_same_value(uint64_t left, uint64_t right)
{
    static struct spelling a, b;

    spell(left, 1, &a);
    spell(right, 1, &b);
    return strcmp(a.plain, b.plain) == 0;
}

/* Takes the value at `*place`, and the separator behind it. */
static void expect(const char **place, const char *text)
{
    size_t length = strlen(text);

    if (strncmp(*place, text, length) != 0)
        fail_msg("expected %s at %.100s", text, *place);
    *place += length;
}

/* Expects the original spelling, but names may be escaped. */
static void expect_name(const char **place, uint32_t at)
{
    static const char *const escaped[MEMBERS] = { "\"\\u0061\":", "\"a\\u0061\":", "\"b\":",
                                                  "\"\\u00e4\":" };
    char plain[16];

    snprintf(plain, sizeof plain, "\"%s\":", names[at]);
    expect(place, strncmp(*place, plain, strlen(plain)) == 0 ? plain : escaped[at]);
}

static char difference_of(const struct model *old, const struct model *new, uint32_t at)
{
    if (!old->values[at] || !new->values[at])
        return old->values[at] ? 'r' : new->values[at] ? 'a' : ' ';
    return is_same_value(old->values[at], new->values[at]) ? ' ' : 'm';
}

static void check_delta(
    const char *delta, const struct model *old, const struct model *new,
    char spelled_old[MEMBERS][TEXT_MAX], char spelled_new[MEMBERS][TEXT_MAX])
{
    static const char *const heads[] = { "\"added\":{", "\"modified\":{", "\"removed\":{" };
    const char *place = delta;
    unsigned kinds = 0;

    expect(&place, "{");
    for (unsigned kind = 0; kind < 3; kind++) {
        unsigned count = 0;

        for (uint32_t at = 0; at < MEMBERS; at++) {
            if (difference_of(old, new, at) != "amr"[kind])
                continue;
            if (!count)
                expect(&place, kinds++ ? "," : "");
            expect(&place, count++ ? "," : heads[kind]);
            expect_name(&place, at);
            expect(&place, kind == 1 ? "{\"old\":" : "");
            expect(&place, kind ? spelled_old[at] : "");
            expect(&place, kind == 1 ? ",\"new\":" : "");
            expect(&place, kind < 2 ? spelled_new[at] : "");
            expect(&place, kind == 1 ? "}" : "");
        }
        expect(&place, count ? "}" : "");
    }
    expect(&place, "}");
    assert_int_equal(*place, 0);
}

static void random_document_deltas_match_their_models(void **state)
{
    static char old_text[4 * TEXT_MAX], new_text[4 * TEXT_MAX];
    static char spelled_old[MEMBERS][TEXT_MAX], spelled_new[MEMBERS][TEXT_MAX];
    struct det_document_fields a, b;
    struct det_buffer delta;
    uint64_t chance = 42;

    (void)state;
    det_document_fields_init(&a, NULL);
    det_document_fields_init(&b, NULL);
    det_buffer_init(&delta, NULL);
    for (int round = 0; round < 1500; round++) {
        struct model old = { { 0 } }, new;
        bool is_same = true;

        for (uint32_t at = 0; at < MEMBERS; at++)
            old.values[at] = below(&chance, 4) ? 1 + below(&chance, 500) : 0;
        new = old;
        for (uint32_t n = below(&chance, 3); n; n--)
            new.values[below(&chance, MEMBERS)] = below(&chance, 3) ? 1 + below(&chance, 500) : 0;
        write_document(&old, &chance, old_text, spelled_old);
        write_document(&new, &chance, new_text, spelled_new);
        assert_int_equal(read_text(&a, old_text, NULL), 0);
        assert_int_equal(read_text(&b, new_text, NULL), 0);
        det_document_write_delta(&a, &b, &delta);
        check_delta(det_buffer_text(&delta), &old, &new, spelled_old, spelled_new);
        for (uint32_t at = 0; at < MEMBERS; at++)
            is_same = is_same && difference_of(&old, &new, at) == ' ';
        assert_int_equal(det_document_fields_equal(&a, &b), is_same);
    }
    det_buffer_deinit(&delta);
    det_document_fields_deinit(&a);
    det_document_fields_deinit(&b);
}

/* Any bytes are read as a valid document or refused. */
static void arbitrary_bytes_are_read_or_refused(void **state)
{
    static const char alphabet[] = "{}[]\",:\\u0aeE1.-+ntf \xc3\xa4\xff\n";
    struct det_document_fields fields;
    char text[64];
    uint64_t chance = 7;

    (void)state;
    det_document_fields_init(&fields, NULL);
    for (int round = 0; round < 50000; round++) {
        size_t size = below(&chance, sizeof text);
        int r;

        for (size_t i = 0; i < size; i++)
            text[i] = alphabet[below(&chance, sizeof alphabet - 1)];
        if (size > 8 && below(&chance, 2))
            memcpy(text, "{\"a\":1,", 7);
        r = det_document_fields_read(&fields, text, size, NULL);
        assert_true(r == 0 || r == DET_ERR_INVALID);
    }
    det_document_fields_deinit(&fields);
}

/* A call. */

static int save_in(struct det_test_memory *memory, void *argument)
{
    static const char text[] = "{\"b\":{\"z\":1,\"y\":\"\\u0061\"},\"a\":[1,2,3]}";
    const struct det_document_save saves[] = {
        { .kind = "link",
          .id = "a",
          .role = DET_DOCUMENT_SPEC,
          .text = text,
          .size = sizeof text - 1 },
        { .kind = "link", .id = "a", .role = DET_DOCUMENT_SPEC, .text = "{\"c\":1}", .size = 7 },
        { .kind = "link", .id = "b", .role = DET_DOCUMENT_SPEC, .is_drop = true },
    };
    struct det_document row = { .text = text, .size = sizeof text - 1, .version = 4, .sync = 9 };
    struct det_document_stage stage;
    struct det_document_saved saved[3];
    int r;

    (void)argument;
    r = det_document_stage_open(&stage, &memory->allocator, saves, 3, NULL);
    if (r == 0)
        r = det_document_stage_fill(&stage, stage.cells[1], &row);
    if (r == 0)
        r = det_document_stage_validate(&stage, 20, 5, NULL);
    if (r == 0) {
        det_document_stage_answer(&stage, saved);
        assert_int_equal(stage.change_count, 3);
        assert_int_equal(stage.cell_count, 2);
        assert_true(saved[1].sync == 22 && saved[1].version == 2 && saved[2].sync == 23);
        assert_int_equal(stage.changes[2].version, 4);
        assert_int_equal(stage.changes[2].change, DET_DOCUMENT_DROPPED);
    }
    det_document_stage_close(&stage);
    return r;
}

static void document_save_call_reports_failed_allocations(void **state)
{
    (void)state;
    det_test_each_failure(save_in, NULL);
}

static void damaged_stored_document_is_reported(void **state)
{
    const struct det_document_save save = {
        .kind = "link", .id = "a", .role = DET_DOCUMENT_SPEC, .text = "{}", .size = 2
    };
    struct det_document row = { .text = "{\"a\":", .size = 5, .version = 1, .sync = 1 };
    struct det_document_stage stage;
    struct det_error error;

    (void)state;
    assert_int_equal(det_document_stage_open(&stage, NULL, &save, 1, &error), 0);
    assert_int_equal(det_document_stage_fill(&stage, stage.cells[0], &row), 0);
    assert_int_equal(det_document_stage_validate(&stage, 1, 1, &error), DET_ERR_CORRUPT);
    assert_non_null(strstr(error.text, "link a, spec: "));
    det_document_stage_close(&stage);
}

static void document_roles_and_changes_are_found_by_name(void **state)
{
    enum det_document_role role;
    enum det_document_change change;

    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(
            det_document_role_find(det_document_role_name((enum det_document_role)i), &role), 0);
        assert_int_equal(role, i);
    }
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(
            det_document_change_find(
                det_document_change_name((enum det_document_change)i), &change),
            0);
        assert_int_equal(change, i);
    }
    assert_int_equal(det_document_role_find("other", &role), DET_ERR_CORRUPT);
    assert_int_equal(det_document_role_find(NULL, &role), DET_ERR_CORRUPT);
    assert_int_equal(det_document_change_find("", &change), DET_ERR_CORRUPT);
    assert_true(det_document_is_below("a/b", "a") && det_document_is_below("a", "a"));
    assert_false(det_document_is_below("ab", "a") || det_document_is_below("a", "a/b"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_equal_by_value),
        cmocka_unit_test(values_of_different_kinds_are_different),
        cmocka_unit_test(member_order_is_ignored_and_element_order_matters),
        cmocka_unit_test(delta_contains_the_differences),
        cmocka_unit_test(invalid_document_is_refused_with_a_reason),
        cmocka_unit_test(random_document_deltas_match_their_models),
        cmocka_unit_test(arbitrary_bytes_are_read_or_refused),
        cmocka_unit_test(document_save_call_reports_failed_allocations),
        cmocka_unit_test(damaged_stored_document_is_reported),
        cmocka_unit_test(document_roles_and_changes_are_found_by_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
