-- Takes as many calls out of an account's budget as there is room for in every bucket, or none.
--   KEYS[1] crcr:budget:<account>, a hash: "<bucket>:<slot>" what was taken in that part of the
--           bucket's window; "left", "top" and "reset_ms": what GitHub said is left, of how
--           much, and until when; "limited_ms": until when it told one of us to wait
--   ARGV    calls, life_ms, kept_percent, seen_left (-1: nothing seen), seen_limit, seen_reset_ms
--           (from now), seen_limited_ms (from now), then for each bucket, the hour of requests first:
--           window_ms, limit (0: none), cap, cost, untold
-- Returns calls (0: refused), wait_ms, bucket (0, refused: GitHub told us to wait), then what is left of each bucket
-- (-1: no limit).
-- Slots as in common/model/budget.h: what was taken counts until it can be in no window with what
-- is taken now. Of what GitHub said is left, a slot's share at most is handed out at once: what lapses
-- in a replica's hand comes back only with GitHub's next hour, so the last ones go out one by one.
local SLOTS, WAVERS_MS, FIXED, EACH = 20, 5000, 7, 5

local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local calls, life_ms = tonumber(ARGV[1]), tonumber(ARGV[2])
local kept_percent, seen_left = tonumber(ARGV[3]), tonumber(ARGV[4])
local seen_limit, seen_reset = tonumber(ARGV[5]), now + tonumber(ARGV[6])
local limited_ms = now + tonumber(ARGV[7])

local buckets, longest = {}, 0
for b = 1, (#ARGV - FIXED) / EACH do
    local at = FIXED + (b - 1) * EACH
    local window = tonumber(ARGV[at + 1])
    local width = math.floor(window / SLOTS)
    buckets[b] = { limit = tonumber(ARGV[at + 2]), cap = tonumber(ARGV[at + 3]),
                   cost = tonumber(ARGV[at + 4]), untold = tonumber(ARGV[at + 5]), width = width,
                   slot = math.floor(now / width), back = SLOTS + math.ceil(life_ms / width),
                   taken = {}, used = 0 }
    longest = math.max(longest, window + life_ms + width)
end

local function take(b, amount)
    if amount > 0 then
        redis.call('HINCRBY', KEYS[1], b .. ':' .. buckets[b].slot, amount)
    end
end

-- What counts still; the rest goes. A clock that went back leaves slots in the future: they count.
local left, top, reset_ms = 0, 0, 0
local fields = redis.call('HGETALL', KEYS[1])
for i = 1, #fields, 2 do
    local value = tonumber(fields[i + 1])
    local b, slot = string.match(fields[i], '^(%d+):(%d+)$')
    local bucket = b and buckets[tonumber(b)]
    slot = tonumber(slot)
    if fields[i] == 'left' then
        left = value
    elseif fields[i] == 'top' then
        top = value
    elseif fields[i] == 'reset_ms' then
        reset_ms = value
    elseif fields[i] == 'limited_ms' then
        limited_ms = math.max(limited_ms, value)
    elseif bucket and slot >= bucket.slot - bucket.back and slot <= bucket.slot + bucket.back then
        slot = math.min(slot, bucket.slot)
        bucket.taken[slot] = (bucket.taken[slot] or 0) + value
        bucket.used = bucket.used + value
    else
        redis.call('HDEL', KEYS[1], fields[i])
    end
end
for b, bucket in ipairs(buckets) do
    take(b, bucket.untold)
    bucket.used = bucket.used + bucket.untold
    bucket.taken[bucket.slot] = (bucket.taken[bucket.slot] or 0) + bucket.untold
end

-- What GitHub said: downwards within one of its hours.
local told = reset_ms > now
if seen_left >= 0 and seen_reset > now and seen_reset >= reset_ms - WAVERS_MS then
    if not told or seen_reset > reset_ms + WAVERS_MS then
        left, top, reset_ms = seen_left, seen_limit, seen_reset
    else
        left = math.min(left, seen_left)
    end
    told = true
end

local granted, wait_ms, refusing = calls, 0, 0
local function refuse(b, ms)
    granted = 0
    if ms > wait_ms then
        wait_ms, refusing = ms, b
    end
end

local rest = {}
for b, bucket in ipairs(buckets) do
    rest[b] = bucket.limit > 0 and math.max(0, bucket.cap - bucket.used) or -1
    local too_many = bucket.used + bucket.cost - bucket.cap
    if bucket.limit > 0 and bucket.cost > 0 and too_many > 0 then
        local slot = bucket.slot - bucket.back
        while slot < bucket.slot do
            too_many = too_many - (bucket.taken[slot] or 0)
            if too_many <= 0 then break end
            slot = slot + 1
        end
        refuse(b, (slot + bucket.back + 1) * bucket.width - now)
    elseif bucket.limit > 0 and bucket.cost > 0 then
        granted = math.min(granted, math.floor(rest[b] / bucket.cost))
    end
end
if told and buckets[1].limit > 0 then
    local limit = top > 0 and math.min(top, buckets[1].limit) or buckets[1].limit
    local free = math.max(0, left - math.floor(limit * kept_percent / 100))
    rest[1] = math.min(rest[1], free)
    if free < buckets[1].cost then
        refuse(1, reset_ms - now)
    else
        granted = math.min(granted, math.max(1, math.floor(free / SLOTS)))
    end
end

if limited_ms > now then
    refuse(0, limited_ms - now)
    redis.call('HSET', KEYS[1], 'limited_ms', string.format('%d', limited_ms))
end

if granted > 0 then
    for b, bucket in ipairs(buckets) do
        take(b, granted * bucket.cost)
        rest[b] = rest[b] > 0 and rest[b] - granted * bucket.cost or rest[b]
    end
    left = left - granted * buckets[1].cost
end
if told then
    redis.call('HSET', KEYS[1], 'left', left)
    redis.call('HSET', KEYS[1], 'top', top)
    redis.call('HSET', KEYS[1], 'reset_ms', string.format('%d', reset_ms))
end
redis.call('PEXPIRE', KEYS[1], math.max(longest, limited_ms - now))
return { granted, wait_ms, refusing, unpack(rest) }
