-- with: fold/guard.lua
-- Keeps the newest set of labels of a pull request, and its head commit. The newest
-- pull_request.updated_at wins; GitHub writes whole seconds there, so the arrival decides between two
-- of the same second.
--
-- KEYS  1 labels hash  2 guard (may_fold)
-- ARGV  1 updated_ms  2 received_ms  3 ttl_s  4 labels, one a line  5 head commit  6 fence or ''
-- Gives 1 when this set is the one in force afterwards, else 0.
local head = ARGV[5]
if not may_fold(KEYS[2], ARGV[6]) then
    return not_consistent()
end
local rank = string.format('%013.0f%013.0f', tonumber(ARGV[1]), tonumber(ARGV[2])) .. ARGV[4] ..
    '\n' .. head
local now = redis.call('HGET', KEYS[1], 'rank')
if now and now > rank then
    return 0
end
redis.call('HSET', KEYS[1], 'rank', rank, 'updated_ms', ARGV[1], 'labels', ARGV[4], 'head_sha', head)
redis.call('EXPIRE', KEYS[1], ARGV[3])
return 1
