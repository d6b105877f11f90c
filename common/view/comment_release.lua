-- Gives back the lease of a comment.
-- KEYS: the lease. ARGV: owner. Returns 1, or 0 when it was not the owner's to give.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
    return 0
end
return redis.call('DEL', KEYS[1])
