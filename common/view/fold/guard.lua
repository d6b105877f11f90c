-- What each script that folds into the view begins with.
local KEYS, ARGV, redis = KEYS, ARGV, redis -- a global costs more

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

-- Prolongs the life of a key. What a rebuild folds late has fewer seconds left, and shortens the life
-- of nothing.
local function keep(key, seconds, fence)
    if fence == '' or redis.call('TTL', key) < tonumber(seconds) then
        redis.call('EXPIRE', key, seconds)
    end
end
