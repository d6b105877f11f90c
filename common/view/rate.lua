-- Counts one callback of a downstream unless it would pass a limit in any 60 s.
--   KEYS[1] crcr:rate:<repo>, a hash: "n<slot>" requests and "b<slot>" bytes of each 5 s
--   ARGV    bytes, max_requests, max_bytes
-- Returns 0, or the seconds after which the same request would pass.
local SLOT, SLOTS = 5, 12

local bytes, max_requests, max_bytes = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('TIME')
local now = tonumber(time[1])
local slot = math.floor(now / SLOT)
local requests_at, bytes_at = {}, {}
local requests, total = 0, 0

local fields = redis.call('HGETALL', KEYS[1])
for i = 1, #fields, 2 do
    local kind, at = string.sub(fields[i], 1, 1), tonumber(string.sub(fields[i], 2))
    local value = tonumber(fields[i + 1])
    if at == nil or at < slot - SLOTS or at > slot then
        redis.call('HDEL', KEYS[1], fields[i])
    elseif kind == 'n' then
        requests_at[at], requests = value, requests + value
    else
        bytes_at[at], total = value, total + value
    end
end

-- The oldest slots leave first; the request passes once enough of them are gone.
if requests + 1 > max_requests or total + bytes > max_bytes then
    for at = slot - SLOTS, slot do
        requests = requests - (requests_at[at] or 0)
        total = total - (bytes_at[at] or 0)
        if requests + 1 <= max_requests and total + bytes <= max_bytes then
            return (at + SLOTS + 1) * SLOT - now
        end
    end
    return (SLOTS + 1) * SLOT
end

redis.call('HINCRBY', KEYS[1], 'n' .. slot, 1)
redis.call('HINCRBY', KEYS[1], 'b' .. slot, bytes)
redis.call('EXPIRE', KEYS[1], (SLOTS + 1) * SLOT)
return 0
