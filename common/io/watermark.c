#include "watermark.h"

#include <stdlib.h>

#include "../base/mem.h"

struct watermark_mark {
    int64_t offset;
    bool done;
};

void watermark_init(struct watermark *w)
{
    *w = (struct watermark){ .next = -1 };
}

void watermark_clear(struct watermark *w)
{
    free(w->marks);
    watermark_init(w);
}

static struct watermark_mark *mark_at(const struct watermark *w, size_t i)
{
    return &w->marks[(w->first + i) & (w->capacity - 1)];
}

static void grow(struct watermark *w)
{
    size_t capacity = w->capacity ? 2 * w->capacity : 64;
    struct watermark_mark *marks = mem_alloc(capacity, sizeof(*marks));

    for (size_t i = 0; i < w->n; i++)
        marks[i] = *mark_at(w, i);
    free(w->marks);
    w->marks = marks;
    w->capacity = capacity;
    w->first = 0;
}

bool watermark_take(struct watermark *w, int64_t offset)
{
    if (offset < w->next)
        return false;
    if (w->n == w->capacity)
        grow(w);
    *mark_at(w, w->n++) = (struct watermark_mark){ .offset = offset };
    w->next = offset + 1;
    return true;
}

void watermark_back(struct watermark *w, int64_t offset)
{
    while (w->n && mark_at(w, w->n - 1)->offset >= offset)
        w->n--;
    w->next = offset;
}

void watermark_pass(struct watermark *w, int64_t offset)
{
    if (offset > w->next)
        w->next = offset;
}

void watermark_done(struct watermark *w, int64_t offset)
{
    size_t low = 0, high = w->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (mark_at(w, middle)->offset < offset)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == w->n || mark_at(w, low)->offset != offset)
        return;
    mark_at(w, low)->done = true;
    while (w->n && mark_at(w, 0)->done) {
        w->first = (w->first + 1) & (w->capacity - 1);
        w->n--;
    }
}

int64_t watermark_offset(const struct watermark *w)
{
    return w->n ? mark_at(w, 0)->offset : w->next;
}

size_t watermark_span(const struct watermark *w)
{
    return w->n;
}
