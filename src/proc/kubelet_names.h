/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of containers and pods in file names that the kubelet of Kubernetes makes, whatever the
 * runtime (k8s.io/kubernetes, pkg/kubelet/kuberuntime: BuildPodLogsDirectory, legacy.go):
 *
 *   /var/log/containers/POD_NAMESPACE_CONTAINER-ID.log
 *   /var/log/pods/NAMESPACE_POD_UID
 *
 * Names contain no underscore.
 */
#ifndef TSNAP_PROC_KUBELET_NAMES_H
#define TSNAP_PROC_KUBELET_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* The container's name in its pod. False: none, or it is longer than size. */
bool kubelet_container_name(const char *proc_root, const char *id, char *name, size_t size);
/* NAMESPACE/POD of the pod with that uid. False: none, or it is longer than size. */
bool kubelet_pod_name(const char *proc_root, const char *uid, char *name, size_t size);

#endif
