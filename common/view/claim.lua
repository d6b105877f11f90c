-- with: superseded.lua budget_shared.lua
-- Takes the claim of one dispatch and what its call costs, or says why not.
-- KEYS: the claim; crcr:epoch; if something is to be paid, the keys of budget(); the lane's last seq,
-- if the dispatch has a seq.
-- ARGV: texts, each with a NUL behind it: pr, head_sha, level, dispatched_ms, seq ('': it
-- cannot be superseded), ttl_s, owner, sending_ms, received_ms, '1' if a later event of the lane that
-- supersedes this one waits already (it counts only where this one is known to have had no effect
-- yet); then, if something is to be paid, what budget() has packed.
-- Returns the verdict; then
--   busy             ms until another's claim expires
--   done             the moment of the call that was made, what its end says of it
--   unpaid           what is in the account's key, Redis's time, wait_us and bucket of budget()
--   the claim is its if something was paid, what is in the account's key, and Redis's time
-- "forgotten" is "taken" when that there is no claim proves nothing: Redis was emptied after the event
-- was received. The epoch is gone then, or is a later one: it is the moment, in microseconds of
-- Redis's clock, in which somebody began to restore what was lost.
--
--   (none) ──▶ sending ──▶ done        it is over: never call again
--                 │  └───▶ unknown     called, no answer seen: the next one is perhaps the second
--                 └──────▶ (none)      released: surely without effect at GitHub
--
-- How long a claim holds is measured by Redis's own clock: those of the replicas may differ.
local pr, head_sha, level, dispatched_ms, seq, ttl, owner, sending_ms, received_ms, overtaken =
  struct.unpack('ssssssssss', ARGV[1])
local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now = math.floor(now_us / 1000)
local lane = seq ~= '' and KEYS[#KEYS]
local verdict = 'taken'

local state = redis.call('HMGET', KEYS[1], 'state')[1]
if state == 'done' then
  local call = redis.call('HMGET', KEYS[1], 'dispatched_ms', 'outcome')
  return { state, call[1] or '0', call[2] or '' }
elseif state then
  local claim = redis.call('HMGET', KEYS[1], 'owner', 'until_ms')
  local another, until_ms = claim[1] ~= owner, tonumber(claim[2] or '0')
  if state == 'sending' and another and until_ms > now then
    return { 'busy', until_ms - now }
  end
  if state == 'unknown' or another then
    verdict = 'expired'
  end
else
  local epoch = redis.call('GET', KEYS[2])
  if not epoch or epoch / 1000 > tonumber(received_ms) then
    verdict = 'forgotten'
  end
end
if lane then
  local without_effect = not state and verdict == 'taken'
  if (overtaken == '1' and without_effect) or superseded(lane, seq) then
    return { 'superseded' }
  end
end
local wait_us, bucket, account
if ARGV[2] then
  wait_us, bucket, account = budget(now_us, KEYS, 3, ARGV[2])
  if wait_us > 0 then
    return { 'unpaid', account, now_us, wait_us, bucket }
  end
end
if lane then
  redis.call('SET', lane, seq, 'EX', ttl)
end
redis.call('HMSET', KEYS[1], 'state', 'sending', 'owner', owner,
           'until_ms', string.format('%d', now + sending_ms),
           'pr', pr, 'head_sha', head_sha, 'level', level,
           'dispatched_ms', dispatched_ms)
redis.call('EXPIRE', KEYS[1], ttl)
return { verdict, account, now_us }
