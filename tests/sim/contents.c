#include "contents.h"

#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "../../common/base/file.h"
#include "../../common/base/mem.h"
#include "../../common/crypto/hmac.h"
#include "options.h"
#include "sim.h"

#define FILE_MAX_BYTES (16u << 20)
#define LINE           60 /* characters of base64 before each newline, as GitHub breaks it */

static bool path_safe(struct str path)
{
    struct str part;

    while (str_split(&path, '/', &part)) {
        if (!part.len || str_is(part, ".") || str_is(part, ".."))
            return false;
    }
    return true;
}

static bool contents_find(const char *folder, const struct call *call, struct buf *to)
{
    char name[1024];
    struct str path = call->part[0];

    if (!folder || !path_safe(path) || !path_safe(call->repo))
        return false;
    snprintf(name, sizeof(name), "%s/%.*s/%.*s", folder, STR_ARG(call->repo), STR_ARG(path));
    if (!file_read(to, open(name, O_RDONLY | O_CLOEXEC), NULL))
        return true;
    buf_reset(to);
    snprintf(name, sizeof(name), "%s/%.*s", folder, STR_ARG(path));
    return !file_read(to, open(name, O_RDONLY | O_CLOEXEC), NULL);
}

static char *base64(struct str data)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t n = (data.len + 2) / 3 * 4;
    char *text = mem_alloc(n + n / LINE + 2, 1), *to = text;

    for (size_t i = 0; i < data.len; i += 3) {
        uint32_t bits = 0;

        for (size_t k = 0; k < 3; k++)
            bits = bits << 8 | (i + k < data.len ? (unsigned char)data.ptr[i + k] : 0u);
        for (int k = 0; k < 4; k++)
            *to++ = i + (size_t)k > data.len ? '=' : digits[bits >> (18 - 6 * k) & 63];
        if ((i + 3) % (LINE / 4 * 3) == 0 || i + 3 >= data.len)
            *to++ = '\n';
    }
    *to = '\0';
    return text;
}

static json_t *document_of(struct sim *sim, const struct call *call, struct str data,
                           const char *sha)
{
    struct str path = call->part[0], name = path;
    char *CLEANUP(mem_free_char) content = base64(data);
    json_t *url = json_sprintf("%s%.*s", sim->base_url, STR_ARG(call->path));
    json_t *git =
        json_sprintf("%s/repos/%.*s/git/blobs/%s", sim->base_url, STR_ARG(call->repo), sha);
    json_t *html =
        json_sprintf("https://github.com/%.*s/blob/main/%.*s", STR_ARG(call->repo), STR_ARG(path));
    ptrdiff_t slash;
    json_t *document;

    while ((slash = str_find(name, '/')) >= 0)
        name = str_from(name, (size_t)slash + 1);
    document = json_pack(
        "{s:s, s:s, s:I, s:s%, s:s%, s:s, s:s, s:O, s:O, s:O, s:O, s:{s:O, s:O, s:O}}", "type",
        "file", "encoding", "base64", "size", (json_int_t)data.len, "name", name.ptr, name.len,
        "path", path.ptr, path.len, "content", content, "sha", sha, "url", url, "git_url", git,
        "html_url", html, "download_url", url, "_links", "self", url, "git", git, "html", html);
    json_decref(url);
    json_decref(git);
    json_decref(html);
    return document;
}

/* ---- a folder ---------------------------------------------------------------------------------
 */

/* As a folder lists it; without its content. */
static json_t *entry_of(struct sim *sim, const struct call *call, const char *folder,
                        const char *name)
{
    struct stat about;
    char file[2048], path[2048], sha[SHA256_HEX_SIZE];

    snprintf(file, sizeof(file), "%s/%s", folder, name);
    snprintf(path, sizeof(path), "%.*s/%s", STR_ARG(call->part[0]), name);
    if (stat(file, &about) != 0)
        return NULL;
    bool is_file = S_ISREG(about.st_mode);
    sha256_hex(str_of(path), sha);
    sha[40] = '\0';
    json_t *url =
        json_sprintf("%s/repos/%.*s/contents/%s", sim->base_url, STR_ARG(call->repo), path);
    json_t *git =
        json_sprintf("%s/repos/%.*s/git/blobs/%s", sim->base_url, STR_ARG(call->repo), sha);
    json_t *html = json_sprintf("https://github.com/%.*s/%s/main/%s", STR_ARG(call->repo),
                                is_file ? "blob" : "tree", path);
    json_t *entry = json_pack(
        "{s:s, s:I, s:s, s:s, s:s, s:O, s:O, s:O, s:o, s:{s:O, s:O, s:O}}", "type",
        is_file ? "file" : "dir", "size", (json_int_t)(is_file ? about.st_size : 0), "name", name,
        "path", path, "sha", sha, "url", url, "git_url", git, "html_url", html, "download_url",
        is_file ? json_incref(url) : json_null(), "_links", "self", url, "git", git, "html", html);
    json_decref(url);
    json_decref(git);
    json_decref(html);
    return entry;
}

static json_t *entries_of(struct sim *sim, const struct call *call, const char *folder)
{
    struct dirent **found;
    int n = scandir(folder, &found, NULL, alphasort);
    json_t *entries = n < 0 ? NULL : json_array();

    for (int i = 0; i < n; i++) {
        json_t *entry =
            found[i]->d_name[0] == '.' ? NULL : entry_of(sim, call, folder, found[i]->d_name);
        if (entry)
            json_array_append_new(entries, entry);
        free(found[i]);
    }
    if (n >= 0)
        free(found);
    return entries;
}

/* NULL when there is no such folder, neither the repository's own nor the one of all. */
static json_t *folder_find(struct sim *sim, const struct call *call)
{
    const char *root = sim->options->contents;
    char name[1024];
    struct str path = call->part[0];

    if (!root || !path_safe(path) || !path_safe(call->repo))
        return NULL;
    snprintf(name, sizeof(name), "%s/%.*s/%.*s", root, STR_ARG(call->repo), STR_ARG(path));
    json_t *entries = entries_of(sim, call, name);
    if (entries)
        return entries;
    snprintf(name, sizeof(name), "%s/%.*s", root, STR_ARG(path));
    return entries_of(sim, call, name);
}

static void folder_get(struct sim *sim, const struct call *call, struct reply *reply)
{
    json_t *entries = folder_find(sim, call);

    if (entries)
        reply_json(reply, 200, entries);
    else
        reply_error(reply, 404, "Not Found");
}

void contents_get(struct sim *sim, const struct call *call, struct reply *reply)
{
    struct str accept = headers_get(call->headers, "accept");
    char sha[SHA256_HEX_SIZE], etag[SHA256_HEX_SIZE + 4];
    struct buf data;
    size_t len;

    buf_init(&data, FILE_MAX_BYTES);
    if (!contents_find(sim->options->contents, call, &data)) {
        buf_clear(&data);
        folder_get(sim, call, reply);
        return;
    }
    /* As long as a blob's SHA-1, and like it a hash of the content. */
    sha256_hex(buf_str(&data), sha);
    sha[40] = '\0';
    snprintf(etag, sizeof(etag), "\"%s\"", sha);
    reply_header(reply, "ETag", "%s", etag);
    if (str_is(headers_get(call->headers, "if-none-match"), etag)) {
        reply_empty(reply, 304);
    } else if (str_find_str(accept, STR_LIT("raw")) >= 0) {
        char *text = buf_take(&data, &len);

        reply_text(reply, 200, "application/vnd.github.raw+json; charset=utf-8", text, len);
    } else {
        reply_json(reply, 200, document_of(sim, call, buf_str(&data), sha));
    }
    buf_clear(&data);
}
