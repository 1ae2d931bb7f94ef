/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* document_print_test.c - the documents of a store, as people and programs see them. */
#include "inspect/document_print.h"

#include <detent/sim.h>

#include "terminal/output_test.h"

struct desk {
    struct det_sim *sim;
    struct det_store *store;
};

static void open_desk(struct desk *desk)
{
    struct det_store_options options = { 0 };

    assert_int_equal(det_sim_open(NULL, &desk->sim, NULL), 0);
    options.world = det_sim_world(desk->sim);
    assert_int_equal(det_store_open_with("memory:", &options, &desk->store, NULL), 0);
}

static void close_desk(struct desk *desk)
{
    det_store_close(desk->store);
    det_sim_close(desk->sim);
}

static void save(struct desk *desk, const char *id, enum det_document_role role, const char *text)
{
    struct det_document_save save = { .kind = "link", .id = id, .role = role };
    struct det_error error = { 0 };

    save.is_drop = text == NULL;
    save.text = text;
    save.size = text ? strlen(text) : 0;
    assert_int_equal(det_store_documents_save(desk->store, &save, 1, NULL, &error), 0);
}

static void fill(struct desk *desk)
{
    open_desk(desk);
    save(desk, "plant/a", DET_DOCUMENT_IDENTITY, "{\"name\":\"a\",\"kind\":\"link\"}");
    save(desk, "plant/a", DET_DOCUMENT_OBSERVED, "{\"state\":\"stopped\",\"old\":1}");
    save(desk, "plant/a", DET_DOCUMENT_OBSERVED, "{\"state\":\"up\"}");
    save(desk, "plant/b", DET_DOCUMENT_DESIRED, "{}");
    save(desk, "plant/b", DET_DOCUMENT_OBSERVED, "{\"_own\":1}");
}

static void text_dump_shows_deltas_and_documents(void **state)
{
    struct caught caught;
    struct desk desk;

    (void)state;
    fill(&desk);
    catch_output(&caught);
    assert_int_equal(cli_dump_print(&caught.cli, desk.store, NULL, false), 0);
    expect_output(
        &caught, "Deltas: sync ids 1 to 5\n"
                 "[1] 00:00:00.000 | link/plant/a | identity created, version 1\n"
                 "  + kind: \"link\"\n"
                 "  + name: \"a\"\n"
                 "[2] 00:00:00.000 | link/plant/a | observed created, version 1\n"
                 "  + old: 1\n"
                 "  + state: \"stopped\"\n"
                 "[3] 00:00:00.000 | link/plant/a | observed changed, version 2\n"
                 "  ~ state: \"stopped\" -> \"up\"\n"
                 "  - old: 1\n"
                 "[4] 00:00:00.000 | link/plant/b | desired created, version 1\n"
                 "[5] 00:00:00.000 | link/plant/b | observed created, version 1\n"
                 "  + _own: 1\n"
                 "\n"
                 "Documents\n"
                 "  plant/a (link)\n"
                 "    identity version 1, sync 1\n"
                 "      kind: \"link\"\n"
                 "      name: \"a\"\n"
                 "    observed version 2, sync 3\n"
                 "      state: \"up\"\n"
                 "  plant/b (link)\n"
                 "    desired version 1, sync 4 (empty)\n"
                 "    observed version 1, sync 5 (only fields of the store)\n"
                 "\n"
                 "5 deltas, 4 documents of 2 workers\n");
    close_desk(&desk);
}

static void a_query_leaves_out_what_is_not_wanted(void **state)
{
    struct det_document_query query = { .id = "plant/b",
                                        .has_role = true,
                                        .role = DET_DOCUMENT_DESIRED };
    struct caught caught;
    struct desk desk;

    (void)state;
    fill(&desk);
    catch_output(&caught);
    assert_int_equal(cli_dump_print(&caught.cli, desk.store, &query, false), 0);
    expect_output(
        &caught, "Deltas: sync ids 1 to 5\n"
                 "[4] 00:00:00.000 | link/plant/b | desired created, version 1\n"
                 "\n"
                 "Documents\n"
                 "  plant/b (link)\n"
                 "    desired version 1, sync 4 (empty)\n"
                 "\n"
                 "1 delta, 1 document of 1 worker\n");
    close_desk(&desk);
}

#define SPEC(password)                                         \
    "{\"name\":\"a\",\"config\":\"{password: " password "}\"," \
    "\"variables\":\"{TOKEN: " password "}\"}"

static void fill_specs(struct desk *desk)
{
    open_desk(desk);
    save(desk, "plant/a", DET_DOCUMENT_SPEC, SPEC("first"));
    save(desk, "plant/a", DET_DOCUMENT_SPEC, SPEC("second"));
    save(desk, "plant/a", DET_DOCUMENT_SPEC, "{\"name\":\"a\"}");
    save(desk, "plant/a", DET_DOCUMENT_SPEC, SPEC("third"));
}

static void secrets_of_manual_workers_are_redacted(void **state)
{
    struct caught caught;
    struct desk desk;

    (void)state;
    fill_specs(&desk);
    catch_output(&caught);
    assert_int_equal(cli_dump_print(&caught.cli, desk.store, NULL, false), 0);
    expect_output(
        &caught, "Deltas: sync ids 1 to 4\n"
                 "[1] 00:00:00.000 | link/plant/a | spec created, version 1\n"
                 "  + config: \"{redacted}\"\n"
                 "  + name: \"a\"\n"
                 "  + variables: \"{redacted}\"\n"
                 "[2] 00:00:00.000 | link/plant/a | spec changed, version 2\n"
                 "  ~ config: \"{redacted}\" -> \"{redacted}\"\n"
                 "  ~ variables: \"{redacted}\" -> \"{redacted}\"\n"
                 "[3] 00:00:00.000 | link/plant/a | spec changed, version 3\n"
                 "  - config: \"{redacted}\"\n"
                 "  - variables: \"{redacted}\"\n"
                 "[4] 00:00:00.000 | link/plant/a | spec changed, version 4\n"
                 "  + config: \"{redacted}\"\n"
                 "  + variables: \"{redacted}\"\n"
                 "\n"
                 "Documents\n"
                 "  plant/a (link)\n"
                 "    spec version 4, sync 4\n"
                 "      config: \"{redacted}\"\n"
                 "      name: \"a\"\n"
                 "      variables: \"{redacted}\"\n"
                 "\n"
                 "4 deltas, 1 document of 1 worker\n");
    close_desk(&desk);
}

/* Returns true if the output has the password. */
static bool is_shown(struct desk *desk, bool is_json, bool is_revealed)
{
    struct caught caught;
    bool is_there;

    catch_output(&caught);
    caught.cli.is_json = is_json;
    assert_int_equal(cli_dump_print(&caught.cli, desk->store, NULL, is_revealed), 0);
    fclose(caught.cli.out);
    is_there = strstr(caught.text, "third") != NULL;
    free(caught.text);
    return is_there;
}

static void secrets_are_shown_on_request(void **state)
{
    struct desk desk;

    (void)state;
    fill_specs(&desk);
    assert_false(is_shown(&desk, false, false));
    assert_false(is_shown(&desk, true, false));
    assert_true(is_shown(&desk, false, true));
    assert_true(is_shown(&desk, true, true));
    close_desk(&desk);
}

static void unparseable_spec_document_is_redacted_completely(void **state)
{
    struct desk desk;

    (void)state;
    open_desk(&desk);
    save(
        &desk, "plant/a", DET_DOCUMENT_SPEC,
        "{\"config\":\"third\",\"size\":123456789012345678901234567890}");
    assert_false(is_shown(&desk, false, false));
    assert_false(is_shown(&desk, true, false));
    assert_true(is_shown(&desk, false, true));
    close_desk(&desk);
}

static void json_dump_prints_objects(void **state)
{
    struct caught caught;
    struct desk desk;

    (void)state;
    open_desk(&desk);
    save(&desk, "plant/a", DET_DOCUMENT_DESIRED, "{\"n\":1}");
    save(&desk, "plant/a", DET_DOCUMENT_DESIRED, NULL);
    save(&desk, "plant/b", DET_DOCUMENT_DESIRED, "{\"n\":18446744073709551615}");
    catch_output(&caught);
    caught.cli.is_json = true;
    assert_int_equal(cli_dump_print(&caught.cli, desk.store, NULL, false), 0);
    expect_output(
        &caught,
        "{\"type\":\"delta\",\"sync\":1,\"at\":\"2026-01-01T00:00:00Z\",\"kind\":\"link\",\"id\":"
        "\"plant/"
        "a\",\"role\":\"desired\",\"change\":\"created\",\"version\":1,\"delta\":{\"added\":{\"n\":"
        "1}}}\n"
        "{\"type\":\"delta\",\"sync\":2,\"at\":\"2026-01-01T00:00:00Z\",\"kind\":\"link\",\"id\":"
        "\"plant/"
        "a\",\"role\":\"desired\",\"change\":\"dropped\",\"version\":1,\"delta\":{\"removed\":{"
        "\"n\":1}}}\n"
        "{\"type\":\"delta\",\"sync\":3,\"at\":\"2026-01-01T00:00:00Z\",\"kind\":\"link\",\"id\":"
        "\"plant/"
        "b\",\"role\":\"desired\",\"change\":\"created\",\"version\":1,\"delta\":{\"added\":{\"n\":"
        "18446744073709551615}}}\n"
        "{\"type\":\"document\",\"kind\":\"link\",\"id\":\"plant/"
        "b\",\"role\":\"desired\",\"sync\":3,\"version\":1,\"created_at\":\"2026-01-01T00:00:00Z\","
        "\"updated_at\":\"2026-01-01T00:00:00Z\",\"document\":{\"n\":18446744073709551615}}\n"
        "{\"type\":\"dump\",\"sync_oldest\":1,\"sync_latest\":3,\"deltas\":3,\"documents\":1,"
        "\"workers\":1}\n");
    close_desk(&desk);
}

static void long_values_are_cut_between_characters(void **state)
{
    struct caught caught;
    struct desk desk;
    char text[400] = "{\"n\":\"", *at = text + strlen(text);

    (void)state;
    open_desk(&desk);
    *at++ = 'x';
    for (int i = 0; i < 60; i++, at += 2)
        memcpy(at, "\xc3\xbc", 2);
    memcpy(at, "\"}", 3);
    save(&desk, "plant/a", DET_DOCUMENT_SPEC, text);
    catch_output(&caught);
    assert_int_equal(cli_dump_print(&caught.cli, desk.store, NULL, false), 0);
    fclose(caught.cli.out);
    assert_non_null(strstr(caught.text, "\xc3\xbc...\n"));
    assert_null(strstr(caught.text, "\\xc3"));
    free(caught.text);
    close_desk(&desk);
}

static void empty_store_is_reported_as_empty(void **state)
{
    struct caught caught;
    struct desk desk;

    (void)state;
    open_desk(&desk);
    catch_output(&caught);
    assert_int_equal(cli_dump_print(&caught.cli, desk.store, NULL, false), 0);
    expect_output(
        &caught, "Deltas: none stored; the latest sync id is 0\n"
                 "\n"
                 "Documents\n"
                 "\n"
                 "0 deltas, 0 documents of 0 workers\n");
    close_desk(&desk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_dump_shows_deltas_and_documents),
        cmocka_unit_test(a_query_leaves_out_what_is_not_wanted),
        cmocka_unit_test(secrets_of_manual_workers_are_redacted),
        cmocka_unit_test(secrets_are_shown_on_request),
        cmocka_unit_test(unparseable_spec_document_is_redacted_completely),
        cmocka_unit_test(json_dump_prints_objects),
        cmocka_unit_test(long_values_are_cut_between_characters),
        cmocka_unit_test(empty_store_is_reported_as_empty),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
