-- with: fold/guard.lua fold/attempt.lua fold/merge.lua fold/quota.lua fold/open_jobs.lua fold/indexes.lua fold/tally.lua
-- Folds one fact (what one callback says) into one job. One step: nothing comes between reading and
-- writing.
--
-- KEYS  1 job hash  2 delivery zset  3 repo zset  4 repos zset  5 overdue zset
--       6 head set  7 pr zset (1 again: there is none)  8 spent hash  9 guard (may_fold)
--       10 tally zset  11 its leases  12 hash of the run's jobs (1 again: there is none)
-- ARGV  1 state  2 received_ms  3 run_attempt  4 ttl_s  5 overdue_ms  6 job key  7 delivery
--       8 repo  9 fence or ''  10 received_ms of the last fact  11 ranks
--       12 the quota of the downstream in bytes; '': a merged record of the topic results, not a fact
--       13 groups of the fields (merge.lua)  14 when the fact says that its run had started, or ''
--       15 when the job is to be counted
--       then field, value, field, value, ...
-- Gives verdict (raise, repeat, fill), then field, value, ... of the merged record, with its first_ms
-- and last_ms, where it differs from the given one ('': it has no such field). Or full alone, and has
-- changed nothing. In a rebuild the verdict alone.
--
-- One job may be reported by two jobs of its CI: the one in progress with its check_run_id, the
-- completed with another. Such a completed ends the job that is open, which notes it as ended_by. Under
-- its own key only same_as, that job's key, and what ingest asks for are written.

-- What a job costs Redis besides its fields: its hash, and its key there and in the indexes and its run
-- (measured, test_fold_quota_lua.py).
local JOB_BYTES = 3200 + 8 * #ARGV[6]
local attempt, ttl, fence, quota = ARGV[3], ARGV[4], ARGV[9], ARGV[12]
local fact = { state = ARGV[1], ranks = ARGV[11], groups = ARGV[13], is_record = quota == '' }
local FIRST_FIELD = 16
local received = tonumber(ARGV[2])

if not may_fold(KEYS[9], fence) then
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
if job.same_as and job.run_attempt ~= attempt then
    redis.call('DEL', KEYS[1])
    job = {}
end
local same_as = job.same_as
if run and not job.status and not fact.is_record and fact.state == 'completed' then
    same_as = run_open_job(run, key, attempt)
end
if same_as then
    key = same_as
    job = job_read(prefix .. key)
end

local full = not fact.is_record and (not job.status or string.find(fact.groups, '[fv]')) and
    quota_is_full(KEYS[8], received, ttl, quota)
if full and not job.status then
    return { 'full' }
end

local known, state_before, head_before, pr_before = job.status, job.status, job.pytorch_head_sha, job.pr_number
local order = known and attempt ~= job.run_attempt and attempt_compare(attempt, job.run_attempt) or 0
if order > 0 then
    redis.call('DEL', prefix .. key)
    job, state_before = {}, nil
end
local set, n, gone, bytes = {}, 0, {}, state_before and 0 or JOB_BYTES
local function put(field, value)
    if value == (job[field] or '') then
        return
    elseif value == '' then
        job[field], gone[#gone + 1] = nil, field
    else
        job[field], set[n + 1], set[n + 2], n = value, field, value, n + 2
        bytes = bytes + #field + #value
    end
end
if order >= 0 then
    merge(job, put, fact, FIRST_FIELD, full)
    put('ended_by', job.ended_by or same_as and ARGV[6] or '')
end
put('run_started_ms', run and run_note(run, prefix, key, job, ARGV[14], ttl, fence) or job.run_started_ms or '')
if #gone > 0 then
    redis.call('HDEL', prefix .. key, unpack(gone))
end
if n > 0 then
    quota_spend(KEYS[8], received, ttl, fence, bytes)
    redis.call('HSET', prefix .. key, unpack(set))
    keep(prefix .. key, ttl, fence)
end
if job.ended_by then
    redis.call('HSET', prefix .. job.ended_by, 'same_as', key, 'run_attempt', job.run_attempt,
               'status', job.status, 'conclusion', job.conclusion or '')
    keep(prefix .. job.ended_by, ttl, fence)
end

job.first_ms, job.last_ms = indexes_write(
    { delivery = KEYS[2], repo = KEYS[3], repos = KEYS[4], overdue = KEYS[5],
      head = given(KEYS[6]), pr = given(KEYS[7]) },
    { job = key, delivery = ARGV[7], repo = ARGV[8] },
    job, ARGV[2], ARGV[10], tonumber(ARGV[5]), ttl, fence, known,
    order > 0 or fence ~= '' or job.pytorch_head_sha ~= head_before or job.pr_number ~= pr_before)

local verdict = 'repeat'
if job.status ~= state_before then
    verdict = 'raise'
elseif n > 0 or #gone > 0 then
    verdict = 'fill'
end
if verdict ~= 'repeat' or fence ~= '' then -- a rebuild: all is counted anew
    tally_mark(KEYS[10], KEYS[11], ARGV[7], ARGV[8], ARGV[15])
end
local reply, last = { verdict }, 1
for i = FIRST_FIELD, fence == '' and #ARGV or 0, 2 do
    local field = ARGV[i]
    local value = job[field] or ''
    if value ~= ARGV[i + 1] then
        reply[last + 1], reply[last + 2], last = field, value, last + 2
    end
    job[field] = nil
end
for field, value in pairs(fence == '' and job or {}) do
    reply[last + 1], reply[last + 2], last = field, value, last + 2
end
return reply
