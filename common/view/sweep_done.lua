-- Takes a job off the zombies, unless it has another deadline by now: that is a later attempt.
-- KEYS: the zombies. ARGV: job key, deadline. Returns 1, or 0 when it stays or was gone already.
if tonumber(redis.call('ZSCORE', KEYS[1], ARGV[1]) or '') ~= tonumber(ARGV[2]) then
    return 0
end
return redis.call('ZREM', KEYS[1], ARGV[1])
