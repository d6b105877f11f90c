-- Of a job the newest attempt counts: the same rule as common/model/attempt.c.

-- Below zero when attempt a came before attempt b. Numbers, of any length, come before names; '',
-- which is that none is known, before all.
local function attempt_compare(a, b)
    local number_a, number_b = string.match(a, '^0*(%d*)$'), string.match(b, '^0*(%d*)$')
    if (number_a == nil) ~= (number_b == nil) then
        return number_a and -1 or 1
    end
    if number_a and #number_a ~= #number_b then
        return #number_a - #number_b
    end
    if number_a ~= number_b then
        return number_a < number_b and -1 or 1
    end
    return a == b and 0 or (a < b and -1 or 1)
end
