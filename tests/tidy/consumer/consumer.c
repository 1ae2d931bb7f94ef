/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* consumer.c - the smallest program against an installed detent: it prints the version. */
#include <stdio.h>

#include <detent/base.h>

int main(void)
{
    return puts(det_version()) < 0;
}
