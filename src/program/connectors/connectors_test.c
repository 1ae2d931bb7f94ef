/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* connectors_test.c - the list of connectors and the search in it. */
#include "connectors/connectors.h"

#include <detent/record.h>

#include "base/text.h"
#include "lib/test.h"

static void every_connector_is_complete(void **state)
{
    size_t count = 0;

    (void)state;
    for (const struct det_connector *const *at = det_connectors_all(); *at; at++, count++) {
        const struct det_connector *connector = *at, *found = NULL;
        const struct det_stage_functions *functions = &connector->functions;
        enum det_stage_kind kind = (enum det_stage_kind)__builtin_ctz(connector->kinds);
        const struct det_record *cursor = det_record_of(connector->cursor);
        struct det_error error;

        assert_true(det_name_is_valid(connector->name));
        assert_true(*connector->about != 0);
        assert_non_null(connector->check);
        assert_int_equal(det_connectors_find(connector->name, kind, &found, &error), 0);
        assert_ptr_equal(found, connector);
        assert_true((functions->next != NULL) == (kind == DET_STAGE_SOURCE));
        assert_true((functions->process != NULL) == (kind == DET_STAGE_TRANSFORM));
        assert_true((functions->accumulate != NULL) == (kind == DET_STAGE_STATEFUL));
        assert_true((functions->join != NULL) == (kind == DET_STAGE_JOIN));
        assert_true((functions->deliver != NULL) == (kind == DET_STAGE_SINK));
        assert_true((connector->open_state != NULL) == (connector->close_state != NULL));
        if (kind == DET_STAGE_STATEFUL)
            assert_true((connector->open_state != NULL) != (connector->state.get != NULL));
        if (cursor)
            assert_int_equal(det_record_check(cursor, &error), 0);
    }
    assert_true(count >= 3);
}

static void an_unknown_name_is_reported_with_the_nearest(void **state)
{
    const struct det_connector *found = NULL;
    struct det_error error;

    (void)state;
    assert_int_equal(
        det_connectors_find("jsonle", DET_STAGE_SOURCE, &found, &error), DET_ERR_NOT_FOUND);
    assert_string_equal(error.text, "there is no connector 'jsonle'; did you mean 'jsonl'?");
    assert_int_equal(
        det_connectors_find("xyzzy", DET_STAGE_SOURCE, &found, &error), DET_ERR_NOT_FOUND);
    assert_non_null(strstr(error.text, "for a source; list them with"));
    assert_int_equal(
        det_connectors_find("lines", DET_STAGE_JOIN, &found, &error), DET_ERR_NOT_FOUND);
    assert_string_equal(error.text, "the connector 'lines' is for a source, not for a join");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_connector_is_complete),
        cmocka_unit_test(an_unknown_name_is_reported_with_the_nearest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
