/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* lists.c - finds values in lists of constants and in arrays; compares texts. */
#include <string.h>

#include "base/assert.h"
#include "expression/program.h"
#include "record/field_value.h"

int det_expression_compare_texts(struct det_view a, struct det_view b)
{
    size_t size = a.size < b.size ? a.size : b.size;
    int order = size > 0 ? memcmp(a.data, b.data, size) : 0;

    return order != 0 ? order : a.size < b.size ? -1 : a.size > b.size;
}

bool det_expression_list_has(const struct expression_list *list, const union expression_slot *slot)
{
    det_i128 value = expression_wide(slot);
    size_t low = 0, high = list->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (list->integers[middle] == value)
            return true;
        if (list->integers[middle] < value)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

bool det_expression_list_has_float(const struct expression_list *list, double value)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->floats[i] == value)
            return true;
    return false;
}

bool det_expression_list_has_text(const struct expression_list *list, struct det_view text)
{
    size_t low = 0, high = list->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = det_expression_compare_texts(list->texts[middle], text);

        if (order == 0)
            return true;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

static bool element_is(
    const struct det_field *field, const uint8_t *element, const union expression_slot *slot)
{
    double number;
    int enumerator;

    switch (field->kind) {
    case DET_KIND_UNSIGNED:
        return det_value_unsigned(field, element) == expression_wide(slot);
    case DET_KIND_SIGNED:
    case DET_KIND_TIME:
        return det_value_signed(field, element) == expression_wide(slot);
    case DET_KIND_FLOAT:
        memcpy(&number, element, sizeof number);
        return number == slot->f;
    case DET_KIND_BOOL:
        return (*element != 0) == slot->b;
    case DET_KIND_TEXT:
    case DET_KIND_BYTES:
        return det_view_equal(det_value_view(field, element), slot->text);
    case DET_KIND_ENUM:
        memcpy(&enumerator, element, sizeof enumerator);
        return enumerator == slot->i;
    case DET_KIND_RECORD:
        break;
    }
    return false;
}

bool det_expression_array_has(
    struct expression_elements elements, const struct expression_array *array,
    const union expression_slot *slot)
{
    for (uint64_t i = 0; i < elements.count; i++)
        if (element_is(array->field, elements.data + i * array->size, slot))
            return true;
    return false;
}
