-- Which dispatch of a lane is superseded (dispatcher/superseded.h). A lane remembers the last seq that
-- was claimed or sent; a seq is "<updated_ms>:<partition>:<offset>", as task_seq_cmp orders them. What
-- is none is never later.
local function later(a, b)
  local pattern = '^(%d+):(%d+):(%d+)$'
  local a1, a2, a3 = string.match(a, pattern)
  local b1, b2, b3 = string.match(b, pattern)
  if not a1 or not b1 then return false end
  if a1 ~= b1 then return tonumber(a1) > tonumber(b1) end
  if a2 ~= b2 then return tonumber(a2) > tonumber(b2) end
  return tonumber(a3) > tonumber(b3)
end

local function superseded(lane, seq)
  local last = redis.call('GET', lane)
  return last and later(last, seq)
end

-- One was sent, whatever its claim said: it becomes the lane's last, unless a later one is.
local function supersede_older(lane, seq, ttl)
  local last = redis.call('GET', lane)
  if not last or later(seq, last) then
    redis.call('SET', lane, seq, 'EX', ttl)
  end
end
