-- Ends a claim; written whole, so that a flushed Redis learns of it again. What is done stays done.
-- KEYS: the claim. ARGV: owner, state (done, unknown), outcome, ttl_s, pr, head_sha, level,
-- event_type, dispatched_ms. Returns 1, or 0 when another owner is sending, or has sent.
local claim = redis.call('HMGET', KEYS[1], 'state', 'owner')
local state, owner = claim[1], claim[2]
if owner ~= ARGV[1] and (state == 'sending' or (state == 'done' and ARGV[2] ~= 'done')) then
  return 0
end
redis.call('HMSET', KEYS[1], 'state', ARGV[2], 'owner', ARGV[1], 'outcome', ARGV[3],
           'pr', ARGV[5], 'head_sha', ARGV[6], 'level', ARGV[7], 'event_type', ARGV[8],
           'dispatched_ms', ARGV[9])
redis.call('EXPIRE', KEYS[1], tonumber(ARGV[4]))
return 1
