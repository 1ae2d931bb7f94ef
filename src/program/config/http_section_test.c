/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* http_section_test.c - where detent listens, what it logs and where its spans go: what is read of
 * detent.yaml, and what is wrong with it. */
#include "config/config_test.h"
#include "http/address.h"

#include "base/text.h"

#define REST "tasks:\n  a: {run: \"true\"}\n"

static const char whole[] =
    "version: 1\n"
    "http:\n"
    "  listen: [127.0.0.1:0, \"[::1]:7788\", \"0.0.0.0:7443\"]\n"
    "  socket: run/api.sock\n"
    "  hosts: [orders.example.org, 10.0.0.1, \"[fd00::1]\"]\n"
    "  tls: {certificate: tls/cert.pem, key: /etc/key.pem, clients: tls/ca.pem}\n"
    "  rate: 500\n"
    "  limits: {body_max: 256KiB, header_count_max: 10, idle_time: 5s, sse_queue: 7,\n"
    "           request_time: 1m}\n"
    "log: {format: json, level: warning}\n"
    "traces:\n"
    "  endpoint: https://collector.example:4318/v1/traces\n"
    "  headers: {X-Team: shop}\n"
    "  secret: {Authorization: \"file:otlp.token\"}\n"
    "  sample: 12.5%\n" REST;

static void http_defaults_listen_on_loopback_only(void **state)
{
    const struct config_http *http;
    struct project project;

    (void)state;
    open_right(&project, "version: 1\n" REST);
    http = &project.config.http;
    assert_string_equal(http->listen[0], "127.0.0.1:7788");
    assert_null(http->listen[1]);
    assert_null(http->socket);
    assert_null(http->hosts);
    assert_null(http->tls.certificate);
    assert_int_equal(http->rate, 200);
    assert_int_equal(http->limits.body_max, 0);
    assert_int_equal(http->sse_subscribers, 1000);
    assert_int_equal(http->sse_queue, 1024);
    assert_int_equal(http->request_time, 30 * DET_SECOND);
    assert_int_equal(project.config.log.format, CONFIG_LOG_DEFAULT);
    assert_null(project.config.traces.endpoint);
    close_project(&project);
}

static void every_key_of_http_is_read(void **state)
{
    const struct config_http *http;
    struct project project;

    (void)state;
    open_right(&project, whole);
    http = &project.config.http;
    assert_string_equal(http->listen[0], "127.0.0.1:0");
    assert_string_equal(http->listen[2], "0.0.0.0:7443");
    assert_null(http->listen[3]);
    assert_string_equal(http->hosts[2], "[fd00::1]");
    assert_null(http->hosts[3]);
    assert_int_equal(http->rate, 500);
    assert_int_equal(http->limits.body_max, 256 << 10);
    assert_int_equal(http->limits.header_count_max, 10);
    assert_int_equal(http->limits.idle_time, 5 * DET_SECOND);
    assert_int_equal(http->limits.line_max, 0);
    assert_int_equal(http->sse_queue, 7);
    assert_int_equal(http->sse_subscribers, 1000);
    assert_int_equal(http->request_time, DET_MINUTE);
    close_project(&project);
}

static void http_and_secret_paths_are_relative_to_the_file(void **state)
{
    static const char *const base[] = { NULL };
    const struct config_http *http;
    struct project project;

    (void)state;
    open_right(&project, whole);
    assert_int_equal(config_settle(&project.config, &project.arena, "/shop", base), 0);
    http = &project.config.http;
    assert_string_equal(http->socket, "/shop/run/api.sock");
    assert_string_equal(http->tls.certificate, "/shop/tls/cert.pem");
    assert_string_equal(http->tls.key, "/etc/key.pem");
    assert_string_equal(http->tls.clients, "/shop/tls/ca.pem");
    assert_string_equal(project.config.traces.headers.items[1].value, "/shop/otlp.token");
    close_project(&project);
}

static void http_keywords_mean_none_and_unlimited(void **state)
{
    struct project project;

    (void)state;
    open_right(&project, "version: 1\nhttp: {listen: none, socket: no, rate: unlimited}\n" REST);
    assert_null(project.config.http.listen[0]);
    assert_null(project.config.http.socket);
    assert_int_equal(project.config.http.rate, CONFIG_UNLIMITED);
    close_project(&project);
    open_right(&project, "version: 1\nhttp: {listen: \"localhost:80\", socket: yes}\n" REST);
    assert_string_equal(project.config.http.listen[0], "localhost:80");
    assert_string_equal(project.config.http.socket, CONFIG_HTTP_SOCKET);
    close_project(&project);
}

static void logs_and_traces_are_read(void **state)
{
    const struct config_traces *traces;
    struct project project;

    (void)state;
    open_right(&project, whole);
    traces = &project.config.traces;
    assert_int_equal(project.config.log.format, CONFIG_LOG_JSON);
    assert_int_equal(project.config.log.level, CONFIG_LEVEL_WARNING);
    assert_string_equal(traces->endpoint, "https://collector.example:4318/v1/traces");
    assert_int_equal(traces->headers.count, 2);
    assert_int_equal(traces->headers.items[1].from, CONFIG_HEADER_FILE);
    assert_int_equal(traces->sample, 125000);
    close_project(&project);
}

static void sampling_rate_is_a_fraction_or_a_percentage(void **state)
{
    static const struct {
        const char *text;
        uint32_t share;
    } cases[] = {
        { "0", 0 },        { "1", 1000000 },  { "1.0", 1000000 },
        { "0.1", 100000 }, { "0.000001", 1 }, { "100%", 1000000 },
        { "0%", 0 },       { "2.5%", 25000 }, { "0.0001%", 1 },
    };
    struct project project;
    char text[256];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(
            text, sizeof text, "version: 1\ntraces: {endpoint: http://h/, sample: %s}\n" REST,
            cases[i].text);
        open_right(&project, text);
        assert_int_equal(project.config.traces.sample, cases[i].share);
        close_project(&project);
    }
}

static void problems_are_reported_at_their_place(void **state)
{
    static const struct {
        const char *section, *part;
        unsigned column;
    } cases[] = {
        { "http: {lisen: none}", "did you mean 'listen'", 8 },
        { "http: none", "'http' is a mapping", 7 },
        { "http: {listen: []}", "the list of addresses is empty", 16 },
        { "http: {listen: {a: b}}", "an address is", 16 },
        { "http: {listen: \"7788\"}", "an address is", 16 },
        { "http: {listen: \":7788\"}", "an address is", 16 },
        { "http: {listen: 127.0.0.1}", "an address is", 16 },
        { "http: {listen: \"127.0.0.1:65536\"}", "an address is", 16 },
        { "http: {listen: \"127.0.0.1:-1\"}", "an address is", 16 },
        { "http: {listen: \"127.1:80\"}", "an address is", 16 },
        { "http: {listen: \"::1:80\"}", "an address is", 16 },
        { "http: {listen: \"[127.0.0.1]:80\"}", "an address is", 16 },
        { "http: {listen: \"example.org:80\"}", "an address is", 16 },
        { "http: {listen: [localhost:1, a]}", "an address is", 30 },
        { "http: {socket: []}", "'socket'", 16 },
        { "http: {socket: \"\"}", "'socket' is empty", 16 },
        { "http: {hosts: [\"a:80\"]}", "without port", 16 },
        { "http: {hosts: [\"[a]\"]}", "without port", 16 },
        { "http: {hosts: \"-a\"}", "without port", 15 },
        { "http: {hosts: [[a]]}", "without port", 16 },
        { "http: {tls: {key: a}}", "'tls' needs 'certificate'", 13 },
        { "http: {tls: {certificate: a}}", "'tls' needs 'key'", 13 },
        { "http: {rate: 0}", "from 1 to 1000000, or unlimited", 14 },
        { "http: {limits: {body_mx: 1}}", "did you mean 'body_max'", 17 },
        { "http: {bind: a}", "use 'listen'", 8 },
        { "http: {limits: {body_max: 17MiB}}", "from 1B to 16MiB", 27 },
        { "http: {limits: {body_max: 1000}}", "is a size", 27 },
        { "http: {limits: {header_count_max: 257}}", "from 1 to 256", 35 },
        { "http: {limits: {sse_queue: 0}}", "from 1 to 100000", 28 },
        { "http: {limits: {header_time: 11m}}", "at most 10m", 30 },
        { "http: {limits: {header_time: 10}}", "the unit is missing", 30 },
        { "log: {format: xml}", "one of text, json", 15 },
        { "log: {level: warnig}", "did you mean 'warning'", 14 },
        { "traces: {}", "needs 'endpoint'", 9 },
        { "traces: {endpoint: host}", "is a URL such as", 20 },
        { "traces: {endpoint: \"http://a:b@h/\"}", "seen by many", 20 },
        { "traces: {endpoint: http://h, secret: {A: b}}", "a secret is a reference", 42 },
        { "traces: {endpoint: http://h, sample: 1.1}", "0 to 1", 38 },
        { "traces: {endpoint: http://h, sample: 101%}", "0 to 1", 38 },
        { "traces: {endpoint: http://h, sample: -1}", "0 to 1", 38 },
        { "traces: {endpoint: http://h, sample: 0.1x}", "0 to 1", 38 },
        { "traces: {endpoint: http://h, sample: .5}", "0 to 1", 38 },
        { "traces: {endpoint: http://h, sample: 0.0000001}", "0 to 1", 38 },
        { "traces: {endpoint: http://h, sample: [1]}", "0 to 1", 38 },
    };
    char text[512];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(text, sizeof text, "version: 1\n%s\n" REST, cases[i].section);
        expect_wrong(text, 2, cases[i].column, cases[i].part);
    }
}

static void loopback_addresses_are_recognized(void **state)
{
    static const struct {
        const char *text;
        bool is_loopback;
    } cases[] = {
        { "127.0.0.1:1", true },
        { "127.9.9.9:1", true },
        { "[::1]:1", true },
        { "localhost:1", true },
        { "0.0.0.0:1", false },
        { "[::]:1", false },
        { "10.0.0.1:1", false },
        { "[fe80::1]:1", false },
        { "128.0.0.1:1", false },
        { "126.0.0.1:1", false },
        { "[::ffff:127.0.0.1]:1", false },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        union http_address address;
        struct det_error error;

        assert_int_equal(http_address_read(cases[i].text, &address, &error), 0);
        assert_int_equal(http_address_port(&address), 1);
        if (http_address_is_loopback(&address) != cases[i].is_loopback)
            fail_msg("%s", cases[i].text);
    }
}

/* A number as the page writes it. */
static const char *shown(int64_t number, bool is_span, const char *unit, char target[64])
{
    if (is_span)
        return det_format_duration(number, target, 64);
    if (*unit && number % (1 << 20) == 0)
        snprintf(target, 64, "%dMiB", (int)(number >> 20));
    else if (*unit)
        snprintf(target, 64, "%dKiB", (int)(number >> 10));
    else
        snprintf(target, 64, "%d", (int)number);
    return target;
}

/* The page has a row with this name, default and maximum. */
static void expect_row(
    const char *page, const char *name, int64_t otherwise, int64_t most, bool is_span,
    const char *unit)
{
    char key[80], tail[200], least[64], largest[64];
    const char *row, *end;

    snprintf(key, sizeof key, "\n| `%s` |", name);
    snprintf(
        tail, sizeof tail, "| %s | %s |\n", shown(otherwise, is_span, unit, least),
        shown(most, is_span, unit, largest));
    row = strstr(page, key);
    if (!row)
        fail_msg("the page does not have %s", name);
    end = strchr(row + 1, '\n') + 1;
    if (strncmp(end - strlen(tail), tail, strlen(tail)) != 0)
        fail_msg("the row of %s does not end with %s", name, tail);
}

static void documentation_page_has_every_limit(void **state)
{
    char *page = det_test_read_file(DET_SOURCE_DIR "/docs/formats/detent-yaml.md", NULL);

    (void)state;
#define HTTP_LIMIT(name, type, otherwise, most, unit, about) \
    expect_row(                                              \
        page, #name, otherwise, most,                        \
        _Generic((type)0, det_time                           \
                 : true, default                             \
                 : false),                                   \
        unit);
#define CONFIG_LIMIT HTTP_LIMIT
#include "config/limits.def"
#include "http/limits.def"
#undef CONFIG_LIMIT
#undef HTTP_LIMIT
    free(page);
}

static int read_all(struct det_test_memory *memory, void *argument)
{
    static const char *const base[] = { NULL };
    struct project project;
    int r;

    (void)argument;
    r = open_project(&project, &memory->allocator, whole);
    if (r == 0)
        r = config_settle(&project.config, &project.arena, "/shop", base);
    close_project(&project);
    return r;
}

static void reading_survives_each_failed_allocation(void **state)
{
    (void)state;
    det_test_each_failure(read_all, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(http_defaults_listen_on_loopback_only),
        cmocka_unit_test(every_key_of_http_is_read),
        cmocka_unit_test(http_and_secret_paths_are_relative_to_the_file),
        cmocka_unit_test(http_keywords_mean_none_and_unlimited),
        cmocka_unit_test(logs_and_traces_are_read),
        cmocka_unit_test(sampling_rate_is_a_fraction_or_a_percentage),
        cmocka_unit_test(problems_are_reported_at_their_place),
        cmocka_unit_test(loopback_addresses_are_recognized),
        cmocka_unit_test(documentation_page_has_every_limit),
        cmocka_unit_test(reading_survives_each_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
