/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* test: threads */
/* relay_test.c - the calls of a relay over real HTTP, against the mock: what is sent, each class of
 * failure, deadlines, cancelling, connections. */
#include "lib/patience.h"
#include "lib/test.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kinds/relay.h"
#include "kinds/relay_mock_test.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))
#define SECRET      "user-secret"

struct house {
    struct relay_mock *mock;
    struct relay *relay;
    struct relay_call call;
    struct relay_instance instance;
    struct relay_failure failure;
    struct relay_pulled pulled;
    size_t bytes;
};

static det_time now(void)
{
    return det_world_now(det_world_real(), DET_CLOCK_MONOTONIC);
}

static void house_open(struct house *house)
{
    *house = (struct house){ .call.timeout = DET_TEST_HANG };
    assert_int_equal(relay_mock_open(SECRET, &house->mock), 0);
    assert_int_equal(
        relay_open(
            &(struct relay_options){ .world = det_world_real(),
                                     .url = relay_mock_url(house->mock) },
            &house->relay),
        0);
}

static void house_close(struct house *house)
{
    relay_close(house->relay);
    relay_mock_close(house->mock);
}

static int log_in(struct house *house)
{
    return relay_login(house->relay, &house->call, SECRET, &house->instance, &house->failure);
}

/* Pulls, and drops what came. */
static int pull(struct house *house)
{
    struct det_list list;
    int r;

    det_list_init(&list);
    r = relay_pull(house->relay, &house->call, &list, &house->pulled, &house->failure);
    channel_messages_close(&list);
    return r;
}

static int push(struct house *house, const char *content)
{
    struct channel_message *message;
    int r;

    assert_int_equal(
        channel_message_open(
            NULL, &(struct det_message){ "i", content, "me@example.org", "t-1" }, &message),
        0);
    r = relay_push(house->relay, &house->call, &message, 1, &house->bytes, &house->failure);
    channel_message_close(message);
    return r;
}

static void fail_next(struct house *house, enum relay_mock_call call, struct relay_mock_fault fault)
{
    assert_int_equal(relay_mock_fail(house->mock, call, &fault), 0);
}

static void test_login_sends_the_hash_and_keeps_the_cookie(void **state)
{
    struct house house;
    char head[4096];

    (void)state;
    house_open(&house);
    assert_false(relay_has_token(house.relay));
    assert_int_equal(log_in(&house), 0);
    assert_true(relay_has_token(house.relay));
    assert_string_equal(house.instance.uuid, "11111111-2222-3333-4444-555555555555");
    assert_string_equal(house.instance.name, "mock");
    relay_mock_head(house.mock, RELAY_MOCK_LOGIN, head, sizeof head);
    assert_null(strstr(head, SECRET));
    assert_non_null(strstr(head, "\r\nContent-Length: 0\r\n"));
    assert_null(strstr(head, "Cookie"));
    assert_int_equal(pull(&house), 0);
    relay_mock_head(house.mock, RELAY_MOCK_PULL, head, sizeof head);
    assert_non_null(strstr(head, "\r\nCookie: token=mock.1\r\n"));
    assert_null(strstr(head, "Authorization"));
    /* All on one connection, which is kept. */
    assert_null(strstr(head, "Connection: close"));
    assert_int_equal(push(&house, "x"), 0);
    assert_int_equal(relay_mock_count(house.mock, RELAY_MOCK_CONNECTIONS), 1);
    assert_int_equal(relay_mock_count(house.mock, RELAY_MOCK_STRANGERS), 0);
    house_close(&house);
}

static void test_a_wrong_secret_is_an_invalid_token(void **state)
{
    struct house house;

    (void)state;
    house_open(&house);
    assert_int_equal(
        relay_login(house.relay, &house.call, "other", &house.instance, &house.failure),
        DET_ERR_REFUSED);
    assert_int_equal(house.failure.class, RELAY_INVALID_TOKEN);
    assert_false(relay_has_token(house.relay));
    house_close(&house);
}

static void test_message_content_is_unchanged(void **state)
{
    static const char content[] = "quote \" slash \\ line \n umlaut \xc3\xa4 {}";
    const struct channel_message *pushed;
    struct channel_message *message;
    struct house house;
    struct det_list list;

    (void)state;
    house_open(&house);
    det_list_init(&list);
    assert_int_equal(log_in(&house), 0);
    assert_int_equal(push(&house, content), 0);
    pushed = relay_mock_pushed(house.mock, 0);
    assert_string_equal(pushed->text.content, content);
    assert_string_equal(pushed->text.instance, "i");
    assert_string_equal(pushed->text.email, "me@example.org");
    assert_string_equal(pushed->text.trace_id, "t-1");
    assert_true(house.bytes > strlen(content));

    for (int i = 0; i < 3; i++)
        assert_int_equal(relay_mock_queue(house.mock, &pushed->text), 0);
    assert_int_equal(relay_pull(house.relay, &house.call, &list, &house.pulled, &house.failure), 0);
    for (int i = 0; i < 3; i++) {
        message = DET_CONTAINER(det_list_take(&list), struct channel_message, node);
        assert_string_equal(message->text.content, content);
        assert_string_equal(message->text.trace_id, "t-1");
        channel_message_close(message);
    }
    assert_true(det_list_is_empty(&list));
    assert_int_equal(pull(&house), 0);
    assert_int_equal(house.pulled.count, 0);
    house_close(&house);
}

/* The answer to a pull, and its reported failure. */
static const struct {
    struct relay_mock_fault fault;
    int error;
    enum relay_class class;
    det_time retry_after;
    const char *text;
} classes[] = {
    { { .status = 429, .body = "Just a moment..." },
      DET_ERR_REFUSED,
      RELAY_CHALLENGE,
      0,
      "pull: challenge, status 429: Just a moment..." },
    { { .status = 403, .body = "Zscaler says no" },
      DET_ERR_REFUSED,
      RELAY_PROXY_BLOCK,
      0,
      "pull: proxy_block, status 403: Zscaler says no" },
    { { .status = 200, .body = "<html>Access Denied" },
      DET_ERR_MALFORMED,
      RELAY_PROXY_BLOCK,
      0,
      "pull: proxy_block, the answer has no messages: <html>Access Denied" },
    { { .status = 429, .headers = "Retry-After: 7\r\n" },
      DET_ERR_REFUSED,
      RELAY_RATE_LIMIT,
      7 * DET_SECOND,
      "pull: backend_rate_limit, status 429" },
    { { .status = 401 },
      DET_ERR_REFUSED,
      RELAY_INVALID_TOKEN,
      0,
      "pull: invalid_token, status 401" },
    { { .status = 404 },
      DET_ERR_REFUSED,
      RELAY_INSTANCE_DELETED,
      0,
      "pull: instance_deleted, status 404" },
    { { .status = 503, .body = "b\xff\nsy" },
      DET_ERR_REFUSED,
      RELAY_SERVER_ERROR,
      0,
      "pull: server_error, status 503: b??sy" },
    { { .status = 500, .body = "", .padding = 200 },
      DET_ERR_REFUSED,
      RELAY_SERVER_ERROR,
      0,
      "pull: server_error, status 500" },
    { { .is_cut_before = true }, DET_ERR_IO, RELAY_NETWORK, 0, "pull: network, " },
    { { .status = 302, .headers = "Location: /v2/instance/push\r\n" },
      DET_ERR_REFUSED,
      RELAY_UNKNOWN,
      0,
      "pull: unknown, status 302" },
    { { .status = 200, .body = "{}" },
      DET_ERR_MALFORMED,
      RELAY_UNKNOWN,
      0,
      "pull: unknown, the answer has no messages: {}" },
    { { .status = 200, .body = "{\"messages\":[]} more" },
      DET_ERR_MALFORMED,
      RELAY_UNKNOWN,
      0,
      "pull: unknown, the answer has no messages" },
    { { .status = 200, .body = "{\"messages\":[],\"messages\":[]}" },
      DET_ERR_MALFORMED,
      RELAY_UNKNOWN,
      0,
      "pull: unknown, the answer has no messages" },
    { { .status = 200, .body = "{}", .padding = RELAY_BODY_MAX },
      DET_ERR_LIMIT,
      RELAY_UNKNOWN,
      0,
      "pull: unknown, the answer has more than 1 MiB" },
};

static void test_each_failure_class_is_reported(void **state)
{
    struct house house;

    (void)state;
    house_open(&house);
    assert_int_equal(log_in(&house), 0);
    for (size_t i = 0; i < COUNT(classes); i++) {
        fail_next(&house, RELAY_MOCK_PULL, classes[i].fault);
        /* A kept connection that breaks is replaced by libcurl itself, once. */
        if (classes[i].fault.is_cut_before)
            fail_next(&house, RELAY_MOCK_PULL, classes[i].fault);
        assert_int_equal(pull(&house), classes[i].error);
        assert_int_equal(house.failure.class, classes[i].class);
        assert_int_equal(house.failure.retry_after, classes[i].retry_after);
        assert_memory_equal(house.failure.text, classes[i].text, strlen(classes[i].text));
    }
    /* None of them has lost the token, and a push is reported likewise. */
    assert_int_equal(pull(&house), 0);
    fail_next(&house, RELAY_MOCK_PUSH, (struct relay_mock_fault){ .status = 503 });
    assert_int_equal(push(&house, "x"), DET_ERR_REFUSED);
    assert_string_equal(house.failure.text, "push: server_error, status 503");
    relay_mock_expire(house.mock);
    assert_int_equal(push(&house, "x"), DET_ERR_REFUSED);
    assert_int_equal(house.failure.class, RELAY_INVALID_TOKEN);
    house_close(&house);
}

static void test_malformed_message_does_not_affect_the_others(void **state)
{
    struct channel_message *message;
    struct house house;
    struct det_list list;

    (void)state;
    house_open(&house);
    det_list_init(&list);
    assert_int_equal(log_in(&house), 0);
    fail_next(
        &house, RELAY_MOCK_PULL,
        (struct relay_mock_fault){
            .status = 200,
            .body = "{\"messages\":[{\"content\":7},{\"content\":\"a\",\"more\":1},{},[],null,"
                    "{\"content\":\"b\",\"email\":[]}]}" });
    assert_int_equal(relay_pull(house.relay, &house.call, &list, &house.pulled, &house.failure), 0);
    assert_int_equal(house.pulled.count, 6);
    assert_int_equal(house.pulled.useless, 5);
    message = DET_CONTAINER(det_list_take(&list), struct channel_message, node);
    assert_string_equal(message->text.content, "a");
    channel_message_close(message);
    assert_true(det_list_is_empty(&list));
    house_close(&house);
}

static void test_login_without_a_cookie_or_id_fails(void **state)
{
    static const struct {
        struct relay_mock_fault fault;
        const char *text;
    } table[] = {
        { { .status = 200, .body = "{\"uuid\":\"u\"}" }, "has no cookie" },
        { { .status = 200, .headers = "Set-Cookie: token=\r\n", .body = "{\"uuid\":\"u\"}" },
          "has no cookie" },
        { { .status = 200, .headers = "Set-Cookie: token=a b\r\n", .body = "{\"uuid\":\"u\"}" },
          "has no cookie" },
        { { .status = 200, .headers = "Set-Cookie: token=a\r\n", .body = "{\"uuid\":7}" },
          "has no uuid" },
        { { .status = 200, .headers = "Set-Cookie: token=a\r\n", .body = "nothing" },
          "has no uuid" },
    };
    struct house house;

    (void)state;
    house_open(&house);
    for (size_t i = 0; i < COUNT(table); i++) {
        fail_next(&house, RELAY_MOCK_LOGIN, table[i].fault);
        assert_int_equal(log_in(&house), DET_ERR_MALFORMED);
        assert_int_equal(house.failure.class, RELAY_UNKNOWN);
        assert_non_null(strstr(house.failure.text, table[i].text));
        assert_false(relay_has_token(house.relay));
    }
    house_close(&house);
}

static void test_unreachable_relay_is_a_network_error(void **state)
{
    struct house house;

    (void)state;
    house_open(&house);
    assert_int_equal(log_in(&house), 0);
    relay_mock_stop(house.mock);
    assert_int_equal(pull(&house), DET_ERR_IO);
    assert_int_equal(house.failure.class, RELAY_NETWORK);
    assert_int_equal(pull(&house), DET_ERR_IO);
    assert_int_equal(relay_mock_start(house.mock), 0);
    assert_int_equal(pull(&house), 0);
    house_close(&house);
}

/* Logs in from a separate process that may open this many more descriptors. */
static int log_in_with(struct house *house, unsigned left)
{
    pid_t child = fork();
    int status = 0;

    assert_true(child >= 0);
    if (child == 0) {
        int next = dup(0);
        struct rlimit limit = { (rlim_t)next + left, (rlim_t)next + left };

        (void)close(next);
        _exit(setrlimit(RLIMIT_NOFILE, &limit) < 0 ? 1 : -log_in(house));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return -WEXITSTATUS(status);
}

static void test_allocation_failure_is_not_a_network_error(void **state)
{
    unsigned shortages = 0;
    struct house house;

    (void)state;
    house_open(&house);
    for (unsigned left = 0; left < 16; left++) {
        int r = log_in_with(&house, left);

        assert_true(r == 0 || r == DET_ERR_NO_MEMORY);
        shortages += r != 0;
    }
    assert_in_range(shortages, 1, 8);
    house_close(&house);
}

static void test_a_deadline_is_kept(void **state)
{
    struct house house;
    det_time begin;

    (void)state;
    house_open(&house);
    assert_int_equal(log_in(&house), 0);
    fail_next(&house, RELAY_MOCK_PULL, (struct relay_mock_fault){ .delay = DET_HOUR });
    house.call.timeout = 100 * DET_MILLISECOND;
    begin = now();
    assert_int_equal(pull(&house), DET_ERR_TIMEOUT);
    assert_int_equal(house.failure.class, RELAY_NETWORK);
    assert_true(now() - begin >= 90 * DET_MILLISECOND);
    assert_true(now() - begin < DET_TEST_HANG);
    house_close(&house);
}

/* Asked again and again: the call is cancelled once the relay has got it. */
static bool has_arrived(void *user)
{
    struct house *house = user;

    return relay_mock_count(house->mock, RELAY_MOCK_PULLS) > 0;
}

static void test_a_call_can_be_cancelled(void **state)
{
    struct house house;

    (void)state;
    house_open(&house);
    assert_int_equal(log_in(&house), 0);
    fail_next(&house, RELAY_MOCK_PULL, (struct relay_mock_fault){ .delay = DET_HOUR });
    house.call.is_cancelled = has_arrived;
    house.call.user = &house;
    assert_int_equal(pull(&house), DET_ERR_CANCELLED);
    house.call.is_cancelled = NULL;
    assert_int_equal(pull(&house), 0);
    house_close(&house);
}

static void test_reset_opens_a_connection_and_keeps_the_token(void **state)
{
    struct house house;

    (void)state;
    house_open(&house);
    assert_int_equal(log_in(&house), 0);
    assert_int_equal(pull(&house), 0);
    assert_int_equal(relay_mock_count(house.mock, RELAY_MOCK_CONNECTIONS), 1);
    assert_int_equal(relay_reset(house.relay), 0);
    assert_int_equal(pull(&house), 0);
    assert_int_equal(relay_mock_count(house.mock, RELAY_MOCK_CONNECTIONS), 2);
    assert_int_equal(relay_mock_count(house.mock, RELAY_MOCK_LOGINS), 1);
    relay_forget_token(house.relay);
    assert_false(relay_has_token(house.relay));
    assert_int_equal(pull(&house), DET_ERR_REFUSED);
    house_close(&house);
}

/* All that is ours may be missing; what libcurl takes is its own. */
static int with_little_memory(struct det_test_memory *memory, void *argument)
{
    struct house *house = argument;
    struct relay *relay = NULL;
    struct channel_message *message;
    struct det_list list;
    int r;

    r = relay_open(
        &(struct relay_options){ det_world_real(), &memory->allocator,
                                 relay_mock_url(house->mock) },
        &relay);
    if (r < 0)
        return r;
    det_list_init(&list);
    assert_int_equal(relay_mock_queue(house->mock, &(struct det_message){ .content = "x" }), 0);
    assert_int_equal(
        channel_message_open(NULL, &(struct det_message){ .content = "y" }, &message), 0);
    r = relay_login(relay, &house->call, SECRET, &house->instance, &house->failure);
    if (r == 0)
        r = relay_pull(relay, &house->call, &list, &house->pulled, &house->failure);
    if (r == 0)
        r = relay_push(relay, &house->call, &message, 1, &house->bytes, &house->failure);
    channel_messages_close(&list);
    channel_message_close(message);
    relay_close(relay);
    return r;
}

static void test_every_failed_allocation_is_survived(void **state)
{
    struct house house;

    (void)state;
    house_open(&house);
    det_test_each_failure(with_little_memory, &house);
    house_close(&house);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_login_sends_the_hash_and_keeps_the_cookie),
        cmocka_unit_test(test_a_wrong_secret_is_an_invalid_token),
        cmocka_unit_test(test_message_content_is_unchanged),
        cmocka_unit_test(test_each_failure_class_is_reported),
        cmocka_unit_test(test_malformed_message_does_not_affect_the_others),
        cmocka_unit_test(test_login_without_a_cookie_or_id_fails),
        cmocka_unit_test(test_unreachable_relay_is_a_network_error),
        cmocka_unit_test(test_allocation_failure_is_not_a_network_error),
        cmocka_unit_test(test_a_deadline_is_kept),
        cmocka_unit_test(test_a_call_can_be_cancelled),
        cmocka_unit_test(test_reset_opens_a_connection_and_keeps_the_token),
        cmocka_unit_test(test_every_failed_allocation_is_survived),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
