/* bench/heap/lua.cpp: the family `heap`: a virtual machine of Lua 5.4, made, run and closed. */
#include "heap/subjects.h"

#include <cstdlib>

namespace bench {
namespace {

/* Trees, one kept and many dropped; a table of records by name, most of them replaced; strings
 * concatenated, cut and searched. No result depends on the order in a table, which differs from state
 * to state. */
const char *const program = R"(
local function make(depth)
	if depth == 0 then return {} end
	return {make(depth - 1), make(depth - 1)}
end
local function count(tree)
	return tree[1] and 1 + count(tree[1]) + count(tree[2]) or 1
end

local kept, nodes = make(10), 0
for depth = 4, 10, 2 do
	for _ = 1, 1 << (11 - depth) do nodes = nodes + count(make(depth)) end
end

local records, bytes, random = {}, 0, 1
for i = 1, 6000 do
	random = (random * 1103515245 + 12345) & 0x7fffffff
	local key = "key " .. (random >> 8) % 700
	local old = records[key]
	if old then
		bytes = bytes + #old.text + #old.tags
		old.text = old.text:sub(-40) .. key:rep(1 + i % 5, ", ")
		if i % 3 == 0 then records[key] = nil end
	else
		records[key] = {number = i, text = key:upper(), tags = {key, i, key .. i}}
	end
end
local lines = {}
for i = 1, 700 do
	local record = records["key " .. i]
	lines[#lines + 1] = record and record.text .. "=" .. record.number or "-"
end
local text = table.concat(lines, "\n")
local _, found = text:gsub("KEY %d+", function(name) return name:lower() end)
return nodes + count(kept), bytes, #text, found
)";

/* Fresh: each machine has a heap of its own. Aged: all machines live in one aged heap. */
class lua_client : public heap_client {
public:
	lua_client(const heap_hooks &hooks, bool aged) : heap_client(hooks, aged), aged_(aged) {
	}

	uint64_t run(size_t repeats) override {
		uint64_t from = ticks();
		for (size_t r = 0; r < repeats; r++) {
			if (aged_) {
				live(heap_);
				continue;
			}
			void *heap = hooks_.make();
			live(heap);
			hooks_.end(heap);
		}
		return ticks() - from;
	}

	std::string result() {
		run(1);
		std::string text;
		for (lua_Integer number : results_)
			text += std::to_string(number) + " ";
		return text;
	}

private:
	static constexpr int result_count = 4;

	void live(void *heap) {
		lua_State *machine = lua_newstate(hooks_.lua, heap);
		if (machine == nullptr)
			std::abort();
		luaL_openlibs(machine);
		if (luaL_loadstring(machine, program) != LUA_OK ||
			lua_pcall(machine, 0, result_count, 0) != LUA_OK) {
			std::fprintf(stderr, "lua: %s\n", lua_tostring(machine, -1));
			std::exit(1);
		}
		for (int i = 0; i < result_count; i++)
			results_[i] = lua_tointeger(machine, i - result_count);
		lua_close(machine);
	}

	bool aged_;
	lua_Integer results_[result_count] = {};
};

std::vector<workload> workloads() {
	return {heap_workload<lua_client>("lua-fresh", false), heap_workload<lua_client>("lua-aged", true)};
}

const registration lua("heap", workloads);

}
}
