/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* test: threads */
/* otlp_export_test.c - exports spans over real HTTP to a receiver that is reachable, unreachable,
 * slow, busy or wrong. */
#include <arpa/inet.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/patience.h"
#include "lib/test.h"

#include "daemon/otlp_export.h"

#define REQUESTS_MAX 16
#define SECRET       "canary-4711"

/* Answers request n with answer n, and all later ones with the last answer. */
struct receiver {
    int descriptor, port;
    const char *const *answers; /* NULL at the end; "": no answer, it waits */
    char *got[REQUESTS_MAX];
    size_t count;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    pthread_t thread;
};

#define ANSWER(status, head, body) \
    "HTTP/1.1 " status " Word\r\nConnection: close\r\n" head "\r\n" body
#define FINE ANSWER("200", "Content-Type: application/json\r\n", "{\"partialSuccess\":{}}")

static bool is_complete(const char *text)
{
    const char *body = strstr(text, "\r\n\r\n"), *length = strstr(text, "Content-Length: ");

    return body && length && strlen(body + 4) >= strtoul(length + 16, NULL, 10);
}

static char *receive(int peer)
{
    size_t used = 0, capacity = 65536;
    char *text = calloc(1, capacity);

    while (!is_complete(text) && used < capacity - 1) {
        ssize_t count = recv(peer, text + used, capacity - 1 - used, 0);

        if (count <= 0)
            break;
        used += (size_t)count;
    }
    return text;
}

static void answer(int peer, const char *text)
{
    char byte;

    if (*text)
        (void)!send(peer, text, strlen(text), MSG_NOSIGNAL);
    else
        (void)!recv(peer, &byte, 1, 0); /* until the client disconnects */
    close(peer);
}

static void *serve(void *argument)
{
    struct receiver *receiver = argument;
    size_t next = 0;
    int peer;

    while ((peer = accept(receiver->descriptor, NULL, NULL)) >= 0) {
        char *text = receive(peer);

        pthread_mutex_lock(&receiver->mutex);
        assert_true(receiver->count < REQUESTS_MAX);
        receiver->got[receiver->count++] = text;
        pthread_cond_broadcast(&receiver->changed);
        pthread_mutex_unlock(&receiver->mutex);
        answer(peer, receiver->answers[next]);
        if (receiver->answers[next + 1])
            next++;
    }
    return NULL;
}

static void receiver_open(struct receiver *receiver, const char *const *answers)
{
    struct sockaddr_in address = { .sin_family = AF_INET };
    socklen_t size = sizeof address;

    *receiver = (struct receiver){ .answers = answers,
                                   .mutex = PTHREAD_MUTEX_INITIALIZER,
                                   .changed = PTHREAD_COND_INITIALIZER };
    receiver->descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(receiver->descriptor, (struct sockaddr *)&address, size), 0);
    assert_int_equal(getsockname(receiver->descriptor, (struct sockaddr *)&address, &size), 0);
    receiver->port = ntohs(address.sin_port);
    /* Without answers nothing listens on this port, and nothing else can. */
    if (!answers)
        return;
    assert_int_equal(listen(receiver->descriptor, 8), 0);
    assert_int_equal(pthread_create(&receiver->thread, NULL, serve, receiver), 0);
}

static void receiver_wait(struct receiver *receiver, size_t count)
{
    pthread_mutex_lock(&receiver->mutex);
    while (receiver->count < count)
        pthread_cond_wait(&receiver->changed, &receiver->mutex);
    pthread_mutex_unlock(&receiver->mutex);
}

static void receiver_close(struct receiver *receiver)
{
    if (receiver->answers) {
        shutdown(receiver->descriptor, SHUT_RDWR);
        pthread_join(receiver->thread, NULL);
    }
    close(receiver->descriptor);
    for (size_t i = 0; i < receiver->count; i++)
        free(receiver->got[i]);
}

struct bench {
    struct receiver receiver;
    struct det_metrics *metrics;
    struct det_tracer *tracer;
    struct otlp *otlp;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    unsigned reported;
    char texts[8][512];
    char endpoint[80];
};

static void receive_text(void *user, const char *text)
{
    struct bench *bench = user;

    pthread_mutex_lock(&bench->mutex);
    assert_true(bench->reported < 8);
    snprintf(bench->texts[bench->reported++], sizeof bench->texts[0], "%s", text);
    pthread_cond_broadcast(&bench->changed);
    pthread_mutex_unlock(&bench->mutex);
    assert_null(strstr(text, SECRET));
    assert_null(strstr(text, "/v1/traces"));
}

static void wait_reported(struct bench *bench, unsigned reported)
{
    pthread_mutex_lock(&bench->mutex);
    while (bench->reported < reported)
        pthread_cond_wait(&bench->changed, &bench->mutex);
    pthread_mutex_unlock(&bench->mutex);
}

static void end_spans(struct bench *bench, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        struct det_span span;

        det_span_begin(bench->tracer, &span, NULL, DET_SPAN_SERVER, "send");
        det_span_text(&span, "detent.machine", "order");
        det_span_end(bench->tracer, &span);
    }
}

static int open_bench(
    struct bench *bench, const char *const *answers, const struct otlp_options *wanted)
{
    struct otlp_options options = wanted ? *wanted : (struct otlp_options){ 0 };

    memset(bench, 0, sizeof *bench);
    pthread_mutex_init(&bench->mutex, NULL);
    pthread_cond_init(&bench->changed, NULL);
    receiver_open(&bench->receiver, answers);
    snprintf(
        bench->endpoint, sizeof bench->endpoint, "http://127.0.0.1:%d/v1/traces",
        bench->receiver.port);
    assert_int_equal(det_metrics_open(&(struct det_metrics_options){ 0 }, &bench->metrics), 0);
    assert_int_equal(
        det_tracer_open(
            &(struct det_tracer_options){ .metrics = bench->metrics, .queue_max = 4 },
            &bench->tracer),
        0);
    options.tracer = bench->tracer;
    options.metrics = bench->metrics;
    options.endpoint = bench->endpoint;
    options.interval = options.interval ? options.interval : DET_MILLISECOND;
    options.backoff_max = options.backoff_first ? options.backoff_first : DET_MILLISECOND;
    options.backoff_first = options.backoff_max;
    options.resource.service_name = "shop";
    options.report = receive_text;
    options.user = bench;
    return otlp_open(&options, &bench->otlp);
}

static uint64_t counted(struct bench *bench, enum det_metric metric, const char *reason)
{
    struct det_series *series =
        reason ? det_metrics_series(bench->metrics, metric, (const char *const[]){ reason })
               : det_metrics_only(bench->metrics, metric);

    return atomic_load(&series->value);
}

/* Closes the exporter, which has this time to send the queue. */
static void finish(struct bench *bench, det_time span)
{
    otlp_close(bench->otlp, det_world_now(NULL, DET_CLOCK_MONOTONIC) + span);
    bench->otlp = NULL;
}

static void expect(struct bench *bench, uint64_t exported, uint64_t refused, uint64_t unreachable)
{
    assert_int_equal(counted(bench, DET_METRIC_SPANS_EXPORTED, NULL), exported);
    assert_int_equal(counted(bench, DET_METRIC_SPANS_DROPPED, "refused"), refused);
    assert_int_equal(counted(bench, DET_METRIC_SPANS_DROPPED, "unreachable"), unreachable);
}

static void close_bench(struct bench *bench)
{
    otlp_close(bench->otlp, 0);
    receiver_close(&bench->receiver);
    det_tracer_close(bench->tracer);
    det_metrics_close(bench->metrics);
    pthread_cond_destroy(&bench->changed);
    pthread_mutex_destroy(&bench->mutex);
}

#define LONG     DET_TEST_HANG
#define ALL(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void spans_are_posted_with_their_headers(void **state)
{
    char *folder = det_test_folder(), path[512];
    struct config_header headers[] = { { "X-Tenant", "one", CONFIG_HEADER_TEXT },
                                       { "Authorization", path, CONFIG_HEADER_FILE } };
    struct bench bench;

    (void)state;
    snprintf(path, sizeof path, "%s/token", folder);
    det_test_write_file(path, "Bearer " SECRET "\n", strlen("Bearer " SECRET) + 1);
    assert_int_equal(
        open_bench(
            &bench, ALL(FINE), &(struct otlp_options){ .headers = headers, .header_count = 2 }),
        0);
    end_spans(&bench, 1);
    receiver_wait(&bench.receiver, 1);
    finish(&bench, LONG);
    expect(&bench, 1, 0, 0);
    assert_int_equal(strncmp(bench.receiver.got[0], "POST /v1/traces HTTP/1.1\r\n", 26), 0);
    assert_non_null(strstr(bench.receiver.got[0], "\r\nContent-Type: application/json\r\n"));
    assert_non_null(strstr(bench.receiver.got[0], "\r\nX-Tenant: one\r\n"));
    assert_non_null(strstr(bench.receiver.got[0], "\r\nAuthorization: Bearer " SECRET "\r\n"));
    assert_non_null(strstr(bench.receiver.got[0], "\r\n\r\n{\"resourceSpans\":["));
    assert_non_null(strstr(bench.receiver.got[0], "\"stringValue\":\"shop\""));
    assert_non_null(strstr(bench.receiver.got[0], "\"name\":\"send\",\"kind\":2"));
    assert_int_equal(bench.reported, 0);
    close_bench(&bench);
    det_test_folder_remove(folder);
}

static void full_batches_are_sent_and_the_rest_at_close(void **state)
{
    struct bench bench;

    (void)state;
    assert_int_equal(
        open_bench(
            &bench, ALL(FINE), &(struct otlp_options){ .interval = DET_HOUR, .batch_max = 2 }),
        0);
    end_spans(&bench, 3);
    receiver_wait(&bench.receiver, 1);
    finish(&bench, LONG);
    expect(&bench, 3, 0, 0);
    assert_int_equal(bench.receiver.count, 2);
    close_bench(&bench);
}

static void a_busy_receiver_gets_the_same_batch_and_is_reported_once(void **state)
{
    struct bench bench;

    (void)state;
    assert_int_equal(
        open_bench(
            &bench,
            ALL(ANSWER("503", "", ""), ANSWER("429", "Retry-After: 0\r\n", "{}"),
                ANSWER("502", "", "<html>"), ANSWER("504", "", ""), FINE),
            NULL),
        0);
    end_spans(&bench, 1);
    wait_reported(&bench, 2);
    finish(&bench, LONG);
    expect(&bench, 1, 0, 0);
    assert_int_equal(bench.receiver.count, 5);
    assert_string_equal(
        strstr(bench.receiver.got[0], "\r\n\r\n"), strstr(bench.receiver.got[4], "\r\n\r\n"));
    assert_int_equal(bench.reported, 2);
    assert_non_null(strstr(bench.texts[0], "is unreachable: status 503"));
    assert_string_equal(bench.texts[1], "the receiver of traces is reachable again");
    close_bench(&bench);
}

static void refused_spans_are_dropped_and_reported_once(void **state)
{
    struct bench bench;

    (void)state;
    assert_int_equal(
        open_bench(
            &bench,
            ALL(ANSWER("400", "", "no " SECRET), ANSWER("302", "Location: /other\r\n", ""), FINE),
            &(struct otlp_options){ .batch_max = 1 }),
        0);
    end_spans(&bench, 3);
    wait_reported(&bench, 2);
    finish(&bench, LONG);
    expect(&bench, 1, 2, 0);
    assert_int_equal(bench.reported, 2);
    assert_string_equal(bench.texts[0], "the receiver of traces refuses spans: status 400");
    assert_string_equal(bench.texts[1], "the receiver of traces is reachable again");
    close_bench(&bench);
}

static void busy_receiver_is_abandoned_after_the_last_attempt(void **state)
{
    struct bench bench;

    (void)state;
    assert_int_equal(open_bench(&bench, ALL(ANSWER("503", "", "")), NULL), 0);
    end_spans(&bench, 1);
    receiver_wait(&bench.receiver, 10);
    finish(&bench, LONG);
    expect(&bench, 0, 0, 1);
    assert_int_equal(bench.receiver.count, 10);
    assert_int_equal(bench.reported, 1);
    close_bench(&bench);
}

static void close_does_not_wait_for_an_absent_receiver(void **state)
{
    struct bench bench;

    (void)state;
    assert_int_equal(
        open_bench(
            &bench, NULL, &(struct otlp_options){ .batch_max = 1, .backoff_first = DET_HOUR }),
        0);
    end_spans(&bench, 1);
    wait_reported(&bench, 1);
    /* The queue has four places. */
    end_spans(&bench, 9);
    finish(&bench, LONG);
    expect(&bench, 0, 0, 5);
    assert_int_equal(counted(&bench, DET_METRIC_SPANS_DROPPED, "full"), 5);
    assert_int_equal(bench.reported, 1);
    assert_non_null(strstr(bench.texts[0], "is unreachable: "));
    close_bench(&bench);
}

static void silent_receiver_does_not_delay_close(void **state)
{
    struct bench bench;

    (void)state;
    assert_int_equal(
        open_bench(&bench, ALL(""), &(struct otlp_options){ .timeout = 20 * DET_MILLISECOND }), 0);
    end_spans(&bench, 1);
    receiver_wait(&bench.receiver, 2);
    finish(&bench, 0);
    expect(&bench, 0, 0, 1);
    assert_non_null(strstr(bench.texts[0], "is unreachable: "));
    close_bench(&bench);
}

static void partial_success_counts_rejected_spans(void **state)
{
    static const struct {
        const char *answer;
        uint64_t refused;
    } rows[] = {
        { ANSWER("200", "", "{\"partialSuccess\":{\"rejectedSpans\":\"1\"}}"), 1 },
        { ANSWER("200", "", "{\"partialSuccess\":{\"rejectedSpans\":2}}"), 2 },
        { ANSWER("200", "", "{\"partialSuccess\":{\"rejectedSpans\":\"99\"}}"), 3 },
        { ANSWER("200", "", "{\"partialSuccess\":{\"rejectedSpans\":-1}}"), 0 },
        { ANSWER("200", "", "{\"partialSuccess\":{\"rejectedSpans\":\"many\"}}"), 0 },
        { ANSWER("200", "", "{\"partialSuccess\":7}"), 0 },
        { ANSWER("200", "", "[\"rubbish\""), 0 },
        { ANSWER("204", "", ""), 0 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct bench bench;

        assert_int_equal(
            open_bench(
                &bench, ALL(rows[i].answer),
                &(struct otlp_options){ .batch_max = 3, .interval = DET_HOUR }),
            0);
        end_spans(&bench, 3);
        finish(&bench, LONG);
        expect(&bench, 3 - rows[i].refused, rows[i].refused, 0);
        assert_int_equal(bench.reported, 0);
        close_bench(&bench);
    }
}

static void invalid_http_counts_as_unreachable(void **state)
{
    struct bench bench;

    (void)state;
    assert_int_equal(open_bench(&bench, ALL("rubbish\r\n\r\n", FINE), NULL), 0);
    end_spans(&bench, 1);
    wait_reported(&bench, 2);
    finish(&bench, LONG);
    expect(&bench, 1, 0, 0);
    assert_non_null(strstr(bench.texts[0], "is unreachable: "));
    close_bench(&bench);
}

static void an_unreadable_secret_is_reported(void **state)
{
    struct config_header header = { "Authorization", "/does/not/exist", CONFIG_HEADER_FILE };
    struct bench bench;

    (void)state;
    assert_int_equal(
        open_bench(
            &bench, ALL(FINE), &(struct otlp_options){ .headers = &header, .header_count = 1 }),
        0);
    end_spans(&bench, 1);
    wait_reported(&bench, 1);
    finish(&bench, LONG);
    expect(&bench, 0, 0, 1);
    assert_non_null(
        strstr(bench.texts[0], "the secret header Authorization: file:/does/not/exist cannot"));
    assert_int_equal(bench.receiver.count, 0);
    close_bench(&bench);
}

static int send_with_failures(struct det_test_memory *memory, void *argument)
{
    struct bench bench;
    int r = open_bench(
        &bench, ALL(FINE),
        &(struct otlp_options){ .allocator = &memory->allocator, .interval = DET_HOUR });

    (void)argument;
    if (r == 0) {
        end_spans(&bench, 1);
        finish(&bench, LONG);
        assert_int_equal(
            counted(&bench, DET_METRIC_SPANS_EXPORTED, NULL) +
                counted(&bench, DET_METRIC_SPANS_DROPPED, "unreachable"),
            1);
    }
    close_bench(&bench);
    return r;
}

static void allocation_failure_counts_spans_as_lost(void **state)
{
    (void)state;
    det_test_each_failure(send_with_failures, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spans_are_posted_with_their_headers),
        cmocka_unit_test(full_batches_are_sent_and_the_rest_at_close),
        cmocka_unit_test(a_busy_receiver_gets_the_same_batch_and_is_reported_once),
        cmocka_unit_test(refused_spans_are_dropped_and_reported_once),
        cmocka_unit_test(busy_receiver_is_abandoned_after_the_last_attempt),
        cmocka_unit_test(close_does_not_wait_for_an_absent_receiver),
        cmocka_unit_test(silent_receiver_does_not_delay_close),
        cmocka_unit_test(partial_success_counts_rejected_spans),
        cmocka_unit_test(invalid_http_counts_as_unreachable),
        cmocka_unit_test(an_unreadable_secret_is_reported),
        cmocka_unit_test(allocation_failure_counts_spans_as_lost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
