-- What a downstream may write into the view within its TTL. Beyond that a job that is not there yet
-- is refused, and of one that is only its short fields are taken: it still comes to its end.
-- The hash crcr:spent:* has the bytes by the day on which their fact was received.

local DAY_MS = 86400000
local DAYS_MAX = 1000 -- clocks that are wrong name other days; no fold reads more

-- quota: bytes; 0: Redis is too full for any new job (view/quota.h).
local function quota_is_full(key, received, ttl, quota)
    local first, sum = math.floor(received / DAY_MS) - math.ceil(tonumber(ttl) * 1000 / DAY_MS), 0
    local flat = redis.call('HGETALL', key)
    for i = 1, #flat, 2 do
        if tonumber(flat[i]) < first or i > 2 * DAYS_MAX then
            redis.call('HDEL', key, flat[i])
        else
            sum = sum + tonumber(flat[i + 1])
        end
    end
    return sum >= tonumber(quota)
end

local function quota_spend(key, received, ttl, fence, bytes)
    local day = string.format('%d', math.floor(received / DAY_MS))
    if redis.call('HINCRBY', key, day, string.format('%d', bytes)) == bytes then -- the first of that day
        keep(key, tonumber(ttl) + 2 * DAY_MS / 1000, fence)
    end
end
