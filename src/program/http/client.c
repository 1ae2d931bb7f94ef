/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* client.c - one request after another by the multi interface of libcurl.
 *
 * The multi interface names its descriptors and leaves the wait to us: ours ends at once when the
 * call is cancelled, takes a signal without losing one, and has no limit of 1024 descriptors. */
#include "http/client.h"

#include <curl/curl.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "os/os.h"

/* Descriptors of one transfer: one per family of addresses, and the pair of the resolver. */
#define SOCKETS_MAX 16
/* Seconds that a connection may be unused. */
#define IDLE_MAX 30L
/* Limit of the delay that a server may ask for. */
#define RETRY_AFTER_MAX DET_HOUR
#define TOO_MANY        429
#define UNAVAILABLE     503
/* Descriptors of a connection: a socket, the pair that wakes it, and a file of certificates. Some
 * of them are closed again when another one could not be opened. */
#define PER_CONNECTION 4

struct http_client {
    struct http_client_options options;
    char *socket_path; /* NULL: none */
    int descriptor;    /* of the connection that is checked; libcurl owns it */
    CURLM *multi;      /* has the connection */
    CURL *easy;
    struct pollfd sockets[SOCKETS_MAX];
    nfds_t socket_count;
    det_time due; /* monotonic, when libcurl wants to be called; DET_NEVER */
    /* The current call. */
    const struct http_call *call; /* NULL: none */
    struct http_result *result;
    det_time deadline;
    int running; /* transfers: 1, or 0 when it has ended */
    int stopped; /* the error with which we ended it; 0: none */
    char error[CURL_ERROR_SIZE];
};

int http_client_load(void)
{
    return curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK ? 0 : DET_ERR_IO;
}

void http_client_unload(void)
{
    curl_global_cleanup();
}

static det_time now(const struct http_client *client)
{
    return det_world_now(client->options.world, DET_CLOCK_MONOTONIC);
}

bool http_lines_add_line(struct http_lines *lines, const char *line)
{
    struct curl_slist *longer = curl_slist_append(lines->list, line);

    if (longer)
        lines->list = longer;
    return longer != NULL;
}

bool http_lines_add(struct http_lines *lines, const char *name, const char *value)
{
    char *line = NULL;
    int size = asprintf(&line, "%s: %s", name, value);
    bool is_added;

    if (size < 0)
        return false;
    is_added = http_lines_add_line(lines, line);
    explicit_bzero(line, (size_t)size);
    free(line);
    return is_added;
}

void http_lines_deinit(struct http_lines *lines)
{
    for (struct curl_slist *line = lines->list; line; line = line->next)
        explicit_bzero(line->data, strlen(line->data));
    curl_slist_free_all(lines->list);
    lines->list = NULL;
}

bool http_client_takes(const char *url)
{
    CURLU *parts = curl_url();
    char *scheme = NULL, *user = NULL;
    bool takes = false;

    if (parts && !curl_url_set(parts, CURLUPART_URL, url, 0) &&
        !curl_url_get(parts, CURLUPART_SCHEME, &scheme, 0))
        takes = (!strcmp(scheme, "http") || !strcmp(scheme, "https")) &&
                curl_url_get(parts, CURLUPART_USER, &user, 0) == CURLUE_NO_USER;
    curl_free(scheme);
    curl_free(user);
    curl_url_cleanup(parts);
    return takes;
}

static bool is_loopback(const char *url)
{
    CURLU *parts = curl_url();
    char *host = NULL;
    bool is_it = false;

    if (parts && !curl_url_set(parts, CURLUPART_URL, url, 0) &&
        !curl_url_get(parts, CURLUPART_HOST, &host, 0))
        is_it =
            !strcasecmp(host, "localhost") || !strncmp(host, "127.", 4) || !strcmp(host, "[::1]");
    curl_free(host);
    curl_url_cleanup(parts);
    return is_it;
}

int64_t http_client_date(const char *text)
{
    return curl_getdate(text, NULL);
}

/* libcurl starts or stops watching a descriptor. */
static int note_socket(CURL *easy, curl_socket_t descriptor, int what, void *user, void *of_socket)
{
    struct http_client *client = user;
    nfds_t i = 0;
    short events = 0;

    (void)easy;
    (void)of_socket;
    while (i < client->socket_count && client->sockets[i].fd != descriptor)
        i++;
    if (what == CURL_POLL_REMOVE) {
        if (i < client->socket_count)
            client->sockets[i] = client->sockets[--client->socket_count];
        return 0;
    }
    if (i == SOCKETS_MAX)
        return -1;
    if (what & CURL_POLL_IN)
        events |= POLLIN;
    if (what & CURL_POLL_OUT)
        events |= POLLOUT;
    client->sockets[i] = (struct pollfd){ .fd = descriptor, .events = events };
    if (i == client->socket_count)
        client->socket_count++;
    return 0;
}

static int note_timer(CURLM *multi, long span_ms, void *user)
{
    struct http_client *client = user;

    (void)multi;
    client->due = span_ms < 0 ? DET_NEVER : now(client) + span_ms * DET_MILLISECOND;
    return 0;
}

/* libcurl connects it. */
static curl_socket_t open_socket(void *user, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct http_client *client = user;

    (void)purpose;
    client->descriptor =
        socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
    return client->descriptor;
}

/* Called after the connect, before anything is sent. */
static int check_socket(void *user, char *peer, char *own, int peer_port, int own_port)
{
    struct http_client *client = user;
    struct det_error error = { 0 };

    (void)peer;
    (void)own;
    (void)peer_port;
    (void)own_port;
    client->stopped = client->options.check(client->options.user, client->descriptor, &error);
    if (client->stopped == 0)
        return CURL_PREREQFUNC_OK;
    (void)det_text_copy(client->result->text, sizeof client->result->text, error.text);
    return CURL_PREREQFUNC_ABORT;
}

static size_t take_body(char *data, size_t size, size_t count, void *user)
{
    struct http_client *client = user;
    const struct http_call *call = client->call;

    size *= count;
    client->result->body_size += size;
    if (call->body_max && client->result->body_size > call->body_max) {
        client->stopped = DET_ERR_LIMIT;
    } else if (call->on_body) {
        client->stopped = call->on_body(call->user, data, size);
    } else if (call->body) {
        det_buffer_append(call->body, data, size);
        client->stopped = det_buffer_status(call->body);
    }
    return client->stopped ? CURL_WRITEFUNC_ERROR : size;
}

static size_t take_line(char *line, size_t size, size_t count, void *user)
{
    struct http_client *client = user;

    client->call->on_line(client->call->user, line, size * count);
    return size * count;
}

static void set_up_certificates(CURL *easy, const struct http_call *call)
{
    if (call->is_insecure) {
        curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
        curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
    }
    if (call->ca_file && *call->ca_file)
        curl_easy_setopt(easy, CURLOPT_CAINFO, call->ca_file);
    if (call->wants_certificate)
        curl_easy_setopt(easy, CURLOPT_CERTINFO, 1L);
}

static void set_up_connection(struct http_client *client, const struct http_call *call)
{
    const struct http_client_options *options = &client->options;
    CURL *easy = client->easy;

    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(easy, CURLOPT_MAXAGE_CONN, IDLE_MAX);
    if (options->is_http_1_1)
        curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    if (options->connect_timeout)
        curl_easy_setopt(
            easy, CURLOPT_CONNECTTIMEOUT_MS, (long)(options->connect_timeout / DET_MILLISECOND));
    if (options->check) {
        curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
        curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, client);
        curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, check_socket);
        curl_easy_setopt(easy, CURLOPT_PREREQDATA, client);
    }
    if (client->socket_path || is_loopback(call->url))
        curl_easy_setopt(easy, CURLOPT_PROXY, "");
}

static long milliseconds(det_time span)
{
    return span > DET_MILLISECOND ? (long)((span + DET_MILLISECOND - 1) / DET_MILLISECOND) : 1;
}

/* False: no memory. */
static bool set_up(struct http_client *client)
{
    const struct http_call *call = client->call;
    CURL *easy = client->easy;

    curl_easy_reset(easy);
    set_up_connection(client, call);
    set_up_certificates(easy, call);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "detent");
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, client->error);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, client);
    if (call->on_line) {
        curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_line);
        curl_easy_setopt(easy, CURLOPT_HEADERDATA, client);
    }
    if (call->timeout != DET_NEVER)
        curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, milliseconds(call->timeout));
    if (call->send) {
        curl_easy_setopt(easy, CURLOPT_POST, 1L);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDS, call->send);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->send_size);
    }
    return (!call->method ||
            curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, call->method) == CURLE_OK) &&
           (!call->lines ||
            curl_easy_setopt(easy, CURLOPT_HTTPHEADER, call->lines->list) == CURLE_OK) &&
           (!client->socket_path ||
            curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, client->socket_path) == CURLE_OK) &&
           curl_easy_setopt(easy, CURLOPT_URL, call->url) == CURLE_OK;
}

static bool is_cancelled(const struct http_client *client)
{
    return client->options.is_cancelled && client->options.is_cancelled(client->options.user);
}

/* As ppoll(). The signal is handled only by is_cancelled() or by the sleep, so that none
 * is lost between the two. */
static int sleep_until_ready(struct http_client *client, det_time span)
{
    struct timespec timeout = { .tv_sec = span / DET_SECOND, .tv_nsec = span % DET_SECOND };
    sigset_t signals, before;
    int found = 0;

    if (!client->options.signal)
        return ppoll(client->sockets, client->socket_count, &timeout, NULL);
    sigemptyset(&signals);
    sigaddset(&signals, client->options.signal);
    (void)pthread_sigmask(SIG_BLOCK, &signals, &before);
    if (!is_cancelled(client))
        found = ppoll(client->sockets, client->socket_count, &timeout, &before);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return found;
}

/* Waits until libcurl has something to do. Returns the number of ready descriptors. */
static int wait_for_work(struct http_client *client, det_time deadline)
{
    det_time until = client->due < deadline ? client->due : deadline, span = DET_DAY;
    bool looks = client->options.is_cancelled && !client->options.signal;

    if (until != DET_NEVER && until - now(client) < span)
        span = until - now(client);
    if (looks && span > HTTP_CLIENT_LOOK)
        span = HTTP_CLIENT_LOOK;
    return sleep_until_ready(client, span > 0 ? span : 0);
}

/* Reports ready descriptors, or the passing of time, to libcurl. */
static CURLMcode act_on_ready(struct http_client *client, int found, int *running)
{
    struct pollfd ready[SOCKETS_MAX];
    nfds_t count = client->socket_count;
    CURLMcode code = CURLM_OK;

    /* The list changes while libcurl works. */
    memcpy(ready, client->sockets, count * sizeof *ready);
    for (nfds_t i = 0; found > 0 && i < count && code == CURLM_OK; i++) {
        int events = 0;

        if (ready[i].revents & POLLIN)
            events |= CURL_CSELECT_IN;
        if (ready[i].revents & POLLOUT)
            events |= CURL_CSELECT_OUT;
        if (ready[i].revents & (POLLERR | POLLHUP | POLLNVAL))
            events |= CURL_CSELECT_ERR;
        if (events)
            code = curl_multi_socket_action(client->multi, ready[i].fd, events, running);
    }
    if (code == CURLM_OK && (found <= 0 || now(client) >= client->due)) {
        /* The timer fires once, unless libcurl sets it again. */
        client->due = DET_NEVER;
        code = curl_multi_socket_action(client->multi, CURL_SOCKET_TIMEOUT, 0, running);
    }
    return code;
}

/* The results of a socket, a resolver or a file of certificates that could not be opened. */
static bool may_be_shortage(CURLcode code)
{
    return code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST ||
           code == CURLE_COULDNT_RESOLVE_PROXY || code == CURLE_FAILED_INIT ||
           code == CURLE_SSL_CACERT_BADFILE;
}

/* Returns true if nothing was sent because this process is out of descriptors or memory. */
static bool is_shortage(CURL *easy, CURLcode code)
{
    long number = 0, sent = 0;

    curl_easy_getinfo(easy, CURLINFO_REQUEST_SIZE, &sent);
    if (sent > 0)
        return false;
    if (code == CURLE_OUT_OF_MEMORY)
        return true;
    if (!may_be_shortage(code))
        return false;
    curl_easy_getinfo(easy, CURLINFO_OS_ERRNO, &number);
    return det_errno_is_shortage((int)number) || det_descriptors_are_short(PER_CONNECTION);
}

static det_time retry_after(CURL *easy, long status)
{
    curl_off_t seconds = 0;

    if ((status != TOO_MANY && status != UNAVAILABLE) ||
        curl_easy_getinfo(easy, CURLINFO_RETRY_AFTER, &seconds) != CURLE_OK || seconds <= 0)
        return 0;
    return seconds < RETRY_AFTER_MAX / DET_SECOND ? seconds * DET_SECOND : RETRY_AFTER_MAX;
}

/* Parses "Expire date:Feb  3 10:11:12 2027 GMT" of the first certificate, that of the host. */
static det_time certificate_end(CURL *easy)
{
    static const char key[] = "Expire date:";
    struct curl_certinfo *chain = NULL;
    struct tm end = { 0 };

    if (curl_easy_getinfo(easy, CURLINFO_CERTINFO, &chain) || !chain || chain->num_of_certs < 1)
        return 0;
    for (struct curl_slist *line = chain->certinfo[0]; line; line = line->next)
        if (strncmp(line->data, key, sizeof key - 1) == 0 &&
            strptime(line->data + sizeof key - 1, "%b %d %H:%M:%S %Y", &end))
            return timegm(&end) * DET_SECOND;
    return 0;
}

static void fill_result(struct http_client *client, CURLcode code, const char *error)
{
    struct http_result *result = client->result;
    curl_off_t took = 0;
    long status = 0;

    curl_easy_getinfo(client->easy, CURLINFO_TOTAL_TIME_T, &took);
    result->took = took * DET_MICROSECOND;
    if (client->call->wants_certificate)
        result->certificate_end = certificate_end(client->easy);
    if (code == CURLE_OK || client->stopped == DET_ERR_LIMIT) {
        curl_easy_getinfo(client->easy, CURLINFO_RESPONSE_CODE, &status);
        result->status = (unsigned)status;
        result->retry_after = retry_after(client->easy, status);
    }
    if (code == CURLE_OK)
        return;
    result->is_shortage = !client->stopped && is_shortage(client->easy, code);
    result->reason = curl_easy_strerror(code);
    if (!result->text[0])
        snprintf(result->text, sizeof result->text, "%s", *error ? error : result->reason);
}

static int code_of(const struct http_client *client, CURLcode code)
{
    if (client->stopped || code == CURLE_OK)
        return client->stopped;
    if (code == CURLE_OPERATION_TIMEDOUT)
        return DET_ERR_TIMEOUT;
    return code == CURLE_OUT_OF_MEMORY ? DET_ERR_NO_MEMORY : DET_ERR_IO;
}

/* Ends the transfer and returns the result of libcurl; `stopped` is set if we ended it. */
static CURLcode finish_transfer(struct http_client *client)
{
    CURLcode result = CURLE_OUT_OF_MEMORY;
    CURLMsg *message;
    int left;

    while ((message = curl_multi_info_read(client->multi, &left)))
        if (message->msg == CURLMSG_DONE)
            result = message->data.result;
    curl_multi_remove_handle(client->multi, client->easy);
    if (client->stopped == DET_ERR_TIMEOUT)
        return CURLE_OPERATION_TIMEDOUT;
    return client->stopped ? CURLE_ABORTED_BY_CALLBACK : result;
}

static int finish_call(struct http_client *client)
{
    CURLcode code = finish_transfer(client);

    /* libcurl may time out before it checks for a cancel. */
    if (code != CURLE_OK && !client->stopped && is_cancelled(client))
        client->stopped = DET_ERR_CANCELLED;
    fill_result(client, code, client->error);
    client->call = NULL;
    return code_of(client, code);
}

void http_client_begin(
    struct http_client *client, const struct http_call *call, struct http_result *ret)
{
    det_assert(!client->call);
    *ret = (struct http_result){ .reason = "" };
    client->call = call;
    client->result = ret;
    client->stopped = 0;
    client->error[0] = '\0';
    client->deadline =
        call->timeout == DET_NEVER ? DET_NEVER : now(client) + call->timeout + DET_MILLISECOND;
    client->running =
        set_up(client) && curl_multi_add_handle(client->multi, client->easy) == CURLM_OK;
}

int http_client_wait(struct http_client *client, det_time until)
{
    uint64_t before = client->result->body_size;
    int found = 0;

    while (client->running && !client->stopped) {
        if (is_cancelled(client))
            client->stopped = DET_ERR_CANCELLED;
        else if (now(client) > client->deadline)
            client->stopped = DET_ERR_TIMEOUT;
        else if (act_on_ready(client, found, &client->running) != CURLM_OK)
            client->running = 0;
        if (client->stopped || !client->running)
            break;
        if (client->result->body_size != before || now(client) >= until)
            return 1;
        found = wait_for_work(client, until < client->deadline ? until : client->deadline);
    }
    return finish_call(client);
}

void http_client_end(struct http_client *client)
{
    if (!client->call)
        return;
    curl_multi_remove_handle(client->multi, client->easy);
    client->call = NULL;
}

int http_client_call(
    struct http_client *client, const struct http_call *call, struct http_result *ret)
{
    int r = 1;

    http_client_begin(client, call, ret);
    while (r == 1)
        r = http_client_wait(client, DET_NEVER);
    return r;
}

int http_client_open(const struct http_client_options *options, struct http_client **ret)
{
    struct http_client *client;

    if (http_client_load() < 0)
        return DET_ERR_IO;
    client = DET_NEW(options->allocator, struct http_client);
    if (!client) {
        http_client_unload();
        return DET_ERR_NO_MEMORY;
    }
    client->options = *options;
    if (!client->options.world)
        client->options.world = det_world_real();
    client->due = DET_NEVER;
    client->descriptor = -1;
    client->multi = curl_multi_init();
    client->easy = curl_easy_init();
    if (options->socket_path)
        client->socket_path = det_string_copy(options->allocator, options->socket_path);
    if (!client->multi || !client->easy || (options->socket_path && !client->socket_path)) {
        http_client_close(client);
        return DET_ERR_NO_MEMORY;
    }
    curl_multi_setopt(client->multi, CURLMOPT_MAXCONNECTS, 1L);
    curl_multi_setopt(client->multi, CURLMOPT_SOCKETFUNCTION, note_socket);
    curl_multi_setopt(client->multi, CURLMOPT_SOCKETDATA, client);
    curl_multi_setopt(client->multi, CURLMOPT_TIMERFUNCTION, note_timer);
    curl_multi_setopt(client->multi, CURLMOPT_TIMERDATA, client);
    *ret = client;
    return 0;
}

void http_client_close(struct http_client *client)
{
    if (!client)
        return;
    http_client_end(client);
    curl_easy_cleanup(client->easy);
    curl_multi_cleanup(client->multi);
    http_client_unload();
    det_free_string(client->options.allocator, client->socket_path);
    DET_DELETE(client->options.allocator, client);
}
