-- with: fold/guard.lua
-- Adds the commits of a push to those of the upstream's default branch. Their order and their number
-- do not depend on the order of the pushes, or on how often each is folded.
--
-- KEYS  1 main zset  2 guard (may_fold)
-- ARGV  1 fence or ''  2 second of the push  3 place in it of the first commit  then commit, ...
local MAIN_MAX = 1000 -- MAIN_MAX of commits.h
local PLACES = 4096 -- of one second: the score has both, and a double holds it exactly
if not may_fold(KEYS[2], ARGV[1]) then
    return not_consistent()
end
local first = ARGV[2] * PLACES + ARGV[3]
for i = 4, #ARGV do
    redis.call('ZADD', KEYS[1], 'LT', string.format('%.0f', first + i - 4), ARGV[i])
end
redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -1 - MAIN_MAX)
return 1
