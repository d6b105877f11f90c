-- Takes what one call costs out of an account's buckets, or nothing. common/model/budget.h has the
-- rules, and budget_take there does the same in memory; only the fair share is here alone.
--   now      microseconds, by Redis's clock
--   account  crcr:budget:<account>, a hash: "1" … "4", when each bucket is full again; "limited",
--            until when GitHub asked one of us to wait
--   share    crcr:budget:<account>|<downstream>: when that downstream's share is full again
--   args     from index at on: limited_us, lower_us, share_cost_us, share_room_us (struct
--            budget_ask), then for each bucket cost_us, room_us, over_us, full_us
-- Returns wait_us (0: taken), the bucket that is free last (0: GitHub asked us to wait), and for how
-- long each bucket is not full.
local function budget(now, account, share, args, at)
    local function arg(i)
        return tonumber(args[at + i])
    end
    local stored = redis.call('HMGET', account, 'limited', '1', '2', '3', '4')
    local limited = tonumber(stored[1] or '0')
    if arg(0) > 0 then
        limited = math.max(limited, now + arg(0))
    end
    local wait, refusing = math.max(0, limited - now), 0
    local share_full, over = 0, false
    if arg(2) > 0 then
        share_full = math.max(tonumber(redis.call('GET', share) or '0'), now) + arg(2)
        over = share_full - now > math.max(arg(3), arg(2))
    end

    local used, longest = {}, wait
    for b = 1, 4 do
        local cost, room = arg(4 * b), arg(4 * b + (over and 2 or 1))
        -- No more than the capacity: the clock may have been set back.
        used[b] = math.max(0, math.min(tonumber(stored[b + 1] or '0') - now, arg(4 * b + 3)))
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
            used[b] = used[b] + arg(4 * b)
        end
        longest = math.max(longest, used[b])
        table.insert(fields, tostring(b))
        table.insert(fields, string.format('%.0f', now + used[b]))
    end
    redis.call('HSET', account, unpack(fields))
    redis.call('PEXPIRE', account, math.ceil(longest / 1000) + 1)
    if wait == 0 and arg(2) > 0 and not over then
        redis.call('SET', share, string.format('%.0f', share_full), 'PX',
                   math.ceil((share_full - now) / 1000))
    end
    return { wait, refusing, unpack(used) }
end
