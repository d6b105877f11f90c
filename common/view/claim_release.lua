-- Gives back a claim whose call was not made, or was surely without effect at GitHub.
-- KEYS: the claim. ARGV: owner. Returns 1, or 0 when it was not the owner's to give.
local claim = redis.call('HMGET', KEYS[1], 'state', 'owner')
if claim[1] ~= 'sending' or claim[2] ~= ARGV[1] then
  return 0
end
return redis.call('DEL', KEYS[1])
