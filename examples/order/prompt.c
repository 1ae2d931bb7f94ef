/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* prompt.c - one order in the user's hands: a line at a time, until the end of the input. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "demo.h"

#define MINE "order-6"

struct command {
    const char *name;
    const char *argument; /* as the help shows it; "" without */
    const char *help;
    int (*run)(struct demo *demo, const char *argument);
};

static int pay(struct demo *demo, const char *argument)
{
    struct payment payment = { .card = "4242", .cents = 1999 };

    if (argument[0] != '\0')
        payment.cents = strtoull(argument, NULL, 10);
    return story_send(demo, MINE, order_pay(payment), NULL);
}

static int cancel(struct demo *demo, const char *argument)
{
    (void)argument;
    return story_send(demo, MINE, order_cancel(), NULL);
}

static int ship(struct demo *demo, const char *argument)
{
    (void)argument;
    return story_send(demo, MINE, order_ship((struct parcel){ .tracking = "T-1006" }), NULL);
}

static int deliver(struct demo *demo, const char *argument)
{
    (void)argument;
    return story_send(demo, MINE, order_deliver(), NULL);
}

/* "30m", "2h", "3d", "10s": the time that passes. -1: not understood. */
static det_time parse_span(const char *text)
{
    char *end;
    unsigned long count = strtoul(text, &end, 10);

    if (end == text || count > 10000 || (end[0] != '\0' && end[1] != '\0'))
        return -1;
    switch (end[0]) {
    case 's':
        return (det_time)count * DET_SECOND;
    case 'm':
        return (det_time)count * DET_MINUTE;
    case 'h':
        return (det_time)count * DET_HOUR;
    case 'd':
        return (det_time)count * DET_DAY;
    default:
        return -1;
    }
}

static int advance(struct demo *demo, const char *argument)
{
    det_time span = parse_span(argument);

    if (span < 0) {
        printf("how far? advance 10s, advance 30m, advance 2h, advance 3d\n");
        return 0;
    }
    return det_sim_advance(demo->sim, span);
}

/* Which events the state takes, straight from the table. */
static int why(struct demo *demo, const char *argument)
{
    struct det_instance instance;
    struct order_data data;
    char text[256];
    int r = order_instance_get(demo->runtime, MINE, &instance, &data);

    (void)argument;
    if (r < 0)
        return r;
    screen_print_order(demo, MINE);
    printf("%s takes:", order_state_name(instance.state));
    for (unsigned event = 0; event < order_machine.event_count; event++) {
        if (det_machine_step(&order_machine, instance.state, event)->outcome != DET_UNHANDLED)
            printf(" %s", order_machine.events[event].name);
    }
    det_record_print(order_data_record(), &data, 0, text, sizeof text);
    printf("\n%s\n", text);
    return 0;
}

static int help(struct demo *demo, const char *argument);

static const struct command commands[] = {
    { "pay", "[cents]", "pay it: 1999 cents, or another sum, which is refused", pay },
    { "ship", "", "hand the parcel over", ship },
    { "deliver", "", "bring it to the door", deliver },
    { "cancel", "", "cancel it, at any moment you like", cancel },
    { "advance", "30m", "let time pass: 10s, 30m, 2h, 3d", advance },
    { "why", "", "where it is, what it waits for, what it takes", why },
    { "help", "", "this list", help },
    { "quit", "", "leave; so does the end of the input", NULL },
};
#define COMMAND_COUNT (sizeof commands / sizeof commands[0])

static int help(struct demo *demo, const char *argument)
{
    (void)demo;
    (void)argument;
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        printf("  %-8s%-9s%s\n", commands[i].name, commands[i].argument, commands[i].help);
    return 0;
}

static const struct command *find(const char *name)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    }
    return NULL;
}

static bool ask(struct demo *demo, char *line, size_t capacity)
{
    struct det_instance instance;

    if (det_runtime_get(demo->runtime, &order_machine, MINE, &instance, NULL) < 0)
        return false;
    printf(
        "%s%s %s>%s ", screen_color(&demo->screen, TONE_CAPTION), MINE,
        order_state_name(instance.state), demo->screen.has_color ? "\033[0m" : "");
    fflush(stdout);
    return fgets(line, (int)capacity, stdin) != NULL;
}

int prompt_run(struct demo *demo)
{
    char line[128], word[32], argument[64];
    int r;

    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return 0;
    r = story_start(demo, MINE, "you");
    printf("\nNow " MINE " is yours. Pay it, cancel it, or let time pass. `help` helps.\n");
    while (r >= 0 && ask(demo, line, sizeof line)) {
        const struct command *command;

        word[0] = argument[0] = '\0';
        if (sscanf(line, "%31s %63s", word, argument) < 1)
            continue;
        command = find(word);
        if (command == NULL)
            printf("`%s` is none of these:\n", word);
        else if (command->run == NULL)
            break;
        r = command ? command->run(demo, argument) : help(demo, argument);
    }
    return r;
}
