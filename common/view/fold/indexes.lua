-- Where a job is found: by delivery, downstream, commit, pull request, and when its time runs out.

-- What one delivery, downstream or commit may index: who sends more does not grow Redis with it.
local DELIVERY_MAX, REPO_LAST, HEAD_MAX = '20000', '-1001', 1000

-- An index lives for ttl from when a job was last added to it.
-- keys: delivery, repo, repos, overdue, head, pr (head and pr may be false: none).
-- names: job key, delivery, repo. first, last: received_ms of the first and the last fact.
-- overdue: how long it may be in progress, in ms. known: the indexes have the job already. anew: all of
-- them are written, whatever they have.
-- Gives first_ms and last_ms of the job.
local function indexes_write(keys, names, job, first, last, overdue, ttl, fence, known, anew)
    local newest = keys.pr and { keys.repo .. '|pr', keys.repo } or { keys.repo }
    local first_ms = known and redis.call('ZSCORE', keys.delivery, names.job)
    if anew or not first_ms or tonumber(first) < tonumber(first_ms) then
        redis.call('ZADD', keys.delivery, 'LT', first, names.job)
        redis.call('ZREMRANGEBYRANK', keys.delivery, DELIVERY_MAX, '-1')
        keep(keys.delivery, ttl, fence)
        if keys.head then
            if redis.call('SCARD', keys.head) < HEAD_MAX then
                redis.call('SADD', keys.head, names.job)
            end
            keep(keys.head, ttl, fence)
        end
        if keys.pr then
            redis.call('ZADD', keys.pr, 'LT', first, names.delivery)
            keep(keys.pr, ttl, fence)
        end
    end
    local last_ms = known and redis.call('ZSCORE', newest[1], names.job)
    for _, index in ipairs(newest) do
        if redis.call('ZADD', index, 'GT', last, names.job) == 1 or anew then
            redis.call('ZREMRANGEBYRANK', index, '0', REPO_LAST)
            keep(index, ttl, fence)
        end
    end
    redis.call('ZADD', keys.repos, 'GT', last, names.repo)
    if job.status == 'in_progress' then
        redis.call('ZADD', keys.overdue, string.format('%d', tonumber(job.in_progress_ms) + overdue), names.job)
    elseif known then
        redis.call('ZREM', keys.overdue, names.job)
    end
    if not first_ms or tonumber(first) < tonumber(first_ms) then
        first_ms = first
    end
    return first_ms, last_ms and tonumber(last_ms) > tonumber(last) and last_ms or last
end
