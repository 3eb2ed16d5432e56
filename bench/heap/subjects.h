/* bench/heap/subjects.h: the subjects of the family `heap`, and what their workloads have in common. */
#ifndef BENCH_HEAP_SUBJECTS_H
#define BENCH_HEAP_SUBJECTS_H

#include <string>

#include "harness/harness.h"
#include "heap/hooks.h"

namespace bench {

/* A library on a heap, which is the same from the first run to the last. A process's own malloc is such
 * a heap too. */
class heap_client : public contestant {
public:
	/* aged: of its blocks many have been freed, and some are left. */
	heap_client(const heap_hooks &hooks, bool aged);
	~heap_client() override;

protected:
	const heap_hooks hooks_;
	void *heap_;
};

/* Ends the process when a subject's result differs from that of the first one that was made. */
void require_same(std::string &first, const std::string &result, const std::string &subject);

/* Subjects whose contestant is made by `make(hooks, name)`. */
using make_client = std::function<std::unique_ptr<contestant>(const heap_hooks &, const std::string &)>;
std::vector<subject> heap_subjects(const make_client &make);

/* A workload for clients that are made with these arguments, and all come to the same result. */
template <class Client, class... Arguments>
workload heap_workload(const char *name, Arguments... arguments) {
	workload w;
	w.name = name;
	w.unmeasured = 1;
	w.subjects = heap_subjects([arguments...](const heap_hooks &hooks, const std::string &name) {
		static std::string expected;
		auto it = std::make_unique<Client>(hooks, arguments...);
		require_same(expected, it->result(), name);
		return it;
	});
	return w;
}

}
#endif
