/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* test: threads */
/* channel_test.c - messages between a program and a relay: nothing is lost, nothing is too much. */
#include "kinds/channel_cases.h"

static struct channel *open_small(void)
{
    struct channel *channel = NULL;

    assert_int_equal(
        channel_open(
            &(struct channel_options){ .inbound_max = 4, .outbound_max = 3, .pending_max = 5 },
            &channel),
        0);
    return channel;
}

static void deliver(struct channel *channel, unsigned first, unsigned count)
{
    struct det_list list;

    det_list_init(&list);
    for (unsigned i = first; i < first + count; i++) {
        struct channel_message *message;
        char content[32];

        snprintf(content, sizeof content, "%u", i);
        assert_int_equal(
            channel_message_open(NULL, &(struct det_message){ .content = content }, &message), 0);
        det_list_append(&list, &message->node);
    }
    channel_deliver(channel, &list);
    assert_true(det_list_is_empty(&list));
}

static unsigned receive_number(struct channel *channel)
{
    struct channel_message *message;
    unsigned number;

    assert_int_equal(channel_receive(channel, 0, &message), 0);
    number = (unsigned)strtoul(message->text.content, NULL, 10);
    channel_message_close(message);
    return number;
}

/* Peeks, and compares with what is expected: "1 2 3". */
static uint32_t peek(struct channel *channel, const char *expected, struct channel_message **list)
{
    char text[256] = "";
    uint32_t count = channel_peek(channel, list);

    for (uint32_t i = 0; i < count; i++)
        snprintf(
            text + strlen(text), sizeof text - strlen(text), "%s%s", i ? " " : "",
            list[i]->text.content);
    assert_string_equal(text, expected);
    return count;
}

static void acknowledge(struct channel *channel, const char *expected)
{
    struct channel_message *list[CHANNEL_BATCH_MAX];
    uint32_t count = peek(channel, expected, list);

    channel_acknowledge(channel, list, count);
    channel_unpeek(list, count);
}

static void test_a_message_is_a_copy_within_limits(void **state)
{
    char *large = calloc(1, DET_MESSAGE_MAX + 2);
    struct channel_message *message;

    (void)state;
    memset(large, 'x', DET_MESSAGE_MAX);
    assert_int_equal(
        channel_message_open(
            NULL, &(struct det_message){ "i", large, "e@example.org", NULL }, &message),
        0);
    assert_int_equal(message->size, 1 + DET_MESSAGE_MAX + 13);
    large[0] = 'y';
    assert_int_equal(message->text.content[0], 'x');
    assert_string_equal(message->text.instance, "i");
    assert_string_equal(message->text.email, "e@example.org");
    assert_string_equal(message->text.trace_id, "");
    channel_message_close(message);
    large[DET_MESSAGE_MAX] = 'x';
    assert_int_equal(
        channel_message_open(NULL, &(struct det_message){ .content = large }, &message),
        DET_ERR_LIMIT);
    assert_int_equal(
        channel_message_open(NULL, &(struct det_message){ .email = large }, &message),
        DET_ERR_LIMIT);
    assert_int_equal(
        channel_message_open(NULL, &(struct det_message){ .content = "\xff" }, &message),
        DET_ERR_MALFORMED);
    free(large);
}

static void test_sent_message_is_pending_until_acknowledged(void **state)
{
    struct channel *channel = open_small();
    struct channel_message *list[CHANNEL_BATCH_MAX];
    struct channel_counts counts;
    uint32_t count;

    (void)state;
    for (unsigned i = 1; i <= 3; i++)
        assert_int_equal(send_number(channel, i, 0), 0);
    channel_check(channel, &counts);
    assert_int_equal(counts.outbound, 3);
    assert_int_equal(channel_drain(channel), 3);
    for (unsigned i = 4; i <= 8; i++)
        assert_int_equal(send_number(channel, i, 0), 0);
    assert_int_equal(send_number(channel, 9, 0), DET_ERR_TIMEOUT);
    channel_check(channel, &counts);
    assert_int_equal(counts.outbound, 3);
    assert_int_equal(counts.pending, 5);

    /* A worker that died in between has looked at them, and no more. */
    count = peek(channel, "1 2 3 4 5", list);
    channel_unpeek(list, count);
    acknowledge(channel, "1 2 3 4 5");
    assert_int_equal(channel_drain(channel), 3);
    acknowledge(channel, "6 7 8");
    channel_check(channel, &counts);
    assert_int_equal(counts.acknowledged, 8);
    assert_int_equal(counts.pending + counts.outbound, 0);
    channel_close(channel);
}

static void test_batches_grow_again_after_a_failure(void **state)
{
    struct channel *channel = NULL;
    struct channel_message *list[CHANNEL_BATCH_MAX];
    struct channel_counts counts;
    uint32_t count;

    (void)state;
    assert_int_equal(channel_open(&(struct channel_options){ 0 }, &channel), 0);
    for (unsigned i = 1; i <= 8; i++)
        assert_int_equal(send_number(channel, i, 0), 0);
    assert_int_equal(channel_drain(channel), 8);
    channel_push_failed(channel);
    acknowledge(channel, "1");
    acknowledge(channel, "2 3");
    count = peek(channel, "4 5 6 7", list);
    channel_unpeek(list, count);
    channel_push_failed(channel);
    count = peek(channel, "4", list);
    channel_drop(channel, list[0], "status 422");
    /* Whoever comes second does nothing. */
    channel_drop(channel, list[0], "again");
    channel_acknowledge(channel, list, 1);
    channel_unpeek(list, count);
    acknowledge(channel, "5 6");
    acknowledge(channel, "7 8");
    channel_check(channel, &counts);
    assert_int_equal(counts.acknowledged, 7);
    assert_int_equal(counts.dropped, 1);
    assert_string_equal(counts.dropped_because, "status 422");
    channel_close(channel);
}

static void test_push_batch_size_is_limited(void **state)
{
    struct channel_message *list[CHANNEL_BATCH_MAX];
    struct channel *channel = open_small();
    char *large = calloc(1, DET_MESSAGE_MAX + 1);
    uint32_t count;

    (void)state;
    memset(large, 'x', DET_MESSAGE_MAX);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(channel_send(channel, &(struct det_message){ .content = large }, 0), 0);
    assert_int_equal(channel_drain(channel), 3);
    count = channel_peek(channel, list);
    assert_int_equal(count, 2);
    channel_acknowledge(channel, list, count);
    channel_unpeek(list, count);
    free(large);
    channel_close(channel);
}

static void test_a_full_inbound_queue_stops_the_pull_and_drops_nothing(void **state)
{
    struct channel *channel = open_small();
    struct channel_message *message;
    struct channel_counts counts;

    (void)state;
    assert_int_equal(channel_receive(channel, 0, &message), DET_ERR_TIMEOUT);
    deliver(channel, 1, 3);
    assert_true(channel_wants_more(channel));
    deliver(channel, 4, 3);
    assert_false(channel_wants_more(channel));
    for (unsigned i = 1; i <= 3; i++) {
        assert_int_equal(receive_number(channel), i);
        assert_false(channel_wants_more(channel));
    }
    assert_int_equal(receive_number(channel), 4);
    assert_true(channel_wants_more(channel));
    channel_check(channel, &counts);
    assert_int_equal(counts.inbound, 2);
    assert_int_equal(counts.delivered, 6);
    channel_close(channel);
}

static int all_of_it(struct det_test_memory *memory, void *argument)
{
    struct channel *channel = NULL;
    struct channel_message *list[CHANNEL_BATCH_MAX];
    uint32_t count;
    int r;

    (void)argument;
    r = channel_open(&(struct channel_options){ .allocator = &memory->allocator }, &channel);
    if (r < 0)
        return r;
    r = send_number(channel, 1, 0);
    assert_int_equal(channel_drain(channel), r == 0);
    count = channel_peek(channel, list);
    channel_acknowledge(channel, list, count);
    channel_unpeek(list, count);
    channel_close(channel);
    return r;
}

static void test_every_failed_allocation_is_survived(void **state)
{
    (void)state;
    det_test_each_failure(all_of_it, NULL);
}

static void note_content(void *user, const struct det_message *message)
{
    (void)det_text_copy(user, 16, message->content);
}

static void test_workers_of_modules_send_and_receive_by_the_public_calls(void **state)
{
    struct channel *channel = open_small();
    struct det_channel *shared = (struct det_channel *)channel;
    struct channel_message *list[CHANNEL_BATCH_MAX], *message;
    struct det_list messages;
    char content[16] = "";

    (void)state;
    assert_int_equal(det_channel_send(shared, &(struct det_message){ .content = "out" }, 0), 0);
    assert_int_equal(
        det_channel_send(shared, &(struct det_message){ .content = "\xff" }, 0), DET_ERR_MALFORMED);
    assert_int_equal(channel_drain(channel), 1);
    assert_int_equal(channel_peek(channel, list), 1);
    assert_string_equal(list[0]->text.content, "out");
    channel_unpeek(list, 1);
    assert_int_equal(
        channel_message_open(NULL, &(struct det_message){ .content = "in" }, &message), 0);
    det_list_init(&messages);
    det_list_append(&messages, &message->node);
    channel_deliver(channel, &messages);
    assert_false(channel_has_receiver(channel));
    assert_int_equal(det_channel_receive(shared, 0, note_content, content), 0);
    assert_string_equal(content, "in");
    assert_int_equal(det_channel_receive(shared, 0, note_content, content), DET_ERR_TIMEOUT);
    assert_true(channel_has_receiver(channel));
    channel_close(channel);
}

static void test_threads_lose_nothing(void **state)
{
    (void)state;
    go_round(det_world_real());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_message_is_a_copy_within_limits),
        cmocka_unit_test(test_sent_message_is_pending_until_acknowledged),
        cmocka_unit_test(test_batches_grow_again_after_a_failure),
        cmocka_unit_test(test_push_batch_size_is_limited),
        cmocka_unit_test(test_a_full_inbound_queue_stops_the_pull_and_drops_nothing),
        cmocka_unit_test(test_workers_of_modules_send_and_receive_by_the_public_calls),
        cmocka_unit_test(test_every_failed_allocation_is_survived),
        cmocka_unit_test(test_threads_lose_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
