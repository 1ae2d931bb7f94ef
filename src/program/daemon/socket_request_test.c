/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* socket_request_test.c - the lines of the local socket. */
#include "lib/test.h"

#include "daemon/socket.h"

static void a_request_has_an_id_a_verb_and_perhaps_arguments(void **state)
{
    static const char line[] = "{\"id\": 7, \"verb\": \"tasks\", \"arguments\": {\"name\": \"a\"}}";
    static const char largest[] = "{\"id\":9007199254740991,\"verb\":\"a-1\"}";
    struct socket_request request;
    struct det_error error;

    (void)state;
    assert_int_equal(socket_request_read(line, sizeof line - 1, &request, &error), 0);
    assert_int_equal(request.id, 7);
    assert_string_equal(request.verb, "tasks");
    assert_string_equal(json_string_value(json_object_get(request.arguments, "name")), "a");
    socket_request_deinit(&request);
    assert_int_equal(socket_request_read(largest, sizeof largest - 1, &request, &error), 0);
    assert_true(request.id == SOCKET_ID_MAX);
    assert_null(request.arguments);
    socket_request_deinit(&request);
}

static void refused(const char *line, int code, const char *text, bool has_id)
{
    struct socket_request request;
    struct det_error error = { 0 };

    assert_int_equal(socket_request_read(line, strlen(line), &request, &error), code);
    assert_non_null(strstr(error.text, text));
    assert_int_equal(request.has_id, has_id);
    socket_request_deinit(&request);
}

static void what_is_no_request_is_told_why(void **state)
{
    (void)state;
    refused("", DET_ERR_MALFORMED, "not JSON", false);
    refused("{\"id\":1", DET_ERR_MALFORMED, "not JSON", false);
    refused("{\"id\":1} x", DET_ERR_MALFORMED, "not JSON", false);
    refused("{\"id\":1,\"id\":2,\"verb\":\"a\"}", DET_ERR_MALFORMED, "duplicate", false);
    refused("[1]", DET_ERR_MALFORMED, "a request is an object", false);
    refused("{\"verb\":\"a\"}", DET_ERR_INVALID, "'id' is a whole number", false);
    refused("{\"id\":-1,\"verb\":\"a\"}", DET_ERR_INVALID, "'id' is a whole number", false);
    refused("{\"id\":1.5,\"verb\":\"a\"}", DET_ERR_INVALID, "'id' is a whole number", false);
    refused("{\"id\":9007199254740992,\"verb\":\"a\"}", DET_ERR_INVALID, "'id' is", false);
    refused("{\"id\":1}", DET_ERR_INVALID, "'verb' is a word", true);
    refused("{\"id\":1,\"verb\":\"\"}", DET_ERR_INVALID, "'verb' is a word", true);
    refused("{\"id\":1,\"verb\":\"A b\"}", DET_ERR_INVALID, "'verb' is a word", true);
    refused("{\"id\":1,\"verb\":3}", DET_ERR_INVALID, "'verb' is a word", true);
    refused("{\"id\":1,\"verb\":\"a\",\"arguments\":[]}", DET_ERR_INVALID, "an object", true);
    refused("{\"id\":1,\"verb\":\"a\",\"x\":1}", DET_ERR_INVALID, "no member 'x'", true);
}

static void answers_are_lines(void **state)
{
    uint64_t id = 3;
    char *line = socket_answer_line(&id, "data", json_pack("{s:s}", "a", "b\n"));

    (void)state;
    assert_string_equal(line, "{\"id\":3,\"data\":{\"a\":\"b\\n\"}}\n");
    free(line);
    line = socket_answer_line(NULL, "error", socket_error_value(DET_ERR_LIMIT, "too \xff much"));
    assert_string_equal(
        line, "{\"id\":null,\"error\":{\"code\":\"LIMIT\",\"text\":\"too \\\\xff much\"}}\n");
    free(line);
}

static void errors_have_names_both_ways(void **state)
{
    (void)state;
    assert_int_equal(socket_error_code("NOT_FOUND"), DET_ERR_NOT_FOUND);
    assert_int_equal(socket_error_code("UNBOUND"), DET_ERR_UNBOUND);
    assert_int_equal(socket_error_code("WHATEVER"), DET_ERR_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_has_an_id_a_verb_and_perhaps_arguments),
        cmocka_unit_test(what_is_no_request_is_told_why),
        cmocka_unit_test(answers_are_lines),
        cmocka_unit_test(errors_have_names_both_ways),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
