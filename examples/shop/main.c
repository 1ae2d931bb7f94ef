/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* main.c - the shop: a line in is an order, a line out is a promise.
 *
 *     shop [-b PORT] [STORE]      the bank's port on this machine; sqlite:shop.db
 *
 *     buy ID CENTS     an order that is paid at once
 *     keep ID CENTS    one that nobody will pay: it lapses
 *
 *     ok ID STATE      it is on the disk, and will be carried out whatever happens now
 *     late ID          it lapsed before it was paid
 *     no ID TEXT       it is not known whether it was taken: ask again, with the same id
 *
 * An id that was used is answered as the first time, so a customer who has heard nothing asks
 * again, however often. The end of the input ends the shop; what is under way stays in the store
 * and goes on the next time. Several threads read lines, so that orders that come together share a
 * commit: there is no lock in this program, the streams and the runtime have theirs. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shop.h"

#define CLERKS 8

/* Both commits have ids: what was done before is not done again. */
static int take_order(
    struct det_runtime *runtime, const char *id, uint64_t cents, bool is_paid,
    struct det_error *error, struct det_sent *ret)
{
    int r;

    r = order_instance_start_with(
        runtime, id, (struct order_data){ .cents = cents },
        &(struct det_send_options){ .event_id = "start" }, ret, error);
    if (r < 0 || !is_paid)
        return r;
    return order_send_with(
        runtime, id, order_pay(), &(struct det_send_options){ .event_id = "pay" }, ret, error);
}

static void answer(const char *id, int r, const struct det_sent *sent, const char *text)
{
    if (r >= 0)
        printf("ok %s %s\n", id, order_state_name(sent->state));
    else if (r == DET_ERR_UNHANDLED || r == DET_ERR_STOPPED)
        printf("late %s\n", id);
    else
        printf("no %s %s\n", id, text);
}

static void serve_line(struct det_runtime *runtime, const char *line)
{
    char verb[8], id[40];
    uint64_t cents;
    struct det_sent sent;
    struct det_error error = { 0 };
    int r;

    if (sscanf(line, "%7s %39s %" SCNu64, verb, id, &cents) != 3 ||
        (strcmp(verb, "buy") != 0 && strcmp(verb, "keep") != 0)) {
        printf("what? buy ID CENTS, or keep ID CENTS\n");
        return;
    }
    r = take_order(runtime, id, cents, verb[0] == 'b', &error, &sent);
    answer(id, r, &sent, error.code ? error.text : det_error_text(r));
}

static void *clerk(void *argument)
{
    char *line = NULL;
    size_t capacity = 0;

    while (getline(&line, &capacity, stdin) >= 0)
        serve_line(argument, line);
    free(line);
    return NULL;
}

static void serve(struct det_runtime *runtime)
{
    pthread_t threads[CLERKS];
    size_t count = 0;

    while (count < CLERKS && pthread_create(&threads[count], NULL, clerk, runtime) == 0)
        count++;
    if (count == 0)
        clerk(runtime);
    while (count > 0)
        pthread_join(threads[--count], NULL);
}

/* A bank that is down is asked again until it is not: an order is never given up. */
static int run(const char *url, struct shop *shop, struct det_error *error)
{
    DET_SCOPED(store) store = NULL;
    DET_SCOPED(runtime) runtime = NULL;
    int r;

    r = det_store_open(url, &store, error);
    if (r < 0)
        return r;
    r = det_runtime_open(
        store,
        &(struct det_runtime_options){
            .pool_threads = 8,
            .effects = { .attempts_max = UINT32_MAX,
                         .backoff_first = 20 * DET_MILLISECOND,
                         .backoff_max = 500 * DET_MILLISECOND },
            .user = shop,
        },
        &runtime, error);
    if (r < 0)
        return r;
    r = det_runtime_serve(runtime, &order_machine, error);
    if (r < 0)
        return r;
    printf("open\n");
    serve(runtime);
    return 0;
}

static int usage(void)
{
    fputs("usage: shop [-b PORT_OF_THE_BANK] [STORE]\n", stderr);
    return 2;
}

int main(int count, char **words)
{
    struct shop shop = { .bank_port = 8077 };
    struct det_error error = { 0 };
    int option, r;

    while ((option = getopt(count, words, "b:")) >= 0) {
        unsigned long port = option == 'b' ? strtoul(optarg, NULL, 10) : 0;

        if (port < 1 || port > UINT16_MAX)
            return usage();
        shop.bank_port = (uint16_t)port;
    }
    if (count > optind + 1)
        return usage();
    setvbuf(stdout, NULL, _IOLBF, 0);
    r = run(optind < count ? words[optind] : "sqlite:shop.db", &shop, &error);
    if (r < 0) {
        fprintf(stderr, "shop: %s\n", error.code ? error.text : det_error_text(r));
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
