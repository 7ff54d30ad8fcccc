-- Fifteen questions about recordings, each a view; the last five are about several hosts. Plain SQL but for {minute} and {hour}, which
-- packaging/schema/schema replaces.

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

-- connections_served: which program of which host serves a connection? Its name is as in its client's column connection.
CREATE VIEW connections_served AS
SELECT serves AS link, min(host) AS server_host, min(comm) AS server, sum(weight_us) / 1e6 AS busy_s
FROM samples WHERE serves LIKE 'tcp %' GROUP BY serves HAVING min(host) = max(host);

-- calls_between_hosts: which program waits for which one of another host, by hour?
CREATE VIEW calls_between_hosts AS
SELECT hour, host, comm, server_host, server, sum(wait_s) AS seconds
FROM (SELECT {hour} AS hour, host, comm, connection AS link, sum(weight_us) / 1e6 AS wait_s
 FROM samples WHERE state = 'S' AND why IN ('client', 'write') GROUP BY {hour}, host, comm, connection) AS waits
 INNER JOIN (SELECT link, server_host, server FROM connections_served) AS served USING (link)
WHERE host <> server_host GROUP BY hour, host, comm, server_host, server ORDER BY seconds DESC;

-- work_for_clients: what do servers do while their clients wait, and who do they wait for in the end on their host?
CREATE VIEW work_for_clients AS
SELECT host, comm, state, syscall, root, sum(weight_us) / 1e6 AS seconds
FROM samples WHERE serves LIKE 'tcp %' GROUP BY host, comm, state, syscall, root ORDER BY seconds DESC;

-- serving_by_hour: of the time in which a connection was served, what share was whose, by who was at the end of the chain on that host
-- and by the connection that its server waited for then? (For the next one.)
CREATE VIEW serving_by_hour AS
SELECT hour, link, server_host, end_comm, next_link, part_s / all_s AS share
FROM (SELECT {hour} AS hour, serves AS link, host AS server_host, CASE WHEN root <> '' THEN root ELSE comm END AS end_comm,
  CASE WHEN state = 'S' AND why IN ('client', 'write') AND connection <> '' THEN connection ELSE '' END AS next_link, sum(weight_us) / 1e6 AS part_s
 FROM samples WHERE serves LIKE 'tcp %' GROUP BY {hour}, serves, host, CASE WHEN root <> '' THEN root ELSE comm END,
  CASE WHEN state = 'S' AND why IN ('client', 'write') AND connection <> '' THEN connection ELSE '' END) AS parts
 INNER JOIN (SELECT {hour} AS hour, serves AS link, sum(weight_us) / 1e6 AS all_s FROM samples WHERE serves LIKE 'tcp %'
  GROUP BY {hour}, serves) AS alls USING (hour, link);

-- waits_in_the_end: which program of which host does each one wait for in the end, by hour, over two connections at most? Shares of an
-- hour, not single requests: the clocks of the hosts need not agree.
CREATE VIEW waits_in_the_end AS
SELECT hour, host, comm, CASE WHEN share_2 > 0 THEN host_2 ELSE server_host END AS end_host,
 CASE WHEN share_2 > 0 THEN comm_2 ELSE end_comm END AS end_program, sum(part_s * CASE WHEN share_2 > 0 THEN share_2 ELSE 1 END) AS seconds
FROM (SELECT hour, host, comm, server_host, end_comm, next_link, wait_s * share AS part_s
 FROM (SELECT {hour} AS hour, host, comm, connection AS link, sum(weight_us) / 1e6 AS wait_s
  FROM samples WHERE state = 'S' AND why IN ('client', 'write') GROUP BY {hour}, host, comm, connection) AS waits
  INNER JOIN serving_by_hour USING (hour, link) WHERE host <> server_host) AS near
 LEFT JOIN (SELECT hour, link AS next_link, server_host AS host_2, end_comm AS comm_2, share AS share_2 FROM serving_by_hour) AS far
 USING (hour, next_link)
GROUP BY hour, host, comm, CASE WHEN share_2 > 0 THEN host_2 ELSE server_host END, CASE WHEN share_2 > 0 THEN comm_2 ELSE end_comm END
ORDER BY seconds DESC;
