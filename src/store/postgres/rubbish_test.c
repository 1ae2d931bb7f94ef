/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* rubbish_test.c - a server, or something on the way to it, whose answers are wrong: one
 * byte of them after the other is changed by a proxy. Whatever a commit then says must be true by
 * the server's own word, and nothing ends the process. The masks make no good verdict of another:
 * that would be for TLS to notice.
 *
 *     store --- TCP ---> proxy (a thread) --- socket ---> server
 *                 <-- a byte is changed --  */
/* test: sanitized */
#include "store/postgres/postgres_test.h"

#include "lib/patience.h"
#include "lib/proxy.h"

static uint64_t sequence_of(struct pad *pad)
{
    char *text = sql(pad->store, "SELECT sequence FROM @instances WHERE id = 'p'");
    uint64_t sequence = strtoull(text, NULL, 10);

    free(text);
    return sequence;
}

static bool returns_nothing_happened(int r)
{
    return r == DET_ERR_CONFLICT || r == DET_ERR_LOCKED || r == DET_ERR_LOCK_LOST ||
           r == DET_ERR_EARLY || r == DET_ERR_EXISTS || r == DET_ERR_NOT_FOUND ||
           r == DET_ERR_NO_MEMORY || r == DET_ERR_LIMIT || r == DET_ERR_NO_SPACE ||
           r == DET_ERR_READ_ONLY || r == DET_ERR_INVALID;
}

/* One commit, of a node of its own, with a byte of its answer changed. The number of bytes that
 * the answers had. */
static uint64_t commit_through(
    struct det_test_proxy *proxy, struct pad *truth, const char *url, uint64_t at, bool is_plain)
{
    struct pad *pad = neighbour(truth, url);
    uint64_t before = pad->head.sequence, passed, after;
    char id[24];
    int r;

    postgres_store_of(pad->store)->timeout = 150 * DET_MILLISECOND * det_test_load();
    det_test_proxy_arm(proxy, at, at % 3 == 0 ? 0x10 : at % 3 == 1 ? 0xff : 0x20);
    snprintf(id, sizeof id, "e-%llu", (unsigned long long)before);
    r = send(pad, BARE, is_plain ? NULL : id);
    passed = det_test_proxy_passed(proxy);
    det_test_proxy_arm(proxy, 0, 0);
    after = sequence_of(truth);
    if (r == 0 && after != before + 1)
        fail_msg("byte %d: it says that it is durable, and it is not", (int)at);
    if (returns_nothing_happened(r) && after != before)
        fail_msg("byte %d: it says %d, and it happened", (int)at, r);
    desk_close(pad);
    return passed;
}

static void change_every_byte(bool is_plain)
{
    struct det_test_proxy *proxy = det_test_proxy_open(server);
    char *url = det_test_postgres_url(server, NULL), *through = det_test_proxy_url(proxy, url);
    struct pad *pad = desk_at(url, NULL);
    uint64_t size = commit_through(proxy, pad, through, 0, is_plain);

    assert_in_range(size, 30, 2000);
    for (uint64_t at = 1; at <= size; at += is_plain ? 1 : 4)
        (void)commit_through(proxy, pad, through, at, is_plain);
    desk_close(pad);
    det_test_proxy_close(proxy);
    free(through);
    free(url);
}

static void corrupted_commit_answer_is_never_accepted(void **state)
{
    (void)state;
    change_every_byte(true);
}

static void corrupted_commit_verdict_is_never_accepted(void **state)
{
    (void)state;
    change_every_byte(false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corrupted_commit_answer_is_never_accepted),
        cmocka_unit_test(corrupted_commit_verdict_is_never_accepted),
    };

    return cmocka_run_group_tests(tests, open_server, close_server);
}
