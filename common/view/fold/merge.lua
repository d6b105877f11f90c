-- Merges one fact into one job. The outcome depends only on which facts were merged, not on their
-- order or number. Nothing is read from Redis or written to it here.
--
-- A state only rises: none < dispatched < in_progress < timed_out < completed. Each field remembers
-- the rank of the fact that it came from: a higher state beats a lower one, an earlier arrival a
-- later one, and a digest decides between facts of the same millisecond. Fields that belong together
-- share one letter, so that they never mix two facts. A later attempt under the same key starts
-- afresh; facts of an earlier attempt are then passed over.
--
-- A fact with ranks is a merged record of the topic results: each of its fields has the rank that it
-- had in the view, so that merging it and merging its facts come to the same. Ranks of '0' are those
-- of a record that does not know them: any fact beats it.

local STATE = { dispatched = 1, in_progress = 2, timed_out = 3, completed = 4 }
local CLOCK = { in_progress = 'in_progress_ms', timed_out = 'timed_out_ms',
                completed = 'completed_ms' }
local IS_CLOCK = { in_progress_ms = true, timed_out_ms = true, completed_ms = true }
local GROUP = {
    conclusion = 'c', no_conclusion = 'c', downstream_repo_level = 'l', upstream_repo = 'u', event_type = 'e',
    pr_number = 'p', pytorch_head_sha = 'p', run_id = 'r', workflow_run_url = 'w',
    artifact_url = 'a', queue_time = 'q', execution_time = 'x', started_at = 's',
    completed_at = 'd', total_tests = 't', passed_tests = 't', failed_tests = 't',
    skipped_tests = 't', failed_tests_json = 'f', failed_tests_cut = 'f',
    triage_verdict_json = 'v', environment = 'n', dispatched_ms = 'm', run_complete = 'z',
    issuer = 'i',
}
local LONG = { f = true, v = true } -- groups of long texts
-- Neither facts nor identity: merged by rules of their own.
local OWN_RULE = { status = true, ranks = true, first_ms = true, last_ms = true, top_level = true,
                   in_progress_ms = true, timed_out_ms = true, completed_ms = true,
                   run_started_ms = true }

-- "rank=letters;rank=letters" and back: one rank for all fields that came from the same fact.
local function ranks_read(text)
    local ranks = {}
    for part in string.gmatch(text or '', '[^;]+') do -- anchored: the cost is that of the length
        local rank, letters = string.match(part, '^([^=]+)=([^=]+)$')
        for letter in string.gmatch(letters or '', '.') do
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

-- Gives the rank that the fact has in the group of that letter, or nil.
local function rank_giver(fact)
    if fact.ranks ~= '' then
        local ranks = ranks_read(fact.ranks)
        return function(letter)
            return fact.ranks == '0' and fact.ranks or ranks[letter]
        end
    end
    local digest = string.sub(redis.sha1hex(table.concat(fact.fields, '\0')), 1, 8)
    local rank = string.format('%d%013.0f%s', STATE[fact.state], 9999999999999 - fact.received, digest)
    return function()
        return rank
    end
end

local function has_long(fact)
    for i = 1, #fact.fields, 2 do
        if LONG[GROUP[fact.fields[i]]] then
            return true
        end
    end
    return false
end

-- job: field → value, {} for a new one. fact: state, received (ms), attempt, ranks ('' for a fact),
-- fields { name, value, name, value, … }. without_long: long texts are not taken.
-- Gives { job = the merged one, afresh = it replaces an earlier attempt,
--         changed = field → new value, removed = field → true }.
local function merge(job, fact, without_long)
    local order = job.run_attempt and attempt_compare(fact.attempt, job.run_attempt) or 0
    local result = { job = order > 0 and {} or job, afresh = order > 0, changed = {}, removed = {} }
    if order < 0 then
        return result
    end
    job = result.job
    local ranks, rank_of, won, level = ranks_read(job.ranks), rank_giver(fact), {}, nil
    local fields = fact.fields

    local function put(field, value)
        if job[field] ~= value then
            job[field] = value
            result.changed[field] = value
        end
    end
    local function put_earliest(clock, at)
        if clock and (not job[clock] or tonumber(at) < tonumber(job[clock])) then
            put(clock, at)
        end
    end
    local function put_level(top)
        if top and (not job.top_level or top > job.top_level) then
            put('top_level', top)
        end
    end

    for i = 1, #fields, 2 do
        local letter = GROUP[fields[i]]
        local rank = letter and rank_of(letter)
        if fields[i] == 'downstream_repo_level' then
            level = fields[i + 1]
        end
        if rank and not won[letter] and not (without_long and LONG[letter]) and
            (not ranks[letter] or rank > ranks[letter]) then
            won[letter] = true
            ranks[letter] = rank
        end
    end
    for field in pairs(job) do -- all that a group held before goes
        if won[GROUP[field]] then
            result.removed[field] = true
        end
    end
    for i = 1, #fields, 2 do
        local field, value = fields[i], fields[i + 1]
        if won[GROUP[field]] then
            result.removed[field] = nil
            put(field, value)
        elseif not GROUP[field] and not OWN_RULE[field] and job[field] == nil then
            put(field, value) -- identity: the same in every fact
        elseif IS_CLOCK[field] then
            put_earliest(field, value)
        elseif field == 'top_level' then
            put_level(value)
        end
    end
    for field in pairs(result.removed) do
        job[field] = nil
    end
    if fact.ranks == '' then
        put_earliest(CLOCK[fact.state], string.format('%.0f', fact.received))
    end
    if not job.status or STATE[fact.state] > STATE[job.status] then
        put('status', fact.state)
    end
    put_level(level)
    put('ranks', ranks_write(ranks))
    return result
end
