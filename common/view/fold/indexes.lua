-- Where a job is found: by delivery, downstream, commit, pull request, and when its time runs out.
-- Written also for a repeat: an index may have been lost on its own.

-- What one delivery, downstream or commit may index: who sends more does not grow Redis with it.
local DELIVERY_MAX, REPO_MAX, HEAD_MAX = 20000, 1000, 1000

-- keys: delivery, repo, repos, overdue, head, pr (head and pr may be false: none).
-- names: job key, delivery, repo. first, last: received_ms of the first and the last fact.
-- overdue: how long it may be in progress, in ms.
-- Gives first_ms and last_ms as the indexes have them; nil: not there, for there were too many.
local function indexes_write(keys, names, job, first, last, overdue, ttl)
    redis.call('ZADD', keys.delivery, 'LT', first, names.job)
    redis.call('ZREMRANGEBYRANK', keys.delivery, DELIVERY_MAX, -1)
    keep(keys.delivery, ttl)
    local newest = keys.pr and { keys.repo, keys.repo .. '|pr' } or { keys.repo }
    for _, index in ipairs(newest) do
        redis.call('ZADD', index, 'GT', last, names.job)
        redis.call('ZREMRANGEBYRANK', index, 0, -1 - REPO_MAX)
        keep(index, ttl)
    end
    redis.call('ZADD', keys.repos, 'GT', last, names.repo)
    if job.status == 'in_progress' then
        redis.call('ZADD', keys.overdue,
                   string.format('%.0f', tonumber(job.in_progress_ms) + overdue), names.job)
    else
        redis.call('ZREM', keys.overdue, names.job)
    end
    if keys.head then
        if redis.call('SCARD', keys.head) < HEAD_MAX then
            redis.call('SADD', keys.head, names.job)
        end
        keep(keys.head, ttl)
    end
    if keys.pr then
        redis.call('ZADD', keys.pr, 'LT', first, names.delivery)
        keep(keys.pr, ttl)
    end
    return redis.call('ZSCORE', keys.delivery, names.job) or nil,
        redis.call('ZSCORE', newest[#newest], names.job) or nil
end
