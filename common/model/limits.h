/* Every limit of what we accept or send, in one table. */
#ifndef CRCR_MODEL_LIMITS_H
#define CRCR_MODEL_LIMITS_H

#define WEBHOOK_MAX_BYTES  (25u << 20) /* GitHub: payloads are capped at 25 MB */
#define CALLBACK_MAX_BYTES (2u << 20)
#define PAYLOAD_MAX_BYTES                                                                          \
    (59u * 1000u) /* of the webhook body inside client_payload; GitHub: < 64 KB in all */
#define RECORD_MAX_BYTES     (26u << 20)
#define JSON_MAX_DEPTH       64
#define CALLBACK_MAX_MEMBERS 20000 /* of all its objects */
#define ALLOWLIST_MAX_BYTES  (4u << 20)
#define ALLOWLIST_MAX_REPOS  10000
#define DELIVERY_MAX         64   /* characters */
#define PR_TITLE_MAX         1024 /* GitHub: 256 characters */
#define PR_AUTHOR_MAX        64   /* GitHub: 39, and "[bot]" */
#define REPO_MAX             140  /* owner/repo: 39 + 1 + 100 */
#define SHA_MAX              64
#define NAME_MAX_BYTES       512 /* workflow, job */
#define RUN_ID_MAX           128
#define RUN_ATTEMPT_MAX      31
#define URL_MAX              2048

#endif
