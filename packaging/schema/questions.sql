-- Ten questions about recordings, each a view. Plain SQL but for {minute}, which packaging/schema/make replaces.

-- threads_by_state: what did all threads do? On average so many were in a state.
CREATE VIEW threads_by_state AS
SELECT host, state, sum(weight_us) / 1e6 AS seconds, sum(weight_us) * 1.0 / (SELECT sum(weight_us) FROM scans) AS avg_thr
FROM samples GROUP BY host, state ORDER BY seconds DESC;

-- busiest_minutes: when was most to do?
CREATE VIEW busiest_minutes AS
SELECT host, {minute} AS minute, sum(weight_us) / 1e6 AS seconds,
 sum(CASE WHEN state = 'ON' THEN weight_us ELSE 0 END) / 1e6 AS on_cpu_s, sum(CASE WHEN state = 'RQ' THEN weight_us ELSE 0 END) / 1e6 AS run_queue_s,
 sum(CASE WHEN state = 'D' THEN weight_us ELSE 0 END) / 1e6 AS disk_s
FROM samples GROUP BY host, {minute} ORDER BY seconds DESC;

-- cpu_by_command: who had the CPUs, and who wanted them?
CREATE VIEW cpu_by_command AS
SELECT "user", comm, sum(CASE WHEN state = 'ON' THEN weight_us ELSE 0 END) / 1e6 AS on_cpu_s,
 sum(CASE WHEN state = 'RQ' THEN weight_us ELSE 0 END) / 1e6 AS run_queue_s
FROM samples GROUP BY "user", comm ORDER BY on_cpu_s DESC;

-- exact_by_command: the same and sleep, exact instead of sampled (recorded with -a: of all of the time).
CREATE VIEW exact_by_command AS
SELECT comm, sum(cpu_us) / 1e6 AS cpu_s, sum(runq_us) / 1e6 AS runq_s, sum(dwait_us) / 1e6 AS dwait_s, sum(sleep_us) / 1e6 AS sleep_s
FROM samples GROUP BY comm ORDER BY cpu_s DESC;

-- waits_by_call: in which system calls did threads wait?
CREATE VIEW waits_by_call AS
SELECT comm, state, syscall, sum(weight_us) / 1e6 AS seconds
FROM samples WHERE state IN ('D', 'S') GROUP BY comm, state, syscall ORDER BY seconds DESC;

-- files_waited_for: which files did threads wait for in D?
CREATE VIEW files_waited_for AS
SELECT filename, comm, syscall, sum(weight_us) / 1e6 AS seconds
FROM samples WHERE state = 'D' GROUP BY filename, comm, syscall ORDER BY seconds DESC;

-- run_queue_by_minute: when were there too few CPUs? Seconds that threads waited for one, for each that they had.
CREATE VIEW run_queue_by_minute AS
SELECT host, {minute} AS minute, sum(CASE WHEN state = 'RQ' THEN weight_us ELSE 0 END) / 1e6 AS run_queue_s,
 sum(CASE WHEN state = 'RQ' THEN weight_us ELSE 0 END) * 1.0 / sum(CASE WHEN state = 'ON' THEN weight_us ELSE 1 END) AS for_each_s
FROM samples GROUP BY host, {minute} ORDER BY run_queue_s DESC;

-- longest_in_one_state: who was in one state for longest?
CREATE VIEW longest_in_one_state AS
SELECT host, pid, tid, comm, state, syscall, max(state_us) / 1e6 AS stay_s
FROM samples WHERE state <> 'ON' GROUP BY host, pid, tid, comm, state, syscall ORDER BY stay_s DESC;

-- whys: seconds by the class of what was waited for.
CREATE VIEW whys AS
SELECT why, state, sum(weight_us) / 1e6 AS seconds, count(*) AS samples
FROM samples GROUP BY why, state ORDER BY seconds DESC;

-- control_groups: which containers and services had CPUs, waited for them, or for disks?
CREATE VIEW control_groups AS
SELECT host, cgroup, sum(CASE WHEN state = 'ON' THEN weight_us ELSE 0 END) / 1e6 AS on_cpu_s,
 sum(CASE WHEN state = 'RQ' THEN weight_us ELSE 0 END) / 1e6 AS run_queue_s, sum(CASE WHEN state = 'D' THEN weight_us ELSE 0 END) / 1e6 AS disk_s
FROM samples GROUP BY host, cgroup ORDER BY on_cpu_s DESC;
