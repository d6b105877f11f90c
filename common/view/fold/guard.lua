-- What each script that folds into the view begins with.

-- May anything be folded? key is crcr:epoch, which must be there; for a rebuild crcr:rebuild, whose
-- fence must be the given one. fence is '' outside of a rebuild.
local function may_fold(key, fence)
    if fence == '' then
        return redis.call('EXISTS', key) == 1
    end
    return redis.call('HGET', key, 'fence') == fence
end

local function not_consistent()
    return redis.error_reply('INCONSISTENT the view is inconsistent')
end

-- Prolongs the life of a key. What is folded late, in a rebuild, shortens the life of nothing. A key
-- that has 99 % of it left is left alone: most facts of a job come within hours, and each has 7 keys.
local function keep(key, seconds)
    if redis.call('TTL', key) < 0.99 * tonumber(seconds) then
        redis.call('EXPIRE', key, seconds)
    end
end
