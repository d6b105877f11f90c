-- Gives a sweeper some jobs that have been in progress for too long, and leases them to it, so that
-- no other takes them meanwhile. They stay in the set: a sweeper that dies loses none.
--
-- KEYS  1 zset of jobs in progress, by deadline  2 leases zset  3 epoch
--       4 what the key of a job hash begins with
-- ARGV  1 now_ms  2 end of the lease  3 most
-- Gives how many are past their time, leased ones too, then for each that was taken
-- { job key, deadline, field, value, ... }. Nothing while the view is being rebuilt: what is missing
-- in it may be the end of the job.

local FIELDS = { 'status', 'downstream_repo', 'downstream_repo_level', 'event_type', 'pr_number',
                 'pytorch_head_sha', 'delivery_id', 'workflow_name', 'job_name', 'check_run_id',
                 'run_id', 'run_attempt', 'workflow_run_url', 'dispatched_ms' }
local jobs, leases = KEYS[1], KEYS[2]
local now, lease_end, most, prefix = ARGV[1], ARGV[2], tonumber(ARGV[3]), KEYS[4]
local taken = {}

local function take(key, deadline)
    local is_job = redis.call('TYPE', prefix .. key).ok == 'hash'
    local values = is_job and redis.call('HMGET', prefix .. key, unpack(FIELDS))
    if not is_job or values[1] ~= 'in_progress' then -- it has expired, or is no job
        redis.call('ZREM', jobs, key)
        return
    end
    local job = { key, deadline }
    for i, field in ipairs(FIELDS) do
        if values[i] then
            job[#job + 1] = field
            job[#job + 1] = values[i]
        end
    end
    redis.call('ZADD', leases, lease_end, key)
    taken[#taken + 1] = job
end

if redis.call('EXISTS', KEYS[3]) == 0 then
    return { 0 }
end
redis.call('ZREMRANGEBYSCORE', leases, '-inf', now)
local due = redis.call('ZRANGEBYSCORE', jobs, '-inf', now, 'WITHSCORES', 'LIMIT', 0,
                       most + redis.call('ZCARD', leases))
for i = 1, #due, 2 do
    if #taken < most and not redis.call('ZSCORE', leases, due[i]) then
        take(due[i], due[i + 1])
    end
end
return { redis.call('ZCOUNT', jobs, '-inf', now), unpack(taken) }
