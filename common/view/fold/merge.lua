-- Merges one fact into one job. The outcome depends only on which facts were merged, not on their
-- order or number. Nothing is read from Redis or written to it here.
--
-- A state only rises: none < dispatched < in_progress < timed_out < completed. Fields that belong
-- together are a group (the letter of result_record.c), so that they never mix two facts. Each group
-- remembers the rank of the fact that it came from: a higher state beats a lower one, an earlier
-- arrival a later one, and a digest decides between facts of the same millisecond. A later attempt
-- under the same key starts afresh; facts of an earlier attempt are then passed over.
--
-- A merged record of the topic results has the ranks that it had in the view, so that merging it and
-- merging its facts come to the same. Ranks of '0' are those of a record that does not know them: any
-- fact beats it.

local STATE = { dispatched = 1, in_progress = 2, timed_out = 3, completed = 4 }
local A, Z, SAME, LOWEST, HIGHEST = string.byte('az=<>', 1, -1)
local LONG = { [string.byte('f')] = true, [string.byte('v')] = true } -- groups of long texts

-- "rank=letters;rank=letters" and back: one rank for all groups that came from the same fact. A group
-- is the byte of its letter.
local function ranks_read(text)
    local ranks = {}
    for part in string.gmatch(text or '', '[^;]+') do -- anchored: the cost is that of the length
        local rank, letters = string.match(part, '^([^=]+)=([^=]+)$')
        local groups = { string.byte(letters or '', 1, Z - A + 1) }
        for i = 1, #groups do
            ranks[groups[i]] = rank
        end
    end
    return ranks
end

local function ranks_write(ranks)
    local letters, order = {}, {}
    for group = A, Z do
        local rank = ranks[group]
        if rank and not letters[rank] then
            letters[rank] = {}
            order[#order + 1] = rank
        end
        if rank then
            table.insert(letters[rank], group)
        end
    end
    table.sort(order)
    for i, rank in ipairs(order) do
        order[i] = rank .. '=' .. string.char(unpack(letters[rank]))
    end
    return table.concat(order, ';')
end

-- Changes job, field → value, {} for a new one; put(field, value) does so, '' for no value. fact: state,
-- ranks, is_record; groups: the letter of each field, or '=' (the same in every fact), '<' (the earliest
-- stays), '>' (the highest stays); the fields are in ARGV from first_field on: name, value, name, value,
-- … without_long: long texts are not taken.
local function merge(job, put, fact, first_field, without_long)
    if not job.status and not fact.is_record and not without_long then -- the first fact is the job
        for i = first_field, #ARGV, 2 do
            put(ARGV[i], ARGV[i + 1])
        end
        put('status', fact.state)
        put('ranks', fact.ranks)
        return
    end
    local ranks, given, won = ranks_read(job.ranks), ranks_read(fact.ranks), {}
    local groups = { string.byte(fact.groups, 1, -1) }
    for i = 1, #groups do
        local group, field, value = groups[i], ARGV[first_field + 2 * i - 2], ARGV[first_field + 2 * i - 1]
        local rank, now = given[group], job[field]
        if rank and won[group] == nil then
            won[group] = (not ranks[group] or rank > ranks[group]) and not (without_long and LONG[group])
            ranks[group] = won[group] and rank or ranks[group]
        end
        if won[group] or (group == SAME and not now) or (group == HIGHEST and (not now or value > now)) or
            (group == LOWEST and (not now or tonumber(value) < tonumber(now))) then
            put(field, value)
        end
    end
    if not job.status or STATE[fact.state] > STATE[job.status] then
        put('status', fact.state)
    end
    put('ranks', ranks_write(ranks))
end
