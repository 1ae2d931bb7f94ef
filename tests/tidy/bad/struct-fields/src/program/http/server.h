/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* server.h - a static struct of the program with 41 fields. */
#ifndef DET_HTTP_SERVER_H
#define DET_HTTP_SERVER_H

static struct {
    int first, second[4], third; /* three; */
    union {
        int number;
        const char *text;
    };
    struct {
        int inner, other;
    } pair;
    void (*function)(int of, int these);
    int bits : 3, more : 4;
    enum { RED, GREEN } colour;
    struct server *next;
    int field_1;
    int field_2;
    int field_3;
    int field_4;
    int field_5;
    int field_6;
    int field_7;
    int field_8;
    int field_9;
    int field_10;
    int field_11;
    int field_12;
    int field_13;
    int field_14;
    int field_15;
    int field_16;
    int field_17;
    int field_18;
    int field_19;
    int field_20;
    int field_21;
    int field_22;
    int field_23;
    int field_24;
    int field_25;
    int field_26;
    int field_27;
    int field_28;
    int field_29;
    int field_30;
    int field_31;
} server;

#endif
