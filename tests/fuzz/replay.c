/* Runs a fuzz target over a committed corpus, so that the normal test run replays every input that
 * once was interesting: replay FOLDER… */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The block is exactly as large as the file, so that ASan sees one byte too far. NULL: errno. */
static uint8_t *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    uint8_t *data = NULL;
    if (fseek(file, 0, SEEK_END) == 0) {
        long end = ftell(file);
        *size = end > 0 ? (size_t)end : 0;
        data = malloc(*size ? *size : 1);
    }
    rewind(file);
    if (data && fread(data, 1, *size, file) != *size) {
        free(data);
        data = NULL;
    }
    fclose(file);
    return data;
}

static int replay_file(const char *path)
{
    size_t size = 0;
    uint8_t *data = read_file(path, &size);
    if (!data) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return -1;
    }
    /* Said before the run: a crash names its input. */
    printf("%s (%zu bytes)\n", path, size);
    fflush(stdout);
    LLVMFuzzerTestOneInput(data, size);
    free(data);
    return 0;
}

/* How many files were replayed, -1 on a fault. */
static int replay_folder(const char *folder)
{
    struct dirent **entries;
    int n = scandir(folder, &entries, NULL, alphasort);
    if (n < 0) {
        fprintf(stderr, "%s: %s\n", folder, strerror(errno));
        return -1;
    }
    int replayed = 0;
    for (int i = 0; i < n; i++) {
        char path[4096];
        snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.' && replayed >= 0)
            replayed = replay_file(path) == 0 ? replayed + 1 : -1;
        free(entries[i]);
    }
    free(entries);
    return replayed;
}

int main(int argc, char **argv)
{
    int total = 0;
    for (int i = 1; i < argc; i++) {
        int n = replay_folder(argv[i]);
        if (n < 0)
            return 1;
        total += n;
    }
    printf("%d inputs replayed\n", total);
    if (total == 0) {
        fprintf(stderr, "no inputs: give folders that hold a corpus\n");
        return 1;
    }
    return 0;
}
