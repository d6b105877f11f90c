-- Notes that the jobs of a delivery and downstream are to be counted anew, at that time.

-- What waits already keeps its time: a run that reports all the time is counted once in a while. A
-- sweeper that has it may have read the jobs before this fact: it loses its lease, so that its end
-- leaves the mark.
local function tally_mark(key, leases, delivery, repo, at)
    local member = delivery .. '/' .. string.lower(repo)
    if redis.call('ZADD', key, 'NX', at, member) == 0 and redis.call('ZREM', leases, member) == 1 then
        redis.call('ZADD', key, at, member)
    end
end
