/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Answers of another host's file server: NFS, SMB, Ceph and others. */
#include "waits/wait_object.h"

#include <fnmatch.h>

const struct wait_object *wait_object_of_mount(const struct mount_facts *mount)
{
	static const char *const types[] = {"nfs*", "cifs", "smb*", "9p", "ceph", "afs", "lustre"};

	if (!fnmatch("fuse*", mount->type, 0))
		return &fuse_object;
	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		if (!fnmatch(types[i], mount->type, 0))
			return &file_server_object;
	return NULL;
}

static void file_server_describe(struct wait *wait)
{
	struct mount_facts mount;

	wait->facts.stored = true;
	text_add_string(wait->text, "file server");
	if (!wait->numbers_only && wait_mount(wait, &mount) &&
	    wait_object_of_mount(&mount) == &file_server_object)
		text_add_format(wait->text, " %s (%s)", mount.source, mount.type);
}

const struct wait_object file_server_object = {
	.kind = WAIT_FILE,
	.functions = (const char *const[]){"rpc_wait_bit_killable", "nfs_wait_bit_killable",
					   "nfs_wait_on_request", "nfs4_delay_killable",
					   "nfs4_delay_interruptible", "wait_for_response",
					   "wait_for_free_credits", "p9_client_rpc",
					   "ceph_mdsc_wait_request", "ceph_mdsc_do_request",
					   "ceph_osdc_wait_request", "ceph_get_caps",
					   "afs_wait_for_call_to_complete", NULL},
	.describe = file_server_describe,
};
