-- with: budget_shared.lua
-- KEYS: the account's, the shares'. ARGV: what budget() has packed.
local time = redis.call('TIME')
return budget(tonumber(time[1]) * 1000000 + tonumber(time[2]), KEYS[1],
              { KEYS[2], KEYS[3] }, ARGV[1])
