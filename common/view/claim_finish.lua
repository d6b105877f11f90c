-- with: superseded.lua
-- Ends a claim. One that is the owner's is there whole, and the lane's seq was set with it. Else Redis
-- was unavailable or was emptied since: it is written whole, and the seq of the call becomes the lane's
-- last, unless a later one is. What is done stays done.
-- KEYS: the claim; the lane's last seq, if the dispatch has a seq.
-- ARGV: texts, each with a NUL behind it: pr, head_sha, level, dispatched_ms, seq, ttl_s,
-- owner, state (done, unknown), what is said of the call.
-- Returns 1, or 0 when another owner is sending, or has sent.
local pr, head_sha, level, dispatched_ms, seq, ttl, owner, ending, call =
  struct.unpack('sssssssss', ARGV[1])
local claim = redis.call('HMGET', KEYS[1], 'state', 'owner')
local state, ours = claim[1], claim[2] == owner
if state == 'sending' and ours then
  redis.call('HMSET', KEYS[1], 'state', ending, 'outcome', call, 'dispatched_ms', dispatched_ms)
  return 1
end
if KEYS[2] and not superseded(KEYS[2], seq) then
  redis.call('SET', KEYS[2], seq, 'EX', ttl)
end
if state == 'done' or (state == 'sending' and not ours) then
  return 0
end
redis.call('HMSET', KEYS[1], 'state', ending, 'owner', owner, 'outcome', call,
           'pr', pr, 'head_sha', head_sha, 'level', level,
           'dispatched_ms', dispatched_ms)
redis.call('EXPIRE', KEYS[1], ttl)
return 1
