-- A lease: "mine until". KEYS[1] has each leased member under the time at which its lease expires, by
-- Redis's own clock. That time is also the proof of who has it: what took a lease names it at the end.
-- Whoever changes what is leased may take the lease away (ZREM): then its end does nothing.
--
-- KEYS  1 leases  2 the set that the members are of, by when they are due  3 crcr:epoch (take_due alone)
-- ARGV  1 take      2 lease_ms  3 member              → { until }, { 0 } when another has it
--       1 take_due  2 lease_ms  3 now_ms  4 most      → { until, past, member, due, member, due, … }
--       1 finish    2 until     3 member  4 due       → { 1 }, { 0 } when the lease is gone
--
-- take_due takes of what is due at now_ms, earliest first; past is how many there are, leased or not.
-- They stay in the set: a holder that dies loses none. Nothing while the view is inconsistent: what it
-- lacks may be their end. finish takes the member off the set, unless it is due at another time by now.
local leases, set, op = KEYS[1], KEYS[2], ARGV[1]
if op == 'finish' then
    if tonumber(redis.call('ZSCORE', leases, ARGV[3]) or '') ~= tonumber(ARGV[2]) then
        return { '0' }
    end
    redis.call('ZREM', leases, ARGV[3])
    if set and tonumber(redis.call('ZSCORE', set, ARGV[3]) or '') == tonumber(ARGV[4]) then
        redis.call('ZREM', set, ARGV[3])
    end
    return { '1' }
end

local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local expires = string.format('%.0f', now + tonumber(ARGV[2]))
redis.call('ZREMRANGEBYSCORE', leases, '-inf', now)
if op == 'take' then
    return { redis.call('ZADD', leases, 'NX', expires, ARGV[3]) == 1 and expires or '0' }
end

if redis.call('EXISTS', KEYS[3]) == 0 then
    return { expires, '0' }
end
local most = tonumber(ARGV[4])
local taken = { expires, tostring(redis.call('ZCOUNT', set, '-inf', ARGV[3])) }
local due = redis.call('ZRANGEBYSCORE', set, '-inf', ARGV[3], 'WITHSCORES', 'LIMIT', 0,
                       most + redis.call('ZCARD', leases))
for i = 1, #due, 2 do
    if #taken < 2 + 2 * most and redis.call('ZADD', leases, 'NX', expires, due[i]) == 1 then
        taken[#taken + 1] = due[i]
        taken[#taken + 1] = due[i + 1]
    end
end
return taken
