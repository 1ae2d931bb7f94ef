/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* list_test.c - nodes keep their order, and leave their list at any time. */
#include "base/list.h"
#include "lib/test.h"

struct item {
    char name;
    struct det_list node;
};

static void check_names(struct det_list *head, const char *names)
{
    size_t count = 0;

    DET_LIST_EACH(node, head)
    {
        const struct item *item = DET_CONTAINER(node, struct item, node);

        assert_ptr_equal(node->next->previous, node);
        assert_int_equal(item->name, names[count]);
        count++;
    }
    assert_int_equal(strlen(names), count);
}

static void list_nodes_keep_their_order(void **state)
{
    struct item a = { .name = 'a' }, b = { .name = 'b' }, c = { .name = 'c' }, d = { .name = 'd' };
    struct det_list head;

    (void)state;
    det_list_init(&head);
    assert_true(det_list_is_empty(&head));
    check_names(&head, "");
    det_list_append(&head, &b.node);
    det_list_append(&head, &c.node);
    det_list_prepend(&head, &a.node);
    assert_false(det_list_is_empty(&head));
    check_names(&head, "abc");
    det_list_insert_before(&b.node, &d.node);
    check_names(&head, "adbc");
}

static void list_node_may_be_removed_twice(void **state)
{
    struct item a = { .name = 'a' }, b = { .name = 'b' }, c = { .name = 'c' };
    struct det_list head;

    (void)state;
    det_list_init(&head);
    det_list_append(&head, &a.node);
    det_list_append(&head, &b.node);
    det_list_append(&head, &c.node);
    det_list_remove(&b.node);
    check_names(&head, "ac");
    assert_true(det_list_is_empty(&b.node));
    det_list_remove(&b.node);
    check_names(&head, "ac");
}

static void taking_empties_from_the_front(void **state)
{
    struct item a = { .name = 'a' }, b = { .name = 'b' };
    struct det_list head;
    size_t count = 0;

    (void)state;
    det_list_init(&head);
    det_list_append(&head, &a.node);
    det_list_append(&head, &b.node);
    DET_LIST_EACH(node, &head)
    {
        assert_ptr_equal(node, count == 0 ? &a.node : &b.node);
        count++;
    }
    assert_int_equal(count, 2);
    assert_ptr_equal(det_list_take(&head), &a.node);
    assert_ptr_equal(det_list_take(&head), &b.node);
    assert_null(det_list_take(&head));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(list_nodes_keep_their_order),
        cmocka_unit_test(list_node_may_be_removed_twice),
        cmocka_unit_test(taking_empties_from_the_front),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
