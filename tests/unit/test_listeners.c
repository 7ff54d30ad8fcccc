/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A listener whose queue is full drops attempts to connect, and the kernel counts them. */
#include "proc/listeners.h"
#include "unit.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#define CLIENTS 8

static const struct listener *find(struct listeners *listeners, uint16_t port)
{
	listeners_read(listeners);
	for (size_t i = 0; i < listeners->count; i++)
		if (listeners->rows[i].port == port)
			return &listeners->rows[i];
	return NULL;
}

static void dropped_attempts_are_counted(void **state)
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	int listener = socket(AF_INET, SOCK_STREAM, 0), clients[CLIENTS];
	struct listeners listeners = {0};
	socklen_t size = sizeof(address);
	const struct listener *found = NULL;

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, size), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
	assert_null(find(&listeners, ntohs(address.sin_port)));
	if (listeners.fd < 0)
		skip(); /* the kernel gives no sock_diag here */
	for (int i = 0; i < CLIENTS; i++) {
		clients[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		connect(clients[i], (struct sockaddr *)&address, size);
	}
	for (int i = 0; i < 100 && !found; i++) {
		usleep(20000);
		found = find(&listeners, ntohs(address.sin_port));
	}
	assert_non_null(found);
	assert_true(found->dropped > 0);
	assert_int_equal(found->backlog, 1);
	assert_true(found->queued > found->backlog); /* the kernel takes one more */
	for (int i = 0; i < CLIENTS; i++)
		close(clients[i]);
	close(listener);
	listeners_done(&listeners);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dropped_attempts_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
