-- with: fold/guard.lua fold/attempt.lua fold/merge.lua fold/quota.lua fold/run.lua fold/indexes.lua fold/tally.lua
-- Folds one fact (what one callback says) into one job. One step: nothing comes between reading and
-- writing.
--
-- KEYS  1 job hash  2 delivery zset  3 repo zset  4 repos zset  5 overdue zset
--       6 head set  7 pr zset (1 again: there is none)  8 spent hash  9 guard (may_fold)
--       10 tally zset  11 its leases  12 hash of the run's jobs (1 again: there is none)
-- ARGV  1 state  2 received_ms  3 run_attempt  4 ttl_s  5 overdue_ms  6 job key  7 delivery
--       8 repo  9 fence or ''  10 received_ms of the last fact  11 ranks, '' for a fact
--       12 the quota of the downstream in bytes
--       then field, value, field, value, ...
-- Gives verdict (raise, repeat, fill), then field, value, ... of the merged record with its ranks
-- and its first_ms and last_ms; or full alone, and has changed nothing.
--
-- One job may be reported by two jobs of its CI: the one in progress with its check_run_id, the
-- completed with another. Such a completed ends the job that is open, which notes it as ended_by. Under
-- its own key only same_as, that job's key, and what ingest asks for are written.

-- What a job costs Redis besides its fields: its hash, and its key there and in the indexes and its run
-- (measured, test_fold_lua.py).
local JOB_BYTES = 3200 + 8 * #ARGV[6]
local ttl = ARGV[4]
local fact = { state = ARGV[1], received = tonumber(ARGV[2]), attempt = ARGV[3], ranks = ARGV[11],
               fields = { unpack(ARGV, 13) } }

if not may_fold(KEYS[9], ARGV[9]) then
    return not_consistent()
end

local function given(key)
    return key ~= KEYS[1] and key
end

local function job_read(key)
    local job, flat = {}, redis.call('HGETALL', key)
    for i = 1, #flat, 2 do
        job[flat[i]] = flat[i + 1]
    end
    return job
end

local prefix, run = string.sub(KEYS[1], 1, -1 - #ARGV[6]), given(KEYS[12])
local key, job = ARGV[6], job_read(KEYS[1])
if job.same_as and job.run_attempt ~= fact.attempt then
    redis.call('DEL', KEYS[1])
    job = {}
end
local same_as = job.same_as
if run and not job.status and fact.ranks == '' and fact.state == 'completed' then
    same_as = run_open_job(run, key, fact.attempt)
end
if same_as then
    fact.fields[#fact.fields + 1] = 'ended_by'
    fact.fields[#fact.fields + 1] = key
    key = same_as
    job = job_read(prefix .. key)
end

local full = fact.ranks == '' and (not job.status or has_long(fact)) and
    quota_is_full(KEYS[8], fact.received, ttl, ARGV[12])
if full and not job.status then
    return { 'full' }
end

local state_before = job.status
local merged = merge(job, fact, full)
if merged.afresh then
    redis.call('DEL', prefix .. key)
    state_before = nil
end
local started = run and run_started(run, prefix, fact)
if started and merged.job.run_started_ms ~= started then
    merged.job.run_started_ms = started
    merged.changed.run_started_ms = started
end
for field in pairs(merged.removed) do
    redis.call('HDEL', prefix .. key, field)
end
if next(merged.changed) then
    local pairs_to_set, bytes = {}, state_before and 0 or JOB_BYTES
    for field, value in pairs(merged.changed) do
        pairs_to_set[#pairs_to_set + 1] = field
        pairs_to_set[#pairs_to_set + 1] = value
        bytes = bytes + #field + #value
    end
    quota_spend(KEYS[8], fact.received, ttl, bytes)
    redis.call('HSET', prefix .. key, unpack(pairs_to_set))
    keep(prefix .. key, ttl)
end
job = merged.job
if run then
    run_note(run, key, job, ttl)
end
if job.ended_by then
    redis.call('HSET', prefix .. job.ended_by, 'same_as', key, 'run_attempt', job.run_attempt,
               'status', job.status, 'conclusion', job.conclusion or '')
    keep(prefix .. job.ended_by, ttl)
end

job.first_ms, job.last_ms = indexes_write(
    { delivery = KEYS[2], repo = KEYS[3], repos = KEYS[4], overdue = KEYS[5],
      head = given(KEYS[6]), pr = given(KEYS[7]) },
    { job = key, delivery = ARGV[7], repo = ARGV[8] },
    job, ARGV[2], ARGV[10], tonumber(ARGV[5]), ttl)

local verdict = 'repeat'
if job.status ~= state_before then
    verdict = 'raise'
elseif next(merged.changed) or next(merged.removed) then
    verdict = 'fill'
end
if verdict ~= 'repeat' or ARGV[9] ~= '' then -- a rebuild: all is counted anew
    tally_mark(KEYS[10], KEYS[11], ARGV[7], ARGV[8])
end
local reply = { verdict }
for field, value in pairs(job) do
    reply[#reply + 1] = field
    reply[#reply + 1] = value
end
return reply
