-- Takes a member off, unless it has another time by now: that was noted since.
-- KEYS: the due zset. ARGV: member, end of the lease. Returns 1, or 0 when it stays or was gone.
if tonumber(redis.call('ZSCORE', KEYS[1], ARGV[1]) or '') ~= tonumber(ARGV[2]) then
    return 0
end
return redis.call('ZREM', KEYS[1], ARGV[1])
