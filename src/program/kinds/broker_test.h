/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* broker_test.h - a real MQTT broker on loopback, for suites. */
#ifndef DET_KINDS_BROKER_TEST_H
#define DET_KINDS_BROKER_TEST_H

#include <arpa/inet.h>
#include <mosquitto.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kinds/certificate_test.h"
#include "lib/test.h"
#include "os/os.h"

struct broker {
    char *folder;
    uint16_t port;
    struct det_process *process; /* NULL: not running */
    struct certificate certificate;
};

static inline uint16_t broker_free_port(void)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    socklen_t size = sizeof address;
    int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(descriptor, (struct sockaddr *)&address, size), 0);
    assert_int_equal(getsockname(descriptor, (struct sockaddr *)&address, &size), 0);
    close(descriptor);
    return ntohs(address.sin_port);
}

/* Waits until the broker's log reports that it runs. */
static inline void broker_wait(struct broker *broker)
{
    struct det_world *world = det_world_real();
    char log[8192] = "";
    size_t size = 0;

    while (!strstr(log, " running")) {
        struct pollfd entry = { .events = POLLIN };
        int64_t count;

        entry.fd = world->ops->process_stream(world, broker->process, DET_PROCESS_ERROR);
        assert_int_equal(poll(&entry, 1, 600000), 1);
        count = world->ops->process_read(
            world, broker->process, DET_PROCESS_ERROR, log + size, sizeof log - 1 - size);
        if (count <= 0)
            fail_msg("the broker does not run: %s", log);
        size += (size_t)count;
        log[size] = '\0';
    }
}

static inline void broker_start(struct broker *broker)
{
    struct det_world *world = det_world_real();
    char path[512];
    /* Debian's path; only root has this folder in PATH. */
    static const char usual[] = "/usr/sbin/mosquitto";
    const char *argv[] = { access(usual, X_OK) == 0 ? usual : "mosquitto", "-c", path, NULL };
    struct det_process_options options = {
        .argv = argv, .input = -1, .has_streams = true, .new_group = true, .ends_with_us = true
    };
    struct det_error error = { 0 };

    (void)snprintf(path, sizeof path, "%s/broker.conf", broker->folder);
    if (world->ops->process_start(world, &options, &broker->process, &error) < 0)
        fail_msg("the broker does not start: %s", error.text);
    broker_wait(broker);
}

static inline void broker_kill(struct broker *broker)
{
    struct det_world *world = det_world_real();

    (void)world->ops->process_kill(world, broker->process, DET_PROCESS_SIGKILL);
    world->ops->process_close(world, broker->process);
    broker->process = NULL;
}

/* The user "me" has the password "right" where there are users. */
static inline void broker_open(struct broker *broker, bool has_users, bool has_tls)
{
    char path[512], text[2048], users[512];
    int size;

    broker->folder = det_test_folder();
    broker->port = broker_free_port();
    make_certificate(&broker->certificate, broker->folder, 5);
    (void)snprintf(users, sizeof users, "%s/users", broker->folder);
    size = snprintf(
        text, sizeof text,
        "user root\nlistener %u 127.0.0.1\npersistence false\nlog_dest stderr\nlog_type all\n"
        "allow_anonymous %s\n%s%s\n",
        broker->port, has_users ? "false" : "true", has_users ? "password_file " : "",
        has_users ? users : "");
    if (has_tls)
        size += snprintf(
            text + size, sizeof text - (size_t)size, "certfile %s\nkeyfile %s\n",
            broker->certificate.path, broker->certificate.key_path);
    (void)snprintf(path, sizeof path, "%s/broker.conf", broker->folder);
    det_test_write_file(path, text, (size_t)size);
    if (has_users) {
        /* Output of mosquitto_passwd -b users me right. */
        static const char line[] = "me:$7$101$8PizOrLJQpB/w6gG$3MJptDXSdrUct331OqUu1iiry/iMHBBU"
                                   "V7POJKLAKCfCooUZ5F1QsdcElxjg9MOwJIfrGAEmZqVrRZyW4BHlKg==\n";

        det_test_write_file(users, line, sizeof line - 1);
    }
    broker_start(broker);
}

static inline void broker_close(struct broker *broker)
{
    if (broker->process)
        broker_kill(broker);
    det_test_folder_remove(broker->folder);
}

/* The retained message of a topic; free() it. */
static inline char *broker_retained(const struct broker *broker, const char *topic)
{
    struct mosquitto_message *message = NULL;
    char *text;

    assert_int_equal(
        mosquitto_subscribe_simple(
            &message, 1, true, topic, 1, "127.0.0.1", broker->port, NULL, 30, true, NULL, NULL,
            NULL, NULL),
        MOSQ_ERR_SUCCESS);
    text = strndup(message->payload, (size_t)message->payloadlen);
    mosquitto_message_free(&message);
    return text;
}

/* Polls until the retained message equals `wanted`. */
static inline void broker_assert_retained(
    const struct broker *broker, const char *topic, const char *wanted)
{
    for (int i = 0; i < 1000; i++) {
        char *text = broker_retained(broker, topic);
        bool is_it = strcmp(text, wanted) == 0;

        free(text);
        if (is_it)
            return;
    }
    fail_msg("the retained message of %s never became '%s'", topic, wanted);
}

#endif
