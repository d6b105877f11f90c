-- Notes that the jobs of a delivery and downstream are to be counted anew.

-- A run that reports all the time is counted once in so many milliseconds.
local TALLY_AFTER = 5000

-- What waits already keeps its time. An odd number is the lease of a sweeper, which may have read
-- the jobs before this fact: it is marked anew, and the sweeper leaves it there.
local function tally_mark(key, delivery, repo)
    local member = delivery .. '/' .. string.lower(repo)
    local score = redis.call('ZSCORE', key, member)
    if score and tonumber(score) % 2 == 0 then
        return
    end
    local time = redis.call('TIME')
    local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
    redis.call('ZADD', key, string.format('%.0f', now + now % 2 + TALLY_AFTER), member)
end
