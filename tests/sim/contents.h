/* Files of repositories, served from a folder: DIR/<owner>/<repo>/<path> if it is there, else
 * DIR/<path>, for every repository and ref.
 * https://docs.github.com/en/rest/repos/contents#get-repository-content */
#ifndef CRCR_SIM_CONTENTS_H
#define CRCR_SIM_CONTENTS_H

#include "call.h"

handler_fn contents_get;

#endif
