-- Takes what one call costs out of an account's buckets, or nothing. common/model/budget.h has the
-- rules, and budget_take there does the same in memory; only the fair shares are here alone.
--   now     microseconds, by Redis's clock
--   keys    from the place `first` on:
--           crcr:budget:us:<account>: five doubles, until when GitHub asked a replica to wait, and
--           when each bucket is full again
--           crcr:budget:us:<account>|<downstream>, …|#<pull request>: a double, when it is full
--           again. Each only if its share costs something
--   packed  doubles: limited_us, lower_us, share_room_us, share_cost_us of each share (struct
--           budget_ask), then of each bucket that the call takes from: its number (from 1), cost_us,
--           room_us, over_us, full_us
-- Returns wait_us (0: taken), the bucket that is free last (0: GitHub asked us to wait), and what is
-- now in the account's key.
local function budget(now, keys, first, packed)
    local unpack, max = struct.unpack, math.max
    local share_cost, share_full, over = {}, {}, 0
    local limited_us, lower_us, share_room, at
    limited_us, lower_us, share_room, share_cost[1], share_cost[2], at = unpack('<ddddd', packed)
    local limited, full, costs = 0, { 0, 0, 0, 0 }, {}
    local stored = redis.call('GET', keys[first])
    if stored then
        limited, full[1], full[2], full[3], full[4] = unpack('<ddddd', stored)
    end
    if limited_us > 0 then
        limited = max(limited, now + limited_us)
    end
    local wait, refusing = max(0, limited - now), 0
    for s = 1, 2 do
        local share, cost = keys[first + s], share_cost[s]
        if cost > 0 then
            stored = redis.call('GET', share)
            local until_us = max(stored and unpack('<d', stored) or 0, now) + cost
            if until_us - now > max(share_room, cost) then
                over = over + 1
            else
                share_full[share] = until_us
            end
        end
    end

    while at <= #packed do
        local b, cost, room, over_us, full_us
        b, cost, room, over_us, full_us, at = unpack('<ddddd', packed, at)
        local used = full[b] - now
        if used > full_us then -- no more than the capacity: the clock may have been set back
            used = full_us
        end
        used = max(0, used, b == 1 and lower_us or 0)
        local more = used + cost - max(room - over * over_us, cost)
        if more > wait then
            wait, refusing = more, b
        end
        full[b], costs[b] = now + used, cost
    end

    local longest = limited
    for b = 1, 4 do
        if wait == 0 and costs[b] then
            full[b] = full[b] + costs[b]
        end
        longest = max(longest, full[b])
    end
    local state = struct.pack('<ddddd', limited, full[1], full[2], full[3], full[4])
    redis.call('SET', keys[first], state, 'PX',
               string.format('%d', max(0, longest - now) / 1000 + 1))
    if wait == 0 then
        for share, until_us in pairs(share_full) do
            redis.call('SET', share, struct.pack('<d', until_us), 'PX',
                       math.ceil((until_us - now) / 1000))
        end
    end
    return wait, refusing, state
end
