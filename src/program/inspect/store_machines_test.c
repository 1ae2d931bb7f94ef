/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* store_machines_test.c - the machine of an instance, and the message if there is none. */
#include "inspect/store_test.h"

static void instance_is_found_by_id_without_a_machine(void **state)
{
    struct det_machine *found = NULL;
    struct shop shop;

    (void)state;
    shop_open(&shop);
    shop_start(&shop, shop.order, "o-1");
    shop_start(&shop, shop.parcel, "p-1");
    assert_int_equal(cli_store_find(&shop.store, "p-1", &found), CLI_OK);
    assert_ptr_equal(found, shop.parcel);
    assert_int_equal(cli_store_find(&shop.store, "o-1", &found), CLI_OK);
    assert_ptr_equal(found, shop.order);
    assert_string_equal(shop_printed(&shop), "");
    shop_close(&shop);
}

static void ambiguous_instance_id_needs_a_machine_name(void **state)
{
    struct det_machine *found = NULL;
    struct shop shop;

    (void)state;
    shop_open(&shop);
    shop_start(&shop, shop.order, "x");
    shop_start(&shop, shop.parcel, "x");
    assert_int_equal(cli_store_find(&shop.store, "x", &found), CLI_USAGE);
    assert_string_equal(
        shop_printed(&shop), "detent: 'x' exists in several machines: order, parcel; select "
                             "one with --machine\n");
    shop.store.wanted = "parcel";
    assert_int_equal(cli_store_find(&shop.store, "x", &found), CLI_OK);
    assert_ptr_equal(found, shop.parcel);
    shop_close(&shop);
}

static void missing_id_is_reported_with_the_nearest(void **state)
{
    struct det_machine *found = NULL;
    struct shop shop;

    (void)state;
    shop_open(&shop);
    assert_int_equal(cli_store_find(&shop.store, "order-12", &found), CLI_NOT_FOUND);
    assert_string_equal(
        shop_printed(&shop), "detent: there is no 'order-12' in test:; 'detent list' shows all\n");
    shop_start(&shop, shop.order, "order-21");
    assert_int_equal(cli_store_find(&shop.store, "order-12", &found), CLI_NOT_FOUND);
    assert_string_equal(
        shop_printed(&shop), "detent: there is no 'order-12' in test:; did you mean 'order-21'?\n");
    shop.store.wanted = "order";
    assert_int_equal(cli_store_find(&shop.store, "order-12", &found), CLI_NOT_FOUND);
    assert_string_equal(
        shop_printed(&shop),
        "detent: there is no order 'order-12' in test:; did you mean 'order-21'?\n");
    shop_close(&shop);
}

static void unknown_machine_is_reported_with_the_known_ones(void **state)
{
    struct det_machine *found = NULL;
    struct shop shop;

    (void)state;
    shop_open_with(&shop, NULL);
    assert_int_equal(cli_store_machine(&shop.store, "order", &found), CLI_NOT_FOUND);
    assert_string_equal(
        shop_printed(&shop),
        "detent: there is no machine 'order', and test: has no machines; pass its "
        "spec: order.fsm\n");
    assert_int_equal(cli_store_only_machine(&shop.store, &found), CLI_NOT_FOUND);
    assert_string_equal(shop_printed(&shop), "detent: test: has no machines\n");
    shop.order = shop_define(&shop, "order", ORDER_SPEC);
    assert_int_equal(cli_store_only_machine(&shop.store, &found), CLI_OK);
    assert_ptr_equal(found, shop.order);
    shop_define(&shop, "parcel", PARCEL_SPEC);
    assert_int_equal(cli_store_only_machine(&shop.store, &found), CLI_USAGE);
    assert_string_equal(
        shop_printed(&shop), "detent: which machine? --machine is one of order, parcel\n");
    assert_int_equal(cli_store_machine(&shop.store, "ordre", &found), CLI_NOT_FOUND);
    assert_string_equal(
        shop_printed(&shop), "detent: there is no machine 'ordre'; did you mean 'order'?\n");
    assert_int_equal(cli_store_machine(&shop.store, "invoice", &found), CLI_NOT_FOUND);
    assert_string_equal(
        shop_printed(&shop),
        "detent: there is no machine 'invoice'; there is order, parcel; or pass "
        "its spec: invoice.fsm\n");
    shop.store.wanted = "parcel";
    assert_int_equal(cli_store_only_machine(&shop.store, &found), CLI_OK);
    assert_string_equal(found->name, "parcel");
    shop_close(&shop);
}

static int count_machine(void *context, struct det_machine *machine)
{
    (void)machine;
    return ++*(int *)context == 5 ? CLI_TIMEOUT : CLI_OK;
}

static void visit_of_machines_ends_at_the_first_error(void **state)
{
    struct shop shop;
    int count = 0;

    (void)state;
    shop_open(&shop);
    assert_int_equal(cli_store_each(&shop.store, count_machine, &count), CLI_OK);
    assert_int_equal(count, 2);
    count = 4;
    assert_int_equal(cli_store_each(&shop.store, count_machine, &count), CLI_TIMEOUT);
    assert_int_equal(count, 5);
    shop.store.wanted = "nothing";
    assert_int_equal(cli_store_each(&shop.store, count_machine, &count), CLI_NOT_FOUND);
    shop_close(&shop);
}

static void unreadable_definition_is_reported(void **state)
{
    struct det_machine *found = NULL;
    struct shop shop;

    (void)state;
    shop_open_with(&shop, NULL);
    assert_int_equal(cli_store_define(&shop.store, "order", "STATE(", &found), CLI_FAILURE);
    assert_string_equal(
        shop_printed(&shop),
        "detent: the definition of order in test: cannot be read by this program; "
        "pass its file: --machine order.fsm\n");
    shop_close(&shop);
}

static int find_in(struct det_test_memory *memory, void *argument)
{
    struct det_machine *found = NULL;
    struct shop shop;
    int code;

    (void)argument;
    shop_open_with(&shop, &memory->allocator);
    code = cli_store_define(&shop.store, "order", ORDER_SPEC, &shop.order);
    if (code == CLI_OK) {
        shop_run(&shop);
        shop_start(&shop, shop.order, "order-1");
        code = cli_store_find(&shop.store, "order-1", &found);
    }
    if (code == CLI_OK)
        code =
            cli_store_find(&shop.store, "order-2", &found) == CLI_NOT_FOUND ? CLI_OK : CLI_FAILURE;
    shop_close(&shop);
    return code == CLI_OK ? 0 : DET_ERR_NO_MEMORY;
}

static void search_survives_every_failed_allocation(void **state)
{
    (void)state;
    det_test_each_failure(find_in, NULL);
}

static int note_id(void *context, struct det_machine *machine, const char *id)
{
    char *last = context;

    (void)machine;
    assert_true(strcmp(id, last) > 0);
    snprintf(last, DET_ID_MAX + 1, "%s", id);
    return strcmp(id, "i-550") == 0 ? CLI_CONFLICT : CLI_OK;
}

static void instances_are_visited_page_by_page(void **state)
{
    static const struct det_store_query all = { 0 };
    char last[DET_ID_MAX + 1] = "", id[16];
    struct shop shop;

    (void)state;
    shop_open(&shop);
    for (int i = 100; i < 612; i++) {
        snprintf(id, sizeof id, "i-%d", i);
        shop_start(&shop, shop.parcel, id);
    }
    assert_int_equal(
        cli_store_instances(&shop.store, shop.parcel, &all, note_id, last), CLI_CONFLICT);
    assert_string_equal(last, "i-550");
    assert_int_equal(
        cli_store_instances(
            &shop.store, shop.parcel, &(struct det_store_query){ .after = "i-550" }, note_id, last),
        CLI_OK);
    assert_string_equal(last, "i-611");
    shop_close(&shop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(instance_is_found_by_id_without_a_machine),
        cmocka_unit_test(ambiguous_instance_id_needs_a_machine_name),
        cmocka_unit_test(missing_id_is_reported_with_the_nearest),
        cmocka_unit_test(unknown_machine_is_reported_with_the_known_ones),
        cmocka_unit_test(visit_of_machines_ends_at_the_first_error),
        cmocka_unit_test(unreadable_definition_is_reported),
        cmocka_unit_test(search_survives_every_failed_allocation),
        cmocka_unit_test(instances_are_visited_page_by_page),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
