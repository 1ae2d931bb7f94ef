/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* chain_test.c - hashes and checksums compared with those of another implementation of
 * docs/formats/sql_schema.md; every field changes them. */
#include "store/chain.h"

#include "lib/test.h"

static const unsigned char data_bytes[] = { 1, 2, 0 };

static struct det_chain_bytes some_data(void)
{
    return (struct det_chain_bytes){ data_bytes, sizeof data_bytes };
}

static struct det_chain_start some_start(void)
{
    return (struct det_chain_start){ .machine = "order",
                                     .id = "order-42",
                                     .at = 1000,
                                     .version = 3,
                                     .state = "NEW",
                                     .data = some_data() };
}

static struct det_chain_hash start_hash(void)
{
    struct det_chain_start start = some_start();

    return det_chain_start(&start);
}

static struct det_chain_event full_event(void)
{
    return (struct det_chain_event){
        .machine = "order",
        .id = "order-42",
        .version = 3,
        .sequence = 1,
        .visit = 2,
        .from = "NEW",
        .to = "PAID",
        .event = "PAY",
        .outcome = "goto",
        .choice = 1,
        .is_timeout = true,
        .at = 1700000000123456789,
        .event_id = "pay-1",
        .cause = "order/order-42/3/0",
        .payload = { "abc", 3 },
    };
}

static struct det_chain_event bare_event(void)
{
    struct det_chain_event event = full_event();

    event.event = event.event_id = event.cause = NULL;
    event.payload = (struct det_chain_bytes){ NULL, 0 };
    event.choice = 0;
    event.is_timeout = false;
    event.at = -5;
    return event;
}

static struct det_chain_head some_head(void)
{
    return (struct det_chain_head){
        .machine = "order",
        .id = "order-42",
        .version = 3,
        .state = "PAID",
        .sequence = 9,
        .visit = 4,
        .transitions = 6,
        .started_at = 1000,
        .moved_at = 2000,
        .data = some_data(),
        .hash = start_hash(),
    };
}

static void assert_hash(struct det_chain_hash hash, const char *expected)
{
    char text[2 * DET_CHAIN_SIZE + 1];

    for (size_t i = 0; i < DET_CHAIN_SIZE; i++)
        snprintf(text + 2 * i, 3, "%02x", hash.bytes[i]);
    assert_string_equal(text, expected);
}

static void hash_of_a_new_instance_matches_the_format(void **state)
{
    struct det_chain_start unknown = { .machine = "order", .id = "order-42", .at = 1000 };

    (void)state;
    assert_hash(start_hash(), "4b87fe8e8d0c5a514107b5c795bf99f69ce7c6a29bd59f209e515717298430d1");
    assert_hash(
        det_chain_start(&unknown),
        "58e53dd3534fe92378bfd5f5b9f63f37810bc07128ebd8cb82a36d99c7f30197");
}

static void start_hash_depends_on_every_field(void **state)
{
    struct det_chain_hash expected = start_hash(), hash;
    struct det_chain_start changed[7];

    (void)state;
    for (size_t i = 0; i < 7; i++)
        changed[i] = some_start();
    changed[0].machine = "orders";
    changed[1].id = "order-43";
    changed[2].at++;
    changed[3].version++;
    changed[4].state = "PAID";
    changed[5].state = NULL;
    changed[6].data.size--;
    for (size_t i = 0; i < 7; i++) {
        hash = det_chain_start(&changed[i]);
        assert_memory_not_equal(hash.bytes, expected.bytes, DET_CHAIN_SIZE);
    }
}

static void event_hash_matches_the_format(void **state)
{
    struct det_chain_hash start = start_hash();
    struct det_chain_event event = full_event();

    (void)state;
    assert_hash(
        det_chain_next(&start, &event),
        "001af08ba72c5cbda400d1ee58ac044a5f2381cf5ac73718d065d63244cc372c");
    event = bare_event();
    assert_hash(
        det_chain_next(&start, &event),
        "2d37b23fe458626e44def481fe5791486edf483a6038437ab3c615da0de58c83");
}

static void a_large_payload_goes_through_whole(void **state)
{
    struct det_chain_hash start = start_hash();
    struct det_chain_event event = bare_event();
    static unsigned char large[5000];

    (void)state;
    for (size_t i = 0; i < sizeof large; i++)
        large[i] = (unsigned char)(i % 251);
    event.event = "PAY";
    event.at = 7;
    event.payload = (struct det_chain_bytes){ large, sizeof large };
    assert_hash(
        det_chain_next(&start, &event),
        "94185db1fd904f00927cae32f8018b9c42f956a824a911b9d3da54118338b193");
}

static void event_hash_depends_on_every_field(void **state)
{
    struct det_chain_hash start = start_hash(), other = start;
    struct det_chain_event event = full_event(), changed[16];
    struct det_chain_hash expected = det_chain_next(&start, &event), hash;

    (void)state;
    for (size_t i = 0; i < 16; i++)
        changed[i] = event;
    changed[0].machine = "orders";
    changed[1].id = "order-43";
    changed[2].version++;
    changed[3].sequence++;
    changed[4].visit++;
    changed[5].from = "PAID";
    changed[6].to = "NEW";
    changed[7].event = NULL;
    changed[8].outcome = "stay";
    changed[9].choice++;
    changed[10].is_timeout = false;
    changed[11].at++;
    changed[12].event_id = "";
    changed[13].cause = NULL;
    changed[14].payload.size--;
    changed[15].payload.data = NULL;
    for (size_t i = 0; i < 16; i++) {
        hash = det_chain_next(&start, &changed[i]);
        assert_memory_not_equal(hash.bytes, expected.bytes, DET_CHAIN_SIZE);
    }
    other.bytes[31] ^= 1;
    hash = det_chain_next(&other, &event);
    assert_memory_not_equal(hash.bytes, expected.bytes, DET_CHAIN_SIZE);
}

static void head_checksum_matches_the_format(void **state)
{
    struct det_chain_head head = some_head();

    (void)state;
    assert_int_equal(det_chain_head_checksum(&head), 0x78e5a408);
    head.is_stopped = true;
    head.reason = "done";
    head.data = (struct det_chain_bytes){ "", 0 };
    assert_int_equal(det_chain_head_checksum(&head), 0x1d96cd0a);
}

static void snapshot_checksum_matches_the_format(void **state)
{
    struct det_chain_head head = some_head();

    (void)state;
    head.is_stopped = true;
    head.reason = "done";
    assert_int_equal(det_chain_snapshot_checksum(&head, "NEW PAID", 3000), 0x3ef12740);
    assert_int_not_equal(det_chain_snapshot_checksum(&head, "NEW", 3000), 0x3ef12740);
    assert_int_not_equal(det_chain_snapshot_checksum(&head, "NEW PAID", 3001), 0x3ef12740);
}

static void a_definition_is_known_by_its_text(void **state)
{
    char fingerprint[33];

    (void)state;
    det_chain_fingerprint("MACHINE(order)\n", fingerprint);
    assert_string_equal(fingerprint, "ea769ed29e0a2267dc4d0ed524c9a5a0");
}

static void hash_is_independent_of_the_processor(void **state)
{
    struct det_chain_event event = full_event();
    struct det_chain_hash start = start_hash(), before, after;

    (void)state;
    before = det_chain_next(&start, &event);
    det_chain_prepare();
    det_chain_prepare();
    after = det_chain_next(&start, &event);
    assert_memory_equal(&before, &after, sizeof before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hash_is_independent_of_the_processor),
        cmocka_unit_test(hash_of_a_new_instance_matches_the_format),
        cmocka_unit_test(start_hash_depends_on_every_field),
        cmocka_unit_test(event_hash_matches_the_format),
        cmocka_unit_test(a_large_payload_goes_through_whole),
        cmocka_unit_test(event_hash_depends_on_every_field),
        cmocka_unit_test(head_checksum_matches_the_format),
        cmocka_unit_test(snapshot_checksum_matches_the_format),
        cmocka_unit_test(a_definition_is_known_by_its_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
