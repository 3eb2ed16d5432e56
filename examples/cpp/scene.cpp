/* A level of a game: its entities live in one arena and end with it, and each frame's scratch memory is
 * gone with the frame. */
#include <cstdio>
#include <string_view>
#include <tenure/tenure.hpp>

/* A resource outside the arena: the arena runs its destructor. */
struct texture {
	explicit texture(std::string_view file) : name(file) {
		loaded++;
	}
	~texture() {
		loaded--;
	}
	std::string_view name;
	static inline int loaded = 0;
};

struct entity {
	std::string_view name;
	int health = 0;
	texture *skin = nullptr;
	entity *first_child = nullptr, *next = nullptr;
};

static entity *add(tenure::arena &level, entity *parent, std::string_view name, int health) {
	auto *e = level.make<entity>();
	e->name = level.copy(name);
	e->health = health;
	if (parent != nullptr) {
		e->next = parent->first_child;
		parent->first_child = e;
	}
	return e;
}

static entity *load(tenure::arena &level, int orcs) {
	entity *world = add(level, nullptr, "world", 1);
	entity *cave = add(level, world, "cave", 1);
	for (int i = 1; i <= orcs; i++) {
		entity *orc = add(level, cave, level.printf("orc %d", i), 10 * i);
		orc->skin = level.make<texture>("orc.png");
		add(level, orc, "club", 5);
	}
	return world;
}

template <class Visit> void visit(entity *e, Visit f) {
	for (; e != nullptr; e = e->next) {
		f(e);
		visit(e->first_child, f);
	}
}

/* All living entities lose some health; their list is needed for this frame only. */
static void play(tenure::arena &level, entity *world, int frame) {
	tenure::arena::savepoint scratch(level);
	size_t count = 0, alive = 0;
	visit(world, [&](entity *) { count++; });
	entity **in_sight = level.make_array<entity *>(count);
	visit(world, [&](entity *e) {
		if (e->health > 0 && e->skin != nullptr)
			in_sight[alive++] = e;
	});
	for (size_t i = 0; i < alive; i++)
		in_sight[i]->health -= 8;
	std::puts(level.printf("  frame %d: %zu of %zu entities in sight", frame, alive, count));
}

int main() {
	tenure::arena level("level");
	for (int number = 1; number <= 2; number++) {
		entity *world = load(level, 2 * number);
		std::printf("level %d: %d textures\n", number, texture::loaded);
		size_t loaded = level.stats().live_bytes;
		for (int frame = 1; frame <= 3; frame++)
			play(level, world, frame);
		std::printf("  left behind by the frames: %zu bytes\n", level.stats().live_bytes - loaded);
		/* The level is over: one call, and the next level begins in the same warm memory. */
		level.reset();
		std::printf("  after it: %d textures, %zu bytes\n", texture::loaded, level.stats().live_bytes);
	}
	return 0;
}
