/* tenure/tenure.hpp: the whole C++ front end, and its map. Headers that only name its types include
 * fwd.hpp.
 *
 *   they die together                   arena.hpp             arena: make, make_array, mark, reset
 *     and N of one type are enough      size_based_arena.hpp  size_based_arena<T, N>
 *   they have one type, on one thread   slab.hpp              slab<T>: make, destroy, make_unique
 *   they have one type, on any thread   shared_slab.hpp       shared_slab<T>: the same, local
 *   costly to build, come back used     pool.hpp              pool<T>: get, and a lease that puts
 *   mixed sizes that belong together    heap.hpp              heap: make, destroy, alloc, free, reset
 *   lifetimes nest                      scope.hpp             scope: make, defer, and scopes below it
 *   containers                          arena_resource.hpp, slab_resource.hpp, heap_resource.hpp,
 *                                       scope_resource.hpp (std::pmr), allocator.hpp
 *   a class with its own new, delete    allocated.hpp         arena_allocated, slab_allocated
 *   the cost of all of it right now     stats.hpp             snapshot, watch
 *   idle memory, memory pressure        idle.hpp              maintenance, pressure
 *
 * The verbs are those of C (tenure.h), whose library does the work: calls of both may be mixed.
 * A call that fails in C throws here: std::invalid_argument for the caller's mistake (EINVAL),
 * std::bad_alloc for lack of memory (ENOMEM). Allocators can be moved, resources cannot. */
#ifndef TENURE_TENURE_HPP
#define TENURE_TENURE_HPP

#include <tenure/tenure.h>

#include "allocated.hpp"
#include "allocator.hpp"
#include "arena.hpp"
#include "heap.hpp"
#include "idle.hpp"
#include "pool.hpp"
#include "scope.hpp"
#include "shared_slab.hpp"
#include "size_based_arena.hpp"
#include "slab.hpp"
#include "stats.hpp"
#if __has_include(<memory_resource>)
#include "arena_resource.hpp"
#include "heap_resource.hpp"
#include "scope_resource.hpp"
#include "slab_resource.hpp"
#endif

#endif
