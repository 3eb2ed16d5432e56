/* bench/heap/subjects.h: the subjects of the family `heap`, and the common part of its workloads. */
#ifndef BENCH_HEAP_SUBJECTS_H
#define BENCH_HEAP_SUBJECTS_H

#include <string>

#include "harness/harness.h"
#include "heap/hooks.h"

namespace bench {

/* A library on one heap for all runs. The process's own malloc counts as such a heap. */
class heap_client : public contestant {
public:
	/* aged: the heap has had many blocks, and some are left in it. */
	heap_client(const heap_hooks &hooks, bool aged);
	~heap_client() override;

protected:
	const heap_hooks hooks_;
	void *heap_;
};

/* Ends the process when a subject's result is empty or differs from the first subject's. */
void require_same(std::string &first, const std::string &result, const std::string &subject);

/* One subject for each heap; make(hooks, name) makes its contestant. */
using make_client = std::function<std::unique_ptr<contestant>(const heap_hooks &, const std::string &)>;
std::vector<subject> heap_subjects(const make_client &make);

/* A workload whose clients are made with these arguments and must agree on the result. */
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
