-- Takes what one call costs out of an account's buckets, or nothing. common/model/budget.h has the
-- rules, and budget_take there does the same in memory; only the fair shares are here alone.
--   now      microseconds, by Redis's clock
--   account  crcr:budget:<account>, a hash: "1" … "4", when each bucket is full again; "limited",
--            until when GitHub asked one of us to wait
--   shares   crcr:budget:<account>|<downstream>, …|#<pull request>: when each is full again
--   args     from index at on: limited_us, lower_us, share_room_us, share_cost_us of each share
--            (struct budget_ask), then for each bucket cost_us, room_us, over_us, full_us
-- Returns wait_us (0: taken), the bucket that is free last (0: GitHub asked us to wait), and for how
-- long each bucket is not full.
local function budget(now, account, shares, args, at)
    local function arg(i)
        return tonumber(args[at + i])
    end
    local stored = redis.call('HMGET', account, 'limited', '1', '2', '3', '4')
    local limited = tonumber(stored[1] or '0')
    if arg(0) > 0 then
        limited = math.max(limited, now + arg(0))
    end
    local wait, refusing = math.max(0, limited - now), 0
    local share_full, over = {}, 0
    for s, share in ipairs(shares) do
        local cost = arg(2 + s)
        if cost > 0 then
            local full = math.max(tonumber(redis.call('GET', share) or '0'), now) + cost
            if full - now > math.max(arg(2), cost) then
                over = over + 1
            else
                share_full[share] = full
            end
        end
    end

    local used, longest = {}, wait
    for b = 1, 4 do
        local cost, room = arg(4 * b + 1), arg(4 * b + 2) - over * arg(4 * b + 3)
        -- No more than the capacity: the clock may have been set back.
        used[b] = math.max(0, math.min(tonumber(stored[b + 1] or '0') - now, arg(4 * b + 4)))
        if b == 1 then
            used[b] = math.max(used[b], arg(1))
        end
        local more = used[b] + cost - math.max(room, cost)
        if cost > 0 and more > wait then
            wait, refusing = more, b
        end
    end

    local fields = { 'limited', string.format('%.0f', limited) }
    for b = 1, 4 do
        if wait == 0 then
            used[b] = used[b] + arg(4 * b + 1)
        end
        longest = math.max(longest, used[b])
        table.insert(fields, tostring(b))
        table.insert(fields, string.format('%.0f', now + used[b]))
    end
    redis.call('HSET', account, unpack(fields))
    redis.call('PEXPIRE', account, math.ceil(longest / 1000) + 1)
    if wait == 0 then
        for share, full in pairs(share_full) do
            redis.call('SET', share, string.format('%.0f', full), 'PX',
                       math.ceil((full - now) / 1000))
        end
    end
    return { wait, refusing, unpack(used) }
end
