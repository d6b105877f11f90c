-- The rebuild of the view: who has it until when, how far it is, and its end. Each step names its fence,
-- which is why this is no lease of lease.lua.
-- KEYS  1 crcr:rebuild  2 crcr:epoch
-- ARGV  1 take    2 owner  3 lease_ms                       → { taken, fence }, { busy, owner }, { consistent, 0 }
--       1 renew   2 fence  3 lease_ms  4 phase 5 done 6 total  → { held, fence } or { lost, 0 }
--       1 release 2 fence                                   → the same
--       1 finish  2 fence  3 done                           → the same
--       1 drop                                              → { dropped, 0 }
-- A flush takes the lease as well: whoever held it cannot set the epoch over an emptied view.
local lease, epoch, op = KEYS[1], KEYS[2], ARGV[1]
local time = redis.call('TIME')
local now_ms = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local held = redis.call('HMGET', lease, 'state', 'owner', 'fence', 'until_ms')
local running = held[1] == 'running' and tonumber(held[4] or '0') > now_ms

local function text(number)
    return string.format('%.0f', number)
end

if op == 'take' then
    if redis.call('EXISTS', epoch) == 1 then
        return { 'consistent', '0' }
    end
    if running and held[2] ~= ARGV[2] then
        return { 'busy', held[2] }
    end
    -- Microseconds: it grows over a flush too, which takes the last fence along.
    local fence = tonumber(time[1]) * 1000000 + tonumber(time[2])
    fence = text(math.max(fence, tonumber(held[3] or '0') + 1))
    redis.call('DEL', lease)
    redis.call('HSET', lease, 'state', 'running', 'owner', ARGV[2], 'fence', fence,
               'until_ms', text(now_ms + tonumber(ARGV[3])), 'phase', '', 'done', '0',
               'total', '0', 'started_ms', text(now_ms))
    return { 'taken', fence }
end

if op == 'drop' then
    if redis.call('DEL', epoch) == 1 then
        redis.call('HSET', lease, 'state', 'wanted')
    end
    return { 'dropped', '0' }
end

if held[1] ~= 'running' or held[3] ~= ARGV[2] then
    return { 'lost', '0' }
end
if op == 'renew' then
    redis.call('HSET', lease, 'until_ms', text(now_ms + tonumber(ARGV[3])), 'phase', ARGV[4],
               'done', ARGV[5], 'total', ARGV[6])
elseif op == 'release' then
    redis.call('HSET', lease, 'state', 'waiting', 'until_ms', '0')
else
    redis.call('SET', epoch, ARGV[2])
    redis.call('HSET', lease, 'state', 'done', 'until_ms', '0', 'done', ARGV[3],
               'ended_ms', text(now_ms))
end
return { 'held', ARGV[2] }
