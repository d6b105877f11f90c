-- Takes one callback of a downstream out of its buckets, unless one of them holds too little.
-- The rule is that of ingest/callback_rate.c, which decides while Redis is unavailable.
--   KEYS[1] crcr:rate:<repo>, a hash: when each bucket will be full again, in us
--   ARGV    bytes, requests a minute, bytes a minute
-- Returns 0, or the seconds after which the same request would pass; then nothing was taken.
local MINUTE, HELD = 60000000, 600000000 -- us; a bucket holds what comes in ten minutes

local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local fields = redis.call('HMGET', KEYS[1], 'requests_full_us', 'bytes_full_us')

local function full_after(full_us, taken, per_min)
    return math.max(tonumber(full_us) or 0, now) + math.floor(taken * MINUTE / per_min)
end
local requests = full_after(fields[1], 1, tonumber(ARGV[2]))
local bytes = full_after(fields[2], tonumber(ARGV[1]), tonumber(ARGV[3]))

local last = math.max(requests, bytes)
local wait = last - now - HELD
if wait > 0 then
    return math.ceil(wait / 1000000)
end
redis.call('HSET', KEYS[1], 'requests_full_us', string.format('%.0f', requests),
           'bytes_full_us', string.format('%.0f', bytes))
redis.call('PEXPIRE', KEYS[1], math.ceil((last - now) / 1000) + 1)
return 0
