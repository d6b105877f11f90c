-- What the HUD asks. FINAL: of each job the newest state, also before ClickHouse has merged. Parameters: {name:Type}.

-- name: commit
-- All jobs of a commit, those that failed first. Of nightly and periodic ones (event_type) the commit is what they claim.
SELECT downstream_repo, downstream_repo_level, event_type, workflow_name, job_name, status, conclusion, execution_time,
    workflow_run_url
FROM crcr.results FINAL
WHERE pytorch_head_sha = {sha:String}
ORDER BY conclusion = 'failure' DESC, downstream_repo, workflow_name, job_name;

-- name: pass_rate
-- Of each downstream, the share of jobs of pull requests that passed in the last days, and how many were decided. Pushes,
-- nightly and periodic runs do not count. A job that the relay gave up has the status timed_out. `crcrctl levels` counts
-- otherwise: of each job the newest attempt alone, and of all that ended, also those that were cancelled or skipped.
SELECT downstream_repo, any(downstream_repo_level) AS level,
    countIf(conclusion = 'success') / count() AS pass_rate, count() AS decided
FROM crcr.results FINAL
WHERE status IN ('completed', 'timed_out') AND conclusion IN ('success', 'failure', 'timed_out')
    AND completed_at > now() - toIntervalDay({days:UInt32})
    AND pr_number > 0 AND ifNull(event_type, '') NOT IN ('nightly', 'periodic')
GROUP BY downstream_repo
ORDER BY pass_rate;

-- name: times
-- How long jobs wait and run, in seconds.
SELECT downstream_repo, quantile(0.5)(queue_time) AS queue_p50, quantile(0.9)(queue_time) AS queue_p90,
    quantile(0.5)(execution_time) AS run_p50, quantile(0.9)(execution_time) AS run_p90
FROM crcr.results FINAL
WHERE status = 'completed' AND completed_at > now() - toIntervalDay({days:UInt32})
GROUP BY downstream_repo
ORDER BY downstream_repo;

-- name: flaky
-- Jobs that failed and passed on one commit: the code was the same.
SELECT downstream_repo, workflow_name, job_name, count() AS commits
FROM
(
    SELECT downstream_repo, workflow_name, job_name, pytorch_head_sha
    FROM crcr.results FINAL
    WHERE status = 'completed' AND completed_at > now() - toIntervalDay({days:UInt32})
    GROUP BY downstream_repo, workflow_name, job_name, pytorch_head_sha
    HAVING countIf(conclusion = 'success') > 0 AND countIf(conclusion = 'failure') > 0
)
GROUP BY downstream_repo, workflow_name, job_name
ORDER BY commits DESC, downstream_repo, workflow_name, job_name;
