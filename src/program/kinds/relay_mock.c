/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* relay_mock.c - the sockets and threads of the mock relay: one that accepts, and one for each
 * connection. */
#include "kinds/relay_mock.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/memory.h"
#include "kinds/relay_mock_internal.h"

#define BODY_MAX 16777216
#define BACKLOG  16

void relay_mock_lock(struct relay_mock *mock)
{
    det_mutex_lock(mock->world, mock->mutex);
}

void relay_mock_unlock(struct relay_mock *mock)
{
    det_mutex_unlock(mock->world, mock->mutex);
}

/* Returns the size of head and body; 0: the head is incomplete. */
static size_t size_of_request(const struct det_buffer *input, size_t *ret_head)
{
    const char *end = strstr(det_buffer_text(input), "\r\n\r\n");
    const char *length = strcasestr(det_buffer_text(input), "\r\nContent-Length:");

    if (!end)
        return 0;
    *ret_head = (size_t)(end - input->data) + 4;
    return *ret_head + (length && length < end ? strtoul(length + 17, NULL, 10) : 0);
}

/* Reads a whole request; false at the end. */
static bool read_request(int descriptor, struct det_buffer *input, size_t *head, size_t *all)
{
    char bytes[16384];
    ssize_t count;

    for (;;) {
        *all = size_of_request(input, head);
        if (*all && input->size >= *all)
            return true;
        count = recv(descriptor, bytes, sizeof bytes, 0);
        if (count <= 0)
            return false;
        det_buffer_append(input, bytes, (size_t)count);
        if (det_buffer_status(input) < 0)
            return false;
    }
}

static bool send_all(int descriptor, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t count = send(descriptor, data, size, MSG_NOSIGNAL);

        if (count <= 0)
            return false;
        data += count;
        size -= (size_t)count;
    }
    return true;
}

static void serve_connection(void *argument)
{
    struct relay_mock_connection *connection = argument;
    struct relay_mock *mock = connection->mock;
    struct det_buffer input = { .limit = BODY_MAX }, answer = { 0 };
    size_t head, all;

    while (read_request(connection->descriptor, &input, &head, &all)) {
        char *copy = det_string_copy_n(NULL, input.data, head);
        struct relay_mock_request request = { .head = copy,
                                              .body = input.data + head,
                                              .body_size = all - head };
        bool is_answered;

        det_buffer_clear(&answer);
        is_answered = copy && relay_mock_answer(mock, &request, &answer) &&
                      det_buffer_status(&answer) == 0 &&
                      send_all(connection->descriptor, answer.data, answer.size);
        det_free_string(NULL, copy);
        if (!is_answered)
            break;
        det_buffer_drop(&input, all);
    }
    det_buffer_deinit(&input);
    det_buffer_deinit(&answer);
    shutdown(connection->descriptor, SHUT_RDWR);
    relay_mock_lock(mock);
    connection->is_over = true;
    relay_mock_unlock(mock);
}

/* Joins finished connections; or all, after ending them. */
static void join_connections(struct relay_mock *mock, bool is_all)
{
    struct det_list over, *next;

    det_list_init(&over);
    relay_mock_lock(mock);
    for (struct det_list *node = mock->connections.next; node != &mock->connections; node = next) {
        struct relay_mock_connection *connection =
            DET_CONTAINER(node, struct relay_mock_connection, node);

        next = node->next;
        if (!is_all && !connection->is_over)
            continue;
        shutdown(connection->descriptor, SHUT_RDWR);
        det_list_remove(node);
        det_list_append(&over, node);
    }
    relay_mock_unlock(mock);
    for (struct det_list *node; (node = det_list_take(&over));) {
        struct relay_mock_connection *connection =
            DET_CONTAINER(node, struct relay_mock_connection, node);

        det_thread_join(mock->world, connection->thread);
        close(connection->descriptor);
        DET_DELETE(NULL, connection);
    }
}

static void add_connection(struct relay_mock *mock, int descriptor)
{
    struct relay_mock_connection *connection = DET_NEW(NULL, struct relay_mock_connection);

    if (!connection) {
        close(descriptor);
        return;
    }
    connection->mock = mock;
    connection->descriptor = descriptor;
    relay_mock_lock(mock);
    if (mock->is_down ||
        det_thread_start(mock->world, "mock", serve_connection, connection, &connection->thread) <
            0) {
        close(descriptor);
        DET_DELETE(NULL, connection);
    } else {
        det_list_append(&mock->connections, &connection->node);
        mock->counts[RELAY_MOCK_CONNECTIONS]++;
        det_condition_broadcast(mock->world, mock->changed);
    }
    relay_mock_unlock(mock);
}

static void accept_all(void *argument)
{
    struct relay_mock *mock = argument;

    for (;;) {
        int descriptor = accept4(mock->listener, NULL, NULL, SOCK_CLOEXEC);

        if (descriptor < 0)
            return;
        join_connections(mock, false);
        add_connection(mock, descriptor);
    }
}

/* An explicitly bound port stays ours while the mock does not listen: first asks for any port, then
 * binds that one. */
static int bind_listener(struct relay_mock *mock)
{
    struct sockaddr_in address = { .sin_family = AF_INET };
    socklen_t size = sizeof address;
    int on = 1;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int attempt = 0; attempt < 20; attempt++) {
        int probe = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        address.sin_port = 0;
        if (probe >= 0 && bind(probe, (struct sockaddr *)&address, size) == 0)
            (void)getsockname(probe, (struct sockaddr *)&address, &size);
        close(probe);
        setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        if (listener >= 0 && address.sin_port &&
            bind(listener, (struct sockaddr *)&address, size) == 0) {
            mock->listener = listener;
            snprintf(
                mock->url, sizeof mock->url, "http://127.0.0.1:%u",
                (unsigned)ntohs(address.sin_port));
            return 0;
        }
        close(listener);
    }
    return DET_ERR_IO;
}

int relay_mock_open(const char *auth_token, struct relay_mock **ret)
{
    struct relay_mock *mock = DET_NEW(NULL, struct relay_mock);
    int r;

    if (!mock)
        return DET_ERR_NO_MEMORY;
    mock->world = det_world_real();
    mock->listener = -1;
    mock->is_down = true;
    det_list_init(&mock->connections);
    det_list_init(&mock->to_pull);
    det_list_init(&mock->pushed);
    relay_mock_set_uuid(mock, "11111111-2222-3333-4444-555555555555");
    r = relay_hash(auth_token, mock->hash);
    if (r == 0)
        r = det_mutex_open(mock->world, &mock->mutex);
    if (r == 0)
        r = det_condition_open(mock->world, &mock->changed);
    if (r == 0)
        r = bind_listener(mock);
    if (r == 0)
        r = relay_mock_start(mock);
    if (r < 0) {
        relay_mock_close(mock);
        return r;
    }
    *ret = mock;
    return 0;
}

void relay_mock_close(struct relay_mock *mock)
{
    if (!mock)
        return;
    relay_mock_stop(mock);
    if (mock->listener >= 0)
        close(mock->listener);
    channel_messages_close(&mock->to_pull);
    channel_messages_close(&mock->pushed);
    det_condition_close(mock->world, mock->changed);
    det_mutex_close(mock->world, mock->mutex);
    DET_DELETE(NULL, mock);
}

const char *relay_mock_url(const struct relay_mock *mock)
{
    return mock->url;
}

void relay_mock_stop(struct relay_mock *mock)
{
    if (mock->is_down)
        return;
    relay_mock_lock(mock);
    mock->is_down = true;
    det_condition_broadcast(mock->world, mock->changed);
    relay_mock_unlock(mock);
    shutdown(mock->listener, SHUT_RDWR);
    det_thread_join(mock->world, mock->acceptor);
    join_connections(mock, true);
}

int relay_mock_start(struct relay_mock *mock)
{
    int r;

    if (!mock->is_down)
        return 0;
    det_assert(mock->listener >= 0 && det_list_is_empty(&mock->connections));
    if (listen(mock->listener, BACKLOG) < 0)
        return DET_ERR_IO;
    mock->is_down = false;
    r = det_thread_start(mock->world, "mock", accept_all, mock, &mock->acceptor);
    if (r < 0)
        mock->is_down = true;
    return r;
}
