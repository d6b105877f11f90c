-- The topic results as a table: one row a job, the newest state of it. RFC-0054's columns, by the names of the record.
-- clickhouse-client --multiquery < schema.sql; broker, topic prefix and TTL are the ones to change.

CREATE DATABASE IF NOT EXISTS crcr;

CREATE TABLE IF NOT EXISTS crcr.results
(
    dynamoKey             String,
    status                LowCardinality(String),
    conclusion            LowCardinality(Nullable(String)),
    downstream_repo       LowCardinality(String),
    downstream_repo_level LowCardinality(Nullable(String)),
    upstream_repo         LowCardinality(Nullable(String)),
    event_type            LowCardinality(Nullable(String)),
    pr_number             Nullable(UInt64),
    pytorch_head_sha      Nullable(String), -- event_type nightly, periodic: as the downstream claims it
    delivery_id           Nullable(String),
    workflow_name         Nullable(String),
    job_name              Nullable(String),
    check_run_id          Nullable(String),
    run_id                Nullable(String),
    run_attempt           Nullable(String),
    workflow_run_url      Nullable(String),
    artifact_url          Nullable(String),
    queue_time            Nullable(Float64), -- seconds; of the run: the same on each of its jobs
    execution_time        Nullable(Float64), -- seconds
    started_at            Nullable(DateTime64(3, 'UTC')),
    completed_at          Nullable(DateTime64(3, 'UTC')),
    total_tests           Nullable(UInt64),
    passed_tests          Nullable(UInt64),
    failed_tests          Nullable(UInt64),
    skipped_tests         Nullable(UInt64),
    failed_tests_json     Nullable(String), -- JSON array
    triage_verdict_json   Nullable(String), -- JSON object
    environment           Nullable(String),
    kafka_offset          UInt64, -- a key stays in its partition: the higher offset is the newer state
    stored_at             DateTime64(3, 'UTC')
)
ENGINE = ReplacingMergeTree(kafka_offset)
ORDER BY (downstream_repo, dynamoKey)
TTL toDateTime(stored_at) + INTERVAL 400 DAY;

CREATE TABLE IF NOT EXISTS crcr.results_queue
(
    dynamoKey String, status String, conclusion Nullable(String), downstream_repo String,
    downstream_repo_level Nullable(String), upstream_repo Nullable(String), event_type Nullable(String),
    pr_number Nullable(UInt64), pytorch_head_sha Nullable(String), delivery_id Nullable(String),
    workflow_name Nullable(String), job_name Nullable(String), check_run_id Nullable(String),
    run_id Nullable(String), run_attempt Nullable(String), workflow_run_url Nullable(String),
    artifact_url Nullable(String), queue_time Nullable(Float64), execution_time Nullable(Float64),
    started_at Nullable(String), completed_at Nullable(String), total_tests Nullable(UInt64),
    passed_tests Nullable(UInt64), failed_tests Nullable(UInt64), skipped_tests Nullable(UInt64),
    failed_tests_json Nullable(String), triage_verdict_json Nullable(String), environment Nullable(String)
)
ENGINE = Kafka
SETTINGS kafka_broker_list = '127.0.0.1:9092', kafka_topic_list = 'crcr.results',
    kafka_group_name = 'crcr-clickhouse', kafka_format = 'JSONEachRow', kafka_num_consumers = 1,
    kafka_skip_broken_messages = 100,
    input_format_json_read_numbers_as_strings = 1; -- run_attempt is a number where it is one

CREATE MATERIALIZED VIEW IF NOT EXISTS crcr.results_view TO crcr.results AS
SELECT * REPLACE (
        parseDateTime64BestEffortOrNull(started_at, 3, 'UTC') AS started_at,
        parseDateTime64BestEffortOrNull(completed_at, 3, 'UTC') AS completed_at),
    _offset AS kafka_offset,
    ifNull(_timestamp_ms, now64(3)) AS stored_at
FROM crcr.results_queue;
