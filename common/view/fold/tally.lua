-- Notes that the jobs of a delivery and downstream are to be counted anew.

-- A run that reports all the time is counted once in so many milliseconds.
local TALLY_AFTER = 5000

-- What waits already keeps its time. A sweeper that has it may have read the jobs before this fact: it
-- loses its lease, so that its end leaves the mark.
local function tally_mark(key, leases, delivery, repo)
    local member = delivery .. '/' .. string.lower(repo)
    local time = redis.call('TIME')
    local at = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000) + TALLY_AFTER
    if redis.call('ZREM', leases, member) == 1 then
        redis.call('ZADD', key, string.format('%.0f', at), member)
    else
        redis.call('ZADD', key, 'NX', string.format('%.0f', at), member)
    end
end
