-- with: superseded.lua budget_shared.lua
-- Takes the claim of one dispatch and what its call costs, or says why not.
-- KEYS: the claim; crcr:epoch; the lane's last seq (the claim again: it cannot be superseded); then,
-- when something is to be paid, the keys of budget().
-- ARGV: owner, dispatched_ms, sending_ms, ttl_s, seq, pr, head_sha, level, event_type, received_ms,
-- '1' if a later event of the lane that makes this one needless waits already (it counts only where
-- this one is known to have had no effect); then what budget() has packed.
-- Returns {verdict, ms until another's claim runs out or the moment of the call that was made, what its
-- end says of that call}, and what budget() returned if it was asked.
-- "forgotten" is "taken" when that there is no claim proves nothing: Redis was emptied after the event
-- was received. The epoch is gone then, or is a later one: it is the moment, in microseconds of
-- Redis's clock, in which somebody began to restore what was lost.
--
--   (none) ──▶ sending ──▶ done        it is over: never call again
--                 │  └───▶ unknown     called, no answer seen: the next one is perhaps the second
--                 └──────▶ (none)      released: surely without effect at GitHub
--
-- How long a claim holds is measured by Redis's own clock: those of the replicas may differ.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local ttl = ARGV[4]
local lane = KEYS[3] ~= KEYS[1] and KEYS[3]

local claim = redis.call('HMGET', KEYS[1], 'state', 'owner', 'until_ms', 'outcome', 'dispatched_ms')
local state, owner, until_ms = claim[1], claim[2], tonumber(claim[3] or '0')
if state == 'done' then
  return { 'done', claim[5] or '0', claim[4] or '' }
end
if state == 'sending' and owner ~= ARGV[1] and until_ms > now then
  return { 'busy', string.format('%.0f', until_ms - now), '' }
end
local epoch = tonumber(redis.call('GET', KEYS[2]) or '')
local forgotten = not state and (not epoch or epoch / 1000 > tonumber(ARGV[10]))
if lane then
  local last = redis.call('GET', lane)
  local needless = ARGV[11] == '1' and not state and not forgotten
  if needless or (last and later(last, ARGV[5])) then
    return { 'superseded', '0', '' }
  end
end
local paid = {}
if KEYS[4] then
  paid = budget(tonumber(time[1]) * 1000000 + tonumber(time[2]), KEYS[4],
                { KEYS[5], KEYS[6] }, ARGV[12])
  if paid[1] > 0 then
    return { 'unpaid', '0', '', unpack(paid) }
  end
end
if lane then
  redis.call('SET', lane, ARGV[5], 'EX', ttl)
end
redis.call('HMSET', KEYS[1], 'state', 'sending', 'owner', ARGV[1],
           'until_ms', now + ARGV[3],
           'pr', ARGV[6], 'head_sha', ARGV[7], 'level', ARGV[8], 'event_type', ARGV[9],
           'dispatched_ms', ARGV[2])
redis.call('EXPIRE', KEYS[1], ttl)
if state == 'unknown' or (state == 'sending' and owner ~= ARGV[1]) then
  return { 'expired', '0', '', unpack(paid) }
end
if forgotten then
  return { 'forgotten', '0', '', unpack(paid) }
end
return { 'taken', '0', '', unpack(paid) }
