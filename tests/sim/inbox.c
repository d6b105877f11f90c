#include "inbox.h"

#include <pthread.h>
#include <stdlib.h>
#include <utlist.h>

#include "../../common/base/mem.h"

struct letter {
    struct letter *prev, *next;
    struct http_exchange *x;
};

struct inbox {
    pthread_mutex_t lock;
    struct letter *letters; /* under lock */
    struct wake *wake;
};

struct inbox *inbox_new(struct wake *wake)
{
    struct inbox *in = mem_alloc(1, sizeof(*in));

    pthread_mutex_init(&in->lock, NULL);
    in->wake = wake;
    return in;
}

void inbox_refuse(struct inbox *in)
{
    struct http_exchange *x;

    while ((x = inbox_take(in)))
        http_reply_error(x, 503, "the simulator is ending");
}

void inbox_free(struct inbox *in)
{
    if (!in)
        return;
    inbox_refuse(in);
    pthread_mutex_destroy(&in->lock);
    free(in);
}

void inbox_put(struct inbox *in, struct http_exchange *x)
{
    struct letter *letter = mem_alloc(1, sizeof(*letter));

    letter->x = x;
    pthread_mutex_lock(&in->lock);
    DL_APPEND(in->letters, letter);
    pthread_mutex_unlock(&in->lock);
    wake_up(in->wake);
}

struct http_exchange *inbox_take(struct inbox *in)
{
    struct http_exchange *x = NULL;
    struct letter *letter;

    pthread_mutex_lock(&in->lock);
    letter = in->letters;
    if (letter)
        DL_DELETE(in->letters, letter);
    pthread_mutex_unlock(&in->lock);
    if (letter)
        x = letter->x;
    free(letter);
    return x;
}
