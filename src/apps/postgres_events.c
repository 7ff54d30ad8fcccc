/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "apps/postgres_events.h"

#include <stdbool.h>
#include <stddef.h>

/* A list has the names of a type's events in the order of their numbers, with the first and the
 * last version that has each: an event's number is that of the names before it which its version
 * has. A release keeps the numbers of its version (new ones come last). "": a number without an
 * event.
 *
 * From the sources of 13.16, 14.9, 15.18, 16.4, 17.12 and 18.6. Up to 16: the enums of pgstat.h and
 * utils/wait_event.h, with names in pgstat.c and wait_event.c; from 17 on wait_event_names.txt.
 * LWLock: lwlocknames.txt or lwlocklist.h, then BuiltinTrancheNames[] in lwlock.c. Lock:
 * LockTagTypeNames[] in lockfuncs.c.
 */
struct event_row {
	const char *name;
	uint8_t first, last;
};

/* clang-format off */
static const struct event_row lwlocks[] = {
	{"", 13, 18}, {"ShmemIndex", 13, 18}, {"OidGen", 13, 18}, {"XidGen", 13, 18}, {"ProcArray", 13, 18},
	{"SInvalRead", 13, 18}, {"SInvalWrite", 13, 18}, {"WALBufMapping", 13, 18}, {"WALWrite", 13, 18},
	{"ControlFile", 13, 18}, {"Checkpoint", 13, 13}, {"", 14, 18}, {"XactSLRU", 13, 16},
	{"SubtransSLRU", 13, 16}, {"", 17, 18}, {"", 17, 18}, {"MultiXactGen", 13, 18},
	{"MultiXactOffsetSLRU", 13, 16}, {"MultiXactMemberSLRU", 13, 16}, {"", 17, 18}, {"", 17, 18},
	{"RelCacheInit", 13, 18}, {"CheckpointerComm", 13, 18}, {"TwoPhaseState", 13, 18},
	{"TablespaceCreate", 13, 18}, {"BtreeVacuum", 13, 18}, {"AddinShmemInit", 13, 18}, {"Autovacuum", 13, 18},
	{"AutovacuumSchedule", 13, 18}, {"SyncScan", 13, 18}, {"RelationMapping", 13, 18}, {"NotifySLRU", 13, 16},
	{"", 17, 18}, {"NotifyQueue", 13, 18}, {"SerializableXactHash", 13, 18},
	{"SerializableFinishedList", 13, 18}, {"SerializablePredicateList", 13, 18}, {"SerialSLRU", 13, 16},
	{"", 17, 18}, {"SyncRep", 13, 18}, {"BackgroundWorker", 13, 18}, {"DynamicSharedMemoryControl", 13, 18},
	{"AutoFile", 13, 18}, {"ReplicationSlotAllocation", 13, 18}, {"ReplicationSlotControl", 13, 18},
	{"CommitTsSLRU", 13, 16}, {"", 17, 18}, {"CommitTs", 13, 18}, {"ReplicationOrigin", 13, 18},
	{"MultiXactTruncation", 13, 18}, {"OldSnapshotTimeMap", 13, 16}, {"", 17, 18},
	{"LogicalRepWorker", 13, 18}, {"XactTruncation", 13, 18}, {"", 13, 18}, {"WrapLimitsVacuum", 13, 18},
	{"NotifyQueueTail", 13, 18}, {"WaitEventCustom", 17, 18}, {"WALSummarizer", 17, 18},
	{"DSMRegistry", 17, 18}, {"InjectionPoint", 17, 18}, {"SerialControl", 17, 18},
	{"AioWorkerSubmissionQueue", 18, 18}, {"XactBuffer", 13, 18}, {"CommitTsBuffer", 13, 18},
	{"SubtransBuffer", 13, 18}, {"MultiXactOffsetBuffer", 13, 18}, {"MultiXactMemberBuffer", 13, 18},
	{"NotifyBuffer", 13, 18}, {"SerialBuffer", 13, 18}, {"WALInsert", 13, 18}, {"BufferContent", 13, 18},
	{"BufferIO", 13, 13}, {"ReplicationOriginState", 13, 18}, {"ReplicationSlotIO", 13, 18},
	{"LockFastPath", 13, 18}, {"BufferMapping", 13, 18}, {"LockManager", 13, 18},
	{"PredicateLockManager", 13, 18}, {"ParallelHashJoin", 13, 18}, {"ParallelBtreeScan", 18, 18},
	{"ParallelQueryDSA", 13, 18}, {"PerSessionDSA", 13, 18}, {"PerSessionRecordType", 13, 18},
	{"PerSessionRecordTypmod", 13, 18}, {"SharedTupleStore", 13, 18}, {"SharedTidBitmap", 13, 18},
	{"ParallelAppend", 13, 18}, {"PerXactPredicateList", 13, 18}, {"PgStatsDSA", 15, 18},
	{"PgStatsHash", 15, 18}, {"PgStatsData", 15, 18}, {"LogicalRepLauncherDSA", 16, 18},
	{"LogicalRepLauncherHash", 16, 18}, {"DSMRegistryDSA", 17, 18}, {"DSMRegistryHash", 17, 18},
	{"CommitTsSLRU", 17, 18}, {"MultiXactMemberSLRU", 17, 18}, {"MultiXactOffsetSLRU", 17, 18},
	{"NotifySLRU", 17, 18}, {"SerialSLRU", 17, 18}, {"SubtransSLRU", 17, 18}, {"XactSLRU", 17, 18},
	{"ParallelVacuumDSA", 17, 18}, {"AioUringCompletion", 18, 18},
	{NULL, 0, 0},
};

static const struct event_row locks[] = {
	{"relation", 13, 18}, {"extend", 13, 18}, {"frozenid", 13, 18}, {"page", 13, 18}, {"tuple", 13, 18},
	{"transactionid", 13, 18}, {"virtualxid", 13, 18}, {"spectoken", 13, 18}, {"object", 13, 18},
	{"userlock", 13, 18}, {"advisory", 13, 18}, {"applytransaction", 16, 18},
	{NULL, 0, 0},
};

static const struct event_row buffer_pins[] = {
	{"BufferPin", 13, 18},
	{NULL, 0, 0},
};

static const struct event_row activities[] = {
	{"ArchiverMain", 13, 18}, {"AutoVacuumMain", 13, 16}, {"BgWriterHibernate", 13, 16},
	{"BgWriterMain", 13, 16}, {"AutovacuumMain", 17, 18}, {"BgwriterHibernate", 17, 18},
	{"BgwriterMain", 17, 18}, {"CheckpointerMain", 13, 18}, {"CheckpointerShutdown", 18, 18},
	{"IoWorkerMain", 18, 18}, {"LogicalApplyMain", 13, 18}, {"LogicalLauncherMain", 13, 18},
	{"PgStatMain", 13, 14}, {"LogicalParallelApplyMain", 16, 18}, {"RecoveryWalStream", 13, 18},
	{"SysLoggerMain", 13, 16}, {"ReplicationSlotsyncMain", 17, 18}, {"ReplicationSlotsyncShutdown", 17, 18},
	{"SysloggerMain", 17, 18}, {"WalReceiverMain", 13, 18}, {"WalSenderMain", 13, 18},
	{"WalSummarizerWal", 17, 18}, {"WalWriterMain", 13, 18},
	{NULL, 0, 0},
};

static const struct event_row clients[] = {
	{"ClientRead", 13, 18}, {"ClientWrite", 13, 18}, {"GSSOpenServer", 13, 16},
	{"LibPQWalReceiverConnect", 13, 16}, {"LibPQWalReceiverReceive", 13, 16}, {"SSLOpenServer", 13, 16},
	{"WalReceiverWaitStart", 13, 13}, {"WalSenderWaitForWAL", 13, 16}, {"GssOpenServer", 17, 18},
	{"LibpqwalreceiverConnect", 17, 18}, {"LibpqwalreceiverReceive", 17, 18}, {"SslOpenServer", 17, 18},
	{"WaitForStandbyConfirmation", 17, 18}, {"WalSenderWaitForWal", 17, 18}, {"WalSenderWriteData", 13, 18},
	{NULL, 0, 0},
};

static const struct event_row extensions[] = {
	{"Extension", 13, 18},
	{NULL, 0, 0},
};

static const struct event_row ipcs[] = {
	{"AppendReady", 14, 18}, {"ArchiveCleanupCommand", 15, 18}, {"ArchiveCommand", 15, 18},
	{"BackendTermination", 14, 18}, {"BackupWaitWalArchive", 13, 18}, {"BgWorkerShutdown", 13, 16},
	{"BgWorkerStartup", 13, 16}, {"BgworkerShutdown", 17, 18}, {"BgworkerStartup", 17, 18},
	{"BtreePage", 13, 18}, {"BufferIO", 14, 16}, {"BufferIo", 17, 18}, {"CheckpointDelayComplete", 17, 18},
	{"CheckpointDelayStart", 17, 18}, {"CheckpointDone", 13, 18}, {"CheckpointStart", 13, 18},
	{"ExecuteGather", 13, 18}, {"HashBatchAllocate", 13, 18}, {"HashBatchElect", 13, 18},
	{"HashBatchLoad", 13, 18}, {"HashBuildAllocate", 13, 18}, {"HashBuildElect", 13, 18},
	{"HashBuildHashInner", 13, 18}, {"HashBuildHashOuter", 13, 18}, {"HashGrowBatchesAllocate", 13, 15},
	{"HashGrowBatchesDecide", 13, 18}, {"HashGrowBatchesElect", 13, 18}, {"HashGrowBatchesFinish", 13, 18},
	{"HashGrowBatchesReallocate", 16, 18}, {"HashGrowBatchesRepartition", 13, 18},
	{"HashGrowBucketsAllocate", 13, 15}, {"HashGrowBucketsElect", 13, 18},
	{"HashGrowBucketsReallocate", 16, 18}, {"HashGrowBucketsReinsert", 13, 18},
	{"LogicalApplySendData", 16, 18}, {"LogicalParallelApplyStateChange", 16, 18}, {"LogicalSyncData", 13, 18},
	{"LogicalSyncStateChange", 13, 18}, {"MessageQueueInternal", 13, 18}, {"MessageQueuePutMessage", 13, 18},
	{"MessageQueueReceive", 13, 18}, {"MessageQueueSend", 13, 18}, {"MultixactCreation", 17, 18},
	{"ParallelBitmapScan", 13, 18}, {"ParallelCreateIndexScan", 13, 18}, {"ParallelFinish", 13, 18},
	{"ProcArrayGroupUpdate", 13, 16}, {"ProcarrayGroupUpdate", 17, 18}, {"ProcSignalBarrier", 13, 18},
	{"Promote", 13, 18}, {"RecoveryConflictSnapshot", 13, 18}, {"RecoveryConflictTablespace", 13, 18},
	{"RecoveryEndCommand", 15, 18}, {"RecoveryPause", 13, 18}, {"ReplicationOriginDrop", 13, 18},
	{"ReplicationSlotDrop", 13, 18}, {"RestoreCommand", 15, 18}, {"SafeSnapshot", 13, 18}, {"SyncRep", 13, 18},
	{"WalReceiverExit", 14, 18}, {"WalReceiverWaitStart", 14, 18}, {"WalSummaryReady", 17, 18},
	{"XactGroupUpdate", 13, 18}, {"WalReceiverUpstreamCatchup", 17, 18},
	{NULL, 0, 0},
};

static const struct event_row timeouts[] = {
	{"BaseBackupThrottle", 13, 18}, {"CheckpointWriteDelay", 15, 18}, {"PgSleep", 13, 18},
	{"RecoveryApplyDelay", 13, 18}, {"RecoveryRetrieveRetryInterval", 13, 18}, {"RegisterSyncRequest", 15, 18},
	{"SpinDelay", 16, 18}, {"VacuumDelay", 13, 18}, {"CheckpointWriteDelay", 14, 14},
	{"RegisterSyncRequest", 13, 14}, {"VacuumTruncate", 15, 18}, {"WalSummarizerError", 17, 18},
	{NULL, 0, 0},
};

static const struct event_row ios[] = {
	{"BaseBackupRead", 14, 16}, {"BaseBackupSync", 15, 16}, {"BaseBackupWrite", 15, 16},
	{"BufFileRead", 13, 16}, {"BufFileWrite", 13, 16}, {"BufFileTruncate", 14, 16},
	{"AioIoCompletion", 18, 18}, {"AioIoUringExecution", 18, 18}, {"AioIoUringSubmit", 18, 18},
	{"BasebackupRead", 17, 18}, {"BasebackupSync", 17, 18}, {"BasebackupWrite", 17, 18},
	{"BuffileRead", 17, 18}, {"BuffileTruncate", 17, 18}, {"BuffileWrite", 17, 18},
	{"ControlFileRead", 13, 18}, {"ControlFileSync", 13, 18}, {"ControlFileSyncUpdate", 13, 18},
	{"ControlFileWrite", 13, 18}, {"ControlFileWriteUpdate", 13, 18}, {"CopyFileCopy", 18, 18},
	{"CopyFileRead", 13, 18}, {"CopyFileWrite", 13, 18}, {"DataFileExtend", 13, 18}, {"DataFileFlush", 13, 18},
	{"DataFileImmediateSync", 13, 18}, {"DataFilePrefetch", 13, 18}, {"DataFileRead", 13, 18},
	{"DataFileSync", 13, 18}, {"DataFileTruncate", 13, 18}, {"DataFileWrite", 13, 18}, {"DSMAllocate", 16, 16},
	{"DSMFillZeroWrite", 13, 16}, {"LockFileAddToDataDirRead", 13, 16}, {"LockFileAddToDataDirSync", 13, 16},
	{"LockFileAddToDataDirWrite", 13, 16}, {"DsmAllocate", 17, 18}, {"DsmFillZeroWrite", 17, 18},
	{"LockFileAddtodatadirRead", 17, 18}, {"LockFileAddtodatadirSync", 17, 18},
	{"LockFileAddtodatadirWrite", 17, 18}, {"LockFileCreateRead", 13, 18}, {"LockFileCreateSync", 13, 18},
	{"LockFileCreateWrite", 13, 18}, {"LockFileReCheckDataDirRead", 13, 16},
	{"LockFileRecheckdatadirRead", 17, 18}, {"LogicalRewriteCheckpointSync", 13, 18},
	{"LogicalRewriteMappingSync", 13, 18}, {"LogicalRewriteMappingWrite", 13, 18},
	{"LogicalRewriteSync", 13, 18}, {"LogicalRewriteTruncate", 13, 18}, {"LogicalRewriteWrite", 13, 18},
	{"RelationMapRead", 13, 18}, {"RelationMapSync", 13, 15}, {"RelationMapReplace", 16, 18},
	{"RelationMapWrite", 13, 18}, {"ReorderBufferRead", 13, 18}, {"ReorderBufferWrite", 13, 18},
	{"ReorderLogicalMappingRead", 13, 18}, {"ReplicationSlotRead", 13, 18},
	{"ReplicationSlotRestoreSync", 13, 18}, {"ReplicationSlotSync", 13, 18}, {"ReplicationSlotWrite", 13, 18},
	{"SLRUFlushSync", 13, 16}, {"SLRURead", 13, 16}, {"SLRUSync", 13, 16}, {"SLRUWrite", 13, 16},
	{"SlruFlushSync", 17, 18}, {"SlruRead", 17, 18}, {"SlruSync", 17, 18}, {"SlruWrite", 17, 18},
	{"SnapbuildRead", 13, 18}, {"SnapbuildSync", 13, 18}, {"SnapbuildWrite", 13, 18},
	{"TimelineHistoryFileSync", 13, 18}, {"TimelineHistoryFileWrite", 13, 18}, {"TimelineHistoryRead", 13, 18},
	{"TimelineHistorySync", 13, 18}, {"TimelineHistoryWrite", 13, 18}, {"TwophaseFileRead", 13, 18},
	{"TwophaseFileSync", 13, 18}, {"TwophaseFileWrite", 13, 18}, {"VersionFileSync", 17, 18},
	{"VersionFileWrite", 15, 18}, {"WALSenderTimelineHistoryRead", 13, 16}, {"WALBootstrapSync", 13, 16},
	{"WALBootstrapWrite", 13, 16}, {"WALCopyRead", 13, 16}, {"WALCopySync", 13, 16}, {"WALCopyWrite", 13, 16},
	{"WALInitSync", 13, 16}, {"WALInitWrite", 13, 16}, {"WALRead", 13, 16}, {"WALSync", 13, 16},
	{"WALSyncMethodAssign", 13, 16}, {"WALWrite", 13, 16}, {"LogicalChangesRead", 14, 14},
	{"LogicalChangesWrite", 14, 14}, {"LogicalSubxactRead", 14, 14}, {"LogicalSubxactWrite", 14, 14},
	{"VersionFileSync", 15, 16}, {"WalsenderTimelineHistoryRead", 17, 18}, {"WalBootstrapSync", 17, 18},
	{"WalBootstrapWrite", 17, 18}, {"WalCopyRead", 17, 18}, {"WalCopySync", 17, 18}, {"WalCopyWrite", 17, 18},
	{"WalInitSync", 17, 18}, {"WalInitWrite", 17, 18}, {"WalRead", 17, 18}, {"WalSummaryRead", 17, 18},
	{"WalSummaryWrite", 17, 18}, {"WalSync", 17, 18}, {"WalSyncMethodAssign", 17, 18}, {"WalWrite", 17, 18},
	{NULL, 0, 0},
};

static const struct event_row injection_points[] = {

	{NULL, 0, 0},
};

/* Types, by the highest byte of an event's number: PG_WAIT_* of src/include/utils/wait_classes.h. */
static const struct {
	const char *name;
	const struct event_row *events;
} types[] = {
	[0x01] = {"LWLock",         lwlocks},
	[0x03] = {"Lock",           locks},
	[0x04] = {"BufferPin",      buffer_pins},
	[0x05] = {"Activity",       activities},
	[0x06] = {"Client",         clients},
	[0x07] = {"Extension",      extensions},
	[0x08] = {"IPC",            ipcs},
	[0x09] = {"Timeout",        timeouts},
	[0x0a] = {"IO",             ios},
	[0x0b] = {"InjectionPoint", injection_points},
};
/* clang-format on */

void postgres_event_add(struct text *text, unsigned int major, uint32_t info)
{
	uint32_t type = info >> 24, number = info & 0xffffff;
	const struct event_row *row;

	if (type >= sizeof(types) / sizeof(types[0]) || !types[type].name)
		return;
	text_add_string(text, types[type].name);
	for (row = types[type].events; row->name; row++)
		if (major >= row->first && major <= row->last && !number--)
			break;
	if (row->name && *row->name)
		text_add_format(text, ":%s", row->name);
}
