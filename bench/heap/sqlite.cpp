/* bench/heap/sqlite.cpp: the family `heap`: a database in memory, opened, filled, queried and closed.
 *
 * SQLite has one allocator for the process, which can be changed only while SQLite is shut down.
 * Every run therefore sets the allocator first and shuts SQLite down last; neither is measured. */
#include "heap/subjects.h"

#include <cstdlib>

namespace bench {
namespace {

constexpr unsigned customer_count = 50, purchase_count = 400, question_count = 200;

/* Statements as text, so that SQLite parses each one. */
std::vector<std::string> make_statements() {
	std::vector<std::string> all{
		"create table customer (id integer primary key, name text, town text);"
		"create table purchase (id integer primary key, customer integer, amount integer, note text);"
		"create index purchase_customer on purchase (customer); begin"};
	for (unsigned i = 0; i < customer_count; i++) {
		std::string n = std::to_string(i);
		all.push_back("insert into customer values (" + n + ", 'customer " + n + "', 'town " +
					  std::to_string(i % 7) + "')");
	}
	for (unsigned i = 0; i < purchase_count; i++) {
		std::string customer = std::to_string(i * 17 % customer_count);
		all.push_back("insert into purchase (customer, amount, note) values (" + customer + ", " +
					  std::to_string(i * 37 % 1000) + ", '" + std::string(10 + i % 90, 'x') + "')");
	}
	all.push_back("commit");
	for (unsigned i = 0; i < question_count; i++)
		all.push_back("select c.name || ', ' || c.town, p.amount, p.note from customer c "
					  "join purchase p on p.customer = c.id where c.id = " +
					  std::to_string(i % customer_count) + " and p.amount > " + std::to_string(i) +
					  " order by p.amount desc, p.id limit 10");
	return all;
}

const std::vector<std::string> &statements() {
	static const std::vector<std::string> all = make_statements();
	return all;
}

int add_row(void *result, int columns, char **values, char **) {
	for (int i = 0; i < columns; i++)
		*static_cast<std::string *>(result) += values[i][0];
	return 0;
}

class sqlite_client : public heap_client {
public:
	using heap_client::heap_client;

	uint64_t run(size_t repeats) override {
		set_up();
		uint64_t from = ticks();
		for (size_t r = 0; r < repeats; r++)
			live();
		uint64_t took = ticks() - from;
		require(sqlite3_shutdown());
		return took;
	}

	const std::string &result() {
		run(1);
		return result_;
	}

private:
	static void require(int code) {
		if (code == SQLITE_OK)
			return;
		std::fprintf(stderr, "sqlite: %s\n", sqlite3_errstr(code));
		std::exit(1);
	}

	void set_up() {
		hooks_.use(heap_);
		require(sqlite3_config(SQLITE_CONFIG_SINGLETHREAD));
		require(sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0));
		require(sqlite3_config(SQLITE_CONFIG_MALLOC, &hooks_.sqlite));
		require(sqlite3_initialize());
	}

	void live() {
		sqlite3 *database = nullptr;
		require(sqlite3_open(":memory:", &database));
		result_.clear();
		for (const std::string &s : statements())
			require(sqlite3_exec(database, s.c_str(), add_row, &result_, nullptr));
		require(sqlite3_close(database));
	}

	std::string result_; /* the first characters of all columns of all rows */
};

std::vector<workload> workloads() {
	return {heap_workload<sqlite_client>("sqlite-fresh", false),
		heap_workload<sqlite_client>("sqlite-aged", true)};
}

const registration sqlite("heap", workloads);

}
}
