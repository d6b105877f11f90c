/* What the pages are made of, as pages.cmake built it into the program. */
#ifndef CRCR_REPORTER_WEB_WEB_FILES_H
#define CRCR_REPORTER_WEB_WEB_FILES_H

#include "../../common/base/str.h"

/* One file. name: its path; /assets/app-<hash>.js never means anything else, /index.html may. */
struct web_file {
    const char *name;
    struct str gzip; /* compressed */
};

extern const struct web_file web_files[]; /* up to the one without a name */

#endif
