/* A transaction that an exception may unwind: its objects are destroyed and its deferred calls run,
 * newest first, and the scope above goes on. */
#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>
#include <tenure/tenure.hpp>

using accounts = std::map<std::string, int>;

/* Held while accounts change; its destructor runs at the end of the scope that it was made in. */
struct lock {
	lock() {
		std::puts("  locked");
	}
	~lock() {
		std::puts("  unlocked");
	}
};

static void withdraw(accounts &all, const std::string &from, int amount) {
	if ((all[from] -= amount) < 0)
		throw std::runtime_error(from + " has too little");
}

static void transfer(
	tenure::scope &session, accounts &all, const char *from, const char *to, int amount) {
	tenure::scope transaction(session, "transaction");
	transaction.make<lock>();
	auto *rollback = transaction.defer([&all, before = all] {
		all = before;
		std::puts("  rolled back");
	});
	all[to] += amount;
	withdraw(all, from, amount);
	transaction.undefer(rollback);
	/* The session's log outlives the transaction. */
	std::puts(session.printf("  %s to %s: %d", from, to, amount));
}

int main() {
	accounts all = {{"ann", 100}, {"bob", 0}};
	tenure::scope session("session");
	for (int amount : {70, 60, 30}) {
		std::printf("transfer of %d\n", amount);
		try {
			transfer(session, all, "ann", "bob", amount);
		} catch (const std::exception &e) {
			std::printf("  %s\n", e.what());
		}
	}
	std::printf("ann %d, bob %d\n", all["ann"], all["bob"]);
	return 0;
}
