/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* documents_test.c - documents when memory fails; tests/conform/document_cases.c has the rest. */
#include "lib/test.h"

#include "store/document.h"
#include "store/store.h"

static int count(void *context, const struct det_document *document)
{
    (void)document;
    ++*(unsigned *)context;
    return 0;
}

static unsigned documents_in(struct det_store *store, uint64_t *ret_latest)
{
    struct det_document_position position;
    unsigned found = 0;

    assert_int_equal(det_store_documents_list(store, NULL, count, &found, &position), 0);
    assert_int_equal(position.oldest, 1);
    *ret_latest = position.latest;
    return found;
}

/* Twenty documents of ten ids, so that arrays grow; then half of them go. */
static int save_and_drop(struct det_store *store)
{
    struct det_document_save saves[20];
    char ids[20][8];
    uint64_t latest;
    int r;

    for (unsigned i = 0; i < 20; i++) {
        snprintf(ids[i], sizeof ids[i], "id-%u", i / 2);
        saves[i] = (struct det_document_save){ .kind = "link",
                                               .id = ids[i],
                                               .role = (enum det_document_role)(i % 2),
                                               .text = "{\"a\":1}",
                                               .size = 7 };
    }
    r = det_store_documents_save(store, saves, 20, NULL, NULL);
    assert_int_equal(documents_in(store, &latest), r == 0 ? 20 : 0);
    assert_int_equal(latest, r == 0 ? 20 : 0);
    if (r < 0)
        return r;
    for (unsigned i = 0; i < 20; i++)
        saves[i].is_drop = i < 11;
    r = det_store_documents_save(store, saves, 20, NULL, NULL);
    assert_int_equal(documents_in(store, &latest), r == 0 ? 9 : 20);
    assert_int_equal(latest, r == 0 ? 31 : 20);
    return r;
}

static int all_or_nothing(struct det_test_memory *memory, void *argument)
{
    struct det_store *store;
    struct det_error error;
    int r;

    (void)argument;
    r = det_store_open_with(
        "memory:", &(struct det_store_options){ .allocator = &memory->allocator }, &store, &error);
    if (r < 0)
        return r;
    r = save_and_drop(store);
    det_store_close(store);
    return r;
}

static void document_save_survives_failed_allocations(void **state)
{
    (void)state;
    det_test_each_failure(all_or_nothing, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(document_save_survives_failed_allocations),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
