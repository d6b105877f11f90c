-- Gives a sweeper some members whose time has come. Their time is put off by a lease; they stay in
-- the set: one that dies loses none, and whoever notes a time meanwhile overwrites the lease, and is
-- not forgotten when the sweeper has done.
--
-- KEYS  1 due or tally zset  2 epoch
-- ARGV  1 now_ms  2 end of the lease  3 most
-- Gives how many there were, then the members taken. Nothing while the view is being rebuilt.
if redis.call('EXISTS', KEYS[2]) == 0 then
    return { 0 }
end
local past = redis.call('ZCOUNT', KEYS[1], '-inf', ARGV[1])
local taken = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, ARGV[3])
for _, member in ipairs(taken) do
    redis.call('ZADD', KEYS[1], ARGV[2], member)
end
return { past, unpack(taken) }
