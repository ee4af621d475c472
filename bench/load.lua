-- The workloads of `workload.ts` for wrk. The arguments are the first end user, the number of end users, the shares of
-- the calls in percent (add,subtract,balance,first-page), 1 if writes have idempotency keys or else 0, the secret, the
-- page limit, and the seed. At the end, the script prints the results as JSON.

local first, users, keyed, limit, key_prefix
local shares = {}
local keys = 0
local get_end, post_head, post_middle, key_head

local function end_user(number)
  return string.format('%08x-0000-4000-8000-%012x', (number * 2654435761) % 4294967296, number)
end

function init(args)
  first, users = tonumber(args[1]), tonumber(args[2])
  for share in string.gmatch(args[3], '[^,]+') do shares[#shares + 1] = tonumber(share) end
  keyed = args[4] == '1'
  limit = args[6]
  math.randomseed(tonumber(args[7]))
  key_prefix = string.format('bench-%x%x', math.random(0, 16777215), math.random(0, 16777215))
  local common = ' HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer ' .. args[5] .. '\r\n'
  get_end = common .. '\r\n'
  post_head = common .. 'Content-Type: application/json\r\nContent-Length: 65\r\n'
  post_middle = '\r\n{"end_user_id":"'
end

function request()
  local id = end_user(first + math.random(0, users - 1))
  local lot = math.random() * 100
  local call
  if lot < shares[1] then call = '/add'
  elseif lot < shares[1] + shares[2] then call = '/subtract'
  elseif lot < shares[1] + shares[2] + shares[3] then
    return 'GET /get-active-balance?end_user_id=' .. id .. get_end
  else
    return 'GET /get-all-user-transactions?end_user_id=' .. id .. '&limit=' .. limit .. get_end
  end
  local key = ''
  if keyed then
    keys = keys + 1
    key = 'Idempotency-Key: ' .. key_prefix .. '-' .. keys .. '\r\n'
  end
  return 'POST ' .. call .. post_head .. key .. post_middle .. id .. '","amount":1}'
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '\nmeasured {"requests":%d,"seconds":%f,"p50":%f,"p99":%f,"p999":%f,"failures":%d}\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
    latency:percentile(99.9) / 1e3, errors.connect + errors.read + errors.write + errors.status + errors.timeout))
end
