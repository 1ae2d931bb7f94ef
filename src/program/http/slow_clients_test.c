/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* slow_clients_test.c - many slow clients must not delay a normal one. */
/* test: threads */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/http.h"
#include "lib/patience.h"
#include "lib/test.h"

#define IDLE   1000
#define SLOW   500
#define PROBES 200
#define LATE   (100 * DET_MILLISECOND) /* on an idle machine */

struct house {
    struct det_loop *loop;
    struct http_server *server;
    struct sockaddr_in address;
    int clients[IDLE + SLOW];
};

static void handle(void *context, struct http_exchange *exchange)
{
    (void)context;
    http_answer(exchange, &(struct http_answer){ .status = 200, .body = "hello", .body_size = 5 });
}

static void house_open(struct house *house)
{
    const struct http_options options = {
        /* The slow ones stay for the whole test, however long a busy machine takes. */
        .limits = { .peer_connections_max = 2 * (IDLE + SLOW),
                    .header_time = DET_TEST_HANG,
                    .idle_time = DET_TEST_HANG },
        .handle = handle,
    };
    struct http_options all = options;
    const char *address;

    assert_int_equal(det_loop_open(NULL, NULL, &house->loop), 0);
    all.loop = house->loop;
    assert_int_equal(http_server_open(&all, &house->server, NULL), 0);
    assert_int_equal(http_listen(house->server, "127.0.0.1:0", NULL, NULL), 0);
    address = http_listener_address(house->server, 0);
    house->address = (struct sockaddr_in){
        .sin_family = AF_INET,
        .sin_port = htons((uint16_t)strtoul(strchr(address, ':') + 1, NULL, 10)),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    assert_int_equal(det_loop_start(house->loop, "http"), 0);
}

static void house_close(struct house *house)
{
    det_loop_stop(house->loop);
    http_server_close(house->server);
    det_loop_close(house->loop);
}

static int connect_to(const struct house *house)
{
    int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(descriptor >= 0);
    assert_int_equal(
        connect(descriptor, (const struct sockaddr *)&house->address, sizeof house->address), 0);
    return descriptor;
}

/* Sends a request on a new connection and waits for the whole answer. */
static det_time probe(const struct house *house)
{
    static const char request[] = "GET / HTTP/1.0\r\n\r\n";
    det_time begin = det_world_now(det_world_real(), DET_CLOCK_MONOTONIC);
    int client = connect_to(house);
    char text[1024];
    size_t size = 0;
    ssize_t got;

    assert_int_equal(
        send(client, request, strlen(request), MSG_NOSIGNAL), (ssize_t)strlen(request));
    while ((got = recv(client, text + size, sizeof text - 1 - size, 0)) > 0)
        size += (size_t)got;
    text[size] = '\0';
    assert_non_null(strstr(text, "\r\n\r\nhello"));
    close(client);
    return det_world_now(det_world_real(), DET_CLOCK_MONOTONIC) - begin;
}

static void allow_descriptors(void)
{
    struct rlimit limit;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    if (limit.rlim_cur < limit.rlim_max)
        limit.rlim_cur = limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_true(limit.rlim_cur > 2 * (IDLE + SLOW) + 100);
}

/* A byte of a request that never ends, from each of them in turn. */
static void drip(const struct house *house, int round)
{
    for (int i = round % 10; i < SLOW; i += 10)
        assert_int_equal(send(house->clients[IDLE + i], "G", 1, MSG_NOSIGNAL), 1);
}

static void test_slow_clients_do_not_delay_a_normal_one(void **state)
{
    static struct house house;
    int64_t load = 1;
    int late = 0;

    (void)state;
    allow_descriptors();
    house_open(&house);
    for (int i = 0; i < IDLE + SLOW; i++)
        house.clients[i] = connect_to(&house);
    for (int i = 0; i < PROBES; i++) {
        drip(&house, i);
        load = det_test_load_since(load);
        late += probe(&house) > LATE * load;
    }
    assert_true(late <= PROBES / 100);
    for (int i = 0; i < IDLE + SLOW; i++)
        close(house.clients[i]);
    house_close(&house);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slow_clients_do_not_delay_a_normal_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
