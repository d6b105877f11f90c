/* A scorecard for people and as JSON. PURE. */
#ifndef CRCR_CTL_SCORE_PRINT_H
#define CRCR_CTL_SCORE_PRINT_H

#include "../../common/base/buf.h"
#include "../../common/model/scorecard.h"

void score_text(const struct scorecard *card, struct buf *to);
/* One JSON object and a newline. */
void score_json(const struct scorecard *card, struct buf *to);

#endif
