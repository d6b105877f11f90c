/* Allocation. A daemon that cannot get a small block cannot do anything useful either: it aborts
 * and is started again, and Kafka hands it the same records once more. Blocks whose size an
 * outsider chooses (a request body) are taken with plain malloc and refused politely. */
#ifndef CRCR_BASE_MEM_H
#define CRCR_BASE_MEM_H

#include <stddef.h>

/* Zeroed memory for n objects of the given size; aborts with a message when there is none. */
void *mem_alloc(size_t n, size_t size) __attribute__((malloc, returns_nonnull));
/* realloc that aborts when there is no memory; the new part is not cleared. */
void *mem_resize(void *block, size_t n, size_t size) __attribute__((returns_nonnull));
/* strdup that aborts when there is no memory; NULL gives NULL. */
char *mem_dup(const char *text);
/* free for a secret, which is overwritten before; NULL is fine. */
void mem_free_secret(char *secret);
/* Cleanup helper: char *CLEANUP(mem_free_char) s = ...; */
void mem_free_char(char **block);
/* The same with mem_free_secret. */
void mem_free_secret_char(char **secret);

#endif
