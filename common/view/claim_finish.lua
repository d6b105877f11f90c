-- with: superseded.lua
-- Ends a claim. One that is the owner's is there whole, and the lane's seq was set with it. Else Redis
-- was unavailable or was emptied since: it is written whole, and the seq of the call becomes the lane's
-- last, unless a later one is. What is done stays done.
-- KEYS: the claim; the lane's last seq (the claim again: there is none).
-- ARGV: owner, state (done, unknown), what is said of the call, ttl_s, pr, head_sha, level, event_type,
-- dispatched_ms, seq.
-- Returns 1, or 0 when another owner is sending, or has sent.
local claim = redis.call('HMGET', KEYS[1], 'state', 'owner')
local state, ours = claim[1], claim[2] == ARGV[1]
if state == 'sending' and ours then
  redis.call('HMSET', KEYS[1], 'state', ARGV[2], 'outcome', ARGV[3], 'dispatched_ms', ARGV[9])
  return 1
end
if KEYS[2] ~= KEYS[1] then
  local last = redis.call('GET', KEYS[2])
  if not last or later(ARGV[10], last) then
    redis.call('SET', KEYS[2], ARGV[10], 'EX', ARGV[4])
  end
end
if state == 'done' or (state == 'sending' and not ours) then
  return 0
end
redis.call('HMSET', KEYS[1], 'state', ARGV[2], 'owner', ARGV[1], 'outcome', ARGV[3],
           'pr', ARGV[5], 'head_sha', ARGV[6], 'level', ARGV[7], 'event_type', ARGV[8],
           'dispatched_ms', ARGV[9])
redis.call('EXPIRE', KEYS[1], ARGV[4])
return 1
