-- Removes a member from a sorted set, unless it has another score by now: that was written since.
-- KEYS: the set. ARGV: member, score. Returns 1, or 0 when it stays or was gone already.
if tonumber(redis.call('ZSCORE', KEYS[1], ARGV[1]) or '') ~= tonumber(ARGV[2]) then
    return 0
end
return redis.call('ZREM', KEYS[1], ARGV[1])
