/* Apps that are registered by a manifest, and the hook of ours.
 * https://docs.github.com/en/apps/sharing-github-apps/registering-a-github-app-from-a-manifest */
#ifndef CRCR_SIM_MANIFESTS_H
#define CRCR_SIM_MANIFESTS_H

#include "call.h"

/* POST /_sim/manifest {"owner", "manifest"}: what GitHub's form does when the owner confirms it;
 * answers {"code"}. 422: GitHub would show an error. */
handler_fn manifests_confirm;
/* POST /app-manifests/{code}/conversions, once a code: the key is the simulator's own. */
handler_fn manifests_convert;
/* GET /app/hook/config */
handler_fn manifests_hook;

#endif
