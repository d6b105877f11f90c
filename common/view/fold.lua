-- Folds one fact (what one callback says) into one job. One step: nothing comes between reading
-- and writing. The outcome depends only on which facts were folded, not on their order or number.
--
-- KEYS  1 job hash  2 delivery zset  3 repo zset  4 repos zset  5 zombies zset
--       6 head set  7 pr zset (1 again: there is none)  8 spent hash
--       9 crcr:epoch, which must be there; for a rebuild crcr:rebuild, whose fence must be 9
-- ARGV  1 state  2 received_ms  3 run_attempt  4 ttl_s  5 zombie_ms  6 job key  7 delivery
--       8 repo  9 fence or ''  10 received_ms of the last fact  11 ranks, '' for a fact
--       then field, value, field, value, ...
-- Gives verdict (raise, repeat, fill), then field, value, ... of the merged record with its ranks
-- and its places in the indexes (first_ms, last_ms); or full alone, and has changed nothing.
--
-- With ranks it joins a merged record of the topic results instead of one fact: each field has the
-- rank that it had in the view, so that joining it and folding its facts come to the same. Ranks of
-- '0' are those of a record that does not know them: any fact beats it.
--
-- A state only rises: none < in_progress < timed_out < completed. Each field remembers the rank of
-- the fact that it came from: a higher state beats a lower one, an earlier arrival a later one, and
-- a digest decides between facts of the same millisecond. Fields that belong together share one
-- letter, so that they never mix two facts. A later attempt under the same key starts afresh; facts
-- of an earlier attempt are then passed over.

local STATE = { dispatched = 1, in_progress = 2, timed_out = 3, completed = 4 }
local CLOCK = { in_progress = 'in_progress_ms', timed_out = 'timed_out_ms',
                completed = 'completed_ms' }
local IS_CLOCK = { in_progress_ms = true, timed_out_ms = true, completed_ms = true }
local GROUP = {
    conclusion = 'c', downstream_repo_level = 'l', upstream_repo = 'u', event_type = 'e',
    pr_number = 'p', pytorch_head_sha = 'p', run_id = 'r', workflow_run_url = 'w',
    artifact_url = 'a', queue_time = 'q', execution_time = 'x', started_at = 's',
    completed_at = 'd', total_tests = 't', passed_tests = 't', failed_tests = 't',
    skipped_tests = 't', failed_tests_json = 'f', failed_tests_cut = 'f',
    triage_verdict_json = 'v', environment = 'n', dispatched_ms = 'm', run_complete = 'z',
    issuer = 'i',
}
-- Neither facts nor identity: joined by rules of their own.
local JOINED = { status = true, ranks = true, first_ms = true, last_ms = true, top_level = true,
                 in_progress_ms = true, timed_out_ms = true, completed_ms = true }
local FIRST_FIELD = 12
-- What one delivery, downstream or commit may index: who sends more does not grow Redis with it.
local DELIVERY_MAX, REPO_MAX, HEAD_MAX = 20000, 1000, 1000
-- What a downstream may write into the view within its TTL. Beyond that a job that is not there yet
-- is refused, and of one that is only its short fields are taken: it still comes to its end.
local SPENT_MAX, JOB_BYTES, DAY_MS = 1073741824, 1024, 86400000
local LONG = { f = true, v = true } -- groups

local state, received, attempt = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local ttl, zombie_ms, job_key = ARGV[4], tonumber(ARGV[5]), ARGV[6]
local delivery, repo = ARGV[7], ARGV[8]
local fence, last_ms, given = ARGV[9], ARGV[10], ARGV[11]

local function may_fold()
    if fence == '' then
        return redis.call('EXISTS', KEYS[9]) == 1
    end
    return redis.call('HGET', KEYS[9], 'fence') == fence
end
if not may_fold() then
    return redis.error_reply('NOTWHOLE the view is not whole')
end

-- What is folded late, in a rebuild, shortens the life of nothing.
local function keep(key, seconds)
    if redis.call('TTL', key) < tonumber(seconds) then
        redis.call('EXPIRE', key, seconds)
    end
end

local function load_job()
    local job, flat = {}, redis.call('HGETALL', KEYS[1])
    for i = 1, #flat, 2 do
        job[flat[i]] = flat[i + 1]
    end
    return job
end

-- Plain digits only: tonumber would also take "nan", which equals nothing, and "0x2".
local function number_of(attempt)
    return string.match(attempt, '^%d+$') and tonumber(attempt)
end

-- Below zero when attempt a came before attempt b. Numbers come before names.
local function attempt_compare(a, b)
    local na, nb = number_of(a), number_of(b)
    if na and nb and na ~= nb then
        return na - nb
    end
    if (na == nil) ~= (nb == nil) then
        return na and -1 or 1
    end
    return a == b and 0 or (a < b and -1 or 1)
end

-- "rank=letters;rank=letters" and back: one rank for all fields that came from the same fact.
local function ranks_read(text)
    local ranks = {}
    for rank, letters in string.gmatch(text or '', '([^=;]+)=([^=;]+)') do
        for letter in string.gmatch(letters, '.') do
            ranks[letter] = rank
        end
    end
    return ranks
end

local function ranks_write(ranks)
    local letters, order = {}, {}
    for letter, rank in pairs(ranks) do
        if not letters[rank] then
            letters[rank] = {}
            order[#order + 1] = rank
        end
        table.insert(letters[rank], letter)
    end
    table.sort(order)
    for i, rank in ipairs(order) do
        table.sort(letters[rank])
        order[i] = rank .. '=' .. table.concat(letters[rank])
    end
    return table.concat(order, ';')
end

-- Gives the rank that what is folded has in the group of that letter, or nil.
local function rank_giver()
    if given ~= '' then
        local ranks = ranks_read(given)
        return function(letter)
            return given == '0' and given or ranks[letter]
        end
    end
    local digest = string.sub(redis.sha1hex(table.concat(ARGV, '\0', FIRST_FIELD)), 1, 8)
    local rank = string.format('%d%013.0f%s', STATE[state], 9999999999999 - received, digest)
    return function()
        return rank
    end
end

local function has_long()
    for i = FIRST_FIELD, #ARGV, 2 do
        if LONG[GROUP[ARGV[i]]] then
            return true
        end
    end
    return false
end

-- Bytes are counted by the day on which their fact was received.
local function is_full()
    local first, sum = math.floor(received / DAY_MS) - math.ceil(tonumber(ttl) * 1000 / DAY_MS), 0
    local flat = redis.call('HGETALL', KEYS[8])
    for i = 1, #flat, 2 do
        if tonumber(flat[i]) < first then
            redis.call('HDEL', KEYS[8], flat[i])
        else
            sum = sum + tonumber(flat[i + 1])
        end
    end
    return sum >= SPENT_MAX
end

local function spend(bytes)
    redis.call('HINCRBY', KEYS[8], string.format('%.0f', math.floor(received / DAY_MS)), bytes)
    keep(KEYS[8], tonumber(ttl) + 2 * DAY_MS / 1000)
end

local job = load_job()
local old_state = job.status
local full = given == '' and (not old_state or has_long()) and is_full()
if full and not old_state then
    return { 'full' }
end
local order = job.run_attempt and attempt_compare(attempt, job.run_attempt) or 0
local changed, forget = {}, {}

local function put(field, value)
    if job[field] ~= value then
        job[field] = value
        changed[field] = value
    end
end

local function put_earliest(clock, at)
    if clock and (not job[clock] or tonumber(at) < tonumber(job[clock])) then
        put(clock, at)
    end
end

local function put_level(level)
    if level and (not job.top_level or level > job.top_level) then
        put('top_level', level)
    end
end

if order > 0 then
    redis.call('DEL', KEYS[1])
    job, old_state = {}, nil
end

if order >= 0 then
    local ranks, rank_of, won, level = ranks_read(job.ranks), rank_giver(), {}, nil
    for i = FIRST_FIELD, #ARGV, 2 do
        local letter = GROUP[ARGV[i]]
        local rank = letter and rank_of(letter)
        if ARGV[i] == 'downstream_repo_level' then
            level = ARGV[i + 1]
        end
        if rank and not won[letter] and not (full and LONG[letter]) and
            (not ranks[letter] or rank > ranks[letter]) then
            won[letter] = true
            ranks[letter] = rank
        end
    end
    for field in pairs(job) do -- what a group held before goes as a whole
        if won[GROUP[field]] then
            forget[field] = true
        end
    end
    for i = FIRST_FIELD, #ARGV, 2 do
        local field = ARGV[i]
        if won[GROUP[field]] then
            forget[field] = nil
            put(field, ARGV[i + 1])
        elseif not GROUP[field] and not JOINED[field] and job[field] == nil then
            put(field, ARGV[i + 1]) -- identity: the same in every fact
        elseif IS_CLOCK[field] then
            put_earliest(field, ARGV[i + 1])
        elseif field == 'top_level' then
            put_level(ARGV[i + 1])
        end
    end
    for field in pairs(forget) do
        job[field] = nil
        redis.call('HDEL', KEYS[1], field)
    end
    if given == '' then
        put_earliest(CLOCK[state], ARGV[2])
    end
    if not old_state or STATE[state] > STATE[old_state] then
        put('status', state)
    end
    put_level(level)
    put('ranks', ranks_write(ranks))
end

if next(changed) then
    local flat, bytes = {}, old_state and 0 or JOB_BYTES
    for field, value in pairs(changed) do
        flat[#flat + 1] = field
        flat[#flat + 1] = value
        bytes = bytes + #field + #value
    end
    spend(bytes)
    redis.call('HSET', KEYS[1], unpack(flat))
    keep(KEYS[1], ttl)
end

-- The indexes, also for a repeat: they may have been lost on their own.
redis.call('ZADD', KEYS[2], 'LT', ARGV[2], job_key)
redis.call('ZREMRANGEBYRANK', KEYS[2], DELIVERY_MAX, -1)
keep(KEYS[2], ttl)
redis.call('ZADD', KEYS[3], 'GT', last_ms, job_key)
redis.call('ZREMRANGEBYRANK', KEYS[3], 0, -1 - REPO_MAX)
keep(KEYS[3], ttl)
redis.call('ZADD', KEYS[4], 'GT', last_ms, repo)
if job.status == 'in_progress' then
    redis.call('ZADD', KEYS[5], string.format('%.0f', tonumber(job.in_progress_ms) + zombie_ms),
               job_key)
else
    redis.call('ZREM', KEYS[5], job_key)
end
if KEYS[6] ~= KEYS[1] then
    if redis.call('SCARD', KEYS[6]) < HEAD_MAX then
        redis.call('SADD', KEYS[6], job_key)
    end
    keep(KEYS[6], ttl)
end
if KEYS[7] ~= KEYS[1] then
    redis.call('ZADD', KEYS[7], 'LT', ARGV[2], delivery)
    keep(KEYS[7], ttl)
end

local verdict = 'repeat'
if job.status ~= old_state then
    verdict = 'raise'
elseif next(changed) or next(forget) then
    verdict = 'fill'
end
local reply = { verdict }
job.first_ms = redis.call('ZSCORE', KEYS[2], job_key) or nil -- not there when there were too many
job.last_ms = redis.call('ZSCORE', KEYS[3], job_key) or nil
for field, value in pairs(job) do
    reply[#reply + 1] = field
    reply[#reply + 1] = value
end
return reply
