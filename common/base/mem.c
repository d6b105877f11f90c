#include "mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Noreturn void die(size_t n, size_t size)
{
    fprintf(stderr, "out of memory: %zu objects of %zu bytes\n", n, size);
    abort();
}

void *mem_alloc(size_t n, size_t size)
{
    void *block = n && size ? calloc(n, size) : calloc(1, 1);
    if (!block)
        die(n, size);
    return block;
}

void *mem_resize(void *block, size_t n, size_t size)
{
    void *bigger = n && size ? reallocarray(block, n, size) : realloc(block, 1);
    if (!bigger)
        die(n, size);
    return bigger;
}

char *mem_dup(const char *text)
{
    if (!text)
        return NULL;
    size_t size = strlen(text) + 1;
    return memcpy(mem_alloc(size, 1), text, size);
}

void mem_free_secret(char *secret)
{
    if (secret)
        explicit_bzero(secret, strlen(secret));
    free(secret);
}

void mem_free_secret_char(char **secret)
{
    mem_free_secret(*secret);
}

void mem_free_char(char **block)
{
    free(*block);
}
