-- Whether a dispatch is superseded (dispatcher/superseded.h): a later one of its lane was claimed or
-- sent. A lane remembers the last seq of these; a seq is "<updated_ms>:<partition>:<offset>", as
-- task_seq_cmp orders them. What is none is never later.
local function superseded(lane, seq)
  local pattern, last = '^(%d+):(%d+):(%d+)$', redis.call('GET', lane)
  if not last then return false end
  local a1, a2, a3 = string.match(last, pattern)
  local b1, b2, b3 = string.match(seq, pattern)
  if not a1 or not b1 then return false end
  if a1 ~= b1 then return tonumber(a1) > tonumber(b1) end
  if a2 ~= b2 then return tonumber(a2) > tonumber(b2) end
  return tonumber(a3) > tonumber(b3)
end
