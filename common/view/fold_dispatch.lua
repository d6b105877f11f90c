-- with: fold/guard.lua
-- Folds one outcome of a dispatch into crcr:dispatch:*. As in fold.lua, the order and the number of
-- the facts do not matter: the outcome of the highest weight stays (of the same weight the newest),
-- and the moment of the call is the earliest one reported.
--
-- KEYS  1 dispatch hash  2 delivery zset  3 repos zset  4 pr zset  5 sent zset (1 again: there is none)
--       6 guard (may_fold)  7 ids zset of the day: all of score 0, so that they are found by prefix
-- ARGV  1 weight  2 at_ms  3 field of the moment the call was sent ('' when it was not)  4 ttl_s
--       5 delivery  6 repo  7 when the delivery came: its score among those of the commit  8 fence or ''
--       then field, value, ...
-- Gives 1.
local FIRST_FIELD = 9
local SENT_MAX = 20 -- deliveries of a commit; the aggregate check run is about the newest
if not may_fold(KEYS[6], ARGV[8]) then
    return not_consistent()
end

local weight, at, sent, ttl = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]
local digest = string.sub(redis.sha1hex(table.concat(ARGV, '\0', FIRST_FIELD)), 1, 8)
local rank = string.format('%s%013.0f%s', weight, at, digest)

local function keep_lowest(key, field)
    local now = redis.call('HGET', key, field)
    if not now or at < tonumber(now) then
        redis.call('HSET', key, field, ARGV[2])
    end
end

local now = redis.call('HGET', KEYS[1], 'rank')
if not now or rank > now then
    redis.call('HSET', KEYS[1], 'rank', rank, unpack(ARGV, FIRST_FIELD))
end
if sent ~= '' then
    keep_lowest(KEYS[1], sent)
end
keep(KEYS[1], ttl)
redis.call('ZADD', KEYS[2], 'LT', ARGV[2], ARGV[6])
keep(KEYS[2], ttl)
redis.call('ZADD', KEYS[3], 'GT', ARGV[2], ARGV[6])
if KEYS[4] ~= KEYS[1] then
    redis.call('ZADD', KEYS[4], 'LT', ARGV[2], ARGV[5])
    keep(KEYS[4], ttl)
end
if KEYS[5] ~= KEYS[1] then
    redis.call('ZADD', KEYS[5], 'LT', ARGV[7], ARGV[5])
    redis.call('ZREMRANGEBYRANK', KEYS[5], 0, -1 - SENT_MAX)
    keep(KEYS[5], ttl)
end
redis.call('ZADD', KEYS[7], 0, ARGV[5])
keep(KEYS[7], ttl)
return 1
