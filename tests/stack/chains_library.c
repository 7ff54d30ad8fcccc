/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Library that chains.c opens at run time. */
#include "chains.h"

void library_call(void (*back)(void));

LINK static void library_inner(void (*back)(void))
{
	back();
	LINK_END();
}

void library_call(void (*back)(void))
{
	library_inner(back);
	LINK_END();
}
