/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* pace.c - sends requests to a server at fixed times, by 64 connections of one thread.
 *
 *     due      0   1   2   3   4   5      request k is due k / rate after the start in any case
 *     asked    0   1         2 3 4 5      none was idle when 2 and 3 were due
 *     latency          |----------->      of 2: the time before it could be sent counts
 *
 * A client that waits for an answer before its next request sends fewer requests while the server
 * is slow, and so hides the slow times; this one does not. */
#include "pace.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "statistics.h"

#define ANSWER_MAX  16384
#define PATIENCE_NS INT64_C(10000000000)
#define HEAD_END    "\r\n\r\n"
#define LENGTH      "\r\nContent-Length: "

struct connection {
    int descriptor;
    int64_t due;
    size_t size; /* bytes read of its answer */
    char text[ANSWER_MAX + 1];
};

struct client {
    const struct pace *pace;
    int64_t start;
    uint64_t asked, answered;
    int epoll;
    size_t idle_count;
    struct connection *idle[PACE_CONNECTIONS];
    double *latencies;
    const char *problem; /* NULL: none */
    struct connection connections[PACE_CONNECTIONS];
};

static int64_t due_of(const struct client *client, uint64_t number)
{
    return client->start + (int64_t)((double)number * 1e9 / client->pace->per_second);
}

/* Opening. */

static bool connect_one(struct client *client, struct connection *connection)
{
    const char *port = strrchr(client->pace->url, ':');
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
        .sin_port = htons((uint16_t)strtoul(port + 1, NULL, 10)),
    };
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = connection };
    int yes = 1;

    connection->descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    client->idle[client->idle_count++] = connection;
    return connection->descriptor >= 0 &&
           connect(connection->descriptor, (struct sockaddr *)&address, sizeof address) == 0 &&
           setsockopt(connection->descriptor, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes) == 0 &&
           epoll_ctl(client->epoll, EPOLL_CTL_ADD, connection->descriptor, &event) == 0;
}

static struct client *open_client(const struct pace *pace)
{
    struct client *client = calloc(1, sizeof *client);

    if (!client)
        return NULL;
    client->pace = pace;
    client->latencies = calloc(pace->count, sizeof *client->latencies);
    client->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (!client->latencies || client->epoll < 0)
        client->problem = "the client cannot be opened";
    for (size_t i = 0; i < PACE_CONNECTIONS; i++) {
        client->connections[i].descriptor = -1;
        if (!client->problem && !connect_one(client, &client->connections[i]))
            client->problem = "no connection";
    }
    return client;
}

static void close_client(struct client *client)
{
    for (size_t i = 0; i < PACE_CONNECTIONS; i++) {
        if (client->connections[i].descriptor >= 0)
            close(client->connections[i].descriptor);
    }
    if (client->epoll >= 0)
        close(client->epoll);
    free(client->latencies);
    free(client);
}

/* Running. */

/* Sends all due requests, as far as connections are free. */
static void ask(struct client *client)
{
    int64_t now = bench_now_ns();

    while (client->asked < client->pace->count && client->idle_count > 0 &&
           due_of(client, client->asked) <= now) {
        struct connection *connection = client->idle[--client->idle_count];
        const char *text = client->pace->wanted[client->asked % client->pace->wanted_count];
        size_t size = strlen(text);

        connection->due = due_of(client, client->asked++);
        connection->size = 0;
        /* The request is small and alone, so one call sends all of it. */
        if (send(connection->descriptor, text, size, MSG_NOSIGNAL) != (ssize_t)size)
            client->problem = "a request was not taken";
    }
}

/* Returns true if the answer is complete; notes a wrong answer. */
static bool is_complete(struct client *client, const struct connection *connection)
{
    const char *end = strstr(connection->text, HEAD_END);
    const char *length = strcasestr(connection->text, LENGTH);
    size_t whole;

    if (!end)
        return false;
    if (strncmp(connection->text, "HTTP/1.1 2", 10) != 0 || !length || length > end) {
        client->problem = "an answer is not 2xx";
        return false;
    }
    whole = (size_t)(end - connection->text) + strlen(HEAD_END) +
            strtoul(length + strlen(LENGTH), NULL, 10);
    if (connection->size > whole || whole > ANSWER_MAX)
        client->problem = "an answer is too long";
    return connection->size == whole;
}

static void receive(struct client *client, struct connection *connection)
{
    ssize_t size = recv(
        connection->descriptor, connection->text + connection->size, ANSWER_MAX - connection->size,
        0);

    if (size <= 0) {
        client->problem = "a connection was lost";
        return;
    }
    connection->size += (size_t)size;
    connection->text[connection->size] = '\0';
    if (!is_complete(client, connection))
        return;
    client->latencies[client->answered++] = (double)(bench_now_ns() - connection->due);
    client->idle[client->idle_count++] = connection;
}

static void turn(struct client *client)
{
    struct epoll_event events[PACE_CONNECTIONS];
    int64_t wait = PATIENCE_NS;
    struct timespec span;
    int count;

    ask(client);
    if (client->asked < client->pace->count && client->idle_count > 0)
        wait = due_of(client, client->asked) - bench_now_ns();
    if (wait < 0)
        wait = 0;
    span = (struct timespec){ .tv_sec = wait / 1000000000, .tv_nsec = wait % 1000000000 };
    count = epoll_pwait2(client->epoll, events, PACE_CONNECTIONS, &span, NULL);
    if ((count < 0 && errno != EINTR) || (count == 0 && wait == PATIENCE_NS))
        client->problem = "no answer";
    for (int i = 0; i < count && !client->problem; i++)
        receive(client, events[i].data.ptr);
}

int pace_run(struct bench_lap *lap, const struct pace *pace, struct pace_latency *ret)
{
    struct client *client = open_client(pace);
    int r = 0;

    if (!client)
        return bench_lap_fail(lap, DET_ERR_NO_MEMORY, "no memory for the client");
    client->start = bench_now_ns();
    while (!client->problem && client->answered < pace->count)
        turn(client);
    if (client->problem) {
        r = bench_lap_fail(lap, DET_ERR_IO, "%s", client->problem);
    } else {
        ret->p50_ns = bench_quantile(client->latencies, pace->count, 0.5);
        ret->p99_ns = bench_quantile(client->latencies, pace->count, 0.99);
        ret->max_ns = client->latencies[pace->count - 1];
    }
    close_client(client);
    return r;
}
