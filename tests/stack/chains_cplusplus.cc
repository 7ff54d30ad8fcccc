// SPDX-License-Identifier: GPL-2.0-or-later
// The same in C++: names, and frames while an exception is on its way.
#include <cstdio>
#include <cstring>
#include <sys/syscall.h>
#include <unistd.h>

#include "chains.h"

namespace
{
const char *chain_text;
volatile int stay;

LINK void wait_here()
{
	char end;

	printf("ready %ld %s\n", (long)syscall(SYS_gettid), chain_text);
	fflush(stdout);
	while (read(STDIN_FILENO, &end, 1) > 0)
		LINK_END();
	// for all that the compiler knows it returns; else nothing could be thrown past it
	if (!stay)
		_exit(0);
}
}

namespace shop
{
template <typename T> struct box {
	T value;

	LINK void wait(T more)
	{
		value += more;
		wait_here();
		LINK_END();
	}
};

template struct box<int>;

struct guard {
	LINK ~guard()
	{
		wait_here();
		LINK_END();
	}
};

LINK void thrower(int number)
{
	if (number)
		throw number;
	LINK_END();
}

LINK void catcher()
{
	try {
		thrower(1);
	} catch (int number) {
		box<int> kept{number};

		kept.wait(number);
		LINK_END();
	}
}

LINK void leaver()
{
	guard kept;

	thrower(2);
	LINK_END();
}
}

LINK static void methods()
{
	shop::box<int> kept{1};

	kept.wait(2);
	LINK_END();
}

LINK static void caught()
{
	shop::catcher();
	LINK_END();
}

LINK static void left()
{
	try {
		shop::leaver();
	} catch (int) {
		LINK_END();
	}
}

static const struct {
	const char *name, *chain;
	void (*run)();
} chains[] = {
	{"methods", "(anonymous_namespace)::wait_here shop::box<int>::wait methods main", methods},
	{"caught", "(anonymous_namespace)::wait_here shop::box<int>::wait shop::catcher caught main",
	 caught},
	{"left", "(anonymous_namespace)::wait_here shop::guard::~guard shop::leaver left main", left},
};

int main(int argc, char **argv)
{
	for (const auto &chain : chains) {
		if (argc < 2) {
			puts(chain.name);
		} else if (!strcmp(argv[1], chain.name)) {
			chain_text = chain.chain;
			chain.run();
			LINK_END();
		}
	}
	return argc > 1;
}
