-- with: superseded.lua
-- Restores what an outcome says of a claim and of the last seq of its lane.
-- KEYS: the claim; the lane's last seq, if the outcome says of one.
-- ARGV: texts, each with a NUL behind it: pr, head_sha, level, dispatched_ms, seq, ttl_s,
-- owner, state (done, unknown, '' for nothing), what is said of the call. Returns 1.
-- What a sender does meanwhile is newer than any outcome: neither sending nor done is touched. But when
-- the outcome says that it was sent, a sending that has run out is over, and so is one that was taken
-- before that call: Redis was unavailable when it ended.
local pr, head_sha, level, dispatched_ms, seq, ttl, owner, ending, call =
  struct.unpack('sssssssss', ARGV[1])

local claim = redis.call('HMGET', KEYS[1], 'state', 'until_ms', 'dispatched_ms')
local state = claim[1]
if state == 'sending' and ending == 'done' then
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  if tonumber(claim[2] or '0') <= now or tonumber(claim[3] or '0') <= tonumber(dispatched_ms) then
    state = false
  end
end
if ending ~= '' and state ~= 'done' and state ~= 'sending' then
  redis.call('HMSET', KEYS[1], 'state', ending, 'owner', owner, 'outcome', call,
             'pr', pr, 'head_sha', head_sha, 'level', level,
             'dispatched_ms', dispatched_ms)
  redis.call('EXPIRE', KEYS[1], ttl)
end
if KEYS[2] and not superseded(KEYS[2], seq) then
  redis.call('SET', KEYS[2], seq, 'EX', ttl)
end
return 1
