-- Replaces what the jobs of one delivery and downstream have added to its hours and days. One step,
-- and what they added is remembered: so a recount changes only what differs, and any number of them
-- in any order ends in the same.
--
-- KEYS  1 tallied string, then for each day its hours hash and its day hash
-- ARGV  1 what it holds, as it was read ('': nothing)  2 what is to take its place  3 ttl_s of it
--       then the ttl_s of each key from 2 on; 0: that is kept no longer, and not written
-- Both are lines "<hour> <field> <number>"; the hour is counted from 1970.
-- Gives 1; 0 when another sweeper has replaced it since it was read, and nothing was changed.
if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then
    return 0
end

local by_hour, by_day = {}, {}
local function add(sum, key, n)
    sum[key] = (sum[key] or 0) + n
end
local function add_lines(text, sign)
    for line in string.gmatch(text, '[^\n]+') do
        local hour, field, n = string.match(line, '^(%d+) (%S+) (%d+)$')
        if hour then
            add(by_hour, hour .. ' ' .. field, sign * tonumber(n))
            add(by_day, math.floor(tonumber(hour) / 24) .. ' ' .. field, sign * tonumber(n))
        end
    end
end
add_lines(ARGV[1], -1)
add_lines(ARGV[2], 1)

local hours, days = {}, {} -- day → number of its key
for i = 2, #KEYS, 2 do
    local day = string.match(KEYS[i], '|(%d+)$')
    hours[day], days[day] = i, i + 1
end

local function change(key, field, by)
    local ttl = key and ARGV[key + 2] or '0'
    if by == 0 or ttl == '0' then
        return
    end
    if redis.call('HINCRBY', KEYS[key], field, string.format('%.0f', by)) == 0 then
        redis.call('HDEL', KEYS[key], field)
    end
    redis.call('EXPIRE', KEYS[key], ttl)
end
for line, by in pairs(by_hour) do
    local hour, field = string.match(line, '(%d+) (%S+)')
    local day = math.floor(tonumber(hour) / 24)
    change(hours[tostring(day)], string.format('%d%s', tonumber(hour) - 24 * day, field), by)
end
for line, by in pairs(by_day) do
    local day, field = string.match(line, '(%d+) (%S+)')
    change(days[day], field, by)
end
redis.call('SET', KEYS[1], ARGV[2], 'EX', ARGV[3])
return 1
