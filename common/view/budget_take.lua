-- with: budget_shared.lua
-- KEYS: those of budget(). ARGV: what it has packed. Returns what it returns, and Redis's time.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local wait, bucket, account = budget(now, KEYS, 1, ARGV[1])
return { account, now, wait, bucket }
