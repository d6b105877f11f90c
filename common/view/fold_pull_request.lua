-- with: fold/guard.lua
-- Keeps the newest of what webhooks say of a pull request. The newest pull_request.updated_at wins;
-- GitHub writes whole seconds there: of two of the same second the later one in the topic counts, as
-- for the dispatches (task_seq_cmp). All events of a pull request are in one partition.
--
-- KEYS  1 labels hash  2 prs zset  3 guard (may_fold)  4 demoting hash
-- ARGV  1 number  2 updated_ms  3 received_ms  4 ttl_s  5 fence or ''
--       6 offset of its record  7 labels, one a line  8 head commit  9 title  10 author
--       11 the repository that it demotes, or ''
-- Gives 1 when these are the labels in force afterwards, else 0.
local PRS_MAX = 1000 -- PRS_MAX of pull_requests.h
if not may_fold(KEYS[3], ARGV[5]) then
    return not_consistent()
end
redis.call('ZADD', KEYS[2], 'GT', ARGV[3], ARGV[1])
redis.call('ZREMRANGEBYRANK', KEYS[2], 0, -1 - PRS_MAX)

local rank = string.format('%013.0f%013.0f', tonumber(ARGV[2]), tonumber(ARGV[6])) ..
    table.concat(ARGV, '\n', 7)
local now = redis.call('HGET', KEYS[1], 'rank')
if now and now > rank then
    return 0
end
redis.call('HSET', KEYS[1], 'rank', rank, 'updated_ms', ARGV[2], 'received_ms', ARGV[3],
           'labels', ARGV[7], 'head_sha', ARGV[8], 'title', ARGV[9], 'author', ARGV[10])
redis.call('EXPIRE', KEYS[1], ARGV[4])
if ARGV[11] ~= '' then
    redis.call('HSET', KEYS[4], ARGV[1], ARGV[11])
else
    redis.call('HDEL', KEYS[4], ARGV[1])
end
return 1
