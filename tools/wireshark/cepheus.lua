-- Wireshark dissector of Cepheus: registration (MRP), and the packets of multicast groups.
--
-- Registration is UDP at the registration port; wire/mrp.h, wire/hello.h and wire/mrp_key.h have its bit diagrams, and a test
-- compares the numbers and names below with theirs. A group's packets are RoCEv2, dissected by Wireshark itself; "Cepheus group"
-- adds who is meant, by the table of switch-emulator/engine/group/bridging.h. What it knows of a group beyond a packet (epoch, turns) it has from
-- earlier packets of the same capture.

-- If the package has installed this file, too, Wireshark has loaded that one first.
local first, mrp = pcall(Proto, "cepheus_mrp", "Cepheus registration (MRP)")
if not first then
  return
end
local group = Proto("cepheus_group", "Cepheus group")

mrp.prefs.port = Pref.uint("Registration port", 18516, "UDP port that switches listen at")
group.prefs.pool = Pref.string("Group identifiers", "198.18.0.0/15", "block of addresses that name groups (mcst_pool)")

local VERSION, HEADER, SIGNATURE = 3, 20, 20
local TYPES = {"REGISTER", "CONFIRM", "REJECT", "ACTIVATE", "UNREGISTER", "REFRESH", "QUERY", "REPORT", "EVICT", "GIVE_UP", "COMPLAIN",
               "ALIVE", "HELLO", "PUBLISH", "INSTALL", "INSTALLED", "REMOVE", "PROBE", "PROBED", "CONNECT"}
local REGISTER, CONFIRM, REJECT, ACTIVATE, UNREGISTER, QUERY, REPORT = 1, 2, 3, 4, 5, 7, 8
local GIVE_UP, COMPLAIN, ALIVE, HELLO, INSTALL, INSTALLED, REMOVE = 10, 11, 12, 13, 15, 16, 17
local PROBE, PROBED, CONNECT = 18, 19, 20
local REASONS = {[0] = "none", "table full", "no route", "group id in use", "malformed request", "not authorised",
                 "queue pair unknown to its host", "member could not bring its queue pair up", "evicted",
                 "another version of the registration protocol", "too many members behind one switch", "members are missing in the table",
                 "too many groups of one host", "a trunk on the way is down", "a write outside a member's regions",
                 "another write mode than the switches have", "the switches serve no sender groups",
                 "a packet too long for a port on the way", "no memory for another reduction group",
                 "a kind of group that the switch does not serve", "members that reduce different things",
                 "a result that a member's device refused", "an operation that the switch does not serve"}
local RECORDS = {"MEMBER", "REGION", "SWITCH", "SENDER", "PATH", "PROBE", "ORDER", "REDUCTION", "TREE"}
local MEMBER, REGION, SWITCH, SENDER, PATH, SIGHT, ORDER, REDUCTION, TREE = 1, 2, 3, 4, 5, 6, 7, 8, 9
local ORDERS = {[0] = "report alone", "drop the last packet of a message", "drop a data packet", "drop a merged ACK", "send CNPs"}
local RECORD_BYTES = {[MEMBER] = 16, [REGION] = 28, [SWITCH] = 8, [SENDER] = 32, [PATH] = 8, [SIGHT] = 40, [ORDER] = 36,
                      [REDUCTION] = 8, [TREE] = 16}
local HOST_SYNC, PRESENCE, HEARS, FRESH, MEASURES = 0x8000, 1, 1, 1, 2

local function field(make, name, text, ...)
  return make("cepheus." .. name, text, ...)
end

local f = {
  version = field(ProtoField.uint8, "mrp.version", "Version"),
  type = field(ProtoField.uint8, "mrp.type", "Type", base.DEC, TYPES),
  flags = field(ProtoField.uint16, "mrp.flags", "Flags", base.HEX),
  reason = field(ProtoField.uint16, "mrp.reason", "Reason", base.DEC, REASONS),
  answers = field(ProtoField.uint16, "mrp.answers", "Answers", base.DEC, TYPES, 0x7FFF),
  behind = field(ProtoField.uint16, "mrp.behind", "Members behind the receiver"),
  host_sync = field(ProtoField.bool, "mrp.host_sync", "Hosts synchronise PSNs", 16, nil, HOST_SYNC),
  presence = field(ProtoField.bool, "mrp.presence", "Asks whether the group stands", 16, nil, PRESENCE),
  fresh = field(ProtoField.bool, "mrp.fresh", "No data has been sent yet", 16, nil, FRESH),
  measures = field(ProtoField.bool, "mrp.measures", "Finds the least path MTU", 16, nil, MEASURES),
  hears = field(ProtoField.bool, "mrp.hears", "Hears the other end", 16, nil, HEARS),
  epoch = field(ProtoField.uint16, "mrp.epoch", "Epoch"),
  seq = field(ProtoField.uint16, "mrp.seq", "Part"),
  total = field(ProtoField.uint16, "mrp.total", "Parts"),
  length = field(ProtoField.uint16, "mrp.length", "Length"),
  mcst_id = field(ProtoField.ipv4, "mrp.mcst_id", "Group (McstID)"),
  instance = field(ProtoField.uint32, "mrp.instance", "Leader's instance", base.HEX),
  start_psn = field(ProtoField.uint24, "mrp.start_psn", "First PSN of the group's queue pairs"),
  signature = field(ProtoField.bytes, "mrp.signature", "Signature"),
  record = field(ProtoField.uint8, "mrp.record", "Record", base.DEC, RECORDS, 0x7F),
  optional = field(ProtoField.bool, "mrp.optional", "Skipped if unknown", 8, nil, 0x80),
  words = field(ProtoField.uint8, "mrp.words", "Length in 32-bit words"),
  unknown = field(ProtoField.bytes, "mrp.unknown", "Unknown record"),
  control_port = field(ProtoField.uint16, "mrp.member.control_port", "Control port"),
  host = field(ProtoField.ipv4, "mrp.member.host", "Host"),
  member_flags = field(ProtoField.uint8, "mrp.member.flags", "Flags", base.HEX),
  down = field(ProtoField.bool, "mrp.member.down", "Its port is down", 8, nil, 1),
  is_source = field(ProtoField.bool, "mrp.member.source", "Source of the turn", 8, nil, 2),
  owes = field(ProtoField.bool, "mrp.member.owes", "Lags; the source: not all have its turn", 8, nil, 4),
  late = field(ProtoField.bool, "mrp.member.late", "Lags, but answers", 8, nil, 8),
  qpn = field(ProtoField.uint24, "mrp.member.qpn", "Queue pair", base.HEX),
  heard = field(ProtoField.uint24, "mrp.member.heard", "Feedback packets that came from it"),
  token = field(ProtoField.uint32, "mrp.member.token", "Token", base.HEX),
  region = field(ProtoField.uint16, "mrp.region.number", "Region"),
  region_host = field(ProtoField.ipv4, "mrp.region.host", "Host"),
  region_va = field(ProtoField.uint64, "mrp.region.va", "Virtual address", base.HEX),
  region_length = field(ProtoField.uint64, "mrp.region.length", "Length"),
  region_rkey = field(ProtoField.uint32, "mrp.region.rkey", "Remote key", base.HEX),
  path_mtu = field(ProtoField.uint16, "mrp.path.mtu", "Path MTU of the way so far (0: not known)"),
  reduction_kind = field(ProtoField.uint8, "mrp.reduction.kind", "Kind of reduction group"),
  reduction_ascends = field(ProtoField.bool, "mrp.reduction.ascends", "Addresses ascend with members", 8, nil, 1),
  reduction_unit = field(ProtoField.uint16, "mrp.reduction.unit", "Payload bytes of a unit at most"),
  reduction_window = field(ProtoField.uint16, "mrp.reduction.window", "Units that a member may have under way"),
  tree_height = field(ProtoField.uint8, "mrp.tree.height", "Links to the farthest member at this side"),
  tree_flags = field(ProtoField.uint8, "mrp.tree.flags", "Flags", base.HEX),
  tree_side_is_flat = field(ProtoField.bool, "mrp.tree.side_is_flat", "This side is flat", 8, nil, 1),
  tree_group_is_flat = field(ProtoField.bool, "mrp.tree.group_is_flat", "The root has found the group flat", 8, nil, 2),
  tree_lowest = field(ProtoField.ipv4, "mrp.tree.lowest", "First member at this side"),
  tree_highest = field(ProtoField.ipv4, "mrp.tree.highest", "Last member at this side"),
  tree_members = field(ProtoField.uint32, "mrp.tree.members", "Members at this side"),
  path_window = field(ProtoField.uint32, "mrp.path.window", "Packets that a source may have under way (0: not known)"),
  reply_port = field(ProtoField.uint16, "mrp.probe.reply_port", "Port of the answer"),
  answer = field(ProtoField.uint16, "mrp.probe.answer", "Bytes of the answer"),
  seen_length = field(ProtoField.uint16, "mrp.probe.length", "IP packet's length"),
  seen_tos = field(ProtoField.uint8, "mrp.probe.tos", "TOS", base.HEX),
  seen_ttl = field(ProtoField.uint8, "mrp.probe.ttl", "TTL"),
  seen_tag = field(ProtoField.uint16, "mrp.probe.tag", "VLAN tag", base.HEX),
  seen_mac = field(ProtoField.ether, "mrp.probe.mac", "Source MAC"),
  seen_source = field(ProtoField.uint16, "mrp.probe.source_port", "Source port"),
  seen_time = field(ProtoField.uint64, "mrp.probe.time", "Time (us)"),
  seen_destination = field(ProtoField.uint16, "mrp.probe.destination_port", "Destination port"),
  seen_largest = field(ProtoField.uint16, "mrp.probe.largest", "Largest IP packet that the switch takes"),
  seen_doubts = field(ProtoField.uint8, "mrp.probe.doubts", "Doubts about the interface", base.HEX),
  seen_cores = field(ProtoField.uint8, "mrp.probe.cores", "Cores"),
  seen_lost = field(ProtoField.uint32, "mrp.probe.lost", "Frames lost at full rings"),
  order_kind = field(ProtoField.uint8, "mrp.order.kind", "Order", base.DEC, ORDERS),
  order_number = field(ProtoField.uint16, "mrp.order.number", "Number"),
  order_done = field(ProtoField.uint16, "mrp.order.done", "Done so far"),
  order_repeat = field(ProtoField.uint32, "mrp.order.repeat", "Time to the repeat (us)"),
  order_nak = field(ProtoField.uint32, "mrp.order.nak", "Time to the NAK (us)"),
  order_packets = field(ProtoField.uint32, "mrp.order.packets", "Data packets"),
  order_repeats = field(ProtoField.uint32, "mrp.order.repeats", "Repeats"),
  order_naks = field(ProtoField.uint32, "mrp.order.naks", "NAKs"),
  order_lost = field(ProtoField.uint32, "mrp.order.lost", "Frames lost at full rings"),
  order_fill = field(ProtoField.uint8, "mrp.order.fill", "Fill of rings (%)"),
  order_tos = field(ProtoField.uint8, "mrp.order.tos", "TOS of data", base.HEX),
  order_rnr = field(ProtoField.uint16, "mrp.order.rnr_naks", "RNR NAKs"),
  unreachable = field(ProtoField.ipv4, "mrp.unreachable", "Switch that the sender has no way to"),
}
local wrong = {
  short = ProtoExpert.new("cepheus.mrp.short", "Shorter than a header or its stated length", expert.group.MALFORMED, expert.severity.ERROR),
  version = ProtoExpert.new("cepheus.mrp.bad_version", "Another version", expert.group.PROTOCOL, expert.severity.WARN),
  type = ProtoExpert.new("cepheus.mrp.bad_type", "Unknown type", expert.group.MALFORMED, expert.severity.ERROR),
  record = ProtoExpert.new("cepheus.mrp.bad_record", "Malformed record", expert.group.MALFORMED, expert.severity.ERROR),
  must_know = ProtoExpert.new("cepheus.mrp.must_know", "Unknown record that must be known", expert.group.PROTOCOL, expert.severity.WARN),
  tail = ProtoExpert.new("cepheus.mrp.bad_tail", "What follows is no signature", expert.group.MALFORMED, expert.severity.ERROR),
}
mrp.fields, mrp.experts = f, wrong

-- State from earlier packets of the capture: epochs by group, groups that reduce, turns between switches, and the state at each frame.
local epochs, reductions, members, turns, known

function group.init()
  epochs, reductions, members, turns, known = {}, {}, {}, {}, {}
end

-- wire::group_start_psn: SplitMix64 of group and epoch, below 0xFF0000.
local function start_psn(id, epoch)
  local z = UInt64(id % 0x10000 * 0x10000 + epoch, math.floor(id / 0x10000)) + UInt64(0x7F4A7C15, 0x9E3779B9)
  z = z:bxor(z:rshift(30)) * UInt64(0x1CE4E5B9, 0xBF58476D)
  z = z:bxor(z:rshift(27)) * UInt64(0x133111EB, 0x94D049BB)
  z = z:bxor(z:rshift(31))
  return (z:rshift(32) * UInt64(0xFF0000, 0)):rshift(32):tonumber()
end

local function name_of(names, number)
  return names[number] or "unknown " .. number
end

-- The flags' meaning depends on the type. Returns the text for the packet list.
local function add_flags(tree, range, type)
  local flags = range:uint()
  if type == REJECT or type == UNREGISTER or type == GIVE_UP or type == REMOVE then
    tree:add(f.reason, range)
    return flags > 0 and ": " .. name_of(REASONS, flags) or ""
  elseif type == CONFIRM then
    tree:add(f.answers, range)
    tree:add(f.host_sync, range)
    return " of " .. name_of(TYPES, flags % HOST_SYNC)
  elseif type == INSTALL then
    tree:add(f.fresh, range)
    tree:add(f.measures, range)
    return flags >= MEASURES and ", measures the path MTU" or ""
  elseif type == INSTALLED then
    tree:add(f.answers, range)
    return " of " .. name_of(TYPES, flags)
  elseif type == REGISTER then
    tree:add(f.host_sync, range)
  elseif type == ACTIVATE or type == CONNECT then
    tree:add(f.behind, range)
    return ", members behind: " .. flags
  elseif type == QUERY or type == COMPLAIN or type == ALIVE then
    tree:add(f.presence, range)
    return flags % 2 == 1 and ": does the group stand?" or ""
  elseif type == HELLO then
    tree:add(f.hears, range)
    return flags % 2 == 1 and "" or ", hears nothing"
  end
  return ""
end

-- A member in a REPORT.
local function condition(flags)
  local said = {}
  for bit, text in ipairs({"port down", "source", "lags", "late"}) do
    if math.floor(flags / 2 ^ (bit - 1)) % 2 == 1 then said[#said + 1] = text end
  end
  return table.concat(said, ", ")
end

local function add_member(tree, range, type)
  tree:add(f.control_port, range(2, 2))
  tree:add(f.host, range(4, 4))
  tree:add(f.member_flags, range(8, 1))
  local text = tostring(range(4, 4):ipv4())
  if type == REPORT then
    for _, one in ipairs({f.down, f.is_source, f.owes, f.late}) do tree:add(one, range(8, 1)) end
    tree:add(f.heard, range(9, 3))
    text = text .. " (" .. condition(range(8, 1):uint()) .. ")"
  else
    tree:add(f.qpn, range(9, 3))
    text = text .. string.format(" qp 0x%x", range(9, 3):uint())
  end
  tree:add(f.token, range(12, 4))
  tree:append_text(": " .. text)
  return text
end

local function add_sight(tree, range)
  for at, one in pairs({[2] = f.reply_port, [4] = f.answer, [6] = f.seen_length, [10] = f.seen_tag, [18] = f.seen_source,
                        [28] = f.seen_destination, [30] = f.seen_largest}) do
    tree:add(one, range(at, 2))
  end
  tree:add(f.seen_tos, range(8, 1))
  tree:add(f.seen_ttl, range(9, 1))
  tree:add(f.seen_mac, range(12, 6))
  tree:add(f.seen_time, range(20, 8))
  tree:add(f.seen_doubts, range(32, 1))
  tree:add(f.seen_cores, range(33, 1))
  tree:add(f.seen_lost, range(36, 4))
end

local function add_order(tree, range)
  for at, one in pairs({[2] = f.order_kind, [32] = f.order_fill, [33] = f.order_tos}) do tree:add(one, range(at, 1)) end
  for at, one in pairs({[4] = f.order_number, [6] = f.order_done, [34] = f.order_rnr}) do tree:add(one, range(at, 2)) end
  for at, one in pairs({[8] = f.order_repeat, [12] = f.order_nak, [16] = f.order_packets, [20] = f.order_repeats, [24] = f.order_naks,
                        [28] = f.order_lost}) do
    tree:add(one, range(at, 4))
  end
end

local function add_record(tree, range, type)
  local kind = range(0, 1):uint() % 0x80
  local record = tree:add(range, "Record " .. name_of(RECORDS, kind))
  record:add(f.optional, range(0, 1))
  record:add(f.record, range(0, 1))
  record:add(f.words, range(1, 1))
  local is_optional = range(0, 1):uint() ~= kind
  if RECORD_BYTES[kind] == nil or is_optional ~= (kind == PATH) then
    if range:len() > 4 then record:add(f.unknown, range(4)) end
    if not is_optional then record:add_proto_expert_info(wrong.must_know) end
  elseif RECORD_BYTES[kind] ~= range:len() then
    record:add_proto_expert_info(wrong.record)
  elseif kind == MEMBER then
    return add_member(record, range, type)
  elseif kind == REGION then
    record:add(f.region, range(2, 2))
    record:add(f.region_host, range(4, 4))
    record:add(f.region_va, range(8, 8))
    record:add(f.region_length, range(16, 8))
    record:add(f.region_rkey, range(24, 4))
  elseif kind == PATH then
    record:add(f.path_mtu, range(2, 2))
    record:add(f.path_window, range(4, 4))
    record:append_text(": path MTU " .. range(2, 2):uint())
  elseif kind == REDUCTION then
    record:add(f.reduction_kind, range(2, 1))
    record:add(f.reduction_ascends, range(3, 1))
    record:add(f.reduction_unit, range(4, 2))
    record:add(f.reduction_window, range(6, 2))
    record:append_text(": " .. range(6, 2):uint() .. " units of " .. range(4, 2):uint() .. " bytes")
  elseif kind == TREE then
    record:add(f.tree_height, range(2, 1))
    for _, one in ipairs({f.tree_flags, f.tree_side_is_flat, f.tree_group_is_flat}) do record:add(one, range(3, 1)) end
    record:add(f.tree_lowest, range(4, 4))
    record:add(f.tree_highest, range(8, 4))
    record:add(f.tree_members, range(12, 4))
    record:append_text(": " .. range(12, 4):uint() .. " members, height " .. range(2, 1):uint())
  elseif kind == SENDER then
    record:add(f.control_port, range(2, 2))
    record:add(f.host, range(4, 4))
    record:add(f.path_mtu, range(16, 1), range(16, 1):uint() * 256)
    record:add(f.path_window, range(20, 4))
  elseif kind == SIGHT then
    add_sight(record, range)
  elseif kind == ORDER then
    add_order(record, range)
  else
    record:add(f.unreachable, range(4, 4))
    record:append_text(": " .. tostring(range(4, 4):ipv4()))
    return "no way to " .. tostring(range(4, 4):ipv4())
  end
end

-- The records between header and stated length. Returns the text for the packet list, whether one is REDUCTION, and
-- the hosts of MEMBER records.
local function add_records(tree, range, type)
  local at, said, count, reduces, hosts = 0, {}, 0, false, {}
  while at < range:len() do
    local rest = range:len() - at
    local size = rest >= 4 and range(at + 1, 1):uint() * 4 or 0
    if size == 0 or size > rest then
      tree:add_proto_expert_info(wrong.record)
      break
    end
    local text = add_record(tree, range(at, size), type)
    reduces = reduces or range(at, 1):uint() == REDUCTION
    if range(at, 1):uint() == MEMBER and size == RECORD_BYTES[MEMBER] then hosts[#hosts + 1] = tostring(range(at + 4, 4):ipv4()) end
    if text ~= nil then
      count = count + 1
      if count <= 4 then said[count] = text end
    end
    at = at + size
  end
  if count > 4 then said[5] = (count - 4) .. " more" end
  return table.concat(said, ", "), reduces, hosts
end

-- The previous group may still send during a registration: the activated epoch counts. Switches pass REGISTER on with the
-- leader's address.
local function remember(type, id, epoch, reduces, leader, hosts)
  if type == ACTIVATE or (type == REGISTER and epochs[id] == nil) then epochs[id] = epoch end
  if type ~= REGISTER then return end
  reductions[id] = reduces
  members[id] = members[id] or {}
  members[id][leader] = true
  for _, host in ipairs(hosts) do members[id][host] = true end
end

function mrp.dissector(buffer, packet, root)
  local size = buffer:len()
  local tree = root:add(mrp, buffer())
  packet.cols.protocol = "MRP"
  packet.cols.info = "malformed"
  if size < HEADER then
    tree:add_proto_expert_info(wrong.short)
    return size
  end
  local type, stated = buffer(1, 1):uint(), buffer(10, 2):uint()
  tree:add(f.version, buffer(0, 1))
  tree:add(f.type, buffer(1, 1))
  local flags = tree:add(f.flags, buffer(2, 2))
  local said = add_flags(flags, buffer(2, 2), type)
  tree:add(f.epoch, buffer(4, 2))
  tree:add(f.seq, buffer(6, 2))
  tree:add(f.total, buffer(8, 2))
  tree:add(f.length, buffer(10, 2))
  tree:add(f.mcst_id, buffer(12, 4))
  tree:add(f.instance, buffer(16, 4))
  local id, epoch = buffer(12, 4):uint(), buffer(4, 2):uint()
  if type ~= HELLO then tree:add(f.start_psn, start_psn(id, epoch)):set_generated() end
  local info = name_of(TYPES, type) .. said
  if type ~= HELLO then info = info .. string.format(", group %s, epoch %d", tostring(buffer(12, 4):ipv4()), epoch) end
  packet.cols.info = info
  if TYPES[type] == nil then tree:add_proto_expert_info(wrong.type) end
  if buffer(0, 1):uint() ~= VERSION then
    tree:add_proto_expert_info(wrong.version)
    return size
  end
  if stated < HEADER or stated > size then
    tree:add_proto_expert_info(wrong.short)
    return size
  end
  local reduces, hosts = false, {}
  if stated > HEADER then
    local records
    records, reduces, hosts = add_records(tree, buffer(HEADER, stated - HEADER), type)
    if records ~= "" then packet.cols.info = info .. ": " .. records end
  end
  if size - stated == SIGNATURE then
    tree:add(f.signature, buffer(stated, SIGNATURE))
  elseif size > stated and type ~= PROBE and type ~= PROBED then  -- there it is padding
    tree:add_proto_expert_info(wrong.tail)
  end
  if not packet.visited then remember(type, id, epoch, reduces, tostring(packet.net_src), hosts) end
  return size
end

local registered_port
local function listen()
  local ports = DissectorTable.get("udp.port")
  if registered_port ~= nil then ports:remove(registered_port, mrp) end
  registered_port = mrp.prefs.port
  ports:add(registered_port, mrp)
end
mrp.prefs_changed = listen
listen()

-- A group's packets.

local KINDS = {"data", "ACK", "NAK", "RNR NAK", "CNP", "refused operation"}
local DATA, ACK, NAK, RNR_NAK, CNP, REFUSED = 1, 2, 3, 4, 5, 6
local WAYS = {"from a host", "between switches", "to a host"}
local FROM_HOST, BETWEEN, TO_HOST = 1, 2, 3
local NAK_CODES = {[0] = "sequence error", "invalid request", "remote access", "remote operational error", "invalid RD request"}
local VIRTUAL_QPN, SEND_WITH_IMMEDIATE = 1, 5
-- arithmetic/operation.h
local OPERATIONS = {[0] = "barrier", "bitwise or", "bitwise and", "bitwise xor", "logical or", "logical and", "logical xor", "minimum",
                    "maximum", "sum", "product"}
local VALUES = {[0] = "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float", "double"}

local g = {
  id = field(ProtoField.ipv4, "group.id", "Group (McstID)"),
  kind = field(ProtoField.uint8, "group.kind", "Kind", base.DEC, KINDS),
  way = field(ProtoField.uint8, "group.way", "Way", base.DEC, WAYS),
  host = field(ProtoField.ipv4, "group.host", "Host at this link"),
  source = field(ProtoField.ipv4, "group.turn.source", "Source of the turn"),
  base = field(ProtoField.uint24, "group.turn.base", "Base of the turn"),
  offset = field(ProtoField.uint24, "group.turn.packet", "Packet of the turn"),
  epoch = field(ProtoField.uint16, "group.epoch", "Epoch"),
  from_start = field(ProtoField.uint24, "group.from_start", "PSN from the group's first"),
  has = field(ProtoField.uint24, "group.has", "Has everything up to PSN"),
  asks = field(ProtoField.uint24, "group.asks_for", "Asks for PSN"),
  code = field(ProtoField.uint8, "group.nak_code", "Says", base.DEC, NAK_CODES),
  who = field(ProtoField.string, "group.who", "Sender"),
  operation = field(ProtoField.uint8, "group.reduction.operation", "Operation", base.DEC, OPERATIONS),
  values = field(ProtoField.uint8, "group.reduction.type", "Type of the values", base.DEC, VALUES),
  unit = field(ProtoField.uint16, "group.reduction.unit", "Unit, modulo 2^16"),
}
group.fields = g

local of = {source = Field.new("ip.src"), destination = Field.new("ip.dst"), opcode = Field.new("infiniband.bth.opcode"),
            qpn = Field.new("infiniband.bth.destqp"), psn = Field.new("infiniband.bth.psn"),
            kind = Field.new("infiniband.aeth.syndrome.opcode"), code = Field.new("infiniband.aeth.syndrome.error_code"),
            immediate = Field.new("infiniband.immdt")}

local function address_number(text)
  local a, b, c, d = text:match("^(%d+)%.(%d+)%.(%d+)%.(%d+)$")
  return a and ((a * 256 + b) * 256 + c) * 256 + d
end

-- First address of the pool and its size; a block that can't be read names no groups.
local pool_first, pool_size
local function read_pool()
  local text, bits = group.prefs.pool:match("^([%d.]+)/(%d+)$")
  local number = text and address_number(text)
  pool_size = number and tonumber(bits) <= 32 and 2 ^ (32 - bits) or 0
  pool_first = pool_size > 0 and number - number % pool_size or 0
end
group.prefs_changed = read_pool
read_pool()

local function is_group(number)
  return number >= pool_first and number < pool_first + pool_size
end

local function back(psn, from)
  return (psn - from) % 0x1000000
end

local function kind_of(opcode)
  if opcode <= 11 then return DATA end  -- SEND and WRITE
  if opcode == 0x81 then return CNP end
  if opcode ~= 0x11 then return REFUSED end
  local kind, code = of.kind(), of.code()
  if kind == nil then return nil end
  return kind.value == 0 and ACK or kind.value == 1 and RNR_NAK or kind.value == 3 and NAK or nil, code and code.value
end

-- By the table of the header: the two ends of the link, and the end to which this packet goes.
local function way_of(to_group, kind, qpn, peer)
  if to_group then
    return qpn == VIRTUAL_QPN and FROM_HOST or BETWEEN
  end
  -- To a host and between switches, feedback has the same addresses; on a trunk the turn's data has passed before.
  local is_feedback = kind ~= DATA and kind ~= REFUSED
  return is_feedback and turns[peer .. "/" .. qpn] and BETWEEN or TO_HOST
end

-- The facts about this packet, from its first dissection: later packets must not change them.
local function look()
  local source, destination = tostring(of.source().value), tostring(of.destination().value)
  local opcode, qpn, psn = of.opcode().value, of.qpn().value, of.psn().value
  local from, to = address_number(source), address_number(destination)
  if from == nil or to == nil or is_group(from) == is_group(to) then return nil end
  local kind, code = kind_of(opcode)
  if kind == nil then return nil end
  local to_group = is_group(to)
  local id, peer = to_group and to or from, to_group and source or destination
  local seen = {id = id, name = to_group and destination or source, peer = peer, kind = kind, code = code, psn = psn, qpn = qpn,
                epoch = epochs[id], reduces = reductions[id] == true}
  -- A reduction's packets between switches name the epoch, both ways. The first one is 1, as the QPN in members' packets.
  local is_on_trunk = seen.reduces and qpn == seen.epoch and not members[id][peer]
  seen.way = is_on_trunk and BETWEEN or way_of(to_group, kind, qpn, peer)
  if seen.way == BETWEEN and kind == DATA and not seen.reduces then turns[peer .. "/" .. qpn] = true end
  return seen
end

-- By the immediate data of a contribution, partial result or result (wire/reduction.h).
local function add_reduction(tree)
  local immediate = of.immediate()
  if of.opcode().value ~= SEND_WITH_IMMEDIATE or immediate == nil then return "" end
  local what, unit = immediate.range(0, 1):uint(), immediate.range(2, 2):uint()
  local operation, values = math.floor(what / 16), what % 16
  tree:add(g.operation, operation)
  tree:add(g.values, values)
  tree:add(g.unit, unit)
  local text = name_of(OPERATIONS, operation)
  if operation ~= 0 then text = text .. " of " .. name_of(VALUES, values) end
  return string.format(" (%s, unit %d)", text, unit)
end

local function add_feedback(tree, seen)
  local who = seen.way == FROM_HOST and seen.peer or seen.way == TO_HOST and "the whole group" or "all behind this trunk"
  tree:add(g.who, who)
  if seen.kind == CNP then return who .. ": congestion" end
  if seen.kind == ACK then
    tree:add(g.has, seen.psn)
    return string.format("%s: has PSN %d", who, seen.psn)
  end
  local code = ""
  if seen.kind == NAK and seen.code ~= nil then
    tree:add(g.code, seen.code)
    code = " (" .. name_of(NAK_CODES, seen.code) .. ")"
    if seen.code ~= 0 then return who .. ": fails" .. code end
  end
  tree:add(g.asks, seen.psn)
  return string.format("%s: asks for PSN %d%s", who, seen.psn, seen.kind == RNR_NAK and ", when it has waited" or code)
end

function group.dissector(buffer, packet, root)
  if of.psn() == nil or of.opcode() == nil or of.qpn() == nil or of.source() == nil or of.destination() == nil then return end
  if not packet.visited then known[packet.number] = look() end
  local seen = known[packet.number]
  if seen == nil then return end
  local tree = root:add(group)
  tree:set_generated()
  tree:add(g.id, Address.ip(seen.name))
  tree:add(g.kind, seen.kind)
  tree:add(g.way, seen.way)
  local text = name_of(KINDS, seen.kind)
  if seen.reduces and seen.kind == DATA then text = text .. add_reduction(tree) end
  if seen.way == BETWEEN and not seen.reduces then
    tree:add(g.source, Address.ip(seen.peer))
    tree:add(g.base, seen.qpn)
    tree:add(g.offset, back(seen.psn, seen.qpn))
    text = text .. string.format(" of %s's turn from %d", seen.peer, seen.qpn)
  elseif seen.way ~= BETWEEN then
    tree:add(g.host, Address.ip(seen.peer))
    if seen.way == FROM_HOST and seen.kind == DATA then tree:add(g.source, Address.ip(seen.peer)) end
  end
  if seen.epoch ~= nil then
    tree:add(g.epoch, seen.epoch)
    tree:add(g.from_start, back(seen.psn, start_psn(seen.id, seen.epoch)))
  end
  text = text .. ((seen.kind == DATA or seen.kind == REFUSED) and ", PSN " .. seen.psn or ", " .. add_feedback(tree, seen))
  tree:append_text(": " .. text)
  -- To Wireshark queue pair 1 is that of management datagrams, and it takes the payload for one.
  if seen.qpn == VIRTUAL_QPN then packet.cols.info = "to the virtual queue pair" end
  packet.cols.info:append(" [group: " .. text .. "]")
end
register_postdissector(group)
