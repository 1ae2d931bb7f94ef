/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* proxy.c - a thread that passes bytes on, changes one of them, or stops to pass any. */
#include "lib/proxy.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/test.h"

#define PAIRS_MAX 64

struct det_test_proxy {
    pthread_t thread;
    const char *host;
    int listener;
    unsigned port;
    atomic_bool is_over;
    _Atomic(uint64_t) passed; /* bytes of answers since it was armed */
    _Atomic(uint64_t) at;     /* the number of the byte to be changed, from 1; 0: none */
    _Atomic(unsigned) mask;
    _Atomic(uint64_t) left;     /* bytes of answers until all is cut */
    _Atomic(const char *) word; /* NULL, or what makes a connection mute */
    atomic_bool was_mute;
    atomic_bool is_mute[PAIRS_MAX];
    struct pollfd ends[1 + 2 * PAIRS_MAX]; /* the listener; then near and far of each pair */
    unsigned pair_count;
};

static void set_byte(struct det_test_proxy *proxy, unsigned char *bytes, size_t size)
{
    uint64_t before = atomic_fetch_add(&proxy->passed, size), at = atomic_load(&proxy->at);

    if (at > before && at <= before + size)
        bytes[at - before - 1] ^= (unsigned char)atomic_load(&proxy->mask);
}

/* How many of these bytes of an answer still pass. */
static size_t let_pass(struct det_test_proxy *proxy, size_t size)
{
    uint64_t left = atomic_load(&proxy->left), after;

    do {
        after = left == UINT64_MAX ? left : left > size ? left - size : 0;
    } while (!atomic_compare_exchange_weak(&proxy->left, &left, after));
    return left < size ? (size_t)left : size;
}

static void proxy_accept(struct det_test_proxy *proxy)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    unsigned free_pair = 0;
    struct pollfd *pair;

    while (free_pair < proxy->pair_count && proxy->ends[1 + 2 * free_pair].fd >= 0)
        free_pair++;
    assert_true(free_pair < PAIRS_MAX);
    pair = &proxy->ends[1 + 2 * free_pair];
    atomic_store(&proxy->is_mute[free_pair], false);
    snprintf(address.sun_path, sizeof address.sun_path, "%s/.s.PGSQL.5432", proxy->host);
    pair[0] = (struct pollfd){ .fd = accept(proxy->listener, NULL, NULL), .events = POLLIN };
    pair[1] = (struct pollfd){ .fd = socket(AF_UNIX, SOCK_STREAM, 0), .events = POLLIN };
    assert_int_equal(connect(pair[1].fd, (struct sockaddr *)&address, sizeof address), 0);
    if (free_pair == proxy->pair_count)
        proxy->pair_count++;
}

static void drop_pair(struct pollfd *pair)
{
    for (int i = 0; i < 2; i++) {
        (void)close(pair[i].fd);
        pair[i].fd = -1;
    }
}

/* Whether these bytes, or others before them, made the connection mute. */
static bool is_mute(
    struct det_test_proxy *proxy, unsigned number, const unsigned char *bytes, ssize_t size)
{
    const char *word = atomic_load(&proxy->word);

    if (word && size > 0 && memmem(bytes, (size_t)size, word, strlen(word))) {
        atomic_store(&proxy->is_mute[number], true);
        atomic_store(&proxy->was_mute, true);
    }
    return size > 0 && atomic_load(&proxy->is_mute[number]);
}

/* From one end to the other; an end that is gone takes the other with it. */
static void proxy_pass(struct det_test_proxy *proxy, unsigned number, int from)
{
    struct pollfd *pair = &proxy->ends[1 + 2 * number];
    unsigned char bytes[4096];
    ssize_t size, whole;

    if (pair[from].fd < 0 || !pair[from].revents)
        return;
    size = recv(pair[from].fd, bytes, sizeof bytes, 0);
    if (is_mute(proxy, number, bytes, size))
        return;
    whole = size;
    if (size > 0 && from == 1) {
        size = (ssize_t)let_pass(proxy, (size_t)size);
        set_byte(proxy, bytes, (size_t)size);
    }
    if (size <= 0 || send(pair[1 - from].fd, bytes, (size_t)size, MSG_NOSIGNAL) != whole)
        drop_pair(pair);
}

static void *proxy_run(void *argument)
{
    struct det_test_proxy *proxy = argument;

    while (!atomic_load(&proxy->is_over)) {
        unsigned count = proxy->pair_count;

        if (poll(proxy->ends, 1 + 2 * count, 20) <= 0)
            continue;
        for (unsigned i = 0; i < count; i++) {
            proxy_pass(proxy, i, 0);
            proxy_pass(proxy, i, 1);
        }
        if (proxy->ends[0].revents)
            proxy_accept(proxy);
    }
    for (unsigned i = 0; i < proxy->pair_count; i++)
        if (proxy->ends[1 + 2 * i].fd >= 0)
            drop_pair(&proxy->ends[1 + 2 * i]);
    return NULL;
}

struct det_test_proxy *det_test_proxy_open(const struct det_test_postgres *postgres)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof address;
    struct det_test_proxy *proxy = calloc(1, sizeof *proxy);

    assert_non_null(proxy);
    proxy->listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(proxy->listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(proxy->listener, 16), 0);
    assert_int_equal(getsockname(proxy->listener, (struct sockaddr *)&address, &size), 0);
    proxy->port = ntohs(address.sin_port);
    proxy->ends[0] = (struct pollfd){ .fd = proxy->listener, .events = POLLIN };
    proxy->host = det_test_postgres_host(postgres);
    atomic_store(&proxy->left, UINT64_MAX);
    assert_int_equal(pthread_create(&proxy->thread, NULL, proxy_run, proxy), 0);
    return proxy;
}

void det_test_proxy_close(struct det_test_proxy *proxy)
{
    atomic_store(&proxy->is_over, true);
    (void)pthread_join(proxy->thread, NULL);
    (void)close(proxy->listener);
    free(proxy);
}

void det_test_proxy_arm(struct det_test_proxy *proxy, uint64_t at, unsigned mask)
{
    atomic_store(&proxy->mask, mask);
    atomic_store(&proxy->at, at);
    atomic_store(&proxy->passed, 0);
}

uint64_t det_test_proxy_passed(struct det_test_proxy *proxy)
{
    return atomic_load(&proxy->passed);
}

void det_test_proxy_cut(struct det_test_proxy *proxy, uint64_t after)
{
    atomic_store(&proxy->left, after);
}

void det_test_proxy_mute(struct det_test_proxy *proxy, const char *word)
{
    atomic_store(&proxy->word, word);
}

bool det_test_proxy_was_mute(struct det_test_proxy *proxy)
{
    return atomic_load(&proxy->was_mute);
}

unsigned det_test_proxy_port(const struct det_test_proxy *proxy)
{
    return proxy->port;
}

char *det_test_proxy_url(const struct det_test_proxy *proxy, const char *url)
{
    const char *schema = strstr(url, "&schema=");
    char *through = NULL;

    assert_non_null(schema);
    assert_true(
        asprintf(
            &through,
            "postgres://postgres@/postgres?host=127.0.0.1&port=%u&sslmode=disable"
            "&gssencmode=disable%s",
            proxy->port, schema) > 0);
    return through;
}
