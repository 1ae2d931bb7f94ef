/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* prove_test.c - every kind that comes with the program is pure where it must be, and stops. */
#include "lib/test.h"

#include <detent/worker_test.h>

#include "kinds/kinds.h"

static void every_kind_is_proven(void **state)
{
    const struct det_kind_entry *entry = det_kinds_list();

    (void)state;
    for (; entry->kind != NULL; entry++) {
        struct det_worker_proof proof;
        struct det_error error = { 0 };

        if (det_worker_prove(entry->kind, NULL, &proof, &error) < 0)
            fail_msg("%s", error.text);
        assert_true(proof.views >= (uint64_t)200 * entry->kind->state_count);
        /* Observations of chance lead to STOPPED in time, or the way there is a narrow one. */
        if (proof.unstopped * 2 > proof.stops)
            fail_msg(
                "%s: %llu of %llu walks do not come to STOPPED", entry->kind->name,
                (unsigned long long)proof.unstopped, (unsigned long long)proof.stops);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_is_proven),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
