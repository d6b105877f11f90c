-- with: superseded.lua
-- Restores what an outcome says of a claim and of the last seq of its lane.
-- KEYS: the claim; the lane's last seq, or the claim again where there is none.
-- ARGV: state (done, unknown, '' for nothing), what is said of the call, ttl_s, pr, head_sha, level,
-- event_type, dispatched_ms, seq. Returns 1.
-- What a sender does meanwhile is newer than any outcome: neither sending nor done is touched. But when
-- the outcome says that it was sent, a sending that has run out is over, and so is one that was taken
-- before that call: Redis was unavailable when it ended.
local ttl = tonumber(ARGV[3])

local claim = redis.call('HMGET', KEYS[1], 'state', 'until_ms', 'dispatched_ms')
local state = claim[1]
if state == 'sending' and ARGV[1] == 'done' then
  local time = redis.call('TIME')
  local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
  if tonumber(claim[2] or '0') <= now or tonumber(claim[3] or '0') <= tonumber(ARGV[8]) then
    state = false
  end
end
if ARGV[1] ~= '' and state ~= 'done' and state ~= 'sending' then
  redis.call('HMSET', KEYS[1], 'state', ARGV[1], 'owner', 'rebuild', 'outcome', ARGV[2],
             'pr', ARGV[4], 'head_sha', ARGV[5], 'level', ARGV[6], 'event_type', ARGV[7],
             'dispatched_ms', ARGV[8])
  redis.call('EXPIRE', KEYS[1], ttl)
end
if KEYS[2] ~= KEYS[1] then
  local last = redis.call('GET', KEYS[2])
  if not last or later(ARGV[9], last) then
    redis.call('SET', KEYS[2], ARGV[9], 'EX', ttl)
  end
end
return 1
