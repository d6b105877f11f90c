-- with: superseded.lua
-- Ends a claim; written whole, also where no claim was taken: Redis was unavailable or was emptied since.
-- What is done stays done. The seq of the call becomes the lane's last, unless a later one is.
-- KEYS: the claim; the lane's last seq (the claim again: there is none).
-- ARGV: owner, state (done, unknown), outcome, ttl_s, pr, head_sha, level, event_type, dispatched_ms, seq.
-- Returns 1, or 0 when another owner is sending, or has sent.
local ttl = tonumber(ARGV[4])

if KEYS[2] ~= KEYS[1] then
  local last = redis.call('GET', KEYS[2])
  if not last or later(ARGV[10], last) then
    redis.call('SET', KEYS[2], ARGV[10], 'EX', ttl)
  end
end
local claim = redis.call('HMGET', KEYS[1], 'state', 'owner')
local state, owner = claim[1], claim[2]
if owner ~= ARGV[1] and (state == 'sending' or (state == 'done' and ARGV[2] ~= 'done')) then
  return 0
end
redis.call('HMSET', KEYS[1], 'state', ARGV[2], 'owner', ARGV[1], 'outcome', ARGV[3],
           'pr', ARGV[5], 'head_sha', ARGV[6], 'level', ARGV[7], 'event_type', ARGV[8],
           'dispatched_ms', ARGV[9])
redis.call('EXPIRE', KEYS[1], ttl)
return 1
