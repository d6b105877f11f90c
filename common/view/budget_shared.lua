-- Takes what one call costs out of an account's buckets, or nothing. common/model/budget.h has the
-- rules, and budget_take there does the same in memory; only the fair shares are here alone.
--   now      microseconds, by Redis's clock
--   account  crcr:budget:us:<account>: five doubles, until when GitHub asked a replica to wait, and
--            when each bucket is full again
--   shares   crcr:budget:us:<account>|<downstream>, …|#<pull request>: a double, when it is full again
--   packed   doubles: limited_us, lower_us, share_room_us, share_cost_us of each share (struct
--            budget_ask), then for each bucket cost_us, room_us, over_us, full_us
-- Returns wait_us (0: taken), the bucket that is free last (0: GitHub asked us to wait), and for how
-- long each bucket is not full.
local function budget(now, account, shares, packed)
    local share_cost = {}
    local limited_us, lower_us, share_room, at
    limited_us, lower_us, share_room, share_cost[1], share_cost[2], at =
        struct.unpack('<ddddd', packed)
    local limited, full = 0, { 0, 0, 0, 0 }
    local stored = redis.call('GET', account)
    if stored then
        limited, full[1], full[2], full[3], full[4] = struct.unpack('<ddddd', stored)
    end
    if limited_us > 0 then
        limited = math.max(limited, now + limited_us)
    end
    local wait, refusing = math.max(0, limited - now), 0
    local share_full, over = {}, 0
    for s, share in ipairs(shares) do
        local cost = share_cost[s]
        if cost > 0 then
            stored = redis.call('GET', share)
            local until_us = math.max(stored and struct.unpack('<d', stored) or 0, now) + cost
            if until_us - now > math.max(share_room, cost) then
                over = over + 1
            else
                share_full[share] = until_us
            end
        end
    end

    local used, costs, longest = {}, {}, wait
    for b = 1, 4 do
        local cost, room, over_us, full_us
        cost, room, over_us, full_us, at = struct.unpack('<dddd', packed, at)
        -- No more than the capacity: the clock may have been set back.
        used[b] = math.max(0, math.min(full[b] - now, full_us))
        if b == 1 then
            used[b] = math.max(used[b], lower_us)
        end
        local more = used[b] + cost - math.max(room - over * over_us, cost)
        if cost > 0 and more > wait then
            wait, refusing = more, b
        end
        costs[b] = cost
    end

    for b = 1, 4 do
        if wait == 0 then
            used[b] = used[b] + costs[b]
        end
        longest = math.max(longest, used[b])
    end
    redis.call('SET', account,
               struct.pack('<ddddd', limited, now + used[1], now + used[2], now + used[3], now + used[4]),
               'PX', math.ceil(longest / 1000) + 1)
    if wait == 0 then
        for share, until_us in pairs(share_full) do
            redis.call('SET', share, struct.pack('<d', until_us), 'PX',
                       math.ceil((until_us - now) / 1000))
        end
    end
    return { wait, refusing, unpack(used) }
end
