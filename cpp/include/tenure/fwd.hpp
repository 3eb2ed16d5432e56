/* tenure/fwd.hpp: declarations without definitions, for headers that only name Tenure's types. Include
 * it instead of declaring them by hand: they are in an inline namespace, which carries the mode. */
#ifndef TENURE_FWD_HPP
#define TENURE_FWD_HPP

#include <cstddef>

#include "detail/namespace.hpp"

namespace tenure {
inline namespace TN_INLINE_NAMESPACE {

namespace detail {
struct slab_calls;
struct shared_slab_calls;
}

class arena;
class heap;
class scope;
template <class T> class slab;
template <class T> class shared_slab;
template <class T> struct pool_traits;
template <class T, class Traits = pool_traits<T>> class pool;
template <class T, std::size_t N, std::size_t budget_bytes = std::size_t{1} << 30>
class size_based_arena;

class arena_resource;
class heap_resource;
class scope_resource;
template <class Calls> class basic_slab_resource;
using slab_resource = basic_slab_resource<detail::slab_calls>;
using shared_slab_resource = basic_slab_resource<detail::shared_slab_calls>;

}
}
#endif
