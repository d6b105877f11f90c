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

-- When the fact says that its run had started; nil: it does not.
local function run_start_of(fact)
    local first = fact.attempt == '1'
    local earliest = first and fact.state == 'in_progress' and fact.received or nil
    for i = 1, fact.ranks ~= '' and #fact.fields or 0, 2 do -- a merged record
        local name, ms = fact.fields[i], tonumber(fact.fields[i + 1])
        if (name == 'run_started_ms' or (first and name == 'in_progress_ms')) and
            (not earliest or ms < earliest) then
            earliest = ms
        end
    end
    return earliest
end

-- Gives when the run started, as text, with this fact; nil: not known yet. An earlier start than the
-- one known goes into all jobs of the run, so that the order of the facts does not matter.
local function run_started(run, job_prefix, fact)
    local known, start = redis.call('HGET', run, 'started_ms'), run_start_of(fact)
    if not start or (known and tonumber(known) <= start) then
        return known or nil
    end
    local text = string.format('%.0f', start)
    local flat = redis.call('HGETALL', run)
    for i = 1, #flat, 2 do
        if redis.call('EXISTS', job_prefix .. flat[i]) == 1 then
            redis.call('HSET', job_prefix .. flat[i], 'run_started_ms', text)
        end
    end
    redis.call('HSET', run, 'started_ms', text)
    return text
end

-- Notes the job among those of its run.
local function run_note(run, job_key, job, ttl)
    if redis.call('HLEN', run) <= RUN_JOBS_MAX or redis.call('HEXISTS', run, job_key) == 1 then
        redis.call('HSET', run, job_key,
                   job.run_attempt .. (job.status == 'completed' and ' ended' or ' open'))
    end
    keep(run, ttl)
end
