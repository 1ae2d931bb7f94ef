/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* export_documents_test.c - documents go through an export, with their versions and times. */
#include <detent/tool/documents.h>

#include "transfer/export.h"
#include "transfer/import.h"

#include "transfer/export_test.h"
#include "transfer/hash_chain.h"

struct copy {
    char text[4096];
    struct det_document_position position;
};

static int note(void *context, const struct det_document *row)
{
    struct copy *copy = context;
    size_t length = strlen(copy->text);

    snprintf(
        copy->text + length, sizeof copy->text - length, "%s %s %d %llu %lld %lld %.*s\n",
        row->kind, row->id, (int)row->role, (unsigned long long)row->version,
        (long long)row->created_at, (long long)row->updated_at, (int)row->size, row->text);
    return 0;
}

static void read_copy(struct shop *shop, struct copy *ret)
{
    ret->text[0] = 0;
    assert_int_equal(
        det_store_documents_list(shop->store.store, NULL, note, ret, &ret->position), 0);
}

static void save(struct shop *shop, const char *id, enum det_document_role role, const char *text)
{
    const struct det_document_save save = {
        .kind = "link",
        .id = id,
        .role = role,
        .is_drop = !text,
        .text = text,
        .size = text ? strlen(text) : 0,
    };

    assert_int_equal(det_store_documents_save(shop->store.store, &save, 1, NULL, NULL), 0);
    shop_advance(shop, DET_SECOND);
}

static void documents_go_through_an_export(void **state)
{
    struct shop shop, target;
    struct copy before, after;

    (void)state;
    shop_open_with(&shop, NULL);
    save(&shop, "a/\xe2\x82\xac", DET_DOCUMENT_SPEC, "{ \"n\" : \"\\u0000\\n\\\"\xc3\xa4\" }");
    save(&shop, "b", DET_DOCUMENT_OBSERVED, "{\"n\":1}");
    save(&shop, "b", DET_DOCUMENT_OBSERVED, "{\"n\":18446744073709551615}");
    save(&shop, "b", DET_DOCUMENT_DESIRED, "{}");
    save(&shop, "c", DET_DOCUMENT_SPEC, "{}");
    save(&shop, "c", DET_DOCUMENT_SPEC, NULL);
    assert_int_equal(store_export(&shop.store, path), CLI_OK);
    assert_string_equal(
        shop_printed(&shop), "0 instances and 0 events exported\n3 documents exported\n");
    read_copy(&shop, &before);
    shop_open_with(&target, NULL);
    shop_advance(&target, DET_DAY);
    assert_int_equal(store_import(&target.store, path), CLI_OK);
    assert_string_equal(
        shop_printed(&target), "0 instances and 0 events imported\n3 documents imported\n");
    read_copy(&target, &after);
    assert_string_equal(before.text, after.text);
    /* A reader of the old store continues with the new one. */
    assert_int_equal(before.position.latest, 6);
    assert_int_equal(after.position.oldest, 7);
    assert_int_equal(after.position.latest, 9);
    assert_int_equal(store_import(&target.store, path), CLI_OK);
    assert_string_equal(
        shop_printed(&target), "0 instances and 0 events imported\n0 documents imported\n"
                               "3 documents already existed\n");
    shop_close(&target);
    shop_close(&shop);
}

/* A line, sealed between a head and its end. */
static void write_lines(const char *line)
{
    const char *const lines[] = { "\"kind\":\"store\",\"format\":4,\"program\":\"0.1\"", line,
                                  "\"kind\":\"end\",\"instances\":0,\"events\":0,\"documents\":1" };
    struct seal seal = { 0 };
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    for (int i = 0; i < 3; i++) {
        struct det_json_writer out;

        det_json_writer_init(&out, NULL);
        det_buffer_format(&out.text, "{%s", lines[i]);
        out.needs_comma = true;
        seal_close(&seal, &out);
        fprintf(file, "%s\n", det_buffer_text(&out.text));
        det_json_writer_deinit(&out);
    }
    fclose(file);
}

static void lines_of_documents_that_do_not_fit_are_refused(void **state)
{
#define OF "\"kind\":\"document\",\"of\":\"link\",\"sync\":9,"
#define AT                                      \
    ",\"created_at\":\"2026-01-01T00:00:00Z\"," \
    "\"updated_at\":\"2026-01-01T00:00:00Z\""
    static const char *const bad[] = {
        OF "\"id\":\"a\",\"role\":\"spec\",\"version\":1,\"text\":\"[]\"" AT,
        OF "\"id\":\"a\",\"role\":\"spec\",\"version\":1" AT,
        OF "\"id\":\"a\",\"role\":\"spec\",\"version\":0,\"text\":\"{}\"" AT,
        OF "\"id\":\"a\",\"role\":\"dream\",\"version\":1,\"text\":\"{}\"" AT,
        OF "\"id\":\"\",\"role\":\"spec\",\"version\":1,\"text\":\"{}\"" AT,
        OF "\"id\":\"a\",\"role\":\"spec\",\"version\":1,\"text\":\"{}\"",
    };
    struct copy copy;
    struct shop shop;

    (void)state;
    shop_open_with(&shop, NULL);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_lines(bad[i]);
        assert_int_equal(store_import(&shop.store, path), CLI_USAGE);
        read_copy(&shop, &copy);
        assert_string_equal(copy.text, "");
    }
    write_lines(OF "\"id\":\"a\",\"role\":\"spec\",\"version\":3,\"text\":\"{}\"" AT);
    assert_int_equal(store_import(&shop.store, path), CLI_OK);
    read_copy(&shop, &copy);
    assert_int_equal(copy.position.latest, 10);
    shop_close(&shop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(documents_go_through_an_export),
        TEST(lines_of_documents_that_do_not_fit_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
