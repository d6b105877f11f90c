/* Whether a block of memory that begins with a secret is given back as it was. Only sanitizers
 * report blocks: without one nothing is found. */
#ifndef CRCR_TESTS_FREED_H
#define CRCR_TESTS_FREED_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#ifdef CRCR_SANITIZED
/* gcc's package has them without their header (sanitizer/allocator_interface.h). */
int __sanitizer_install_malloc_and_free_hooks(void (*taken)(const volatile void *, size_t),
                                              void (*freed)(const volatile void *));
size_t __sanitizer_get_allocated_size(const volatile void *block);
#endif

static const char *freed_secret; /* what is looked for; NULL: nothing */
static size_t freed_blocks, freed_with_secret;

static inline void freed_look_at(const void *block, size_t size)
{
    freed_blocks++;
    size_t len = strlen(freed_secret);
    freed_with_secret += size >= len && memcmp(block, freed_secret, len) == 0;
}

#ifdef CRCR_SANITIZED
static void freed_on_free(const volatile void *block)
{
    if (freed_secret && block)
        freed_look_at((const void *)block, __sanitizer_get_allocated_size(block));
}
static void freed_on_malloc(const volatile void *block, size_t size)
{
    (void)block, (void)size;
}
#endif

/* Begins to look; secret is kept until freed_has_secret. */
static inline void freed_watch(const char *secret)
{
#ifdef CRCR_SANITIZED
    static bool installed;
    if (!installed)
        __sanitizer_install_malloc_and_free_hooks(freed_on_malloc, freed_on_free);
    installed = true;
#endif
    freed_blocks = freed_with_secret = 0;
    freed_secret = secret;
}

/* True when a block since freed_watch began with the secret. */
static inline bool freed_has_secret(void)
{
    freed_secret = NULL;
    return freed_with_secret > 0;
}

#endif
