/* A market-data feed: each datagram becomes 30 to 80 objects, which are gone before the next one is
 * parsed. An arena drops them by one reset; `new` and `delete` do the same work on the same packets for
 * comparison. The result goes to standard output, the times of the packets to standard error. */
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <tenure/tenure.hpp>
#include <utility>
#include <vector>

#if defined(__unix__) || defined(__APPLE__)
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#endif

/* ---- the feed ---- */

struct packet {
	static constexpr size_t bytes_max = 1440;
	size_t size = 0;
	unsigned char bytes[bytes_max];
};

/* One update on the wire: symbol (8), side (1), quantity (4), price (4), in the sender's byte order. */
constexpr size_t update_bytes = 17;

class venue {
public:
	void fill(packet &p) {
		size_t count = 30 + next() % 51;
		p.size = 0;
		for (size_t i = 0; i < count; i++) {
			char symbol[9];
			std::snprintf(symbol, sizeof symbol, "SYM%05u", next() % 500);
			put(p, symbol, 8);
			put(p, next() % 2 == 0 ? "B" : "S", 1);
			uint32_t quantity = 100 * (1 + next() % 50), price = 9000 + next() % 2000;
			put(p, &quantity, sizeof quantity);
			put(p, &price, sizeof price);
		}
	}

private:
	static void put(packet &p, const void *field, size_t size) {
		std::memcpy(p.bytes + p.size, field, size);
		p.size += size;
	}
	/* The same feed every day. */
	uint32_t next() {
		state_ = state_ * 6364136223846793005u + 1442695040888963407u;
		return static_cast<uint32_t>(state_ >> 33);
	}

	uint64_t state_ = 1;
};

/* Two UDP sockets on the loopback; without sockets, packets are copied in memory. */
class line {
public:
	line() {
#if defined(__unix__) || defined(__APPLE__)
		sockaddr_in where{};
		where.sin_family = AF_INET;
		where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		socklen_t size = sizeof where;
		auto *address = reinterpret_cast<sockaddr *>(&where);
		timeval patience{1, 0};
		from_ = socket(AF_INET, SOCK_DGRAM, 0);
		to_ = socket(AF_INET, SOCK_DGRAM, 0);
		open_ = from_ >= 0 && to_ >= 0 && bind(to_, address, size) == 0 &&
		        getsockname(to_, address, &size) == 0 && connect(from_, address, size) == 0 &&
		        setsockopt(to_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0;
#endif
		if (!open_)
			std::fputs("no sockets here: the packets stay in memory\n", stderr);
	}
	line(const line &) = delete;
	line &operator=(const line &) = delete;
	~line() {
#if defined(__unix__) || defined(__APPLE__)
		close(from_);
		close(to_);
#endif
	}

	bool carry(const packet &sent, packet &received) {
#if defined(__unix__) || defined(__APPLE__)
		if (open_) {
			ssize_t size = -1;
			if (send(from_, sent.bytes, sent.size, 0) >= 0)
				size = recv(to_, received.bytes, sizeof received.bytes, 0);
			received.size = size < 0 ? 0 : static_cast<size_t>(size);
			return received.size == sent.size;
		}
#endif
		received = sent;
		return true;
	}

private:
	bool open_ = false;
	int from_ = -1, to_ = -1;
};

/* ---- the parser ---- */

struct update {
	update *next;
	char symbol[8];
	bool buys;
	uint32_t quantity, price;
};

/* The two ways to allocate an update and to drop all of them. */
struct from_arena {
	update *make() {
		return packet_memory.make<update>();
	}
	void drop(update *) {
		packet_memory.reset();
	}
	tenure::arena packet_memory{"packet"};
};

struct from_heap {
	update *make() {
		return new update();
	}
	void drop(update *list) {
		while (list != nullptr)
			delete std::exchange(list, list->next);
	}
};

template <class T> void take(const unsigned char *&at, T &field) {
	std::memcpy(&field, at, sizeof field);
	at += sizeof field;
}

template <class Memory> update *parse(const packet &p, Memory &memory) {
	update *list = nullptr;
	const unsigned char *at = p.bytes, *end = p.bytes + p.size;
	while (static_cast<size_t>(end - at) >= update_bytes) {
		update *u = memory.make();
		take(at, u->symbol);
		u->buys = *at++ == 'B';
		take(at, u->quantity);
		take(at, u->price);
		u->next = list;
		list = u;
	}
	return list;
}

template <class Memory> class consumer {
public:
	void handle(const packet &p) {
		auto start = std::chrono::steady_clock::now();
		update *list = parse(p, memory_);
		for (const update *u = list; u != nullptr; u = u->next) {
			updates_++;
			value_ += (u->buys ? 1 : -1) * static_cast<int64_t>(u->quantity) * u->price;
		}
		memory_.drop(list);
		times_.push_back(std::chrono::steady_clock::now() - start);
	}

	void print_sums(const char *name) const {
		std::printf("%s: %zu packets, %zu updates, value %lld\n", name, times_.size(), updates_,
			static_cast<long long>(value_));
	}
	void print_times(const char *name) {
		std::sort(times_.begin(), times_.end());
		std::fprintf(stderr, "%s: p50 %6lld ns, p99 %6lld ns, p99.9 %6lld ns, max %6lld ns\n", name,
			at(0.5), at(0.99), at(0.999), at(1));
	}

private:
	using duration = std::chrono::steady_clock::duration;

	/* The time that this fraction of the packets did not exceed. */
	long long at(double part) const {
		auto last = static_cast<double>(times_.size() - 1);
		duration time = times_[static_cast<size_t>(part * last)];
		return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
	}

	Memory memory_;
	std::vector<duration> times_;
	size_t updates_ = 0;
	int64_t value_ = 0;
};

int main() {
	venue feed;
	line wire;
	packet sent, received;
	consumer<from_arena> with_arena;
	consumer<from_heap> with_heap;
	for (int i = 0; i < 20000; i++) {
		feed.fill(sent);
		if (!wire.carry(sent, received)) {
			std::puts("a packet got lost");
			return 1;
		}
		/* They take turns at being first: the second one finds the packet in the cache. */
		if (i % 2 == 0)
			with_arena.handle(received);
		with_heap.handle(received);
		if (i % 2 == 1)
			with_arena.handle(received);
	}
	with_arena.print_sums("arena     ");
	with_heap.print_sums("new/delete");
	with_arena.print_times("arena     ");
	with_heap.print_times("new/delete");
	return 0;
}
