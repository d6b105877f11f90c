-- Ends a claim that is the owner's; written whole, so that a flushed Redis learns of it again.
-- KEYS: the claim. ARGV: owner, state (done, unknown), outcome, ttl_s, pr, head_sha, level,
-- event_type, dispatched_ms. Returns 1, or 0 when another owner has taken it since.
local owner = redis.call('HGET', KEYS[1], 'owner')
if owner and owner ~= ARGV[1] then
  return 0
end
redis.call('HMSET', KEYS[1], 'state', ARGV[2], 'owner', ARGV[1], 'outcome', ARGV[3],
           'pr', ARGV[5], 'head_sha', ARGV[6], 'level', ARGV[7], 'event_type', ARGV[8],
           'dispatched_ms', ARGV[9])
redis.call('EXPIRE', KEYS[1], tonumber(ARGV[4]))
return 1
