/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* kind_properties_test.c - every kind that comes with the program is pure where it must be, and
 * stops. */
#include "lib/test.h"

#include <detent/worker_test.h>

#include "kinds/file_place.h"
#include "kinds/kinds.h"
#include "kinds/mqtt_client.h"
#include "kinds/process.h"

#define WORKER_SPEC "kinds/http_check.worker"
#include <detent/worker/declare.h>

#define PUT(field, text) (void)snprintf(field, sizeof(field), "%s", text)

/* Configs of chance that derive() takes: what it is strict about is said, the rest stays. */

static void adjust_process(void *context, void *config)
{
    struct process_desired *desired = config;

    (void)context;
    desired->argv_count = desired->argv_count ? desired->argv_count : 1;
    PUT(desired->argv[0], "sleep");
    desired->environment_count = desired->reload_files_count = 0;
    desired->folder[0] = '\0';
    PUT(desired->stop_signal, "INT");
    PUT(desired->reload_signal, desired->grace_ms % 2 ? "HUP" : "");
    desired->grace_ms %= 10000;
    desired->steady_ms %= 10000;
    desired->delay_ms %= 1000;
    desired->delay_max_ms = 60000;
}

static void adjust_file(void *context, void *config)
{
    struct file_desired *desired = config;

    (void)context;
    PUT(desired->path, "/etc/motd");
    PUT(desired->mode, "0640");
    desired->source[0] = desired->sha256[0] = '\0';
    desired->has_content = !desired->absent;
}

static void adjust_http_check(void *context, void *config)
{
    struct http_check_desired *desired = config;

    (void)context;
    PUT(desired->url, "http://localhost/");
    desired->headers_count = desired->status_count = 0;
    desired->tls_ca_file[0] = '\0';
    desired->timeout_ms %= 1000;
    desired->every_ms = 1000 + desired->every_ms % 10000;
}

static void adjust_mqtt_link(void *context, void *config)
{
    struct mqtt_link_desired *desired = config;

    (void)context;
    PUT(desired->host, "localhost");
    PUT(desired->user, "me");
    desired->subscribe_count = 0;
    desired->qos %= 3;
    desired->keepalive_s = (uint16_t)(10 + desired->keepalive_s % 100);
    desired->status_topic[0] = desired->tls_ca_file[0] = '\0';
    desired->tls_certificate_file[0] = desired->tls_key_file[0] = '\0';
    desired->tls = true;
}

static void (*adjust_of(const struct det_worker_kind *kind))(void *context, void *config)
{
    static const struct {
        const struct det_worker_kind *kind;
        void (*adjust)(void *context, void *config);
    } list[] = {
        { &process_kind, adjust_process },
        { &file_kind, adjust_file },
        { &http_check_kind, adjust_http_check },
        { &mqtt_link_kind, adjust_mqtt_link },
    };

    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (list[i].kind == kind)
            return list[i].adjust;
    return NULL;
}

/* Kinds whose derive() refuses random configs are proven in x_prove_test.c, with likely configs. */
static bool has_its_own_suite(const char *name)
{
    static const char *const names[] = { "communicator" };

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (!strcmp(names[i], name))
            return true;
    return false;
}

static void every_kind_is_proven(void **state)
{
    const struct det_kind_entry *entry = det_kinds_list();

    (void)state;
    for (; entry->kind != NULL; entry++) {
        struct det_worker_prove_options options = { .adjust_config = adjust_of(entry->kind) };
        struct det_worker_proof proof;
        struct det_error error = { 0 };

        if (has_its_own_suite(entry->kind->name))
            continue;
        if (det_worker_prove(entry->kind, &options, &proof, &error) < 0)
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
