/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* test: threads */
/* otlp_test.c - spans on their way to a receiver that is there, away, slow, busy or confused, over
 * real HTTP. */
#include <arpa/inet.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/patience.h"
#include "lib/test.h"

#include "daemon/otlp_export.h"

#define REQUESTS_MAX 16
#define SECRET       "canary-4711"

/* Answers the n-th request with the n-th answer, and all others with the last one. */
struct receiver {
    int descriptor, port;
    const char *const *answers; /* NULL at the end; one that is "": none, it waits */
    char *got[REQUESTS_MAX];
    size_t count;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    pthread_t thread;
};

#define ANSWER(status, head, body) \
    "HTTP/1.1 " status " Word\r\nConnection: close\r\n" head "\r\n" body
#define FINE ANSWER("200", "Content-Type: application/json\r\n", "{\"partialSuccess\":{}}")

static bool is_whole(const char *text)
{
    const char *body = strstr(text, "\r\n\r\n"), *length = strstr(text, "Content-Length: ");

    return body && length && strlen(body + 4) >= strtoul(length + 16, NULL, 10);
}

static char *receive(int peer)
{
    size_t used = 0, capacity = 65536;
    char *text = calloc(1, capacity);

    while (!is_whole(text) && used < capacity - 1) {
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
        (void)!recv(peer, &byte, 1, 0); /* until the other side has had enough */
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
    /* Without answers there is nobody at this port, and nobody else can be. */
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
    unsigned told;
    char texts[8][512];
    char endpoint[80];
};

static void hear(void *user, const char *text)
{
    struct bench *bench = user;

    pthread_mutex_lock(&bench->mutex);
    assert_true(bench->told < 8);
    snprintf(bench->texts[bench->told++], sizeof bench->texts[0], "%s", text);
    pthread_cond_broadcast(&bench->changed);
    pthread_mutex_unlock(&bench->mutex);
    assert_null(strstr(text, SECRET));
    assert_null(strstr(text, "/v1/traces"));
}

static void wait_told(struct bench *bench, unsigned told)
{
    pthread_mutex_lock(&bench->mutex);
    while (bench->told < told)
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
    options.tell = hear;
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

/* What came of all spans, once there is nothing left to come. */
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
    assert_int_equal(bench.told, 0);
    close_bench(&bench);
    det_test_folder_remove(folder);
}

static void a_batch_goes_when_it_is_full_and_the_rest_at_the_end(void **state)
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

static void who_is_busy_gets_the_same_again_and_it_is_told_once(void **state)
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
    wait_told(&bench, 2);
    finish(&bench, LONG);
    expect(&bench, 1, 0, 0);
    assert_int_equal(bench.receiver.count, 5);
    assert_string_equal(
        strstr(bench.receiver.got[0], "\r\n\r\n"), strstr(bench.receiver.got[4], "\r\n\r\n"));
    assert_int_equal(bench.told, 2);
    assert_non_null(strstr(bench.texts[0], "is away: it answers with status 503"));
    assert_string_equal(bench.texts[1], "the receiver of traces is back");
    close_bench(&bench);
}

static void what_is_refused_is_dropped_and_told_once(void **state)
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
    wait_told(&bench, 2);
    finish(&bench, LONG);
    expect(&bench, 1, 2, 0);
    assert_int_equal(bench.told, 2);
    assert_string_equal(
        bench.texts[0], "the receiver of traces refuses spans: it answers with status 400");
    assert_string_equal(bench.texts[1], "the receiver of traces is back");
    close_bench(&bench);
}

static void who_is_always_busy_is_given_up_in_the_end(void **state)
{
    struct bench bench;

    (void)state;
    assert_int_equal(open_bench(&bench, ALL(ANSWER("503", "", "")), NULL), 0);
    end_spans(&bench, 1);
    receiver_wait(&bench.receiver, 10);
    finish(&bench, LONG);
    expect(&bench, 0, 0, 1);
    assert_int_equal(bench.receiver.count, 10);
    assert_int_equal(bench.told, 1);
    close_bench(&bench);
}

static void nobody_waits_for_one_who_is_not_there(void **state)
{
    struct bench bench;

    (void)state;
    assert_int_equal(
        open_bench(
            &bench, NULL, &(struct otlp_options){ .batch_max = 1, .backoff_first = DET_HOUR }),
        0);
    end_spans(&bench, 1);
    wait_told(&bench, 1);
    /* The queue has four places. */
    end_spans(&bench, 9);
    finish(&bench, LONG);
    expect(&bench, 0, 0, 5);
    assert_int_equal(counted(&bench, DET_METRIC_SPANS_DROPPED, "full"), 5);
    assert_int_equal(bench.told, 1);
    assert_non_null(strstr(bench.texts[0], "is away: "));
    close_bench(&bench);
}

static void who_never_answers_does_not_hold_up_the_end(void **state)
{
    struct bench bench;

    (void)state;
    assert_int_equal(
        open_bench(&bench, ALL(""), &(struct otlp_options){ .timeout = 20 * DET_MILLISECOND }), 0);
    end_spans(&bench, 1);
    receiver_wait(&bench.receiver, 2);
    finish(&bench, 0);
    expect(&bench, 0, 0, 1);
    assert_non_null(strstr(bench.texts[0], "is away: "));
    close_bench(&bench);
}

static void an_answer_may_say_that_some_were_not_taken(void **state)
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
        assert_int_equal(bench.told, 0);
        close_bench(&bench);
    }
}

static void what_is_no_http_is_one_who_is_away(void **state)
{
    struct bench bench;

    (void)state;
    assert_int_equal(open_bench(&bench, ALL("rubbish\r\n\r\n", FINE), NULL), 0);
    end_spans(&bench, 1);
    wait_told(&bench, 2);
    finish(&bench, LONG);
    expect(&bench, 1, 0, 0);
    assert_non_null(strstr(bench.texts[0], "is away: "));
    close_bench(&bench);
}

static void a_secret_that_cannot_be_read_is_told(void **state)
{
    struct config_header header = { "Authorization", "/does/not/exist", CONFIG_HEADER_FILE };
    struct bench bench;

    (void)state;
    assert_int_equal(
        open_bench(
            &bench, ALL(FINE), &(struct otlp_options){ .headers = &header, .header_count = 1 }),
        0);
    end_spans(&bench, 1);
    wait_told(&bench, 1);
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

static void without_memory_spans_are_counted_as_lost(void **state)
{
    (void)state;
    det_test_each_failure(send_with_failures, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spans_are_posted_with_their_headers),
        cmocka_unit_test(a_batch_goes_when_it_is_full_and_the_rest_at_the_end),
        cmocka_unit_test(who_is_busy_gets_the_same_again_and_it_is_told_once),
        cmocka_unit_test(what_is_refused_is_dropped_and_told_once),
        cmocka_unit_test(who_is_always_busy_is_given_up_in_the_end),
        cmocka_unit_test(nobody_waits_for_one_who_is_not_there),
        cmocka_unit_test(who_never_answers_does_not_hold_up_the_end),
        cmocka_unit_test(an_answer_may_say_that_some_were_not_taken),
        cmocka_unit_test(what_is_no_http_is_one_who_is_away),
        cmocka_unit_test(a_secret_that_cannot_be_read_is_told),
        cmocka_unit_test(without_memory_spans_are_counted_as_lost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
