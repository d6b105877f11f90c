-- Takes one request of a repository out of its buckets, unless one of them holds too little or the
-- quota of the day is used up. The rule is that of ingest/callback_rate.c, which decides while Redis
-- is unavailable.
--   KEYS[1] crcr:rate:…, a hash: when each bucket will be full again, in us; the day since 1970
--           (UTC), and the bytes taken on it
--   ARGV    bytes; what the buckets hold: requests, bytes; in how many seconds an empty one fills;
--           bytes a day, 0: any number
-- Returns the seconds after which the same request would pass, and 1 if that is the next day. Then
-- nothing was taken. 0, 0: it was.
local DAY = 86400000000 -- us

local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local held, quota = tonumber(ARGV[4]) * 1000000, tonumber(ARGV[5])
local fields = redis.call('HMGET', KEYS[1], 'requests_full_us', 'bytes_full_us', 'day', 'day_bytes')

local function full_after(full_us, taken, holds)
    return math.max(tonumber(full_us) or 0, now) + math.floor(taken * held / holds)
end
local taken = tonumber(ARGV[1])
local requests = full_after(fields[1], 1, tonumber(ARGV[2]))
local bytes = full_after(fields[2], taken, tonumber(ARGV[3]))
local day = string.format('%d', math.floor(now / DAY))
local same_day = fields[3] == day
local day_bytes = taken + (same_day and tonumber(fields[4]) or 0)
local day_ends = (day + 1) * DAY - now

if quota > 0 and day_bytes > quota then
    return { math.ceil(day_ends / 1000000), 1 }
end
local wait = math.max(requests, bytes) - now - held
if wait > 0 then
    return { math.ceil(wait / 1000000), 0 }
end
redis.call('HSET', KEYS[1], 'requests_full_us', string.format('%d', requests), 'bytes_full_us',
           string.format('%d', bytes), 'day', day, 'day_bytes', string.format('%d', day_bytes))
if quota == 0 then
    redis.call('PEXPIRE', KEYS[1], string.format('%d', math.ceil((wait + held) / 1000) + 1))
elseif not same_day then -- it is full again by then, whatever comes on this day
    redis.call('PEXPIRE', KEYS[1], string.format('%d', math.ceil((day_ends + held) / 1000)))
end
return { 0, 0 }
