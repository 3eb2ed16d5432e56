/* bench/heap/hooks.h: an allocator as Lua, SQLite, jansson and libcjson see it.
 *
 * Lua passes the heap to its hook as the context. The hooks of the others have no context: the
 * caller sets the thread's heap with `use` before it calls the library.
 *
 * hooks_of<H>() makes the hooks from an adapter H with alloc, free, free_sized, realloc and usable,
 * whose first argument is the heap; with make and end; and where `can_drop`, with drop, which frees
 * all blocks at once and returns the heap to use from then on. */
#ifndef BENCH_HEAP_HOOKS_H
#define BENCH_HEAP_HOOKS_H

#include <lua.hpp>
#include <sqlite3.h>

#include <cstddef>

namespace bench {

struct heap_hooks {
	void *(*make)();
	void (*end)(void *heap);
	void *(*drop)(void *heap); /* NULL: each block must be freed */
	void (*use)(void *heap);
	lua_Alloc lua;
	sqlite3_mem_methods sqlite;
	void *(*malloc)(size_t size); /* jansson and libcjson */
	void (*free)(void *p);
};

/* The heap of the library that is being called. */
inline thread_local void *current_heap;

template <class H> struct hooks {
	/* Lua frees a block by resizing it to 0, and passes the size of each block that it frees or
	 * resizes. */
	static void *lua(void *heap, void *p, size_t old_size, size_t size) {
		if (size == 0) {
			H::free_sized(heap, p, old_size);
			return nullptr;
		}
		return p == nullptr ? H::alloc(heap, size) : H::realloc(heap, p, size);
	}

	static void *malloc(size_t size) {
		return H::alloc(current_heap, size);
	}
	static void free(void *p) {
		H::free(current_heap, p);
	}

	static void *sqlite_malloc(int size) {
		return H::alloc(current_heap, static_cast<size_t>(size));
	}
	static void *sqlite_realloc(void *p, int size) {
		return H::realloc(current_heap, p, static_cast<size_t>(size));
	}
	static int sqlite_size(void *p) {
		return static_cast<int>(H::usable(current_heap, p));
	}
	static int sqlite_roundup(int size) {
		return (size + 7) & ~7;
	}
	static int sqlite_init(void *) {
		return SQLITE_OK;
	}
	static void sqlite_shutdown(void *) {
	}

	static void use(void *heap) {
		current_heap = heap;
	}
};

template <class H> heap_hooks hooks_of() {
	using h = hooks<H>;
	heap_hooks all{H::make, H::end, nullptr, h::use, h::lua, {}, h::malloc, h::free};
	all.sqlite = {h::sqlite_malloc, h::free, h::sqlite_realloc, h::sqlite_size, h::sqlite_roundup,
		h::sqlite_init, h::sqlite_shutdown, nullptr};
	if constexpr (H::can_drop)
		all.drop = H::drop;
	return all;
}

/* The type of the hardened module's export. */
using make_hooks = heap_hooks();

}
#endif
