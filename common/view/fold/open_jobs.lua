-- The jobs of one run: the hash crcr:jobs:* has started_ms, when the first job of attempt 1 was in
-- progress, and a field a job: its key → "<attempt> open" or "<attempt> ended".

local RUN_JOBS_MAX = 1000 -- who reports more does not grow Redis with it

-- The key of the one open job that equals the given one in all but the check_run_id; nil: none, or
-- several, which are legs of a matrix.
local function run_open_job(run, job_key, attempt)
    local name, open, found = string.match(job_key, '^.*/'), attempt .. ' open', nil
    local flat = redis.call('HGETALL', run)
    for i = 1, #flat, 2 do
        if flat[i + 1] == open and string.sub(flat[i], 1, #name) == name then
            if found then
                return nil
            end
            found = flat[i]
        end
    end
    return found
end

-- Notes the job among those of its run. start: when the run started, as its fact says; '': it does
-- not. Gives when the run started; nil: not known yet. An earlier start than the one known goes into
-- all jobs of the run, so that the order of the facts does not matter.
local function run_note(run, job_prefix, job_key, job, start, ttl, fence)
    local now, new = redis.call('HMGET', run, 'started_ms', job_key), {}
    local started, noted = now[1], now[2]
    if start ~= '' and not (started and tonumber(started) <= tonumber(start)) then
        local flat = redis.call('HGETALL', run)
        for i = 1, #flat, 2 do
            if redis.call('EXISTS', job_prefix .. flat[i]) == 1 then
                redis.call('HSET', job_prefix .. flat[i], 'run_started_ms', start)
            end
        end
        started, new = start, { 'started_ms', start }
    end
    local note = job.run_attempt .. (job.status == 'completed' and ' ended' or ' open')
    if note ~= noted and (noted or redis.call('HLEN', run) <= RUN_JOBS_MAX) then
        new[#new + 1] = job_key
        new[#new + 1] = note
    end
    if #new > 0 then
        redis.call('HSET', run, unpack(new))
    end
    if not noted then
        keep(run, ttl, fence)
    end
    return started or nil
end
