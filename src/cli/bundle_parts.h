/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a bundle (packaging/bundle) consists of, for --version. Other builds have none of it. */
#ifndef TSNAP_CLI_BUNDLE_PARTS_H
#define TSNAP_CLI_BUNDLE_PARTS_H

extern const char bundle_parts[];    /* a line for each part: name, licence, source */
extern const char bundle_licences[]; /* copyright and licence of each part, in full */

#endif
